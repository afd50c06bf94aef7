// SPDX-License-Identifier: Apache-2.0
// What putting values back does under a clock that was ahead, and when another system stands at the endpoint.
#include "unit/engine/enforcing_engine.hpp"

namespace driftd::test {
namespace {

using core::EnforcementState;
using core::HoldReason;
using std::chrono::hours;
using std::chrono::minutes;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class EnforceBounds : public EnforcingEngine {
 protected:
  HoldReason reason() { return held().begin()->second.reason; }
  Status resume(const core::Drift& drift) {
    return line_->wait(line_->engine().lift_stop(drift.id, {"kim", "looked", {}, line_->clock->wall()}));
  }
};

TEST_F(EnforceBounds, AClockThatWasAheadHoldsTheHourLimitForAnHour) {
  line_->enforce.per_hour = 1;
  begin();
  line_->clock->step(hours(24 * 365));
  set(1, 9);
  refresh();
  ASSERT_THAT(written(), SizeIs(1)) << "a year ahead";
  line_->clock->step(-hours(24 * 365));
  set(2, 9);
  refresh();
  EXPECT_THAT(written(), SizeIs(1));
  ASSERT_THAT(held(), SizeIs(1));
  EXPECT_EQ(reason(), HoldReason::hour_limit);
  EXPECT_LE(held().begin()->second.until.value(), line_->clock->wall() + std::chrono::nanoseconds(hours(1)).count());
  line_->clock->pass(minutes(61));
  refresh();
  EXPECT_EQ(body(2), R"({"partitions":3})");
}

TEST_F(EnforceBounds, AClockThatWasAheadHoldsTheHourLimitNoLongerAlsoAfterARestart) {
  line_->enforce.per_hour = 1;
  begin();
  line_->clock->step(hours(24 * 365));
  set(1, 9);
  refresh();
  ASSERT_THAT(written(), SizeIs(1));
  line_->clock->step(-hours(24 * 365));
  again();
  line_->world->applied.clear();
  set(2, 9);
  refresh();
  EXPECT_EQ(reason(), HoldReason::hour_limit);
  line_->clock->pass(minutes(61));
  refresh();
  EXPECT_EQ(body(2), R"({"partitions":3})");
}

TEST_F(EnforceBounds, AValueThatWasSeenByAClockAheadIsOldEnoughAfterItsAge) {
  line_->enforce.minimum_age = hours(1);
  begin();
  line_->clock->step(hours(24 * 365));
  set(1, 9);
  refresh();
  line_->clock->step(-hours(24 * 365));
  refresh();
  EXPECT_EQ(reason(), HoldReason::too_young);
  line_->clock->pass(minutes(59));
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  line_->clock->pass(minutes(2));
  refresh();
  EXPECT_EQ(body(1), R"({"partitions":3})");
}

/// Between the cycle's own check and the write another system takes the address over.
TEST_F(EnforceBounds, NothingIsWrittenToAnotherSystemThatAnswersSince) {
  begin();
  set(1, 9);
  line_->world->apply = [this](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
    if (request.dry_run) line_->world->identity = "system-2";
    return std::nullopt;
  };
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  ASSERT_THAT(operations(), SizeIs(1));
  EXPECT_EQ(operations()[0].state, EnforcementState::conflict);
  EXPECT_THAT(operations()[0].text, HasSubstr("another system answers at the endpoint (identity system-2"));
  line_->world->apply = {};
  line_->world->identity = "system-1";
  refresh();
  EXPECT_EQ(body(1), R"({"partitions":3})");
}

TEST_F(EnforceBounds, NothingIsWrittenToASystemThatDoesNotSayWhichOneItIs) {
  begin();
  set(1, 9);
  line_->world->apply = [this](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
    if (request.dry_run) line_->world->health_fails = Error{Code::unavailable, "the probe fails"};
    return std::nullopt;
  };
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_THAT(operations().at(0).text, HasSubstr("the probe fails"));
}

/// What was half done in the accepted system is not taken back in another one.
TEST_F(EnforceBounds, NothingIsTakenBackInAnotherSystem) {
  for (int i = 0; i < 30; ++i) line_->world->resources[thing(i)] = R"({"a":1,"b":2})";
  begin();
  line_->world->resources[thing(1)] = R"({"a":8,"b":9})";
  line_->world->apply = [this](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
    if (request.dry_run) return std::nullopt;
    line_->world->resources[thing(1)] = R"({"a":1,"b":9})";
    line_->world->identity = "system-2";
    core::ApplyOutcome out;
    out.result = core::ApplyOutcome::Result::success;
    return out;
  };
  refresh();
  EXPECT_THAT(written(), SizeIs(1));
  EXPECT_EQ(operations().at(0).state, EnforcementState::rollback_failed);
  EXPECT_THAT(operations()[0].text, HasSubstr("it was not taken back: another system answers"));
}

/// Calls that ended well count as tries, too. What a person may lift is not waited for.
TEST_F(EnforceBounds, ResumeLiftsTheLimitOfTriesAlsoIfEachOfThemEndedWell) {
  line_->enforce.tries = 2;
  begin();
  for (int round = 0; round < 3; ++round) {
    set(1, 9);
    refresh();
  }
  ASSERT_THAT(written(), SizeIs(2));
  const core::Drift drift = line_->drifts().at(0);
  ASSERT_EQ(held().at(drift.id).reason, HoldReason::tries);
  const Status lifted = resume(drift);
  ASSERT_TRUE(lifted) << lifted.error().message;
  refresh();
  EXPECT_EQ(body(1), R"({"partitions":3})");
}

TEST_F(EnforceBounds, ResumeSaysThatNothingWaitsForAPerson) {
  line_->enforce.minimum_age = hours(1);
  begin();
  set(1, 9);
  refresh();
  const core::Drift drift = line_->drifts().at(0);
  ASSERT_EQ(held().at(drift.id).reason, HoldReason::too_young);
  const Status lifted = resume(drift);
  ASSERT_FALSE(lifted);
  EXPECT_EQ(lifted.error().code, Code::conflict);
}

}  // namespace
}  // namespace driftd::test
