// SPDX-License-Identifier: Apache-2.0
#include "core/enforce/brakes.hpp"

#include <gmock/gmock.h>

namespace driftd::test {
namespace {

using core::Candidate;
using core::Enforcement;
using core::EnforcementState;
using core::HoldReason;
using testing::AllOf;
using testing::HasSubstr;

constexpr Nanos kSecond = 1'000'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
constexpr Nanos kNow = 1'795'392'000 * kSecond + 12 * kHour;  // a Monday, 12:00

class Brakes : public testing::Test {
 protected:
  Brakes() {
    settings_.allowed_globally = settings_.allowed_here = true;
    settings_.owner = "west/edge-1";
    state_.now_ns = kNow;
    state_.cycle_began_ns = kNow - kSecond;
    state_.history = &history_;
    state_.stops = &stops_;
    state_.wanted = &wanted_;
  }
  static Candidate candidate(int number = 1, const std::string& target = "3") {
    Candidate out;
    out.drift.id = "d-" + std::to_string(number);
    out.drift.resource = {"thing", "t" + std::to_string(number)};
    out.drift.opened_ns = out.drift.updated_ns = kNow - 2 * kHour;
    out.drift.changes = {{"size", core::ChangeClass::config, target, "9", false}};
    out.drift.digest = core::digest_of(out.drift.changes, out.drift.against);
    out.plan = {{"size", core::ChangeClass::config, "9", target, false}};
    return out;
  }
  Enforcement& made(const Candidate& of, EnforcementState state, Nanos ago) {
    Enforcement out;
    out.id = "op-" + std::to_string(history_.size());
    out.resource = of.drift.resource;
    out.drift_id = of.drift.id;
    out.digest = of.drift.digest;
    out.changes = of.plan;
    out.state = state;
    out.attempts = 1;
    out.planned_ns = out.updated_ns = kNow - ago;
    history_.push_back(out);
    return history_.back();
  }
  std::optional<HoldReason> held(const Candidate& candidate) {
    const auto hold = core::hold_of(candidate, settings_, state_);
    if (!hold) return std::nullopt;
    EXPECT_NE(hold->text, "") << "a person must be told why";
    until_ = hold->until;
    text_ = hold->text;
    return hold->reason;
  }
  core::EnforceSettings settings_;
  core::BrakeState state_;
  std::vector<Enforcement> history_;
  std::vector<core::EnforcementStop> stops_;
  std::map<std::string, int> wanted_;
  std::optional<Nanos> until_;
  std::string text_;
};

TEST_F(Brakes, LetAnOldEnoughDriftGo) { EXPECT_EQ(held(candidate()), std::nullopt); }

TEST_F(Brakes, AreAllOnByDefault) {
  settings_ = {};
  EXPECT_EQ(held(candidate()), HoldReason::not_allowed);
  settings_.allowed_globally = true;
  EXPECT_EQ(held(candidate()), HoldReason::not_allowed);
  settings_.allowed_globally = false;
  settings_.allowed_here = true;
  Candidate asked = candidate();
  asked.cause = core::EnforcementCause::person;
  EXPECT_EQ(held(asked), HoldReason::not_allowed) << "also what a person asks for";
}

TEST_F(Brakes, TheSwitchStopsEverything) {
  state_.off = "switched off by kim";
  Candidate asked = candidate();
  asked.cause = core::EnforcementCause::person;
  EXPECT_EQ(held(candidate()), HoldReason::off);
  EXPECT_EQ(held(asked), HoldReason::off);
}

TEST_F(Brakes, TheMinimumAgeCountsFromTheLastMoveToTheNanosecond) {
  Candidate one = candidate();
  one.drift.updated_ns = kNow - kHour + 1;
  EXPECT_EQ(held(one), HoldReason::too_young);
  EXPECT_EQ(until_, kNow + 1);
  one.drift.updated_ns = kNow - kHour;
  EXPECT_EQ(held(one), std::nullopt);
  one.drift.updated_ns = kNow;
  one.cause = core::EnforcementCause::person;
  EXPECT_EQ(held(one), std::nullopt) << "who asks for it has looked at it";
}

TEST_F(Brakes, WindowsHoldPoliciesButNotPeople) {
  settings_.windows = {*core::parse_window("Mon 22:00-23:00")};
  EXPECT_EQ(held(candidate()), HoldReason::window);
  EXPECT_EQ(until_, kNow + 10 * kHour);
  Candidate asked = candidate();
  asked.cause = core::EnforcementCause::person;
  EXPECT_EQ(held(asked), std::nullopt);
  settings_.windows.push_back(*core::parse_window("Mon 11:59-12:01"));
  EXPECT_EQ(held(candidate()), std::nullopt);
}

TEST_F(Brakes, TheBlastRadiusOfACycleStopsAtItsNumber) {
  settings_.per_cycle = 3;
  for (int i = 10; i < 12; ++i) made(candidate(i), EnforcementState::failed, 0);
  made(candidate(12), EnforcementState::done, 5 * kSecond);        // of the cycle before
  made(candidate(13), EnforcementState::refused, 0).attempts = 0;  // its dry run was refused: nothing was changed
  EXPECT_EQ(held(candidate()), std::nullopt);
  made(candidate(14), EnforcementState::done, 0);
  EXPECT_EQ(held(candidate()), HoldReason::cycle_limit);
}

TEST_F(Brakes, TheBlastRadiusOfAnHourStopsAtItsNumberAndSaysWhenItIsFree) {
  settings_.per_hour = 4;
  for (int i = 0; i < 4; ++i) made(candidate(10 + i), EnforcementState::done, (59 - i) * kMinute);
  EXPECT_EQ(held(candidate()), HoldReason::hour_limit);
  EXPECT_EQ(until_, kNow + kMinute);
  history_.front().planned_ns = kNow - kHour;
  EXPECT_EQ(held(candidate()), std::nullopt);
}

TEST_F(Brakes, AtMostFiveTriesInTenMinutes) {
  Enforcement& one = made(candidate(), EnforcementState::failed, 9 * kMinute);
  one.attempts = 3;
  made(candidate(), EnforcementState::failed, kMinute);
  EXPECT_EQ(held(candidate()), std::nullopt);
  made(candidate(), EnforcementState::failed, kMinute).attempts = 0;
  EXPECT_EQ(held(candidate()), HoldReason::tries) << "a dry run that fails is a try, too";
  EXPECT_EQ(until_, kNow + kMinute);
  EXPECT_EQ(held(candidate(2)), std::nullopt) << "of another resource";
  history_.front().updated_ns = kNow - 10 * kMinute;
  EXPECT_EQ(held(candidate()), std::nullopt);
}

TEST_F(Brakes, WhatTheSystemRefusesIsNotTriedAgainBeforeTheValueMoves) {
  made(candidate(), EnforcementState::refused, 3 * kHour).text = "the server says no";
  EXPECT_EQ(held(candidate()), HoldReason::refused);
  EXPECT_THAT(text_, HasSubstr("the server says no"));
  Candidate moved = candidate();
  moved.drift.digest = "another";
  EXPECT_EQ(held(moved), std::nullopt);
  Candidate asked = candidate();
  asked.cause = core::EnforcementCause::person;
  EXPECT_EQ(held(asked), std::nullopt);
}

TEST_F(Brakes, WhatNobodyKnowsTheEndOfWaitsForAPerson) {
  for (const auto state : {EnforcementState::unknown, EnforcementState::rollback_failed}) {
    history_.clear();
    made(candidate(), state, 3 * kHour);
    Candidate asked = candidate();
    asked.cause = core::EnforcementCause::person;
    EXPECT_EQ(held(asked), HoldReason::unresolved);
    EXPECT_THAT(text_, HasSubstr("driftd enforce resume d-1"));
  }
  for (auto& one : history_) one.forgiven = true;
  EXPECT_EQ(held(candidate()), std::nullopt) << "the person has looked";
  made(candidate(), EnforcementState::applying, 0);
  EXPECT_EQ(held(candidate()), HoldReason::unresolved) << "one that is under way is";
}

TEST_F(Brakes, AStopHoldsItsResourceUntilItIsLifted) {
  stops_.push_back({"", candidate().drift.resource, "two writers", "driftd", kNow - kHour, {}, ""});
  EXPECT_EQ(held(candidate()), HoldReason::stopped);
  EXPECT_THAT(text_, AllOf(HasSubstr("two writers"), HasSubstr("driftd enforce resume d-1")));
  EXPECT_EQ(held(candidate(2)), std::nullopt);
  stops_.front().lifted_ns = kNow;
  EXPECT_EQ(held(candidate()), std::nullopt);
}

TEST_F(Brakes, AnotherOwnersResourceIsNotTouched) {
  Candidate one = candidate();
  one.owner = "east/edge-1";
  EXPECT_EQ(held(one), HoldReason::owned);
  EXPECT_THAT(text_, AllOf(HasSubstr("east/edge-1"), HasSubstr("west/edge-1")));
  one.owner = settings_.owner;
  EXPECT_EQ(held(one), std::nullopt);
}

TEST_F(Brakes, OneOfManyGoesFirstAndTheOthersAfterItWasConfirmedInAnEarlierCycle) {
  wanted_[core::canary_key(candidate().drift.resource, candidate().plan)] = 3;
  EXPECT_EQ(held(candidate(1)), std::nullopt);
  made(candidate(1), EnforcementState::done, 0);
  EXPECT_EQ(held(candidate(2)), HoldReason::canary) << "confirmed, but in this cycle";
  history_.front().planned_ns = state_.cycle_began_ns - 1;
  EXPECT_EQ(held(candidate(2)), std::nullopt);
  made(candidate(2), EnforcementState::done, 0);
  EXPECT_EQ(held(candidate(3)), std::nullopt) << "only the first one is a canary";
  EXPECT_EQ(held(candidate(4, "5")), std::nullopt) << "another change";
}

TEST_F(Brakes, AFailedCanaryHoldsTheOthersAndMayTryAgain) {
  wanted_[core::canary_key(candidate().drift.resource, candidate().plan)] = 3;
  made(candidate(1), EnforcementState::failed, kMinute);
  EXPECT_EQ(held(candidate(2)), HoldReason::canary);
  EXPECT_EQ(held(candidate(1)), std::nullopt);
}

TEST_F(Brakes, AFightStopsAfterThreeRoundsAndNamesBothWriters) {
  Candidate moved = candidate();
  moved.writer = "manager kubectl";
  const auto fight = [&] { return core::fight_of(moved, settings_, state_, "driftd edge-1"); };
  made(candidate(), EnforcementState::done, 3 * kHour);
  made(candidate(), EnforcementState::failed, 2 * kHour);
  made(candidate(), EnforcementState::done, 2 * kHour);
  EXPECT_EQ(fight(), "");
  made(candidate(), EnforcementState::done, kHour);
  EXPECT_THAT(fight(), AllOf(HasSubstr("driftd edge-1"), HasSubstr("3 times (op-0, op-2, op-3)"),
                             HasSubstr("manager kubectl"), HasSubstr("size 3 → 9")));
  history_.front().forgiven = true;
  EXPECT_EQ(fight(), "") << "a person has lifted it: what was before does not count";
}

TEST_F(Brakes, NoReasonIsWithoutAName) {
  for (int i = 0; i <= static_cast<int>(HoldReason::later); ++i)
    EXPECT_NE(core::render(static_cast<HoldReason>(i)), "");
  for (int i = 0; i <= static_cast<int>(EnforcementState::undone); ++i) {
    const auto state = static_cast<EnforcementState>(i);
    EXPECT_EQ(core::parse_enforcement_state(core::render(state)), state);
  }
}

}  // namespace
}  // namespace driftd::test
