// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <random>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "core/ports/sink.hpp"

namespace driftd::delivery {

using Time = std::chrono::steady_clock::time_point;
using Millis = std::chrono::milliseconds;

/// No schedule, and no receiver, makes an event wait longer: 24 h with its jitter.
inline constexpr Millis kLongestWait = std::chrono::hours(30);

/// When an event that failed is tried again (delivery.md, row "retry"). ±20 % jitter. Not thread-safe.
class RetrySchedule {
 public:
  explicit RetrySchedule(core::RetryPolicy policy, unsigned seed = std::random_device{}());
  /// Wait before the next attempt after `attempts` failed ones; nothing: the schedule is over, dead letter.
  /// `retry_after_ms` (0: not said; capped at 1 h) is a lower bound.
  std::optional<Millis> wait_after(int attempts, std::int64_t retry_after_ms);

 private:
  core::RetryPolicy policy_;
  std::minstd_rand random_;
};

/// Wait before a key is tried again whose failure blames nobody yet; the circuit's own waits. `failures` from 1.
Millis hold_after(bool forever, int failures, std::int64_t retry_after_ms);

/// Circuit breaker of one endpoint: closed; open until a time; then half-open: one probe decides. A sink of the forever
/// kind opens for 250 ms ×2 → 30 s, a webhook for 5 s ×2 → 5 min. Not thread-safe.
class Circuit {
 public:
  enum class State { closed, open, half_open };
  explicit Circuit(bool forever, unsigned seed = std::random_device{}());
  State state(Time now) const;
  Time open_until() const { return until_; }
  /// Opens (longer than before when the probe failed); while open it changes nothing but a longer Retry-After.
  void trip(Time now, std::int64_t retry_after_ms);
  /// Ends the wait of an open circuit: the endpoint says that it is back.
  void end_wait(Time now);
  void close();

 private:
  bool tripped_ = false;
  Time until_{};
  Backoff backoff_;
};

}  // namespace driftd::delivery
