// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "base/rate_limiter.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::store {

/// Keeps store.db below retention.max_bytes: deletes history before its time, a bounded part in each round. Core
/// thread.
class SizeLimit {
 public:
  /// One round; `stopping` ends it early. Returns true if it must be reported that the store stays above `max_bytes`
  /// because too little in it may be deleted; that is at most once an hour.
  Task<Result<bool>> enforce(SqliteStore& store, std::int64_t max_bytes, std::function<bool()> stopping);
  /// The size of the store as of the last round.
  std::int64_t bytes() const { return bytes_; }

 private:
  void log_deleted(const Shrunk& sum, std::int64_t max_bytes) const;

  std::int64_t bytes_ = 0;
  int paused_rounds_ = 0;                                                ///< rounds left in which nothing is tried
  RateLimiter::Clock::time_point small_at_ = RateLimiter::Clock::now();  ///< when it last was below the limit
  RateLimiter log_rate_{std::chrono::hours(1), 1}, report_rate_{std::chrono::hours(1), 1};
};

}  // namespace driftd::store
