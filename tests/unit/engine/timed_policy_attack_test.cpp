// SPDX-License-Identifier: Apache-2.0
// Timed rules at the worst moment: one that ends in the middle of a cycle, at a reload, or while the agent is down.
#include "unit/engine/enforcing_engine.hpp"

namespace driftd::test {
namespace {

using core::Action;
using std::chrono::hours;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::IsEmpty;

class TimedPolicyAttacked : public EnforcingEngine {
 protected:
  /// A rule for everything that holds for the next hour.
  core::Rules for_an_hour(Action action) const {
    core::Rules rules;
    core::PolicyRule rule;
    rule.action = action;
    rule.where = "driftd.yaml:9:3";
    rule.until_ns = line_->clock->wall() + Nanos{3'600'000'000'000};
    rules.policy = {rule};
    rules.generation = 77;
    return rules;
  }
  void start(core::Rules rules) {
    line_->start(false, std::move(rules));
    ASSERT_TRUE(line_->refresh().complete());
  }
  /// The hour passes while the first commit from now on is under way.
  void ends_at_the_next_commit() {
    line_->on_core([this] {
      line_->cut().before_commit = [this]() -> Task<void> {
        if (!std::exchange(passed_, true)) line_->clock->pass(hours(1) + minutes(1));
        co_return;
      };
    });
  }
  bool passed_ = false;
};

TEST_F(TimedPolicyAttacked, WhatIsReadBehindItsEndIsAsked) {
  line_->world->page_records = 5;
  start(for_an_hour(Action::automatic));
  set(0, 8);
  set(9, 9);  // in the last page
  ends_at_the_next_commit();
  refresh();
  const auto drifts = line_->drifts();
  ASSERT_EQ(drifts.size(), 1u) << "it was accepted under a rule that no longer held";
  EXPECT_EQ(drifts[0].resource, thing(9));
  EXPECT_EQ(drifts[0].action, Action::manual);
  refresh();
  EXPECT_EQ(line_->drifts().size(), 1u);
  EXPECT_THAT(verbs(), ElementsAre("policy ended"));
}

TEST_F(TimedPolicyAttacked, NothingIsPutBackBehindItsEnd) {
  start(for_an_hour(Action::enforce));
  set(1, 9);
  ends_at_the_next_commit();
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_EQ(line_->drifts().at(0).action, Action::manual);
}

TEST_F(TimedPolicyAttacked, AReloadAtTheBoundaryHidesNoTurn) {
  start(for_an_hour(Action::ignore));
  line_->clock->pass(hours(1));
  core::BackendSpec spec;
  spec.name = line_->name;
  spec.provider = line_->provider;
  spec.settings_json = line_->settings;
  spec.registration_json = "{}";
  spec.spoken_by = line_->spoken_by;
  core::Rules rules = for_an_hour(Action::manual);
  rules.policy.clear();
  rules.generation = 78;
  spec.rules = std::make_shared<const core::Rules>(rules);
  std::vector<engine::Engine::Change> changes;
  changes.push_back({std::move(spec), core::BackendEdit::in_place});
  ASSERT_TRUE(line_->wait(line_->engine().apply(std::move(changes))).at(0));
  EXPECT_THAT(verbs(), ElementsAre("policy ended"));
}

TEST_F(TimedPolicyAttacked, ATurnWhileTheAgentWasDownHasItsLine) {
  const core::Rules rules = for_an_hour(Action::ignore);
  start(rules);
  another_process();
  line_->clock->pass(hours(2));
  line_->start(false, rules);
  refresh();
  EXPECT_THAT(verbs(), ElementsAre("policy ended"));
  another_process();
  line_->clock->pass(hours(2));
  line_->start(false, rules);
  refresh();
  EXPECT_THAT(verbs(), ElementsAre("policy ended")) << "once";
}

}  // namespace
}  // namespace driftd::test
