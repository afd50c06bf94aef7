// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace driftd {

/// A rate limiter (GCRA): one token per `interval`, at most `burst` at once. The defaults are those of the host's
/// `permit` limiter: 50 tokens a second, burst 100. Not thread-safe.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  RateLimiter() = default;
  RateLimiter(std::chrono::milliseconds interval, std::int64_t burst)
      : interval_(interval),
        burst_(burst) {}  ///< `burst` from 1 on

  /// Reserves `tokens` and returns the time from which they may be used. A request above the burst counts as the burst.
  /// It always succeeds: the caller waits until that time, or the tokens are lost.
  Clock::time_point reserve(std::uint32_t tokens, Clock::time_point now) {
    const auto cost = interval_ * std::clamp<std::int64_t>(tokens, 1, burst_);
    full_at_ = std::max(full_at_, now) + cost;
    return std::max(now, full_at_ - interval_ * burst_);
  }
  /// Takes one token if one is available now.
  /// Returns false, and takes nothing, if there is none.
  bool try_take(Clock::time_point now) {
    if (full_at_ + interval_ - interval_ * burst_ > now) return false;
    full_at_ = std::max(full_at_, now) + interval_;
    return true;
  }
  bool full(Clock::time_point now) const { return full_at_ <= now; }  ///< true if the whole burst is available

 private:
  std::chrono::milliseconds interval_{20};  ///< between two tokens
  std::int64_t burst_ = 100;                ///< tokens
  Clock::time_point full_at_{};             ///< when the whole burst is available again
};

}  // namespace driftd
