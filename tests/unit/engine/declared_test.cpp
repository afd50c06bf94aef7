// SPDX-License-Identifier: Apache-2.0
// A source (a Terraform state) declares resources of another backend. They are compared without the source's own tool.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Against;
using core::DriftStatus;
using core::Operation;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class DeclaredEngine : public EngineOnTheStore {
 protected:
  DeclaredEngine() {
    declare(1, R"({"partitions":3})");
    line_->source->declared_kinds = {{"b", "thing"}};
    line_->source->metadata = {{"address", "kafka_topic.t"}, {"serial", "4"}};
    line_->source->kinds = {"instance"};
  }
  void declare(int number, const std::string& body) { line_->source->declared[{"b", thing(number)}] = body; }
  void both() {
    report_ = line_->refresh(true, "source");
    ASSERT_TRUE(report_.complete()) << reasons();
    report_ = line_->refresh();
    ASSERT_TRUE(report_.complete()) << reasons();
  }
  void begin() {
    line_->start(false);
    both();
    ASSERT_THAT(line_->drifts(), IsEmpty());
  }
  void again() {
    const ScriptedWorld world = *line_->world, source = *line_->source;
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    *line_->world = world;
    *line_->source = source;
    line_->start(false);
  }
  std::vector<core::Drift> declared() {
    auto out = line_->drifts();
    std::erase_if(out, [](const auto& drift) { return drift.against != Against::expectation; });
    return out;
  }
};

TEST_F(DeclaredEngine, ChangeMadeBesideTheStateDriftsAndGoesWithIt) {
  begin();
  line_->world->resources[thing(1)] = R"({"partitions":6})";
  refresh();
  ASSERT_THAT(declared(), SizeIs(1));
  EXPECT_EQ(declared()[0].reason, "declared by source (kafka_topic.t, since serial 4)");
  EXPECT_THAT(line_->drifts(), SizeIs(2)) << "and from the baseline";
  line_->world->resources[thing(1)] = R"({"partitions":3})";
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(DeclaredEngine, NewDeclarationJudgesWhatIsUnchanged) {
  begin();
  declare(2, R"({"partitions":12})");
  both();
  ASSERT_THAT(declared(), SizeIs(1));
  EXPECT_EQ(declared()[0].resource, thing(2));
  declare(2, R"({"partitions":3})");
  both();
  EXPECT_THAT(declared(), IsEmpty());
  EXPECT_THAT(all(Operation::changed), SizeIs(1));
}

TEST_F(DeclaredEngine, DeclarationThatACompleteListDoesNotNameIsTakenBack) {
  begin();
  declare(2, R"({"partitions":12})");
  both();
  ASSERT_THAT(declared(), SizeIs(1));
  line_->source->declared.erase({"b", thing(2)});
  line_->source->sends_complete = false;
  line_->refresh(true, "source");
  refresh();
  EXPECT_THAT(declared(), SizeIs(1)) << "an incomplete list takes nothing back";
  line_->source->sends_complete = true;
  both();
  EXPECT_THAT(declared(), IsEmpty());
  ASSERT_THAT(all(Operation::changed), SizeIs(1));
  EXPECT_EQ(all(Operation::changed)[0].status, DriftStatus::superseded);
}

TEST_F(DeclaredEngine, RestartInBetweenForgetsNothingAndSaysNothingTwice) {
  begin();
  declare(2, R"({"partitions":12})");
  both();
  const auto before = line_->events().size();
  again();
  refresh();  // the source has not declared anything yet
  EXPECT_THAT(declared(), SizeIs(1));
  both();
  EXPECT_THAT(declared(), SizeIs(1));
  EXPECT_EQ(line_->events().size(), before);
}

TEST_F(DeclaredEngine, UnchangedRecordsSettleUnderADeclaration) {
  begin();
  refresh();  // judged once since the kind has its baseline
  refresh();
  EXPECT_EQ(report_.settled, 30u);
  again();
  both();
  EXPECT_EQ(report_.settled, 30u) << "also in a new process";
}

TEST_F(DeclaredEngine, DeclaredResourceThatIsNotThereIsMissingOnceAReadSaysSo) {
  begin();
  declare(77, R"({"partitions":3})");
  line_->world->read_fails = Error{Code::unavailable, "no answer"};
  line_->refresh(true, "source");
  refresh();
  EXPECT_THAT(declared(), IsEmpty());
  line_->world->read_fails.reset();
  both();
  ASSERT_THAT(declared(), SizeIs(1));
  EXPECT_EQ(declared()[0].operation, Operation::deleted);
  EXPECT_EQ(declared()[0].resource, thing(77));
  const auto told = line_->events().size();
  refresh();
  refresh();
  EXPECT_EQ(line_->events().size(), told);
  line_->source->declared.erase({"b", thing(77)});
  both();
  EXPECT_THAT(declared(), IsEmpty());
}

TEST_F(DeclaredEngine, AcceptedDeletionLeavesTheDeclarationStanding) {
  begin();
  line_->world->resources.erase(thing(1));
  refresh();
  ASSERT_THAT(all(Operation::deleted), SizeIs(1));
  ASSERT_TRUE(line_->decide(all(Operation::deleted)[0].id, decision(core::Decision::Verb::approve)));
  refresh();
  ASSERT_THAT(declared(), SizeIs(1)) << "no approval moves what is declared";
  EXPECT_EQ(declared()[0].operation, Operation::deleted);
}

TEST_F(DeclaredEngine, RuleThatIsTakenOutTakesAllOfItsDeclarationsAlong) {
  begin();
  declare(2, R"({"partitions":12})");
  both();
  ASSERT_THAT(declared(), SizeIs(1));
  line_->source->declared.clear();
  line_->source->declared_kinds = {{"elsewhere", "thing"}};  // nothing is declared about b at all
  line_->refresh(true, "source");
  refresh();
  EXPECT_THAT(declared(), IsEmpty());
}

TEST_F(DeclaredEngine, WhatMovesDuringACycleIsJudgedInTheNextOneThoughItsCursorSaysUnchanged) {
  begin();
  refresh();
  declare(2, R"({"partitions":12})");
  line_->refresh(true, "source");
  report_ = line_->refresh(false);
  EXPECT_THAT(declared(), SizeIs(1));
}

TEST_F(DeclaredEngine, WhatCannotBeComparedStaysPartialAlsoWhenItIsUnchanged) {
  line_->world->schemas["thing"] =
      R"({"schema":"driftd-schema/1","kind":"thing","attributes":{"partitions":{"masked":["***"]}}})";
  line_->world->resources[thing(3)] = R"({"partitions":"***"})";
  line_->start(false);
  for (int i = 0; i < 3; ++i) {
    refresh();
    ASSERT_THAT(report_.coverage, SizeIs(1));
    if (i == 0) continue;  // its baseline
    EXPECT_EQ(report_.coverage[0].unknown, 1) << i;
  }
}

TEST_F(DeclaredEngine, SourceThatLeavesTheConfigTakesItsDeclarationsAlong) {
  begin();
  declare(2, R"({"partitions":12})");
  both();
  ASSERT_THAT(declared(), SizeIs(1));
  const ScriptedWorld world = *line_->world;
  line_.reset();
  line_ = std::make_unique<EngineLine>(dir_);
  *line_->world = world;
  line_->start(false);
  refresh();
  EXPECT_THAT(declared(), IsEmpty());
}

TEST_F(DeclaredEngine, WhatNobodyCanHoldAgainstAnythingLowersTheSourcesCoverage) {
  line_->source->declared[{"nobody", thing(1)}] = "{}";
  line_->source->declared[{"b", {"topic", "t"}}] = "{}";
  line_->source->declared_kinds = {{"b", "thing"}, {"b", "topic"}, {"nobody", "thing"}};
  line_->start(false);
  refresh();
  report_ = line_->refresh(true, "source");
  EXPECT_THAT(reasons(), HasSubstr("backend 'nobody' is not configured, so its declarations are not checked"));
  EXPECT_THAT(reasons(), HasSubstr("provider scripted of backend b has no kind 'topic'"));
}

TEST_F(DeclaredEngine, CountThatDoesNotMatchTakesNothingBack) {
  begin();
  line_->source->declared.clear();
  line_->source->metadata.clear();
  line_->source->diagnostics.push_back({Code::denied, "thing", {}, {}, "the state is locked", {}, 0, "b"});
  report_ = line_->refresh(true, "source");
  EXPECT_THAT(reasons(), HasSubstr("denied: the state is locked"));
}

TEST_F(DeclaredEngine, ExplainNamesTheDeclaration) {
  begin();
  line_->world->resources[thing(1)] = R"({"partitions":6})";
  refresh();
  const auto steps = line_->explain(thing(1), "partitions");
  ASSERT_TRUE(steps) << steps.error().message;
  ASSERT_THAT(*steps, SizeIs(2));
  EXPECT_THAT((*steps)[0].reason, HasSubstr("policy manual"));
  EXPECT_THAT((*steps)[1].reason, HasSubstr("declared by source (kafka_topic.t"));
  EXPECT_EQ((*steps)[1].verdict, "drift");
}

}  // namespace
}  // namespace driftd::test
