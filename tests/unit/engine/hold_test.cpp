// SPDX-License-Identifier: Apache-2.0
// A system that may be another one is held: what is asked, what a decision changes, and what a restart may not change.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using core::DriftStatus;
using core::Operation;
using testing::IsEmpty;
using testing::SizeIs;

using HeldEngine = EngineOnTheStore;

TEST_F(HeldEngine, ForeignSystemIsNotJudgedWhileItsIdentityCannotBeRead) {
  baseline();
  line_->world->identity = "system-2";
  remove(0, 5);
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  line_->world->health_fails = Error{Code::unavailable, "no answer"};
  refresh();
  EXPECT_FALSE(report_.status);
  line_->world->health_fails.reset();
  line_->world->identity.clear();
  refresh();
  EXPECT_FALSE(report_.status);
  restart();
  line_->world->health_fails = Error{Code::unavailable, "no answer"};
  refresh();
  EXPECT_FALSE(report_.status);
  EXPECT_THAT(line_->drifts(true), SizeIs(1));
}

TEST_F(HeldEngine, SystemThatNoLongerSaysWhichOneItIsIsNotJudged) {
  baseline();
  line_->world->identity.clear();  // the right to read it was withdrawn, or it is another system
  remove(0, 5);
  for (int i = 0; i < 2; ++i) {
    refresh();
    ASSERT_FALSE(report_.status);
    EXPECT_THAT(report_.status.error().message,
                testing::HasSubstr("does not say which one it is (accepted: system-1)"));
    EXPECT_THAT(line_->drifts(true), IsEmpty());
    restart();
  }
  line_->world->identity = "system-1";
  refresh();
  EXPECT_TRUE(report_.complete());
  EXPECT_THAT(line_->drifts(), SizeIs(5));
}

TEST_F(HeldEngine, SystemThatIsNotUpAndDoesNotSayWhichOneItIsTellsOnlyWhatIsAmiss) {
  baseline();
  line_->world->identity.clear();
  remove(0, 5);
  using State = core::HealthReport::State;
  // A slow health probe, and a refresh that is in time.
  for (const State state : {State::degraded, State::down, State::unknown}) {
    line_->world->health = state;
    refresh();
    ASSERT_FALSE(report_.status);
    EXPECT_THAT(report_.status.error().message, testing::HasSubstr("does not say which one it is"));
    EXPECT_THAT(line_->drifts(true), IsEmpty());
  }
  line_->world->kinds.clear();
  line_->world->refresh_fails = Error{Code::unauthenticated, "the password is refused"};
  refresh();
  EXPECT_EQ(report_.status.error().message, "the password is refused");
}

TEST_F(HeldEngine, OutageIsToldByItsCauseAndNothingIsSeenMeanwhile) {
  baseline();
  line_->world->identity.clear();
  line_->world->health = core::HealthReport::State::down;
  line_->world->max_delivered = 0;
  line_->world->sends_complete = false;
  for (const Code code : {Code::unauthenticated, Code::denied, Code::unavailable}) {
    line_->world->diagnostics = {{code, "thing", "", "", "the system says no", "", 0}};
    refresh();
    ASSERT_FALSE(report_.status);
    EXPECT_EQ(report_.status.error().code, code);
    EXPECT_EQ(report_.status.error().message, "the system says no");
    EXPECT_EQ(line_->view().state, code == Code::unavailable ? "backoff" : "denied");
    ASSERT_THAT(line_->view().coverage, SizeIs(1));
    EXPECT_FALSE(line_->view().coverage[0].complete) << "it was seen once, which is not now";
    EXPECT_THAT(line_->view().coverage[0].reasons, testing::ElementsAre(testing::HasSubstr("the system says no")));
  }
  line_->world->diagnostics.clear();
  line_->world->health_fails = Error{Code::unavailable, "connection refused"};
  line_->world->refresh_fails = Error{Code::unavailable, "connection refused"};
  refresh();
  EXPECT_EQ(report_.status.error().message, "connection refused");
}

TEST_F(HeldEngine, WhatAWatchBringsIsDroppedWhileTheSystemDoesNotSayWhichOneItIs) {
  line_->world->watches = true;
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().last_complete_ns > 0; }));
  line_->on_core([&] { return line_->world->identity.clear(), 0; });
  refresh();
  ASSERT_FALSE(report_.status);
  line_->on_core([&] { return line_->world->resources[thing(1)] = R"({"partitions":4})", 0; });
  line_->change(thing(1));
  refresh();  // after that page
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  line_->on_core([&] { return line_->world->identity = "system-1", 0; });
  EXPECT_TRUE(eventually([&] { return refresh(), line_->drifts().size() == 1; }))
      << "it is found by the next full list";
}

TEST_F(HeldEngine, NothingIsGoneBecauseASystemThatTookOverDuringTheCycleDoesNotHaveIt) {
  line_->world->cursors = true;  // the next cycles say "unchanged"
  baseline();
  remove(0, 2);
  line_->world->before_read = [world = line_->world.get()] { world->identity = "system-2"; };
  report_ = line_->refresh(false);
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  EXPECT_THAT(reasons(), testing::HasSubstr("another system may have answered (accepted: system-1; it is system-2)"));
  line_->world->before_read = [world = line_->world.get()] {
    world->health_fails = Error{Code::unavailable, "connection refused"};
  };
  line_->world->identity = "system-1";
  report_ = line_->refresh(false);
  EXPECT_THAT(line_->drifts(true), IsEmpty()) << "nobody knows which one answered";
  EXPECT_THAT(reasons(), testing::HasSubstr("(accepted: system-1; connection refused)"));
  line_->world->before_read = nullptr;
  line_->world->health_fails.reset();
  report_ = line_->refresh(false);
  EXPECT_THAT(line_->drifts(), SizeIs(2)) << "and what is gone there is";
}

TEST_F(HeldEngine, WhatCouldNotBeReadIsAskedForAgainThoughTheListDidNotChange) {
  line_->world->cursors = true;
  baseline();
  remove(0, 2);
  line_->world->read_fails = Error{Code::deadline, "no answer"};
  report_ = line_->refresh(false);
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  line_->world->read_fails.reset();
  report_ = line_->refresh(false);
  EXPECT_THAT(line_->drifts(), SizeIs(2));
}

TEST_F(HeldEngine, ATombstoneOfAnotherSystemBetweenTwoCyclesIsNone) {
  line_->world->watches = true;
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().last_complete_ns > 0; }));
  line_->on_core([&] {
    line_->world->before_read = [world = line_->world.get()] { world->identity = "system-2"; };
    return line_->world->resources.erase(thing(1));
  });
  line_->replay({{thing(1), ""}});
  ASSERT_TRUE(eventually([&] { return !line_->drifts(true).empty(); }));
  for (const auto& drift : line_->drifts(true)) EXPECT_EQ(drift.resource.kind, "backend") << drift.resource.id;
}

TEST_F(HeldEngine, AProbeThatMeetsAnotherSystemEndsWhatTheWatchSaysAtOnce) {
  line_->world->watches = true;
  line_->interval = std::chrono::milliseconds(3'600'000);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().last_complete_ns > 0; }));
  line_->on_core([&] { return line_->world->identity = "system-2", 0; });
  ASSERT_TRUE(eventually([&] { return !line_->drifts().empty(); }, std::chrono::seconds(60)))
      << "no cycle is due for an hour";
  EXPECT_EQ(line_->drifts()[0].resource.kind, "backend");
}

TEST_F(HeldEngine, AnotherProviderUnderTheNameBeginsWithoutTheIdentityOfTheFormer) {
  baseline();
  another_process();
  line_->world->identity.clear();  // of the kind of system that has none
  line_->provider = "another";
  line_->start(false);
  refresh();
  EXPECT_TRUE(report_.status) << report_.status.error().message;
}

TEST_F(HeldEngine, SystemThatNeverSaidWhichOneItIsIsJudged) {
  line_->world->identity.clear();
  baseline();
  remove(0, 1);
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

TEST_F(HeldEngine, FormerSystemThatIsBackAfterARestartRevertsTheQuestion) {
  baseline();
  line_->world->identity = "system-2";
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  line_->world->identity = "system-1";
  restart();
  refresh();
  EXPECT_TRUE(report_.complete());
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(HeldEngine, SystemWhoseIgnoreIsTakenBackIsHeldAgain) {
  baseline();
  line_->world->identity = "system-2";
  refresh();
  const std::string asked = line_->drifts().at(0).id;
  ASSERT_TRUE(line_->decide(asked, decision(Decision::Verb::ignore)));
  refresh();
  ASSERT_TRUE(report_.complete()) << "this one is fine";
  ASSERT_TRUE(line_->decide(asked, decision(Decision::Verb::undo)));
  remove(0, 5);
  refresh();
  EXPECT_FALSE(report_.status);
  EXPECT_EQ(line_->view().state, "held");
  EXPECT_THAT(line_->drifts(true), SizeIs(1)) << "nothing of it is judged until somebody decides";
  ASSERT_TRUE(line_->decide(asked, decision(Decision::Verb::ignore)));
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(6));
}

TEST_F(HeldEngine, SystemWhoseIgnoreRunsOutIsHeldAgain) {
  baseline();
  line_->world->identity = "system-2";
  refresh();
  Decision ignore = decision(Decision::Verb::ignore);
  ignore.expires_ns = ignore.at_ns + 300'000'000;
  ASSERT_TRUE(line_->decide(line_->drifts().at(0).id, ignore));
  ASSERT_TRUE(eventually([&] {
    refresh();
    return line_->drifts().at(0).status == DriftStatus::pending;
  }));
  EXPECT_FALSE(report_.status) << "the cycle in which it ran out judged nothing";
  remove(0, 5);
  refresh();
  EXPECT_FALSE(report_.status);
  EXPECT_THAT(line_->drifts(true), SizeIs(1));
}

/// With an interval of an hour it happens between two cycles; with a short one, while a full outbox prevents cycles.
TEST_F(HeldEngine, DecisionRunsOutAtItsTimeAlsoWhileTheOutboxIsFull) {
  for (const auto interval : {std::chrono::milliseconds(3'600'000), std::chrono::milliseconds(100)}) {
    another_process();
    line_->world->resources[thing(1)] = R"({"partitions":3})";
    line_->interval = interval;
    line_->start(true);
    ASSERT_TRUE(eventually([&] { return line_->view().last_complete_ns > 0; }));
    line_->world->resources[thing(1)] = R"({"partitions":9})";
    refresh();
    for (const bool full : {false, true}) {
      line_->pressure(full);
      Decision ignore = decision(Decision::Verb::ignore);
      ignore.expires_ns = ignore.at_ns + 300'000'000;
      ASSERT_TRUE(line_->decide(line_->drifts().at(0).id, ignore));
      EXPECT_TRUE(eventually([&] { return line_->drifts().at(0).status == DriftStatus::pending; }))
          << full << " " << interval.count();
    }
  }
}

TEST_F(HeldEngine, DecisionRunsOutWhateverKeepsTheSystemFromBeingRead) {
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  const auto ignored_for_a_moment = [&] {
    Decision ignore = decision(Decision::Verb::ignore);
    ignore.expires_ns = ignore.at_ns + 200'000'000;
    ASSERT_TRUE(line_->decide(line_->drifts().at(0).id, ignore));
  };
  const auto pending = [&] { return refresh(), line_->drifts().at(0).status == DriftStatus::pending; };
  ignored_for_a_moment();
  line_->world->identity.clear();
  line_->world->health_fails = line_->world->refresh_fails = Error{Code::unavailable, "connection refused"};
  EXPECT_TRUE(eventually(pending)) << "down";
  ASSERT_FALSE(report_.status);
  line_->world->health_fails.reset();
  line_->world->refresh_fails.reset();
  line_->world->identity = "system-2";
  ignored_for_a_moment();
  EXPECT_TRUE(eventually(pending)) << "held";
  EXPECT_FALSE(report_.status);
}

TEST_F(HeldEngine, ApprovedSystemIsAcceptedInOneCommitAndJudged) {
  baseline();
  line_->world->identity = "system-2";
  refresh();
  ASSERT_TRUE(line_->decide(line_->drifts()[0].id, decision(Decision::Verb::approve)));
  restart();
  refresh();
  EXPECT_TRUE(report_.complete());
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(HeldEngine, ApprovedSystemGivesIdentitiesOfItsOwn) {
  line_->world->external_name = "oid-of-the-first";
  baseline();
  line_->world->external_name = "oid-of-the-second";
  line_->world->identity = "system-2";
  line_->world->resources[thing(1)] = R"({"partitions":4})";
  refresh();
  ASSERT_TRUE(line_->decide(line_->drifts()[0].id, decision(Decision::Verb::approve)));
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1)) << "what differs beside them is judged";
  EXPECT_EQ(line_->drifts()[0].operation, Operation::changed);
  line_->world->external_name = "oid-of-a-third";
  refresh();
  EXPECT_THAT(all(Operation::recreated), SizeIs(30)) << "on one system another identity is another thing";
}

TEST_F(HeldEngine, FailingDiffOfOneResourceKeepsNoOtherFromBeingJudged) {
  line_->world->diffs = true;
  line_->world->diff_fails = {thing(1)};
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  line_->world->resources[thing(2)] = R"({"partitions":9})";
  refresh();
  EXPECT_TRUE(report_.status);
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(render(line_->drifts()[0].resource), "thing/t2");
  EXPECT_THAT(reasons(), testing::HasSubstr("the diff crashed"));
  line_->world->diff_fails.clear();
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(2));
}

TEST_F(HeldEngine, WhatTheDiffDemotesIsNoDriftAndExplainGivesItsReason) {
  line_->world->diffs = true;
  line_->world->equivalent = {thing(1)};
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  line_->world->resources[thing(2)] = R"({"partitions":9})";
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(render(line_->drifts()[0].resource), "thing/t2");
  const auto equal = line_->explain(thing(1), "partitions").value();
  EXPECT_EQ(equal.at(0).verdict, "equal");
  EXPECT_EQ(equal[0].reason, "the provider's diff: means the same");
  EXPECT_EQ(line_->explain(thing(2), "partitions").value().at(0).verdict, "drift");
  line_->world->diff_fails = {thing(1)};
  const auto failed = line_->explain(thing(1), "partitions").value();
  EXPECT_EQ(failed.at(0).verdict, "drift");
  EXPECT_THAT(failed[0].reason, testing::HasSubstr("the provider's diff failed: the diff crashed"));
}

TEST_F(HeldEngine, ADriftWhoseValueIsBackInAFormThatTheDiffCallsEqualIsReverted) {
  line_->world->diffs = true;
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  line_->world->equivalent = {thing(1)};
  line_->world->resources[thing(1)] = R"({"partitions":3.5})";
  refresh();
  EXPECT_THAT(line_->drifts(), testing::IsEmpty());
  EXPECT_EQ(line_->drifts(true).at(0).status, core::DriftStatus::reverted);
}

/// "Unchanged since the cursor" would leave the question open until something else changes.
TEST_F(HeldEngine, WhatTheDiffCouldNotSayIsAskedAgainInTheNextCycleOfAProviderWithCursors) {
  line_->world->diffs = true;
  line_->world->cursors = true;
  baseline();
  line_->world->diff_fails = {thing(1)};
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  line_->refresh(false);
  ASSERT_THAT(line_->drifts(), IsEmpty());
  line_->world->diff_fails.clear();
  line_->refresh(false);
  EXPECT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_TRUE(line_->refresh(false).unchanged) << "and then it is settled";
}

}  // namespace
}  // namespace driftd::test
