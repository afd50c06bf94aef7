// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "driftd/consumer/event.hpp"

namespace driftd::consumer {

/// What a pattern has to remember of the events of one backend.
struct BackendMemory {
  std::string endpoint;         ///< what an event announced; empty: nothing
  std::string endpoint_from;    ///< the source's endpoint that it replaces
  bool endpoint_fresh = false;  ///< true until the source was asked for the endpoint that is replaced
  EventOrder endpoint_order;
  std::string health;
  EventOrder health_order;
  std::int64_t stream_created_ns = 0;  ///< of the stream that `stream_sequence` counts in
  std::uint64_t stream_sequence = 0;   ///< of the last message that was handled
};

/// What was applied, kept in a file (docs/consume.md, checkpoint). Any thread.
class Checkpoint {
 public:
  enum class Verdict { fresh, duplicate, old };

  /// Opens the file of a pattern, or starts without memory if `path` is empty or there is none yet. `invalid` if it is
  /// another pattern's or another process uses it. A damaged file is put aside under `<path>.damaged`; `note` says so.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& path, const std::string& owner, std::string& note);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Says whether an event is to be applied. It changes nothing.
  Verdict judge(const BackendEvent& event) const;
  /// Remembers that an event was applied.
  void applied(const BackendEvent& event);
  BackendMemory memory(const std::string& backend) const;
  template <class Change>
  void change(const std::string& backend, Change change) {
    const std::lock_guard lock(mutex_);
    change(backends_[backend]);
    dirty_ = true;
  }
  /// Writes the file and syncs it, if something changed. After a kill the file is whole, the earlier or the later one.
  Status save();

 private:
  Checkpoint(std::string path, std::string owner, int lock)
      : path_(std::move(path)),
        owner_(std::move(owner)),
        lock_(lock) {}
  std::string text() const;

  using Recent = std::list<std::pair<std::string, EventOrder>>;
  const std::string path_, owner_;
  int lock_ = -1;  ///< descriptor that holds the lock
  std::mutex saving_;
  mutable std::mutex mutex_;
  Recent recent_;  ///< the last order of each key; the key that was applied last is first
  std::unordered_map<std::string, Recent::iterator> by_key_;
  std::map<std::string, BackendMemory> backends_;
  bool dirty_ = false;
};

}  // namespace driftd::consumer
