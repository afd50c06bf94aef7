// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <string>

namespace driftd::redis {

/// Remembers what the last whole listing saw, so that a full sweep can count what the cursor had not shown. Any thread.
class Sweeps {
 public:
  /// After a whole listing. True: its cursor is that of the last one, what was listed is not.
  bool missed(const std::string& cursor, std::size_t digest) {
    const std::lock_guard lock(mutex_);
    const bool out = !cursor.empty() && cursor == cursor_ && digest != digest_;
    cursor_ = cursor;
    digest_ = digest;
    count_ += out ? 1 : 0;
    return out;
  }
  double count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  /// Counters of the run that fell were reset: the gate says nothing this time. Told once for each fall.
  bool counters_fell(const std::string& run_id, long long processed) {
    const std::lock_guard lock(mutex_);
    const bool fell = run_id == run_id_ && processed < processed_;
    run_id_ = run_id;
    processed_ = processed;
    return fell;
  }

 private:
  std::mutex mutex_;
  std::string cursor_;
  std::size_t digest_ = 0;
  double count_ = 0;
  std::string run_id_;
  long long processed_ = 0;
};

}  // namespace driftd::redis
