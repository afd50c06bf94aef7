// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "common/missed_changes.hpp"

namespace driftd::redis {

/// The same for a server whose cursor is made of counters. Thread-safe.
class MissedChanges : public common::MissedChanges {
 public:
  /// Returns true once for each reset of the server's counters within one run (CONFIG RESETSTAT): the change stamp
  /// proves nothing this time.
  bool counters_fell(const std::string& run_id, long long processed) {
    const std::lock_guard lock(mutex_);
    const bool fell = run_id == run_id_ && processed < processed_;
    run_id_ = run_id;
    processed_ = processed;
    return fell;
  }

 private:
  std::mutex mutex_;
  std::string run_id_;
  long long processed_ = 0;
};

}  // namespace driftd::redis
