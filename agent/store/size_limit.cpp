// SPDX-License-Identifier: Apache-2.0
#include "store/size_limit.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace driftd::store {
namespace {

constexpr std::chrono::minutes kFullFor{5};  // it is reported if the store is above its limit for this long
constexpr int kPausedRounds = 12;            // a minute of the agent's maintenance
constexpr int kSlicesARound = 50;  // slices of 1,000 events in one round: more than the store receives meanwhile; other
                                   // work runs in between

}  // namespace

Task<Result<bool>> SizeLimit::enforce(SqliteStore& store, std::int64_t max_bytes, std::function<bool()> stopping) {
  if (paused_rounds_ > 0) {
    --paused_rounds_;
    co_return false;
  }
  Shrunk sum;
  bool more = true;
  for (int slice = 0; more && slice < kSlicesARound && !stopping(); ++slice) {
    DRIFTD_CO_TRY(const auto step, co_await store.shrink(max_bytes));
    bytes_ = step.bytes;
    sum.events += step.events;
    sum.drifts += step.drifts;
    sum.until = std::max(sum.until, step.until);
    more = step.more;
  }
  const auto now = RateLimiter::Clock::now();
  if (bytes_ <= max_bytes) small_at_ = now;
  if (sum.events + sum.drifts > 0 && log_rate_.try_take(now)) log_deleted(sum, max_bytes);
  const bool stuck = bytes_ > max_bytes && !more;
  if (stuck) paused_rounds_ = kPausedRounds;
  co_return (stuck || now - small_at_ > kFullFor) && report_rate_.try_take(now);
}

void SizeLimit::log_deleted(const Shrunk& sum, std::int64_t max_bytes) const {
  log::room("store").warn(
      "store.db held more than retention.max_bytes ({} of {} bytes): {} events and {} ended drifts were deleted "
      "before their time, events up to {}; this continues while the store fills, and is reported once an hour",
      bytes_, max_bytes, sum.events, sum.drifts, render_time(sum.until));
}

}  // namespace driftd::store
