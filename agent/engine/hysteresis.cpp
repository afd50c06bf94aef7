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
  return settle(at);
}

std::optional<Hysteresis::Notice> Hysteresis::settle(Time at) {
  if (!flapping_ && changes_.size() >= kFlaps) {
    flapping_ = true;
    const Notice notice{told_, state_, true, false};
    told_ = state_;
    return notice;
  }
  if (flapping_) {
    if (!changes_.empty() && at - changes_.back() < kQuiet) return std::nullopt;
    flapping_ = false;
    const Notice notice{told_, state_, false, true};
    told_ = state_;
    return notice;
  }
  if (state_ == told_) return std::nullopt;
  const Notice notice{told_, state_, false, false};
  told_ = state_;
  return notice;
}

}  // namespace driftd::engine
