// SPDX-License-Identifier: Apache-2.0
// A kind of which a part may not be listed (one namespace of several is denied) has no baseline. What is read of it is
// judged all the same, or one missing right would make the agent blind for the whole kind.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Operation;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class JudgedInPart : public EngineOnTheStore {
 protected:
  /// The list ends without COMPLETE, for this reason.
  void withhold(Code code) {
    line_->world->sends_complete = false;
    line_->world->diagnostics = {{code, "thing", {}, {}, "list of namespace b", "list things in namespace b"}};
  }
  void grant() {
    line_->world->sends_complete = true;
    line_->world->diagnostics.clear();
  }
  void set(int number, const std::string& body) { line_->world->resources[thing(number)] = body; }
  const core::Coverage& coverage() { return report_.coverage.front(); }
};

TEST_F(JudgedInPart, WhatIsReadBesideADeniedPartIsJudged) {
  withhold(Code::denied);
  line_->start(false);
  refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  set(3, R"({"partitions":9})");
  refresh();
  ASSERT_THAT(all(Operation::changed), SizeIs(1));
  EXPECT_EQ(core::coverage_state(coverage()), "denied");
  EXPECT_FALSE(report_.complete());
  EXPECT_FALSE(coverage().established);
  EXPECT_THAT(reasons(), HasSubstr("grant list things in namespace b"));
  EXPECT_THAT(reasons(), HasSubstr("what was read of it is compared"));
}

TEST_F(JudgedInPart, AnotherProcessGoesOn) {
  withhold(Code::denied);
  line_->start(false);
  refresh();
  restart();
  set(3, R"({"partitions":9})");
  refresh();
  EXPECT_THAT(all(Operation::changed), SizeIs(1));
}

TEST_F(JudgedInPart, WhatComesInIsTakenAsItIsAndJudgedFromThenOn) {
  withhold(Code::denied);
  line_->start(false);
  refresh();
  set(40, R"({"partitions":3})");
  refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty()) << "it may have been there before";
  set(40, R"({"partitions":9})");
  refresh();
  EXPECT_THAT(all(Operation::changed), SizeIs(1));
}

TEST_F(JudgedInPart, OnceTheRightIsGrantedTheWholeListIsTheBaseline) {
  withhold(Code::denied);
  line_->start(false);
  refresh();
  grant();
  set(3, R"({"partitions":9})");
  for (int i = 30; i < 35; ++i) set(i, R"({"partitions":1})");  // of the namespace that was denied
  refresh();
  EXPECT_TRUE(report_.complete()) << reasons();
  EXPECT_TRUE(coverage().established);
  EXPECT_THAT(coverage().reasons, IsEmpty());
  EXPECT_THAT(all(Operation::changed), SizeIs(1)) << "what was read before is judged";
  EXPECT_THAT(all(Operation::created), IsEmpty()) << "the others were there before";
  set(50, R"({"partitions":1})");
  remove(5, 6);
  refresh();
  EXPECT_THAT(all(Operation::created), SizeIs(1));
  EXPECT_THAT(all(Operation::deleted), SizeIs(1));
}

TEST_F(JudgedInPart, AKindThatIsNotServedByEveryPartIsJudgedToo) {
  withhold(Code::unsupported);
  line_->start(false);
  refresh();
  set(3, R"({"partitions":9})");
  refresh();
  EXPECT_THAT(all(Operation::changed), SizeIs(1));
}

TEST_F(JudgedInPart, WhatTheListLacksIsNotGone) {
  withhold(Code::denied);
  line_->start(false);
  refresh();
  refresh();
  remove(3, 4);
  refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty()) << "it may be in the part that is denied now";
}

TEST_F(JudgedInPart, WhatAWatchCallsGoneIsADeletion) {
  withhold(Code::denied);
  line_->world->watches = true;
  line_->interval = std::chrono::hours(1);
  line_->start(true);
  const auto cycles = [&] { return line_->view().cycles; };
  ASSERT_TRUE(eventually([&] { return cycles() > 0; }, std::chrono::seconds(10)));
  line_->on_core([&] {
    line_->world->resources.erase(thing(3));
    return 0;
  });
  line_->replay({{thing(3), ""}});
  EXPECT_TRUE(eventually([&] { return all(Operation::deleted).size() == 1; }, std::chrono::seconds(10)));
}

TEST_F(JudgedInPart, ACauseThatPassesLeavesTheBaselineToTheFirstWholeList) {
  withhold(Code::unavailable);
  line_->start(false);
  refresh();
  set(3, R"({"partitions":9})");
  refresh();
  grant();
  refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  EXPECT_TRUE(coverage().established);
}

TEST_F(JudgedInPart, ARunThatDidNotEndIsNoFirstList) {
  withhold(Code::denied);
  line_->world->refresh_fails = Error{Code::unavailable, "cut"};
  line_->start(false);
  refresh();
  set(3, R"({"partitions":9})");
  refresh();
  line_->world->refresh_fails.reset();
  refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
