// SPDX-License-Identifier: Apache-2.0
// Refreshes whose unchanged records come as digests: every rule of the judgement holds as if they came whole.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class DigestRecords : public EngineOnTheStore {
 protected:
  /// A baseline, and a second cycle in which the kind has its generation.
  void settled_baseline() {
    baseline();
    refresh();
  }
  core::Drift only_drift() {
    auto drifts = line_->drifts();
    EXPECT_THAT(drifts, SizeIs(1));
    return drifts.empty() ? core::Drift{} : drifts.front();
  }
  std::size_t digests() const { return line_->world->digests; }
};

TEST_F(DigestRecords, AnUnchangedListSettlesByDigestsAndIsComplete) {
  settled_baseline();
  refresh();
  EXPECT_EQ(digests(), 29u);
  EXPECT_TRUE(report_.complete()) << reasons();
  EXPECT_EQ(report_.settled, 30u);
  EXPECT_EQ(report_.received, 30u);
}

TEST_F(DigestRecords, AChangeAmongThemIsADriftAndItsReturnEndsIt) {
  settled_baseline();
  line_->world->resources[thing(7)] = R"({"partitions":4})";
  refresh();
  EXPECT_EQ(only_drift().resource, thing(7));
  refresh();
  EXPECT_EQ(digests(), 29u);
  line_->world->resources[thing(7)] = R"({"partitions":3})";
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(DigestRecords, AMissingOneIsADeletionAsEver) {
  settled_baseline();
  line_->world->resources.erase(thing(7));
  refresh();
  EXPECT_EQ(only_drift().operation, core::Operation::deleted);
}

TEST_F(DigestRecords, NewRulesJudgeEveryResourceAgain) {
  settled_baseline();
  core::Rules strict;
  strict.generation = 9;
  core::Expectation four;
  four.attributes.emplace_back(*core::Path::parse("partitions"), *core::parse("4"));
  strict.expect.push_back(four);
  core::BackendSpec spec = line_->on_core([&] { return line_->engine().find("b")->ledger().spec(); });
  spec.rules = std::make_shared<const core::Rules>(strict);
  std::vector<engine::Engine::Change> changes;
  changes.push_back({spec, core::BackendEdit::in_place});
  for (const auto& done : line_->wait(line_->engine().apply(std::move(changes)))) EXPECT_TRUE(done.has_value());
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(30)) << reasons();
  EXPECT_TRUE(report_.complete()) << reasons();
  refresh();
  EXPECT_EQ(digests(), 29u);
}

TEST_F(DigestRecords, WhatAWatchBroughtIsNotTakenForWhatTheListSentBefore) {
  line_->world->watches = true;
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().coverage.size() == 1 && line_->view().coverage[0].established; }));
  line_->refresh();
  line_->refresh();
  line_->world->resources[thing(7)] = R"({"partitions":4})";
  line_->change(thing(7));
  ASSERT_TRUE(eventually([&] { return line_->drifts().size() == 1; }));
  line_->world->resources[thing(7)] = R"({"partitions":3})";  // the watch missed this one
  line_->refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(DigestRecords, AnExpiringDecisionAsksForItsRecordOnly) {
  settled_baseline();
  line_->world->resources[thing(7)] = R"({"partitions":4})";
  refresh();
  core::Decision ignore = decision(core::Decision::Verb::ignore);
  ignore.expires_ns = line_->clock->wall() + 1'000'000'000'000;
  ASSERT_TRUE(line_->decide(only_drift().id, ignore));
  refresh();
  refresh();
  EXPECT_EQ(digests(), 28u);
  EXPECT_TRUE(report_.complete()) << reasons();
}

TEST_F(DigestRecords, ARecordThatIsNeverSettledIsAskedForAlone) {
  settled_baseline();
  line_->world->resources[thing(7)] = "no JSON";
  refresh();
  EXPECT_THAT(reasons(), testing::HasSubstr("unreadable body"));
  refresh();
  EXPECT_EQ(digests(), 28u);
  EXPECT_THAT(reasons(), testing::HasSubstr("unreadable body"));
}

TEST_F(DigestRecords, AfterAFailedCycleEverythingComesWholeOnce) {
  settled_baseline();
  line_->world->refresh_fails = Error{Code::unavailable, "cut"};
  refresh();
  line_->world->refresh_fails.reset();
  refresh();
  EXPECT_EQ(digests(), 0u);
  refresh();
  EXPECT_EQ(digests(), 29u);
}

}  // namespace
}  // namespace driftd::test
