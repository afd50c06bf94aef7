// SPDX-License-Identifier: Apache-2.0
#include "engine/cycle_plan.hpp"

#include <algorithm>
#include <utility>

#include "engine/cycle_report.hpp"

namespace driftd::engine {
namespace {

// A full run at least so often, in case a cursor or a watch misses something.
constexpr std::chrono::minutes kFullEvery{10};
// Minimum time between cycles that hints start: a provider may hint without end.
constexpr std::chrono::milliseconds kHintsApart{500};
// Minimum time between full lists that are due because a watch sent records older than what is known.
constexpr std::chrono::minutes kRelistInterval{1};

}  // namespace

void CyclePlan::hint() {
  hinted_ = true;
  timer_.wake();
}

void CyclePlan::hint_full() {
  require_full();
  hint();
}

void CyclePlan::start_over() {
  ++plugins_;
  last_full_ = {};
  hint_full();
}

void CyclePlan::list_again(Time received) {
  relist_at_ = std::min(relist_at_, std::max(received, relisted_at_ + kRelistInterval));
  timer_.wake();
}

void CyclePlan::hold(bool held) {
  if (std::exchange(held_back_, held) && !held) timer_.wake();
}

CyclePlan::Time CyclePlan::next() const {
  const Time planned = schedule_.next();
  if (held_back_) return planned;
  const Time asked = hinted_ ? last_began_ : relist_at_;
  return std::min(planned, std::max(asked, last_began_ + kHintsApart));
}

void CyclePlan::answer_hints(Time now) {
  hinted_ = false;
  if (now < relist_at_) return;
  full_next_ = true;
  relisted_at_ = now;
  relist_at_ = Time::max();
}

CyclePlan::Pass CyclePlan::begin(bool asked, bool has_room, Time now) {
  if (left_out_ && has_room) {
    full_next_ = true;
    left_out_ = false;
  }
  const bool full = std::exchange(full_next_, false) || asked || now - last_full_ > kFullEvery;
  return {now, full, plugins_};
}

bool CyclePlan::finish(const Pass& pass, const CycleReport& report) {
  if (pass.plugins != plugins_) return false;
  if (pass.full && report.status) last_full_ = pass.began;
  // A cursor stands only for what was listed completely: after an incomplete run everything is read again.
  if (pass.full || !report.unchanged) full_next_ = full_next_ || !report.complete();
  return true;
}

}  // namespace driftd::engine
