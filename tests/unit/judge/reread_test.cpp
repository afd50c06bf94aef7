// SPDX-License-Identifier: Apache-2.0
// A kind whose schema is `versioned`: what reads differently under one version was written by nobody.
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kVersioned = R"({"schema":"driftd-schema/1","kind":"role","versioned":true,"attributes":{
  "names":{"collection":"set"},"timeout":{"type":"duration","unit":"ms"},"later":{"computed":true}}})";

class Reread : public ResourceFixture, public testing::Test {
 protected:
  Reread() {
    context.schema = schema_of(kVersioned);
    context.established = false;
    sees_version("41", R"({"a":1,"names":["x","y"]})");
    context.established = true;
  }
  Judgement sees_version(const std::string& version, const std::string& body) {
    next.version = version;
    return sees(body);
  }
};

TEST_F(Reread, ADefaultThatANewerServerAddsIsFilledIn) {
  const Judgement out = sees_version("41", R"({"a":1,"names":["y","x"],"policy":"Always"})");
  EXPECT_THAT(statuses(out), IsEmpty());
  EXPECT_EQ(out.suppressed.at("reread"), 1u);
  EXPECT_THAT(statuses(sees_version("42", R"({"a":1,"names":["x","y"],"policy":"Never"})")), ElementsAre("pending"));
  EXPECT_EQ(drift().changes[0].old_value, "\"Always\"");
}

TEST_F(Reread, TheSameChangeUnderAnotherVersionIsADrift) {
  EXPECT_THAT(statuses(sees_version("42", R"({"a":1,"names":["x","y"],"policy":"Always"})")), ElementsAre("pending"));
}

TEST_F(Reread, AnAttributeThatTheSameStateNoLongerShowsIsForgotten) {
  EXPECT_THAT(statuses(sees_version("41", R"({"a":1})")), IsEmpty());
  EXPECT_THAT(statuses(sees_version("42", R"({"a":1})")), IsEmpty());
}

TEST_F(Reread, AnOpenDriftStaysOpenAndWhatReadsDifferentlyBesideItIsFilledIn) {
  sees_version("42", R"({"a":2,"names":["x","y"]})");
  ASSERT_THAT(paths(drift()), ElementsAre("a"));
  EXPECT_THAT(statuses(sees_version("42", R"({"a":2,"names":["x","y"],"policy":"Always"})")), IsEmpty());
  EXPECT_THAT(paths(drift()), ElementsAre("a"));
  EXPECT_THAT(statuses(sees_version("43", R"({"a":1,"names":["x","y"],"policy":"Always"})")), ElementsAre("reverted"));
}

TEST_F(Reread, TheValueOfAnOpenDriftNeverBecomesTheBaseline) {
  sees_version("42", R"({"a":2,"names":["x","y"]})");
  EXPECT_THAT(statuses(sees_version("42", R"({"a":3,"names":["x","y"]})")), ElementsAre("pending:moved"));
  EXPECT_EQ(drift().changes[0].old_value, "1");
}

TEST_F(Reread, WhatCouldNotBeReadUnderThisVersionHidesNothing) {
  next.unread = {{"**", Code::corrupt, "too large"}};
  sees_version("42", "{}");
  next.unread.clear();
  EXPECT_THAT(statuses(sees_version("42", R"({"a":1,"names":["x","y"],"policy":"Always"})")), ElementsAre("pending"));
}

TEST_F(Reread, AnotherResourceOfTheSameVersionIsRecreated) {
  next.external_name = "uid-1";
  sees_version("42", R"({"a":1,"names":["x","y"]})");
  next.external_name = "uid-2";
  EXPECT_THAT(statuses(sees_version("42", R"({"a":9,"names":["x","y"]})")), ElementsAre("pending"));
  EXPECT_EQ(drift().operation, Operation::recreated);
  EXPECT_THAT(paths(drift()), testing::Contains("a"));
}

TEST_F(Reread, WithoutAVersionNothingIsFilledIn) {
  sees_version("", R"({"a":1,"names":["x","y"]})");
  EXPECT_THAT(statuses(sees_version("", R"({"a":1,"names":["x","y"],"policy":"Always"})")), ElementsAre("pending"));
}

/// A resource that is new since revision 1 of the schema, rejected, and then read under revision 2.
class NewForm : public ResourceFixture, public testing::Test {
 protected:
  NewForm() {
    context.schema = schema_of(kVersioned);
    next.version = "41";
    sees(R"({"a":1,"names":["x"]})");
    EXPECT_TRUE(decides(Decision::Verb::reject));
    context.former[1] = context.schema;
    std::string second = kVersioned;
    second.insert(second.find("\"attributes\""), "\"revision\":2,");
    context.schema = schema_of(second);
  }
};

TEST_F(NewForm, OfWhatNobodyWroteKeepsTheDecisionWithoutAnEvent) {
  EXPECT_THAT(statuses(sees(R"({"a":1,"names":{"x":{}},"spec":{"b":1}})")), IsEmpty());
  EXPECT_EQ(drift().status, DriftStatus::rejected);
  EXPECT_THAT(paths(drift()), testing::Contains("spec"));
  EXPECT_THAT(statuses(sees(R"({"a":1,"names":{"x":{}},"spec":{"b":1}})")), IsEmpty());
  next.version = "42";
  EXPECT_THAT(statuses(sees(R"({"a":2,"names":{"x":{}},"spec":{"b":1}})")), ElementsAre("pending:moved"));
}

TEST_F(NewForm, OfWhatSomebodyWroteIsAskedAgain) {
  next.version = "42";
  EXPECT_THAT(statuses(sees(R"({"a":1,"names":{"x":{}},"spec":{"b":1}})")), ElementsAre("pending:moved"));
}

TEST_F(NewForm, UnderTheSameRevisionAnotherValueIsAnotherValue) {
  context.schema = context.former[1];
  EXPECT_THAT(statuses(sees(R"({"a":3,"names":["x"]})")), ElementsAre("pending:moved"));
}

TEST_F(Reread, AKindWithoutTheMemberIsJudgedByItsValues) {
  context.schema = schema_of(R"({"schema":"driftd-schema/1","kind":"role","attributes":{}})");
  EXPECT_THAT(statuses(sees_version("41", R"({"a":1,"names":["x","y"],"policy":"Always"})")), ElementsAre("pending"));
}

TEST_F(Reread, AnExpectationIsJudgedByItsValueAllTheSame) {
  rules.expect = {expectation("policy", "\"Never\"")};
  sees_version("41", R"({"a":1,"names":["x","y"],"policy":"Never"})");
  EXPECT_THAT(statuses(sees_version("41", R"({"a":1,"names":["x","y"],"policy":"Always"})")), ElementsAre("pending"));
  EXPECT_EQ(drift().against, Against::expectation);
}

}  // namespace
}  // namespace driftd::core
