// SPDX-License-Identifier: Apache-2.0
// Drifts of pseudo-resources: the identity of a system, and many resources that are gone at once.
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A question of the agent itself: which system answers (`backend/<name>`), or are many resources gone
/// (`scope/<kind>`).
struct Pseudo : testing::Test {
  StoredResource row;
  Judgement identity(const std::string& text) {
    const Judgement out = keep(judge_identity("uid", row, accepted, text, now += kSecond));
    if (row.open.empty() && !text.empty()) accepted = text;
    return out;
  }
  Judgement missing(std::vector<std::string> names) {
    return keep(judge_scope("uid", row, std::move(names), now += kSecond));
  }
  Judgement keep(Judgement judgement) {
    row = judgement.next;
    return judgement;
  }
  Nanos now = kSecond;
  std::string accepted;
};

TEST_F(Pseudo, AnotherIdentityThanTheAcceptedOneIsNoBaselineWhereTheQuestionWasNeverStored) {
  row.id = {"backend", "orders"};
  accepted = "cluster-1";
  EXPECT_THAT(statuses(identity("cluster-2")), ElementsAre("pending"));
  EXPECT_EQ(row.open[0].changes[0].old_value, "\"cluster-1\"");
  EXPECT_THAT(statuses(identity("cluster-1")), ElementsAre("reverted"));
}

TEST_F(Pseudo, QuestionOfAProviderThatWasExchangedEndsWithTheNextIdentity) {
  row.id = {"backend", "orders"};
  identity("cluster-1");
  EXPECT_THAT(statuses(identity("cluster-2")), ElementsAre("pending"));
  accepted.clear();
  EXPECT_THAT(statuses(identity("7404")), ElementsAre("superseded"));
  EXPECT_THAT(statuses(identity("7405")), ElementsAre("pending"));
}

TEST_F(Pseudo, AnotherSystemIdentityIsOneManualEndpointDrift) {
  row.id = {"backend", "orders"};
  EXPECT_THAT(statuses(identity("cluster-1")), IsEmpty());
  EXPECT_THAT(statuses(identity("cluster-2")), ElementsAre("pending"));
  EXPECT_EQ(row.open[0].cls, ChangeClass::endpoint);
  EXPECT_EQ(row.open[0].action, Action::manual);
  EXPECT_THAT(statuses(identity("cluster-2")), IsEmpty());
  EXPECT_THAT(statuses(identity("")), IsEmpty());
  EXPECT_TRUE(row.open[0].stale_since_ns);
  const auto approved = decide(row, row.open[0].id, {Decision::Verb::approve, "ann", "", row.open[0].digest, {}, now});
  ASSERT_TRUE(approved);
  keep(*approved);
  EXPECT_THAT(statuses(identity("cluster-2")), IsEmpty());
  EXPECT_THAT(statuses(identity("cluster-1")), ElementsAre("pending"));
}

TEST_F(Pseudo, FormerSystemIdentityThatReturnsReverts) {
  identity("cluster-1");
  identity("cluster-2");
  EXPECT_THAT(statuses(identity("cluster-1")), ElementsAre("reverted"));
}

TEST_F(Pseudo, MassDeletionIsMoreThanAFifthAndMoreThanTen) {
  EXPECT_FALSE(mass_deletion(10, 10));
  EXPECT_FALSE(mass_deletion(55, 11));
  EXPECT_TRUE(mass_deletion(54, 11));
  EXPECT_TRUE(mass_deletion(11, 11));
}

TEST_F(Pseudo, ManyGoneAtOnceAskOnceWithCountAndNames) {
  row.id = {"scope", "topic"};
  EXPECT_THAT(statuses(missing({"b", "a"})), ElementsAre("pending"));
  EXPECT_EQ(row.open[0].changes[0].new_value, R"({"count":2,"names":["a","b"]})");
  EXPECT_THAT(statuses(missing({"a", "b"})), IsEmpty());
  EXPECT_THAT(statuses(missing({"a", "b", "c"})), ElementsAre("pending:moved"));
  EXPECT_THAT(statuses(missing({})), ElementsAre("reverted"));
}

TEST_F(Pseudo, OfVeryManyGoneTheFirstThousandAreShownWithADigestOfAll) {
  row.id = {"scope", "topic"};
  std::vector<std::string> names;
  for (int i = 0; i < 1'000; ++i) names.push_back("t" + std::to_string(10'000 + i));
  EXPECT_THAT(statuses(missing(names)), ElementsAre("pending"));
  EXPECT_THAT(*row.open[0].changes[0].new_value, Not(HasSubstr("sha256")));
  names.emplace_back("u1");
  EXPECT_THAT(statuses(missing(names)), ElementsAre("pending:moved"));
  const std::string shown = *row.open[0].changes[0].new_value;
  EXPECT_THAT(shown,
              AllOf(HasSubstr("{\"count\":1001,\"names\":[\"t10000\","), HasSubstr(",\"t10999\"],\"sha256\":\"")));
  EXPECT_THAT(statuses(missing(names)), IsEmpty());
  names.back() = "u2";
  EXPECT_THAT(statuses(missing(names)), ElementsAre("pending:moved")) << "a name that is not shown is another one";
  EXPECT_EQ(render(gone_value(names, GoneNames::all)).find("sha256"), std::string::npos);
}

TEST_F(Pseudo, NoTwoListsOfNamesHaveOneDigest) {
  const auto digest = [](std::vector<std::string> names) {
    for (int i = 0; i < 1'000; ++i) names.push_back("a" + std::to_string(10'000 + i));
    return *gone_value(std::move(names)).find("sha256")->string();
  };
  EXPECT_EQ(digest({"x", "y"}), digest({"y", "x"}));
  EXPECT_NE(digest({"x", "y"}), digest({"xy", ""}));
  EXPECT_NE(digest({"x1:y"}), digest({"x", "y"}));
  EXPECT_NE(digest({std::string(3u << 20, 'x')}), digest({std::string((3u << 20) + 1, 'x')}));
}

TEST_F(Pseudo, ManyGoneAndApprovedAreForgottenOnceTheyAreRemoved) {
  missing({"a"});
  keep(*decide(row, row.open[0].id, {Decision::Verb::approve, "ann", "", row.open[0].digest, {}, now}));
  EXPECT_THAT(statuses(missing({"a"})), IsEmpty());
  EXPECT_THAT(statuses(missing({})), IsEmpty());
  EXPECT_THAT(statuses(missing({"a"})), ElementsAre("pending"));
}

}  // namespace
}  // namespace driftd::core
