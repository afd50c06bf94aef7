// SPDX-License-Identifier: Apache-2.0
// A policy rule that holds for a time: what is open is judged again when it begins and when it ends.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Action;
using std::chrono::hours;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Nanos kHour = 3'600'000'000'000;

class TimedPolicy : public EngineOnTheStore {
 protected:
  /// A rule that ignores everything from an hour ahead on, for an hour.
  core::Rules in_an_hour() const {
    core::Rules rules;
    core::PolicyRule rule;
    rule.action = Action::ignore;
    rule.where = "driftd.yaml:9:3";
    rule.from_ns = line_->clock->wall() + kHour;
    rule.until_ns = *rule.from_ns + kHour;
    rules.policy = {rule};
    rules.generation = 77;
    return rules;
  }
  void start(bool loops) {
    line_->world->cursors = true;  // "unchanged" must not hide that other rules hold
    line_->start(loops, in_an_hour());
    ASSERT_TRUE(line_->refresh().complete());
    line_->world->resources[thing(1)] = R"({"partitions":9})";
    line_->refresh();
    ASSERT_THAT(actions(), ElementsAre(Action::manual));
  }
  std::vector<Action> actions() {
    std::vector<Action> out;
    for (const auto& drift : line_->drifts()) out.push_back(drift.action);
    return out;
  }
  std::vector<std::string> verbs() {
    std::vector<std::string> out;
    for (const auto& line : line_->audit()) out.push_back(line.verb);
    return out;
  }
};

TEST_F(TimedPolicy, JudgesWhatIsOpenAgainWhenItBeginsAndWhenItEnds) {
  start(false);
  line_->clock->step(hours(1));
  line_->refresh(false);
  EXPECT_THAT(actions(), ElementsAre(Action::ignore));
  line_->refresh(false);
  EXPECT_THAT(actions(), ElementsAre(Action::ignore)) << "it stays";
  line_->clock->step(hours(1));
  line_->refresh(false);
  EXPECT_THAT(actions(), ElementsAre(Action::manual));
  EXPECT_THAT(verbs(), ElementsAre("policy began", "policy ended"));
  EXPECT_THAT(line_->audit()[0].reason, HasSubstr("ignore from "));
  EXPECT_EQ(line_->audit()[0].subject, "driftd.yaml:9:3");
  EXPECT_EQ(line_->audit()[0].backend, "b");
}

TEST_F(TimedPolicy, TurnsWithoutWaitingForTheInterval) {
  line_->interval = hours(24);
  line_->world->watches = true;
  start(true);
  line_->clock->step(hours(1) - std::chrono::seconds(1));
  line_->hint();  // the loop looks at the clock again: the test set it
  EXPECT_TRUE(eventually([&] { return actions() == std::vector<Action>{Action::ignore}; }));
}

TEST_F(TimedPolicy, IsInForceAfterARestartInBetween) {
  start(false);
  const core::Rules rules = in_an_hour();
  another_process();
  line_->clock->step(hours(1) + std::chrono::minutes(1));
  line_->start(false, rules);
  line_->refresh();
  EXPECT_THAT(actions(), ElementsAre(Action::ignore));
}

TEST_F(TimedPolicy, ThatCannotBeAuditedDoesNotBegin) {
  start(false);
  tamper(dir_.file("data/store.db"),
         "CREATE TRIGGER no BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no more lines'); END");
  line_->clock->step(hours(1));
  line_->refresh(false);
  EXPECT_THAT(actions(), ElementsAre(Action::manual));
  tamper(dir_.file("data/store.db"), "DROP TRIGGER no");
  line_->refresh(false);
  EXPECT_THAT(actions(), ElementsAre(Action::ignore));
  EXPECT_THAT(verbs(), ElementsAre("policy began"));
}

}  // namespace
}  // namespace driftd::test
