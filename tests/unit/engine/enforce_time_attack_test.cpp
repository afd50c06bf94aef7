// SPDX-License-Identifier: Apache-2.0
// Brakes under clocks and windows that move while values are put back.
#include "unit/engine/enforcing_engine.hpp"

namespace driftd::test {
namespace {

using core::EnforcementState;
using std::chrono::hours;
using std::chrono::minutes;
using testing::HasSubstr;
using testing::SizeIs;

using Outcome = std::optional<Result<core::ApplyOutcome>>;

class EnforcementInTime : public EnforcingEngine {
 protected:
  /// A window of every day, open from a minute ago for five minutes.
  core::MaintenanceWindow open_now() const {
    constexpr int kDay = 24 * 60;
    const auto minute = static_cast<int>(line_->clock->wall() / 60'000'000'000 % kDay);
    core::MaintenanceWindow out;
    out.days = 0x7f;
    out.begin_min = (minute + kDay - 1) % kDay;
    out.end_min = (minute + 5) % kDay;
    out.text = "now";
    return out;
  }
  /// The provider asks to come again in ten minutes.
  void asks_for_patience(core::ApplyOutcome::Result how) {
    line_->world->apply = [how](const core::ApplyRequest& request) -> Outcome {
      if (request.dry_run) return std::nullopt;
      core::ApplyOutcome out;
      out.result = how;
      out.requeue_after = minutes(10);
      out.text = "not now";
      return out;
    };
  }
};

/// A call that is made again is a write, too.
TEST_F(EnforcementInTime, ARetryIsNotMadeOutsideOfTheWindow) {
  line_->enforce.windows = {open_now()};
  begin();
  set(1, 9);
  asks_for_patience(core::ApplyOutcome::Result::requeue);
  refresh();
  ASSERT_THAT(written(), SizeIs(1));
  line_->clock->pass(minutes(20));
  refresh();
  EXPECT_THAT(written(), SizeIs(1));
  EXPECT_EQ(operations().at(0).state, EnforcementState::failed);
  EXPECT_THAT(operations()[0].text, HasSubstr("maintenance window"));
}

TEST_F(EnforcementInTime, ARetryThatAPersonAskedForNeedsNoWindow) {
  line_->enforce.windows = {open_now()};
  line_->enforce.windows[0].days = 0;  // never
  begin();
  set(1, 9);
  refresh();
  asks_for_patience(core::ApplyOutcome::Result::requeue);
  ASSERT_TRUE(ask(line_->drifts().at(0)));
  line_->clock->pass(minutes(20));
  refresh();
  EXPECT_THAT(written(), SizeIs(2));
}

/// What nobody can read now must not hold up what a person asks for elsewhere.
TEST_F(EnforcementInTime, AnOpenOperationThatCannotBeReadHoldsUpNoOtherResource) {
  begin();
  set(1, 9);
  asks_for_patience(core::ApplyOutcome::Result::requeue);
  refresh();
  ASSERT_TRUE(core::is_open(operations().at(0).state));
  line_->world->apply = nullptr;
  line_->world->unreadable.insert(thing(1));
  set(2, 9);
  line_->enforcement_switch().stop_file = [] { return std::string("not by itself"); };
  refresh();
  line_->enforcement_switch().stop_file = nullptr;
  for (const auto& drift : line_->drifts()) {
    if (drift.resource != thing(2)) continue;
    const auto done = ask(drift);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->state, EnforcementState::done);
  }
  EXPECT_EQ(body(2), R"({"partitions":3})");
}

TEST_F(EnforcementInTime, AClockThatIsSetBackInACycleOpensNoBrakeOfTheCycle) {
  line_->enforce.minimum_age = hours(1);
  line_->enforce.per_cycle = 2;
  for (int i = 1; i <= 5; ++i) set(i, 10 + i);  // each goes back to a value of its own: none is a canary
  begin();
  for (int i = 1; i <= 5; ++i) set(i, 3);
  refresh();
  line_->clock->pass(hours(8));
  bool stepped = false;
  line_->on_core([&] {
    line_->cut().before_commit = [&]() -> Task<void> {
      if (written().size() == 1 && !std::exchange(stepped, true)) line_->clock->step(-hours(1));
      co_return;
    };
  });
  refresh();
  EXPECT_TRUE(stepped);
  EXPECT_THAT(written(), SizeIs(2));
}

}  // namespace
}  // namespace driftd::test
