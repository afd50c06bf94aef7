// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "core/resource.hpp"

namespace driftd::engine {

/// Smooths the health of a backend before it is published (semantics 14). A state counts when 3 of the last 5 reports
/// agree. A backend that changes 4 times in 10 minutes is flapping: it gets one notice at the start, one after 5 quiet
/// minutes, and in between only for a state that lasts a minute. The first known state is not a change. Pure: the time
/// is a parameter.
class HealthSmoothing {
 public:
  using State = core::HealthReport::State;
  using Time = std::chrono::steady_clock::time_point;
  explicit HealthSmoothing(State known) : state_(known), published_(known), seen_(known != State::unknown) {}

  struct Notice {
    State before, now;  ///< the state of the last notice, and the smoothed one
    bool flapping_began = false, flapping_ended = false;
  };
  /// Returns the notice that is due after this report. Empty if nothing changed, or, while flapping, until a state has
  /// lasted a minute. Each report returns the notice again, updated, until published() is called.
  std::optional<Notice> report(State state, Time at);
  /// Call it when the notice is stored.
  void published(const Notice& notice);
  State state() const { return state_; }
  bool flapping() const { return flapping_; }  ///< while it is true, notices are rare

 private:
  void note_flapping(Time at);
  bool stands(Time at);  ///< the last notice has been wrong for a minute

  State state_, published_;                                ///< smoothed; as the last notice said
  std::deque<State> last_;                                 ///< the last five reports
  std::deque<Time> changes_;                               ///< of the smoothed state, in the last ten minutes
  std::optional<Time> differs_since_;                      ///< since when the state differs from the last notice
  bool seen_;                                              ///< a state has been known
  bool flapping_ = false, began_ = false, ended_ = false;  ///< flapping began or ended, and no notice says so yet
};

}  // namespace driftd::engine
