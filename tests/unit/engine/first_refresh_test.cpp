// SPDX-License-Identifier: Apache-2.0
// The first refresh on a fresh store makes the baseline. It also judges what must hold whatever the baseline is,
// because a pipeline runs only once.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Against;
using testing::IsEmpty;
using testing::SizeIs;

core::Rules expecting(const std::string& partitions) {
  core::Rules rules;
  core::Expectation expectation;
  expectation.attributes.emplace_back(*core::Path::parse("partitions"), *core::parse(partitions));
  rules.expect.push_back(std::move(expectation));
  return rules;
}

class FirstRefresh : public EngineOnTheStore {
 protected:
  FirstRefresh() {
    line_->source->metadata = {{"address", "kafka_topic.t"}, {"serial", "4"}};
    line_->source->kinds = {"instance"};
  }
  void declare(int number, const std::string& body) {
    line_->source->declared_kinds = {{"b", "thing"}};
    line_->source->declared[{"b", thing(number)}] = body;
  }
};

TEST_F(FirstRefresh, BrokenExpectationIsADriftInIt) {
  line_->start(false, expecting("9"));
  refresh();
  ASSERT_TRUE(report_.complete()) << reasons();
  ASSERT_THAT(line_->drifts(), SizeIs(30));
  EXPECT_EQ(line_->drifts()[0].against, Against::expectation);
  const auto published = line_->events().size();
  refresh();
  refresh();
  EXPECT_EQ(line_->events().size(), published) << "once";
}

TEST_F(FirstRefresh, ExpectationThatHoldsIsNone) {
  line_->start(false, expecting("3"));
  refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

TEST_F(FirstRefresh, CursorThatSaysUnchangedHidesNoBrokenExpectation) {
  line_->world->cursors = true;
  line_->start(false, expecting("9"));
  refresh();
  EXPECT_TRUE(line_->refresh(false).unchanged);
  EXPECT_THAT(line_->drifts(), SizeIs(30));
}

TEST_F(FirstRefresh, ExpectationThatIsMetBeforeTheListWasWholeIsReverted) {
  line_->world->max_delivered = 10;
  line_->start(false, expecting("9"));
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(10));
  for (auto& [id, body] : line_->world->resources) body = R"({"partitions":9})";
  line_->world->max_delivered = SIZE_MAX;
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
  for (const auto& drift : line_->drifts(true)) EXPECT_EQ(drift.status, core::DriftStatus::reverted);
}

TEST_F(FirstRefresh, DeclarationThatWasThereBeforeIsJudgedInIt) {
  declare(1, R"({"partitions":12})");
  declare(77, R"({"partitions":3})");
  line_->start(false);
  line_->refresh(true, "source");
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(2));
  EXPECT_EQ(line_->drifts()[0].against, Against::expectation);
  EXPECT_EQ(line_->drifts()[1].against, Against::expectation) << "and what is not there is missing";
}

TEST_F(FirstRefresh, DeclarationThatCameAfterItsTargetWasReadIsJudgedOnceAllSettled) {
  declare(1, R"({"partitions":12})");
  line_->start(false);
  refresh();
  line_->refresh(true, "source");
  EXPECT_THAT(line_->drifts(), IsEmpty());
  EXPECT_THAT(line_->settle(), SizeIs(1));
  EXPECT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_THAT(line_->settle(), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
