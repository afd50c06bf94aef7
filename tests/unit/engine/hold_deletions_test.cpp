// SPDX-License-Identifier: Apache-2.0
// Deletions: which ones are held, which names an approval covers, and what a restart in between may not change.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using core::DriftStatus;
using core::Operation;
using testing::IsEmpty;
using testing::SizeIs;

using HeldEngine = EngineOnTheStore;

/// No provider may have such a kind any more (host/describe.cpp), but an older agent may have stored an approval of it.
TEST_F(HeldEngine, ApprovalOfWhatIsCalledLikeAQuestionButIsNoneEndsNothing) {
  line_->world->kinds = {"thing", "scope"};
  line_->world->resources[{"scope", "email"}] = R"({"b":1})";
  baseline();
  line_->world->resources[{"scope", "email"}] = R"({"a":{"names":"x"},"b":1})";
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  ASSERT_TRUE(line_->decide(line_->drifts()[0].id, decision(Decision::Verb::approve)));
  refresh();
  EXPECT_TRUE(report_.status);
  restart();
  refresh();
  EXPECT_TRUE(report_.status);
}

TEST_F(HeldEngine, ApprovedMassDeletionCoversTheNamesThatWereShown) {
  baseline();
  remove(0, 12);
  refresh();
  const core::Drift asked = line_->drifts().at(0);
  remove(12, 15);
  ASSERT_TRUE(line_->decide(asked.id, decision(Decision::Verb::approve)));
  refresh();
  std::size_t approved = 0, pending = 0;
  for (const auto& drift : all(Operation::deleted)) {
    approved += drift.status == DriftStatus::approved ? 1 : 0;
    pending += drift.status == DriftStatus::pending ? 1 : 0;
  }
  EXPECT_EQ(approved, 12u);
  EXPECT_EQ(pending, 3u);
}

TEST_F(HeldEngine, ApprovalOfOneQuestionIsNoneOfTheNext) {
  baseline();
  remove(0, 12);
  refresh();
  line_->world->unreadable.insert(thing(3));
  ASSERT_TRUE(line_->decide(line_->drifts().at(0).id, decision(Decision::Verb::approve)));
  refresh();
  EXPECT_THAT(all(Operation::deleted), SizeIs(11)) << "one could not be confirmed";
  line_->world->resources.erase(thing(20));
  refresh();
  for (const auto& drift : line_->drifts()) EXPECT_EQ(render(drift.resource), "thing/t20");
  EXPECT_THAT(line_->drifts(), SizeIs(1));
  line_->world->unreadable.clear();
  refresh();
  EXPECT_THAT(all(Operation::deleted), SizeIs(13));
  EXPECT_THAT(line_->drifts(), SizeIs(1)) << "t3 was among the names that were approved";
}

TEST_F(HeldEngine, SameNamesGoneAgainAreANewQuestion) {
  const auto asked = [&] {
    const auto drifts = line_->drifts();
    return std::count_if(drifts.begin(), drifts.end(), [](const auto& d) { return d.resource.kind == "scope"; });
  };
  baseline();
  const auto whole = line_->world->resources;
  remove(0, 12);
  refresh();
  ASSERT_TRUE(line_->decide(line_->drifts().at(0).id, decision(Decision::Verb::approve)));
  refresh();
  ASSERT_EQ(asked(), 0);
  line_->world->resources = whole;
  refresh();
  for (const auto& drift : line_->drifts()) ASSERT_TRUE(line_->decide(drift.id, decision(Decision::Verb::approve)));
  remove(0, 12);
  refresh();
  EXPECT_EQ(asked(), 1) << "held without a question that anybody could answer";
}

TEST_F(HeldEngine, ApprovedMassDeletionSurvivesARestartBeforeTheNextCycle) {
  baseline();
  remove(0, 20);
  refresh();
  ASSERT_TRUE(line_->decide(line_->drifts().at(0).id, decision(Decision::Verb::approve)));
  restart();
  refresh();
  EXPECT_TRUE(report_.complete()) << reasons();
  EXPECT_THAT(all(Operation::deleted), SizeIs(20));
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(HeldEngine, BackendThatLeftTheConfigForARunKeepsItsBaseline) {
  baseline();
  line_.reset();
  open();
  line_->start(false, {}, false);
  line_.reset();
  open();
  line_->world->resources.erase(thing(4));
  line_->start(false);
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].operation, Operation::deleted);
}

TEST_F(HeldEngine, ApplyThatOnlyRemovesIsAcceptedByItself) {
  line_->world->metadata = {{"serial", "3"}, {"lineage", "l"}};
  baseline();
  refresh();
  line_->world->metadata["serial"] = "4";
  remove(7, 8);
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
  ASSERT_THAT(all(Operation::deleted), SizeIs(1));
  EXPECT_EQ(all(Operation::deleted)[0].status, DriftStatus::auto_applied);
}

TEST_F(HeldEngine, WhatOnlyACutListHeldIsNoDeletionWhenTheFirstWholeOneLacksIt) {
  line_->world->max_delivered = 10;
  line_->start(false);
  refresh();
  line_->world->max_delivered = SIZE_MAX;
  line_->world->resources.erase(line_->world->resources.begin());
  refresh();
  EXPECT_TRUE(report_.complete()) << reasons();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

TEST_F(HeldEngine, DeletionIsFreshAgainAfterAFailedCycle) {
  baseline();
  remove(3, 4);
  refresh();
  line_->world->max_delivered = 0;
  line_->world->sends_complete = false;
  refresh();
  EXPECT_TRUE(line_->drifts().at(0).stale_since_ns);
  line_->world->max_delivered = SIZE_MAX;
  line_->world->sends_complete = true;
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_FALSE(line_->drifts()[0].stale_since_ns);
}

TEST_F(HeldEngine, DecisionOnADeletionRunsOutAlsoAfterARestart) {
  baseline();
  remove(3, 4);
  refresh();
  Decision reject = decision(Decision::Verb::reject);
  reject.expires_ns = reject.at_ns + 200'000'000;
  ASSERT_TRUE(line_->decide(line_->drifts().at(0).id, reject));
  restart();
  EXPECT_TRUE(eventually([&] {
    refresh();
    return line_->drifts().at(0).status == DriftStatus::pending;
  }));
}

TEST_F(HeldEngine, EditedPolicyIsAppliedToADeletionToo) {
  baseline();
  remove(3, 4);
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  core::Rules rules;
  rules.generation = 2;
  rules.config_policy_set = true;
  rules.class_policy[core::ChangeClass::config] = core::Action::automatic;
  restart(rules);
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
