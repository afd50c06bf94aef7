// SPDX-License-Identifier: Apache-2.0
// The engine over the real store, with a provider that misbehaves on command: what may become a drift, and what never.
#include "core/stand_in.hpp"
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using core::DriftStatus;
using core::Operation;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(EngineOnTheStore, PageCutShortDeletesNothingAndCoverageSaysSo) {
  baseline();
  line_->world->max_delivered = 10;
  refresh();
  EXPECT_FALSE(report_.complete());
  EXPECT_THAT(reasons(), HasSubstr("COMPLETE says 30 resources, 10 arrived"));
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

TEST_F(EngineOnTheStore, KindThatIsNotSupportedKeepsNoCycleFromBeingWholeADeniedOneDoes) {
  line_->world->sends_complete = false;
  line_->world->diagnostics.push_back({Code::unsupported, "thing", {}, {}, "this library cannot list them", {}, 0, {}});
  line_->start(false);
  EXPECT_TRUE(line_->refresh().complete()) << "it would read everything in every cycle, for nothing";
  line_->world->diagnostics[0].code = Code::denied;
  EXPECT_FALSE(line_->refresh().complete());
}

TEST_F(EngineOnTheStore, ListWithoutCompleteDeletesNothing) {
  baseline();
  line_->world->resources.erase(thing(3));
  line_->world->sends_complete = false;
  refresh();
  EXPECT_THAT(reasons(), HasSubstr("no COMPLETE"));
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

TEST_F(EngineOnTheStore, ResourceThatNoReadConfirmsAsGoneIsNoDeletion) {
  baseline();
  line_->world->resources.erase(thing(3));
  line_->world->unreadable.insert(thing(3));
  refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  line_->world->unreadable.clear();
  line_->world->read_fails = Error{Code::unavailable, "the server is gone"};
  refresh();
  EXPECT_THAT(reasons(), HasSubstr("could not be confirmed: the server is gone"));
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

/// The provider does not know it by the id that the host gave it, so no read finds it, whether it exists or not.
TEST_F(EngineOnTheStore, WhatStandsForANamelessRecordIsGoneByACompleteListAndByNothingElse) {
  const core::ResourceId nameless{"thing", std::string(core::kStandIn) + "~0011"};
  line_->world->resources[nameless] = R"({"partitions":3})";
  line_->world->unreadable.insert(nameless);
  baseline();
  line_->world->resources.erase(nameless);
  line_->world->sends_complete = false;
  refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  line_->world->sends_complete = true;
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].operation, Operation::deleted);
  EXPECT_TRUE(report_.complete()) << reasons();
}

TEST_F(EngineOnTheStore, ConfirmedDeletionIsOneDriftAndItsReturnRevertsIt) {
  baseline();
  line_->world->resources.erase(thing(3));
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].operation, Operation::deleted);
  refresh();
  EXPECT_THAT(line_->drifts(true), SizeIs(1));
  line_->world->resources[thing(3)] = R"({"partitions":3})";
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
  EXPECT_EQ(line_->drifts(true)[0].status, DriftStatus::reverted);
}

TEST_F(EngineOnTheStore, NothingIsABaselineBeforeTheFirstCompleteList) {
  line_->world->max_delivered = 10;
  line_->start(false);
  refresh();
  line_->world->max_delivered = SIZE_MAX;
  refresh();
  EXPECT_TRUE(report_.complete());
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

TEST_F(EngineOnTheStore, MassDeletionAsksOnceAndDeletesOnlyWhenApproved) {
  baseline();
  for (int i = 0; i < 20; ++i) line_->world->resources.erase(thing(i));
  refresh();
  refresh();
  ASSERT_THAT(line_->drifts(true), SizeIs(1));
  const core::Drift asked = line_->drifts()[0];
  EXPECT_EQ(render(asked.resource), "scope/thing");
  EXPECT_THAT(reasons(), HasSubstr("20 of 30 gone at once"));
  const auto approved = line_->decide(asked.id, decision(Decision::Verb::approve));
  ASSERT_TRUE(approved) << approved.error().message;
  refresh();
  std::size_t deletions = 0;
  for (const auto& drift : line_->drifts(true)) deletions += drift.operation == Operation::deleted ? 1 : 0;
  EXPECT_EQ(deletions, 20u);
  EXPECT_TRUE(report_.complete()) << reasons();
}

/// Whoever may create and remove resources by the hundred must not cause a question, nor hide a deletion behind one.
TEST_F(EngineOnTheStore, WhatCameAndWentUnacceptedIsNoMassDeletion) {
  baseline();
  for (int i = 100; i < 300; ++i) line_->world->resources[thing(i)] = R"({"partitions":3})";
  refresh();
  ASSERT_EQ(line_->drifts().size(), 200u);
  remove(100, 300);
  remove(0, 1);  // an accepted one, beside them
  refresh();
  EXPECT_TRUE(report_.complete()) << reasons();
  const auto open = line_->drifts();
  ASSERT_THAT(open, testing::SizeIs(1));
  EXPECT_EQ(open[0].operation, core::Operation::deleted);
  EXPECT_EQ(open[0].resource, thing(0));
  for (int i = 100; i < 120; ++i) line_->world->resources[thing(i)] = R"({"partitions":3})";
  refresh();
  remove(100, 120);
  remove(1, 13);  // twelve of 29 of these are gone: only they are in the question
  refresh();
  EXPECT_THAT(reasons(), testing::HasSubstr("12 of 29 gone at once"));
}

TEST_F(EngineOnTheStore, MassDeletionThatComesBackLeavesNoTraceButTheQuestion) {
  baseline();
  const auto all = line_->world->resources;
  for (int i = 0; i < 20; ++i) line_->world->resources.erase(thing(i));
  refresh();
  line_->world->resources = all;
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
  ASSERT_THAT(line_->drifts(true), SizeIs(1));
  EXPECT_EQ(line_->drifts(true)[0].status, DriftStatus::reverted);
}

TEST_F(EngineOnTheStore, AnotherSystemBehindTheEndpointIsHeldUntilSomeoneDecides) {
  baseline();
  line_->world->identity = "system-2";
  line_->world->resources = {{thing(99), "{}"}};
  const auto held = line_->refresh();
  EXPECT_FALSE(held.status);
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  const core::Drift asked = line_->drifts()[0];
  EXPECT_EQ(render(asked.resource), "backend/b");
  EXPECT_EQ(line_->view().state, "held");
  line_->world->identity = "system-1";
  for (int i = 0; i < 30; ++i) line_->world->resources[thing(i)] = R"({"partitions":3})";
  line_->world->resources.erase(thing(99));
  refresh();
  EXPECT_TRUE(report_.complete()) << reasons();
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(EngineOnTheStore, OpenDriftOfAnUnreadableKindIsStaleNotReverted) {
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  line_->world->max_delivered = 0;
  line_->world->sends_complete = false;
  line_->world->diagnostics = {{Code::denied, "thing", "", "", "may not list", "LIST", 0}};
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_TRUE(line_->drifts()[0].stale_since_ns);
  EXPECT_THAT(reasons(), HasSubstr("LIST"));
  line_->world->max_delivered = SIZE_MAX;
  line_->world->sends_complete = true;
  line_->world->diagnostics.clear();
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_FALSE(line_->drifts()[0].stale_since_ns);
}

TEST_F(EngineOnTheStore, IgnoredForATimeIsPendingAgainAfterIt) {
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  Decision ignore = decision(Decision::Verb::ignore);
  ignore.expires_ns = ignore.at_ns + 300'000'000;
  ASSERT_TRUE(line_->decide(line_->drifts()[0].id, ignore));
  EXPECT_EQ(line_->drifts()[0].status, DriftStatus::ignored);
  EXPECT_TRUE(eventually([&] {
    refresh();
    return line_->drifts()[0].status == DriftStatus::pending;
  }));
}

TEST_F(EngineOnTheStore, StandingDriftIsNoNewsAfterARestart) {
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  const auto before = line_->events();
  restart();
  refresh();
  EXPECT_EQ(line_->events().size(), before.size());
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

TEST_F(EngineOnTheStore, ApprovalMovesTheBaselineAndASecondOneIsRefused) {
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  const std::string id = line_->drifts()[0].id;
  ASSERT_TRUE(line_->decide(id, decision(Decision::Verb::approve)));
  const auto again = line_->decide(id, decision(Decision::Verb::approve));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::conflict) << again.error().message;
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(EngineOnTheStore, DecisionOnADriftThatRevertedMeanwhileIsAConflictThatSaysSo) {
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  const std::string id = line_->drifts()[0].id;
  line_->world->resources[thing(1)] = R"({"partitions":3})";
  refresh();
  const auto late = line_->decide(id, decision(Decision::Verb::approve));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::conflict);
  EXPECT_THAT(late.error().message, HasSubstr("reverted"));
}

TEST_F(EngineOnTheStore, ProviderThatFailsAfterItsRecordsStillHasThemJudged) {
  baseline();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  line_->world->resources.erase(thing(2));
  line_->world->sends_complete = false;
  line_->world->refresh_fails = Error{Code::unavailable, "connection lost"};
  refresh();
  EXPECT_FALSE(report_.status);
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].operation, Operation::changed);
}

/// Their drifts end with the edit. That no list contains them any more is no mass deletion (semantics 4).
TEST_F(EngineOnTheStore, WhatAnExcludePutsOutOfScopeIsNotMissingAfterwards) {
  baseline();
  for (int i = 10; i < 20; ++i) line_->world->resources[thing(i)] = R"({"partitions":9})";
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(11));
  remove(1, 2);
  remove(10, 20);
  another_process();
  line_->settings = R"({"exclude":["thing/t1*"]})";
  line_->start(false);
  for (int i = 0; i < 2; ++i) {
    refresh();
    EXPECT_TRUE(report_.complete()) << reasons();
    EXPECT_THAT(line_->drifts(), IsEmpty());
  }
}

}  // namespace
}  // namespace driftd::test
