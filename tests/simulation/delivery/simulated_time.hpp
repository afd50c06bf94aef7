// SPDX-License-Identifier: Apache-2.0
// Time as the simulated agent sees it. seams.cpp makes std::chrono::steady_clock and the timers of asio follow it.
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "base/clock.hpp"

namespace driftd::sim {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

/// The one simulated time of this process. It moves only when somebody moves it. One thread.
class SimulatedTime {
 public:
  static SimulatedTime& get();

  Time now() const { return now_; }
  /// Moves time to `to`, never back.
  void move_to(Time to);
  /// Returns when the next timer of an io_context is due. Empty if none is set.
  std::optional<Time> next_timer() const;
  /// Begins again at the first moment, for another simulation. To be called when there is no io_context.
  void begin_again();
  /// Forgets the timers of io_contexts that were destroyed. To be called when there is none.
  void forget_timers() { timers_.clear(); }

  /// Returns true if the timer behind a descriptor is due. Empty if there is no such timer.
  std::optional<bool> is_due(int descriptor) const;
  /// The timer behind a descriptor was set, to a time from now; empty: it was switched off.
  void set_timer(int descriptor, std::optional<Duration> in);

 private:
  static constexpr Time kFirst{std::chrono::hours(24)};
  Time now_ = kFirst;
  std::map<int, std::optional<Time>> timers_;  ///< when each is due, by descriptor
};

/// The clocks of the simulated agent. The wall clock begins at the same moment in each simulation.
class SimulatedClock final : public Clock {
 public:
  Nanos wall() const override;
  Time mono() const override { return SimulatedTime::get().now(); }
};

}  // namespace driftd::sim
