// SPDX-License-Identifier: Apache-2.0
// Semantics 5 and 10: a drift is `reverted` only if the live value went back, and unknown ends no drift.
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Verb = Decision::Verb;

struct Ends : testing::Test, ResourceFixture {
  Ends() {
    context.established = false;
    sees(R"({"a":1,"b":2})");
    context.established = true;
  }
  Judgement a_is(const std::string& a) { return sees(R"({"a":)" + a + R"(,"b":2})"); }
  void a_is_expected(const std::string& value) { rules.expect.assign(1, expectation("a", value)); }
};

TEST_F(Ends, ExpectationThatFollowsTheLiveValueSupersedes) {
  a_is_expected("9");
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("pending"));
  a_is_expected("1");
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("superseded"));
}

TEST_F(Ends, LiveValueThatFollowsTheExpectationReverts) {
  a_is_expected("9");
  a_is("1");
  rules.policy.push_back(policy("a", Action::ignore));
  EXPECT_THAT(statuses(a_is("9")), ElementsAre("reverted", "ignored"))
      << "as expected; it is not the baseline any more";
}

TEST_F(Ends, ExpectationAndLiveValueThatMeetAtAThirdSupersede) {
  a_is_expected("9");
  a_is("1");
  a_is_expected("4");
  EXPECT_THAT(statuses(a_is("4")), ElementsAre("superseded", "pending"));
}

/// A decision to ignore 1 instead of 9 does not cover 1 instead of 100.
TEST_F(Ends, AnExpectationThatMovesIsAnotherQuestion) {
  a_is_expected("9");
  a_is("1");
  const std::string shown = drift().digest;
  ASSERT_TRUE(decides(Verb::ignore, 0, shown));
  a_is_expected("9.0");
  EXPECT_THAT(statuses(a_is("1")), IsEmpty()) << "the same, said otherwise";
  a_is_expected("100");
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("pending:moved"));
  EXPECT_EQ(drift().changes[0].old_value, "100");
  const auto late = decides(Verb::reject, 0, shown);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::conflict) << "it was decided on what was shown before";
}

/// Computes the digest as earlier versions of the agent did: without the expected values.
TEST_F(Ends, ADecisionOfBeforeStandsAndItsDigestFollowsWithoutAWord) {
  a_is_expected("9");
  a_is("1");
  const std::string now = drift().digest;
  ASSERT_TRUE(decides(Verb::ignore, 0, now));
  row.open[0].digest = digest_of(row.open[0].changes, Against::baseline);
  ASSERT_NE(row.open[0].digest, now);
  EXPECT_THAT(statuses(a_is("1")), IsEmpty());
  EXPECT_EQ(drift().digest, now);
  EXPECT_EQ(drift().status, DriftStatus::ignored);
}

TEST_F(Ends, IgnoreRuleOrPolicyOverAnExpectationSupersedes) {
  a_is_expected("9");
  a_is("1");
  rules.ignore.push_back(ignore_rule("a"));
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("superseded"));
  rules.ignore.clear();
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("pending"));
  rules.policy.push_back(policy("a", Action::ignore));
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("superseded", "ignored"));
}

TEST_F(Ends, UnexpectedAttributeThatIsTakenAwayReverts) {
  a_is_expected("null");
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("pending"));
  rules.policy.push_back(policy("a", Action::ignore));
  EXPECT_THAT(statuses(sees(R"({"b":2})")), ElementsAre("reverted", "ignored"));
}

TEST_F(Ends, IdentityThatIsNotSaidAnyMoreEndsNoRecreation) {
  next.external_name = "oid-1";
  a_is("1");
  next.external_name = "oid-2";
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("pending"));
  ASSERT_TRUE(decides(Verb::reject));
  next.external_name.clear();
  const Judgement unsaid = a_is("1");
  EXPECT_THAT(statuses(unsaid), IsEmpty());
  EXPECT_THAT(unsaid.unknown, testing::SizeIs(1));
  ASSERT_THAT(row.open, testing::SizeIs(1));
  EXPECT_TRUE(drift().stale_since_ns);
  EXPECT_EQ(drift().status, DriftStatus::rejected);
  next.external_name = "oid-2";
  EXPECT_THAT(statuses(a_is("1")), IsEmpty());
  EXPECT_FALSE(drift().stale_since_ns);
  next.external_name = "oid-1";
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("reverted"));
}

TEST_F(Ends, RecreationIsApprovedUnderTheIdentityThatWasSeenWhileNoneIsSaid) {
  next.external_name = "oid-1";
  a_is("1");
  next.external_name = "oid-2";
  a_is("1");
  next.external_name.clear();
  a_is("1");
  ASSERT_TRUE(decides(Verb::approve));
  EXPECT_EQ(row.external_name, "oid-2");
  next.external_name = "oid-2";
  EXPECT_THAT(statuses(a_is("1")), IsEmpty());
}

TEST_F(Ends, ChangeBesideAnUnsaidRecreationJoinsIt) {
  next.external_name = "oid-1";
  a_is("1");
  next.external_name = "oid-2";
  a_is("1");
  next.external_name.clear();
  EXPECT_THAT(statuses(a_is("7")), ElementsAre("pending:moved"));
  EXPECT_EQ(drift().operation, Operation::recreated);
  EXPECT_THAT(paths(drift()), ElementsAre(std::string(kIdentityPath), "a"));
}

TEST_F(Ends, UnsettledChangeEndsNoOpenDriftAndNoDecision) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::reject));
  demoted = {{"a", true, "the provider's diff failed"}};
  EXPECT_THAT(statuses(a_is("6")), IsEmpty());
  EXPECT_EQ(drift().status, DriftStatus::rejected);
  EXPECT_TRUE(drift().stale_since_ns);
  demoted.clear();
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
  EXPECT_EQ(drift().status, DriftStatus::rejected);
  EXPECT_FALSE(drift().stale_since_ns);
  rules.ignore.push_back(ignore_rule("a"));
  demoted = {{"a", true, "the provider's diff failed"}};
  EXPECT_THAT(statuses(a_is("6")), ElementsAre("superseded")) << "by the rule; nothing went back";
}

TEST_F(Ends, ExpectedMemberThatComesWithOthersReverts) {
  rules.expect.assign(1, expectation("limits.cpu", "1"));
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("pending"));
  rules.policy.push_back(policy("limits", Action::ignore));
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"limits":{"cpu":1,"memory":2}})")), ElementsAre("reverted", "ignored"));
}

/// Lists are compared as a whole, so what is ignored inside their elements must be removed from both sides.
TEST_F(Ends, ExpectedListWhoseIgnoredMembersDifferReverts) {
  rules.ignore.push_back(ignore_rule("**.updated_at"));
  rules.expect.assign(1, expectation("l", R"([{"x":1},{"x":2}])"));
  const auto list = [&](int x, int updated_at) {
    const std::string at = R"(,"updated_at":)" + std::to_string(updated_at) + "}";
    return sees(R"({"a":1,"b":2,"l":[{"x":1)" + at + R"(,{"x":)" + std::to_string(x) + at + "]}");
  };
  rules.policy.push_back(policy("l", Action::ignore));
  EXPECT_THAT(statuses(list(3, 7)), ElementsAre("ignored", "ignored")) << "from the baseline, and from the expectation";
  EXPECT_THAT(statuses(list(3, 8)), IsEmpty());
  EXPECT_THAT(statuses(list(2, 9)), ElementsAre("reverted", "ignored:moved"));
  EXPECT_THAT(statuses(list(3, 9)), ElementsAre("ignored:moved", "ignored"));
}

}  // namespace
}  // namespace driftd::core
