// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/rate_limiter.hpp"
#include "core/ports/control.hpp"

namespace driftd::engine {

/// Logs each reason why part of a backend cannot be judged, and its end: once, not in every cycle. A provider may give
/// other reasons each time, so at most 60 lines are logged at once and then one a second; `driftd status` has all
/// reasons. Core thread only.
class ReasonLog {
 public:
  using Print = std::function<void(bool warning, std::string line)>;
  explicit ReasonLog(Print print) : print_(std::move(print)) {}  ///< `print` gets one line at a time
  /// Logs which reasons of `now` are not in `before`, and which kinds have none any more.
  void log_changes(const std::vector<core::Coverage>& before, const std::vector<core::Coverage>& now,
                   RateLimiter::Clock::time_point at);

 private:
  void line(bool warning, std::string text, RateLimiter::Clock::time_point at);

  Print print_;
  RateLimiter rate_{std::chrono::seconds(1), 60};
  std::uint64_t suppressed_ = 0;  ///< lines that were not logged for their number
};

}  // namespace driftd::engine
