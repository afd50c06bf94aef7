// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <string>

namespace driftd::common {

/// Counts changes that the cursor did not show: compares each full listing with the one before it. Thread-safe.
class MissedChanges {
 public:
  /// Call after each complete listing. Returns true if the cursor is the same as last time but the listed content is
  /// not.
  /// An empty `cursor` never counts: it says nothing about changes.
  bool detect(const std::string& cursor, std::size_t digest) {
    const std::lock_guard lock(mutex_);
    const bool out = !cursor.empty() && cursor == cursor_ && digest != digest_;
    cursor_ = cursor;
    digest_ = digest;
    count_ += out ? 1 : 0;
    return out;
  }
  /// Returns how often detect() was true, as a metric.
  double count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;        ///< guards all of these
  std::string cursor_;      ///< of the last listing
  std::size_t digest_ = 0;  ///< of its content
  double count_ = 0;        ///< since the instance was opened
};

}  // namespace driftd::common
