// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace driftd::host {

/// The host-owned limiter behind `permit`: 50 tokens a second, 100 at once (GCRA). Core thread.
class Rate {
 public:
  using Clock = std::chrono::steady_clock;
  /// When the next `tokens` may be used; they are taken. A request above the burst counts as the burst.
  Clock::time_point take(std::uint32_t tokens, Clock::time_point now) {
    const auto cost = kEach * std::clamp<std::int64_t>(tokens, 1, kBurst);
    full_at_ = std::max(full_at_, now) + cost;
    return std::max(now, full_at_ - kEach * kBurst);
  }

 private:
  static constexpr std::chrono::milliseconds kEach{20};
  static constexpr std::int64_t kBurst = 100;
  Clock::time_point full_at_{};
};

}  // namespace driftd::host
