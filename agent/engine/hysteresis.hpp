// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "core/resource.hpp"

namespace driftd::engine {

/// Health of a backend as published to others (semantics 14): a state counts when 3 of the last 5 reports agree; a
/// backend that changes 4 times in 10 minutes flaps: one notice at the start, one when it has been quiet for 5 minutes,
/// and in between only a state that stands for a minute. The first state that is seen is no change. Pure: time is
/// passed in.
class Hysteresis {
 public:
  using State = core::HealthReport::State;
  using Time = std::chrono::steady_clock::time_point;
  explicit Hysteresis(State known) : state_(known), published_(known), seen_(known != State::unknown) {}

  struct Notice {
    State before, now;
    bool flapping_began = false, flapping_ended = false;
  };
  /// What has to be published after this report; nothing while nothing changed, or for a minute while it flaps. The
  /// same again, brought up to date, until published().
  std::optional<Notice> report(State state, Time at);
  /// This notice reached the store.
  void published(const Notice& notice);
  State state() const { return state_; }
  bool flapping() const { return flapping_; }

 private:
  void note_flapping(Time at);
  bool stands(Time at);

  State state_, published_;
  std::deque<State> last_;
  std::deque<Time> changes_;
  std::optional<Time> differs_since_;  ///< since when the state is another one than in the last notice
  bool seen_;                          ///< a state was known before
  bool flapping_ = false, began_ = false, ended_ = false;  ///< the last two: not published yet
};

}  // namespace driftd::engine
