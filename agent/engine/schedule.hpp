// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <random>

namespace driftd::engine {

/// Computes when the next cycle of a backend starts (semantics 17). `interval` is the maximum age of an observation of
/// a healthy backend, counted from the start of its read, so the next start is last start + interval − p95 duration −
/// jitter. Not thread-safe. Deterministic except for the jitter, which is seeded.
class Schedule {
 public:
  using Clock = std::chrono::steady_clock;
  using Millis = std::chrono::milliseconds;
  explicit Schedule(Millis interval, unsigned seed = std::random_device{}());  ///< `seed` is for the jitter

  /// How a cycle ended. `unstored`: the backend answered, but the store could not commit (a full disk).
  enum class Outcome { succeeded, failed, unstored };
  void record_cycle(Clock::time_point start, Clock::time_point end, Outcome how);  ///< computes next()
  void set_interval(Millis interval) { interval_ = interval; }
  /// Stretches the interval under backpressure; 1 means not at all.
  void set_stretch(int factor) { stretch_ = factor; }
  /// The provider asks for a call after `next`. It gets one no earlier than 500 ms after the last start; the interval
  /// still holds.
  void hint(Millis next) { hint_ = next; }

  Clock::time_point next() const { return next_; }
  Millis p95() const;                                  ///< duration of the last cycles; 0 before the first one
  bool late() const { return 2 * p95() > interval_; }  ///< the interval cannot be kept
  /// Returns the maximum age that can be kept: the interval, or twice the p95 duration if that is longer.
  Millis achievable() const { return std::max(interval_, 2 * p95()); }
  bool backing_off() const { return failures_ > 0; }  ///< the last cycle failed
  Millis interval() const { return interval_; }

 private:
  Millis backoff(Millis max);

  Millis interval_;
  Millis hint_{0};
  int stretch_ = 1;
  int failures_ = 0;              ///< in a row
  std::deque<Millis> durations_;  ///< of the last 20 cycles
  Clock::time_point next_{};
  std::minstd_rand random_;
};

}  // namespace driftd::engine
