// SPDX-License-Identifier: Apache-2.0
// Connections of one slot, shared by the application's threads.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace example {

/// Keeps idle connections. Each operation borrows one, so as many are open as operations ran at once, up to `kMaxIdle`
/// idle ones. replace() makes later operations use connections that are opened in another way; running operations end
/// on theirs. Any thread.
template <class Connection>
class ConnectionPool {
 public:
  using Pointer = std::unique_ptr<Connection, void (*)(Connection*)>;
  /// Opens one connection, or returns null. Must end within seconds.
  using Open = std::function<Pointer()>;

  ConnectionPool(Open open, Pointer first) : open_(std::move(open)) { idle_.push_back(std::move(first)); }

  /// A borrowed connection, which goes back when it ends, unless it was found broken.
  class Borrowed {
   public:
    Borrowed(ConnectionPool& pool, Pointer connection, int generation)
        : pool_(pool),
          connection_(std::move(connection)),
          generation_(generation) {}
    ~Borrowed() {
      if (connection_) pool_.put_back(std::move(connection_), generation_);
    }
    Connection* get() const { return connection_.get(); }
    void drop() { connection_.reset(); }

   private:
    ConnectionPool& pool_;
    Pointer connection_;
    int generation_;
  };

  Borrowed borrow() {
    for (;;) {
      Open open;
      int generation = 0;
      {
        const std::lock_guard lock(mutex_);
        generation = generation_;
        if (!idle_.empty()) {
          Pointer out = std::move(idle_.back());
          idle_.pop_back();
          return Borrowed(*this, std::move(out), generation);
        }
        open = open_;
      }
      Pointer out = open();  // without the lock: it takes a while
      const std::lock_guard lock(mutex_);
      // A credential that was replaced meanwhile may have been refused: try the new one.
      if (out || generation == generation_) return Borrowed(*this, std::move(out), generation);
    }
  }

  void replace(Open open, Pointer first) {
    std::vector<Pointer> former;  // closed after the lock is released
    const std::lock_guard lock(mutex_);
    ++generation_;
    open_ = std::move(open);
    former.swap(idle_);
    idle_.push_back(std::move(first));
  }

  /// Keeps no connection any longer. Who still holds the slot can end its operation.
  void close() {
    std::vector<Pointer> former;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    former.swap(idle_);
  }

 private:
  static constexpr std::size_t kMaxIdle = 16;

  void put_back(Pointer connection, int generation) {
    const std::lock_guard lock(mutex_);
    if (!closed_ && generation == generation_ && idle_.size() < kMaxIdle) idle_.push_back(std::move(connection));
  }

  std::mutex mutex_;
  Open open_;
  std::vector<Pointer> idle_;
  int generation_ = 0;
  bool closed_ = false;
};

}  // namespace example
