// SPDX-License-Identifier: Apache-2.0
#include "engine/health_smoothing.hpp"

#include <algorithm>
#include <utility>

namespace driftd::engine {
namespace {
constexpr std::size_t kWindow = 5;
constexpr std::ptrdiff_t kNeeded = 3;
constexpr std::size_t kFlaps = 4;
constexpr std::chrono::minutes kFlapWindow{10};
constexpr std::chrono::minutes kQuiet{5};
constexpr std::chrono::minutes kMuted{1};
}  // namespace

std::optional<HealthSmoothing::Notice> HealthSmoothing::report(State state, Time at) {
  last_.push_back(state);
  if (last_.size() > kWindow) last_.pop_front();
  // The first "up" of an unknown backend needs no second report.
  const bool first_sight = state_ == State::unknown && state == State::up;
  const bool agreed = first_sight || std::count(last_.begin(), last_.end(), state) >= kNeeded;
  if (agreed && state != state_) {
    if (std::exchange(seen_, true)) changes_.push_back(at);
    state_ = state;
  }
  while (!changes_.empty() && at - changes_.front() > kFlapWindow) changes_.pop_front();
  note_flapping(at);
  const bool stood = stands(at);
  if (!began_ && !ended_ && (state_ == published_ || (flapping_ && !stood))) return std::nullopt;
  return Notice{published_, state_, began_, ended_};
}

/// Returns true if the last notice has been wrong for a minute.
bool HealthSmoothing::stands(Time at) {
  if (state_ == published_) differs_since_.reset();
  if (state_ != published_ && !differs_since_) differs_since_ = at;
  return differs_since_ && at - *differs_since_ >= kMuted;
}

void HealthSmoothing::note_flapping(Time at) {
  if (!flapping_ && changes_.size() >= kFlaps) {
    flapping_ = began_ = true;
  } else if (flapping_ && (changes_.empty() || at - changes_.back() >= kQuiet)) {
    flapping_ = false;
    ended_ = true;
    changes_.clear();  // else the next report would start flapping again
  }
}

void HealthSmoothing::published(const Notice& notice) {
  published_ = notice.now;
  began_ = began_ && !notice.flapping_began;
  ended_ = ended_ && !notice.flapping_ended;
}

}  // namespace driftd::engine
