// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "common/missed_changes.hpp"
#include "redis/info.hpp"

namespace driftd::redis {

/// The same for a server whose cursor is made of counters. Thread-safe.
class MissedChanges : public common::MissedChanges {
 public:
  /// Returns true once for each reset of the server's counters within one run (CONFIG RESETSTAT): the change stamp
  /// proves nothing this time. They are reset all at once, so one that fell or is gone is enough.
  bool counters_fell(const std::string& run_id, Counters counters) {
    const std::lock_guard lock(mutex_);
    const Counters last = std::exchange(counters_, std::move(counters));
    if (std::exchange(run_id_, run_id) != run_id) return false;
    return std::any_of(last.begin(), last.end(), [this](const auto& counter) {
      const auto now = counters_.find(counter.first);
      return now == counters_.end() || now->second < counter.second;
    });
  }

 private:
  std::mutex mutex_;
  std::string run_id_;
  Counters counters_;
};

}  // namespace driftd::redis
