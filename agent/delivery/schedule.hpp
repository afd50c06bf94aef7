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

/// The longest wait that any schedule or receiver can cause: 24 h with jitter.
inline constexpr Millis kLongestWait = std::chrono::hours(30);

/// Decides when a failed event is tried again (docs/delivery.md), with ±20 % jitter. Not thread-safe.
class RetrySchedule {
 public:
  explicit RetrySchedule(core::RetryPolicy policy, unsigned seed = std::random_device{}());
  /// Returns the wait before the next attempt after `attempts` failed ones. Empty if the schedule is exhausted: the
  /// event becomes a dead letter. `retry_after_ms` is a lower bound, capped at 1 h (0: the receiver did not say).
  std::optional<Millis> wait_after(int attempts, std::int64_t retry_after_ms);

 private:
  core::RetryPolicy policy_;
  std::minstd_rand random_;
};

/// Returns the wait before a key is tried again whose failure could not be blamed on the event or the endpoint yet. It
/// grows like the circuit's waits. `failures` counts from 1.
Millis hold_after(bool forever, int failures, std::int64_t retry_after_ms);

/// Circuit breaker of one endpoint: closed; open until a time; then half-open, where one probe decides. A sink of the
/// forever kind opens it for 250 ms ×2 → 30 s, a webhook for 5 s ×2 → 5 min. Not thread-safe.
class Circuit {
 public:
  enum class State { closed, open, half_open };
  explicit Circuit(bool forever, unsigned seed = std::random_device{}());
  State state(Time now) const;                ///< half_open: its wait is over, and nothing has succeeded since
  Time open_until() const { return until_; }  ///< end of the last wait
  /// Opens the circuit, for longer than before if a probe failed. While it is open, only a longer Retry-After changes
  /// anything.
  void trip(Time now, std::int64_t retry_after_ms);
  /// Ends the wait of an open circuit, because the endpoint reports that it is back.
  void end_wait(Time now);
  void close();  ///< the endpoint works: the next wait starts at the shortest again

 private:
  bool tripped_ = false;
  Time until_{};
  Backoff backoff_;
};

}  // namespace driftd::delivery
