// SPDX-License-Identifier: Apache-2.0
#include "engine/hysteresis.hpp"

#include <algorithm>

namespace driftd::engine {
namespace {
constexpr std::size_t kWindow = 5;
constexpr std::ptrdiff_t kNeeded = 3;
constexpr std::size_t kFlaps = 4;
constexpr std::chrono::minutes kFlapWindow{10};
constexpr std::chrono::minutes kQuiet{5};
}  // namespace

std::optional<Hysteresis::Notice> Hysteresis::report(State state, Time at) {
  last_.push_back(state);
  if (last_.size() > kWindow) last_.pop_front();
  const bool first_sight = state_ == State::unknown && state == State::up;  // good news about the unknown need no proof
  const bool agreed = first_sight || std::count(last_.begin(), last_.end(), state) >= kNeeded;
  if (agreed && state != state_) {
    state_ = state;
    changes_.push_back(at);
  }
  while (!changes_.empty() && at - changes_.front() > kFlapWindow) changes_.pop_front();
  note_flapping(at);
  if (!began_ && !ended_ && (flapping_ || state_ == told_)) return std::nullopt;
  return Notice{told_, state_, began_, ended_};
}

void Hysteresis::note_flapping(Time at) {
  if (!flapping_ && changes_.size() >= kFlaps) {
    flapping_ = began_ = true;
  } else if (flapping_ && (changes_.empty() || at - changes_.back() >= kQuiet)) {
    flapping_ = false;
    ended_ = true;
  }
}

void Hysteresis::told(const Notice& notice) {
  told_ = notice.now;
  began_ = began_ && !notice.flapping_began;
  ended_ = ended_ && !notice.flapping_ended;
}

}  // namespace driftd::engine
