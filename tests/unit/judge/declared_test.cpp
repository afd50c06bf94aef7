// SPDX-License-Identifier: Apache-2.0
// Declarations of sources are judged, whatever the baseline says.
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Declaration declaration(const std::string& body, const std::string& source = "tf-prod") {
  Declaration out;
  out.source_uid = "uid-of-" + source;
  out.source = source;
  out.id = {"role", "app"};
  out.body = body;
  out.metadata = {{"address", "postgresql_role.app"}, {"serial", "12"}};
  out.digest = digest(1, {body});
  return out;
}

struct Declared : testing::Test, ResourceFixture {
  Declared() {
    context.established = false;
    sees(R"({"a":1,"b":2,"timeout":"1s"})");
    context.established = true;
  }
};

TEST_F(Declared, WhatTheLiveSystemKeepsIsNoDriftInAnySpelling) {
  context.declared = {declaration(R"({"a":1,"timeout":"1000ms"})")};
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"timeout":"1s"})")), IsEmpty());
}

TEST_F(Declared, ChangeOutOfBandDriftsFromTheBaselineAndFromTheDeclarationWithItsAddress) {
  context.declared = {declaration(R"({"a":1})")};
  sees(R"({"a":5,"b":2,"timeout":"1s"})");
  ASSERT_THAT(row.open, SizeIs(2));
  EXPECT_EQ(drift(0).against, Against::baseline);
  EXPECT_EQ(drift(1).against, Against::expectation);
  EXPECT_EQ(drift(1).reason, "declared by tf-prod (postgresql_role.app, since serial 12)");
  EXPECT_THAT(paths(drift(1)), ElementsAre("a"));
  EXPECT_EQ(drift(1).changes[0].old_value, "1");
  EXPECT_EQ(drift(1).changes[0].new_value, "5");
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"timeout":"1s"})")), ElementsAre("reverted", "reverted"));
}

TEST_F(Declared, WhatIsNotDeclaredIsNotHeldAgainstIt) {
  context.declared = {declaration(R"({"a":1,"c":null})")};
  sees(R"({"a":1,"b":7,"c":9,"timeout":"1s"})");
  ASSERT_THAT(row.open, SizeIs(1));
  EXPECT_EQ(drift().against, Against::baseline);
}

TEST_F(Declared, OfOnePathTheConfigurationCountsAlsoInsideAnObject) {
  rules.expect.push_back(expectation("c", R"({"x":1,"gone":null})"));
  context.declared = {declaration(R"({"c":{"x":2,"y":3}})")};
  sees(R"({"a":1,"b":2,"c":{"x":1,"y":3,"z":4},"timeout":"1s"})");
  for (const auto& open : row.open) EXPECT_EQ(open.against, Against::baseline) << testing::PrintToString(paths(open));
  sees(R"({"a":1,"b":2,"c":{"x":2,"y":4},"timeout":"1s"})");
  std::vector<std::string> broken;
  for (const auto& open : row.open) {
    if (open.against == Against::expectation) broken = paths(open);
  }
  EXPECT_THAT(broken, ElementsAre("c.x", "c.y"));
}

TEST_F(Declared, DocumentIsOneValueAsItIsToAnExpectation) {
  context.schema = schema_of(R"({"schema":"driftd-schema/1","kind":"role","revision":2,"class":"config",
    "attributes":{"policy":{"type":"json"},"login":{"type":"bool"}}})");
  context.declared = {declaration(R"({"login":null,"policy":{"deny":["x"],"rest":null}})")};
  for (const char* same :
       {R"({"policy":{"deny":["x"],"rest":null}})", R"({"policy":"{\"rest\":null,\"deny\":[\"x\"]}"})"}) {
    sees(same);
    for (const auto& open : row.open) EXPECT_EQ(open.against, Against::baseline) << same;
  }
  sees(R"({"policy":{"deny":["x"],"allow":["y"],"rest":null}})");  // declared as a whole, so other members are not
                                                                   // allowed
  std::vector<std::string> broken;
  for (const auto& open : row.open) {
    if (open.against == Against::expectation) broken = paths(open);
  }
  EXPECT_THAT(broken, ElementsAre(HasSubstr("policy")));
}

TEST_F(Declared, BaselineThatNeverMatchedIsADriftFromTheFirstSight) {
  context.declared = {declaration(R"({"a":3})")};
  sees(R"({"a":1,"b":2,"timeout":"1s"})");
  ASSERT_THAT(row.open, SizeIs(1));
  EXPECT_EQ(drift().against, Against::expectation);
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"timeout":"1s"})")), IsEmpty());
}

TEST_F(Declared, WithdrawnDeclarationSupersedesItsDrift) {
  context.declared = {declaration(R"({"a":3})")};
  sees(R"({"a":1,"b":2,"timeout":"1s"})");
  context.declared.clear();
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"timeout":"1s"})")), ElementsAre("superseded"));
}

TEST_F(Declared, OtherDeclarationsAreAnotherGenerationOfRules) {
  sees(R"({"a":1,"b":2,"timeout":"1s"})");
  const auto before = generation_under(context);
  context.declared = {declaration(R"({"a":1})"), declaration(R"({"b":2})", "tf-other")};
  const auto both = generation_under(context);
  std::swap(context.declared[0], context.declared[1]);
  EXPECT_NE(both, before);
  EXPECT_EQ(generation_under(context), both);
  EXPECT_EQ(mix_declarations(0, 77), 0u) << "not judged yet stays so";
}

TEST_F(Declared, ExpectationOfTheConfigWinsOverASource) {
  rules.expect.push_back(expectation("a", "1"));
  context.declared = {declaration(R"({"a":3})")};
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"timeout":"1s"})")), IsEmpty());
}

TEST_F(Declared, SecretsAreComparedAsDigestsAndRotateAsCredentials) {
  sees(R"({"a":1,"b":2,"timeout":"1s","verifier":)" + digest_value('a') + "}");
  for (auto& one : row.open)
    ASSERT_TRUE(decide(row, one.id, {Decision::Verb::approve, "ann", "", one.digest, {}, now()}));
  context.declared = {declaration(R"({"verifier":)" + digest_value('a') + "}")};
  row.open.clear();
  row.baseline = row.observed;
  EXPECT_THAT(statuses(sees(*row.observed)), IsEmpty());
  sees(R"({"a":1,"b":2,"timeout":"1s","verifier":)" + digest_value('b') + "}");
  ASSERT_THAT(row.open, SizeIs(1)) << "the baseline followed by policy, the declaration stands";
  EXPECT_EQ(drift().cls, ChangeClass::credential);
  EXPECT_TRUE(drift().changes[0].redacted);
  EXPECT_THAT(drift().reason, HasSubstr("cannot accept what an expectation forbids; declared by tf-prod"));
}

TEST_F(Declared, SecretAgainstClearTextIsUnknown) {
  context.declared = {declaration(R"({"a":)" + digest_value('a') + "}")};
  const Judgement judged = sees(R"({"a":1,"b":2,"timeout":"1s"})");
  EXPECT_THAT(row.open, IsEmpty());
  ASSERT_THAT(judged.unknown, SizeIs(1));
  EXPECT_EQ(judged.unknown[0].path, "a");
}

TEST_F(Declared, ResourceThatNeverWasThereIsMissingUntilItComesOrIsNotDeclaredAnyMore) {
  row = {};
  row.id = {"role", "app"};
  context.declared = {declaration(R"({"a":1})")};
  EXPECT_THAT(statuses(is_gone()), ElementsAre("pending"));
  EXPECT_EQ(drift().operation, Operation::deleted);
  EXPECT_EQ(drift().against, Against::expectation);
  EXPECT_THAT(statuses(is_gone()), IsEmpty());
  const StoredResource missing = row;
  EXPECT_THAT(statuses(sees(R"({"a":1})")), ElementsAre("reverted", "pending"))
      << "it came: a resource nobody accepted yet";
  row = missing;
  context.declared.clear();
  EXPECT_THAT(statuses(is_gone()), ElementsAre("superseded"));
}

TEST_F(Declared, DeletedResourceIsOneDriftAndAcceptingItLeavesTheDeclaration) {
  context.declared = {declaration(R"({"a":1})")};
  sees(R"({"a":1,"b":2,"timeout":"1s"})");
  EXPECT_THAT(statuses(is_gone()), ElementsAre("pending"));
  EXPECT_EQ(drift().against, Against::baseline);
  ASSERT_TRUE(decides(Decision::Verb::approve));
  EXPECT_THAT(statuses(is_gone()), ElementsAre("pending"));
  EXPECT_EQ(drift().against, Against::expectation);
  const auto approved = decides(Decision::Verb::approve);
  ASSERT_FALSE(approved);
  EXPECT_THAT(approved.error().message, HasSubstr("what declares it"));
}

}  // namespace
}  // namespace driftd::core
