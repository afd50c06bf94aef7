// SPDX-License-Identifier: Apache-2.0
// What a reading calls unread is unknown, also where neither the baseline nor the reading has it.
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> unknown_paths(const Judgement& judgement) {
  std::vector<std::string> out;
  for (const auto& one : judgement.unknown) out.push_back(one.path);
  return out;
}

class Unreadable : public ResourceFixture, public testing::Test {};

TEST_F(Unreadable, InTheFirstListAndInEachLaterOne) {
  context.established = false;
  next.unread = {{"**", Code::corrupt, "`id` has 5015 bytes, at most 4096"}};
  EXPECT_THAT(unknown_paths(sees("{}")), ElementsAre("**"));
  context.established = true;
  const Judgement again = sees("{}");
  ASSERT_THAT(unknown_paths(again), ElementsAre("**"));
  EXPECT_EQ(again.unknown[0].reason, "`id` has 5015 bytes, at most 4096");
  EXPECT_THAT(again.transitions, IsEmpty());
}

TEST_F(Unreadable, ANewResourceNamesItToo) {
  is_gone();
  next.unread = {{"a", Code::denied, "needs pg_monitor"}};
  EXPECT_THAT(unknown_paths(sees(R"({"b":1})")), ElementsAre("a"));
}

TEST_F(Unreadable, ADriftOnWhatTheBaselineLacksIsNotRevertedByIt) {
  sees(R"({"b":1})");
  ASSERT_TRUE(decides(Decision::Verb::approve));
  sees(R"({"a":1,"b":1})");
  ASSERT_THAT(row.open, testing::SizeIs(1));
  next.unread = {{"a", Code::denied, "needs pg_monitor"}};
  EXPECT_THAT(statuses(sees(R"({"b":1})")), IsEmpty());
  ASSERT_THAT(row.open, testing::SizeIs(1));
  EXPECT_TRUE(drift().stale_since_ns);
  next.unread[0].code = Code::unsupported;
  EXPECT_THAT(statuses(sees(R"({"b":1})")), IsEmpty());
  next.unread.clear();
  EXPECT_THAT(statuses(sees(R"({"b":1})")), ElementsAre("reverted"));
}

TEST_F(Unreadable, IsNotCountedWhereNothingIsJudged) {
  rules.ignore.push_back(ignore_rule("conf.**"));
  next.unread = {{"conf.a", Code::denied, "no"},
                 {"seen_at", Code::denied, "no"},
                 {"other", Code::unsupported, "settings.config does not ask for it"}};
  EXPECT_THAT(unknown_paths(sees(R"({"b":1})")), IsEmpty());
  EXPECT_THAT(unknown_paths(sees(R"({"b":1})")), IsEmpty());
  next.unread = {{"**", Code::unsupported, "the types of its lists are not known"}};
  EXPECT_THAT(unknown_paths(sees("{}")), ElementsAre("**")) << "nothing of it is compared";
}

}  // namespace
}  // namespace driftd::core
