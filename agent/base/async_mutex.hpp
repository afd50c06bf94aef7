// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <utility>

#include "base/task.hpp"

namespace driftd {

/// A mutex for coroutines: one at a time holds it, also across everything that it awaits. Waiters get it in the order
/// in which they came. For one thread; the mutex outlives its guards and its waiters.
class AsyncMutex {
 public:
  explicit AsyncMutex(asio::any_io_executor core) : core_(std::move(core)) {}

  /// Unlocks the mutex when it goes out of scope.
  class Guard {
   public:
    explicit Guard(AsyncMutex* mutex = nullptr) : mutex_(mutex) {}  ///< null: holds nothing
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      std::swap(mutex_, other.mutex_);
      return *this;
    }
    ~Guard() {
      if (mutex_ != nullptr) mutex_->unlock();
    }

   private:
    AsyncMutex* mutex_;  ///< null after a move
  };

  /// Returns once it is this caller's turn. A caller that holds it already waits for ever.
  Task<Guard> lock() {
    if (!locked_) {
      locked_ = true;
      co_return Guard(this);
    }
    auto wakeup = std::make_shared<asio::steady_timer>(core_, asio::steady_timer::time_point::max());
    waiting_.push_back(wakeup);
    co_await wakeup->async_wait(asio::as_tuple(asio::use_awaitable));
    co_return Guard(this);
  }

  bool locked() const { return locked_; }  ///< by anybody

 private:
  /// Passes the mutex to the first waiter, or unlocks it.
  void unlock() {
    if (waiting_.empty()) {
      locked_ = false;
      return;
    }
    const auto wakeup = waiting_.front();  // The mutex stays locked: it belongs to the first waiter now.
    waiting_.pop_front();
    wakeup->cancel();
  }

  asio::any_io_executor core_;                               ///< of the waiters
  bool locked_ = false;                                      ///< stays true while it passes from one to the next
  std::deque<std::shared_ptr<asio::steady_timer>> waiting_;  ///< one for each waiter; cancelled to wake it
};

}  // namespace driftd
