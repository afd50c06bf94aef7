// SPDX-License-Identifier: Apache-2.0
// Semantics 5–9 and 11: what a reading means.
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Verb = Decision::Verb;

/// A role known since its first refresh: {"a":1,"b":2} with a verifier and an address.
std::string body(const std::string& a, const std::string& b, char verifier = '0', const std::string& host = "h:1") {
  return R"({"a":)" + a + R"(,"b":)" + b + R"(,"verifier":)" + digest_value(verifier) + R"(,"address":")" + host +
         "\"}";
}

struct Judge : testing::Test, ResourceFixture {
  Judge() {
    context.established = false;
    sees(body("1", "2"));
    context.established = true;
  }
};

struct BeforeTheBaseline : testing::Test, ResourceFixture {
  BeforeTheBaseline() {
    context.established = false;
    rules.expect.push_back(expectation("a", "9"));
  }
};

TEST_F(BeforeTheBaseline, FirstSightingIsTheBaselineAndIsHeldAgainstExpectationsAtOnce) {
  EXPECT_THAT(statuses(sees(R"({"a":1})")), ElementsAre("pending"));
  EXPECT_EQ(drift().against, Against::expectation);
  EXPECT_EQ(row.baseline, R"({"a":1})");
  EXPECT_EQ(row.rules_generation, 0u) << "its rows must be judged once the kind is established";
  const std::string id = drift().id;
  context.established = true;
  EXPECT_THAT(statuses(sees(R"({"a":1})")), IsEmpty()) << "it was told";
  EXPECT_EQ(drift().id, id);
}

TEST_F(BeforeTheBaseline, ExpectationIsJudgedAtEverySightAndItsDriftEndsAsReverted) {
  sees(R"({"a":1})");
  EXPECT_THAT(statuses(sees(R"({"a":1})")), IsEmpty());
  EXPECT_THAT(statuses(sees(R"({"a":2})")), ElementsAre("pending:moved"));
  EXPECT_THAT(statuses(sees(R"({"a":9})")), ElementsAre("reverted"));
  EXPECT_EQ(row.baseline, R"({"a":9})");
}

TEST_F(BeforeTheBaseline, ExpectedValueThatCannotBeReadIsUnknownAndEndsNothing) {
  sees(R"({"a":1})");
  next.unread = {{"a", Code::denied, "needs pg_monitor"}};
  const Judgement out = sees("{}");
  EXPECT_THAT(statuses(out), IsEmpty());
  ASSERT_THAT(out.unknown, SizeIs(1));
  EXPECT_TRUE(drift().stale_since_ns);
}

TEST_F(BeforeTheBaseline, DeclarationIsJudgedAtTheFirstSight) {
  rules.expect.clear();
  Declaration declared;
  declared.source = "tf";
  declared.id = row.id;
  declared.body = R"({"b":20})";
  context.declared = {declared};
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":-1})")), ElementsAre("pending"));
  EXPECT_THAT(paths(drift()), ElementsAre("b"));
}

TEST_F(BeforeTheBaseline, IgnoreRulesAndPoliciesHoldAtTheFirstSight) {
  rules.ignore.push_back(ignore_rule("a"));
  EXPECT_THAT(statuses(sees(R"({"a":1})")), IsEmpty());
  rules.ignore.clear();
  rules.policy.push_back(policy("a", Action::ignore));
  EXPECT_THAT(statuses(sees(R"({"a":1})")), ElementsAre("ignored"));
}

TEST(JudgeFirst, SecondPageBeforeTheKindIsEstablishedMovesTheBaselineSilently) {
  ResourceFixture fixture;
  fixture.context.established = false;
  fixture.sees(R"({"a":1})");
  EXPECT_THAT(statuses(fixture.sees(R"({"a":2})")), IsEmpty());
  EXPECT_EQ(fixture.row.baseline, R"({"a":2})");
  EXPECT_THAT(statuses(fixture.is_gone()), IsEmpty());
  EXPECT_FALSE(fixture.row.baseline);
}

TEST(JudgeFirst, NewResourceOfAnEstablishedKindIsADriftOfOperationCreated) {
  ResourceFixture fixture;
  EXPECT_THAT(statuses(fixture.sees(body("1", "2"))), ElementsAre("pending"));
  EXPECT_EQ(fixture.drift().operation, Operation::created);
  EXPECT_EQ(fixture.drift().cls, ChangeClass::config) << "a new role is no rotation";
  EXPECT_FALSE(fixture.row.baseline);
  ASSERT_TRUE(fixture.decides(Verb::approve));
  EXPECT_EQ(fixture.row.baseline, fixture.row.observed);
  EXPECT_THAT(statuses(fixture.sees(body("1", "2"))), IsEmpty());
}

TEST(JudgeFirst, NewResourceThatGoesAwayAgainIsReverted) {
  ResourceFixture fixture;
  fixture.sees(R"({"a":1})");
  EXPECT_THAT(statuses(fixture.is_gone()), ElementsAre("reverted"));
  EXPECT_THAT(fixture.row.open, IsEmpty());
}

TEST_F(Judge, EqualRecordIsSilent) {
  const Judgement out = sees(body("1", "2"));
  EXPECT_THAT(statuses(out), IsEmpty());
  EXPECT_FALSE(out.dropped);
}

TEST_F(Judge, ThousandIdenticalSightingsOfOneDriftMakeOneTransition) {
  for (int i = 0; i < 1000; ++i) sees(body("5", "2"));
  EXPECT_THAT(log, SizeIs(1));
  EXPECT_THAT(row.open, SizeIs(1));
}

TEST_F(Judge, StandingDriftIsCountedAsSuppressed) {
  sees(body("5", "6"));
  EXPECT_EQ(sees(body("5", "6")).suppressed["standing"], 2u);
}

TEST_F(Judge, SameValueInAnotherNotationDoesNotMoveADrift) {
  sees(R"({"timeout":"1s"})");
  const std::size_t before = log.size();
  sees(R"({"timeout":"1000ms"})");
  EXPECT_EQ(log.size(), before);
}

TEST_F(Judge, MixedPoliciesInOneResourceAutoMovesOnlyItsOwnPaths) {
  rules.policy.push_back(policy("a", Action::automatic));
  EXPECT_THAT(statuses(sees(body("5", "6"))), ElementsAre("auto-applied", "pending"));
  EXPECT_EQ(row.baseline, parse(body("5", "2")).map([](const Value& v) { return render(v); }).value());
  EXPECT_THAT(paths(drift()), ElementsAre("b"));
}

TEST_F(Judge, DefaultsPerClassAreAutoForCredentialAndEndpointAndManualForConfig) {
  EXPECT_THAT(statuses(sees(body("5", "2", '1', "h:2"))), ElementsAre("pending", "auto-applied", "auto-applied"));
  EXPECT_EQ(drift().cls, ChangeClass::config);
  EXPECT_THAT(statuses(sees(body("5", "2", '1', "h:2"))), IsEmpty());
}

TEST_F(Judge, DigestThatTheSchemaDoesNotClassCountsAsCredential) {
  context.established = false;
  sees(R"({"token":)" + digest_value('a') + "}");
  context.established = true;
  sees(R"({"token":)" + digest_value('b') + "}");
  ASSERT_THAT(log, SizeIs(1));
  EXPECT_EQ(log[0].drift.cls, ChangeClass::credential);
}

TEST_F(Judge, ConfigOfAStateThatWasAppliedIsAutoUnlessTheUserWroteAPolicy) {
  context.applied_state = true;
  EXPECT_THAT(statuses(sees(body("5", "2"))), ElementsAre("auto-applied"));
  rules.config_policy_set = true;
  EXPECT_THAT(statuses(sees(body("6", "2"))), ElementsAre("pending"));
}

TEST_F(Judge, PolicyIgnoreIsPublishedOnceWithStatusIgnoredAndAgainWhenTheValueMoves) {
  rules.policy.push_back(policy("a", Action::ignore));
  EXPECT_THAT(statuses(sees(body("5", "2"))), ElementsAre("ignored"));
  EXPECT_THAT(statuses(sees(body("5", "2"))), IsEmpty());
  EXPECT_THAT(statuses(sees(body("6", "2"))), ElementsAre("ignored:moved"));
  EXPECT_THAT(statuses(sees(body("1", "2"))), ElementsAre("reverted"));
}

TEST_F(Judge, PolicyEnforceOpensADriftThatIsPutBack) {
  rules.policy.push_back(policy("a", Action::enforce));
  EXPECT_THAT(statuses(sees(body("5", "2"))), ElementsAre("pending"));
  EXPECT_EQ(drift().action, Action::enforce);
}

TEST_F(Judge, PolicyEnforceOfWhatIsNeverPutBackAsksAPersonAndSaysWhy) {
  rules.policy.push_back(policy("**", Action::enforce));
  sees(R"({"a":1,"b":2,"verifier":)" + digest_value('7') + R"(,"address":"h:1"})");
  ASSERT_THAT(row.open, SizeIs(1));
  EXPECT_EQ(drift().action, Action::manual);
  EXPECT_THAT(drift().reason, testing::HasSubstr("cannot put it back: its value is withheld"));
  is_gone();
  EXPECT_EQ(drift().action, Action::manual);
  EXPECT_THAT(drift().reason, testing::HasSubstr("the resource was deleted"));
}

TEST_F(Judge, IgnoreRuleIsNotJudgedAtAllButCounted) {
  rules.ignore.push_back(ignore_rule("a"));
  const Judgement out = sees(body("5", "2"));
  EXPECT_THAT(statuses(out), IsEmpty());
  EXPECT_EQ(out.suppressed.at("ignore-rule"), 1u);
}

TEST_F(Judge, IgnoredMemberInsideAnAddedSubtreeDoesNotMoveItsDrift) {
  rules.ignore.push_back(ignore_rule("**.updated_at"));
  const std::string start =
      R"({"a":1,"b":2,"verifier":)" + digest_value('0') + R"(,"address":"h:1","o":{"x":1,"updated_at":)";
  sees(start + "1}}");
  ASSERT_THAT(row.open, SizeIs(1));
  EXPECT_THAT(statuses(sees(start + "2}}")), IsEmpty());
  ASSERT_TRUE(decides(Verb::approve));
  EXPECT_THAT(statuses(sees(start + "3}}")), IsEmpty());
}

TEST_F(Judge, IgnoredMemberInsideAListIsNotJudged) {
  rules.ignore.push_back(ignore_rule("**.updated_at"));
  context.established = false;
  sees(R"({"l":[{"x":1,"updated_at":1}]})");
  context.established = true;
  EXPECT_THAT(statuses(sees(R"({"l":[{"x":1,"updated_at":2}]})")), IsEmpty());
  EXPECT_THAT(statuses(sees(R"({"l":[{"x":2,"updated_at":2}]})")), ElementsAre("pending"));
}

TEST_F(Judge, IgnoredMemberInsideANewResourceDoesNotMoveItsDrift) {
  ResourceFixture fixture;
  fixture.rules.ignore.push_back(ignore_rule("**.updated_at"));
  fixture.sees(R"({"o":{"x":1,"updated_at":1}})");
  EXPECT_THAT(statuses(fixture.sees(R"({"o":{"x":1,"updated_at":2}})")), IsEmpty());
}

TEST_F(Judge, DeletionIsNotHiddenByAnIgnoreRuleOnEveryAttribute) {
  rules.ignore.push_back(ignore_rule("**"));
  EXPECT_THAT(statuses(is_gone()), ElementsAre("pending"));
  EXPECT_EQ(drift().operation, Operation::deleted);
}

TEST_F(Judge, DeletionIsNotAcceptedByAPolicyOnAnAttribute) {
  rules.policy.push_back(policy("a", Action::automatic));
  EXPECT_THAT(statuses(is_gone()), ElementsAre("pending"));
  EXPECT_TRUE(row.baseline);
}

TEST_F(Judge, DeletedResourceStaysOneDriftAndApprovingItForgetsTheBaseline) {
  is_gone();
  EXPECT_THAT(statuses(is_gone()), IsEmpty());
  ASSERT_TRUE(decides(Verb::approve));
  EXPECT_FALSE(row.baseline);
  EXPECT_THAT(statuses(is_gone()), IsEmpty());
  EXPECT_THAT(statuses(sees(body("1", "2"))), ElementsAre("pending"));
  EXPECT_EQ(drift().operation, Operation::created);
}

TEST_F(Judge, DeletedResourceThatComesBackUnchangedIsReverted) {
  is_gone();
  EXPECT_THAT(statuses(sees(body("1", "2"))), ElementsAre("reverted"));
}

TEST_F(Judge, ChangedResourceThatIsDeletedMovesTheSameDriftToDeleted) {
  sees(body("5", "2"));
  const std::string id = drift().id;
  EXPECT_THAT(statuses(is_gone()), ElementsAre("pending:moved"));
  EXPECT_EQ(drift().id, id);
  EXPECT_EQ(drift().operation, Operation::deleted);
}

TEST_F(Judge, DeletionsApprovedAsAScopeAreApprovedByTheSamePerson) {
  sees(body("5", "2"));
  context.deletions_accepted_by = "ann";
  EXPECT_THAT(statuses(is_gone()), ElementsAre("superseded", "approved"));
  EXPECT_EQ(log.back().drift.actor, "ann");
  EXPECT_FALSE(row.baseline);
  EXPECT_THAT(row.open, IsEmpty());
}

TEST(JudgeIdentity, SameNameWithANewIdentityIsRecreatedEvenWhenTheBodyIsEqual) {
  ResourceFixture fixture;
  fixture.context.established = false;
  fixture.next.external_name = "oid-1";
  fixture.sees(R"({"a":1})");
  fixture.context.established = true;
  fixture.next.external_name = "oid-2";
  EXPECT_THAT(statuses(fixture.sees(R"({"a":1})")), ElementsAre("pending"));
  EXPECT_EQ(fixture.drift().operation, Operation::recreated);
  EXPECT_THAT(statuses(fixture.sees(R"({"a":1})")), IsEmpty());
  ASSERT_TRUE(fixture.decides(Verb::approve));
  EXPECT_EQ(fixture.row.external_name, "oid-2");
  EXPECT_THAT(statuses(fixture.sees(R"({"a":1})")), IsEmpty());
}

TEST(JudgeIdentity, RecreatedTwiceMovesTheDrift) {
  ResourceFixture fixture;
  fixture.context.established = false;
  fixture.next.external_name = "oid-1";
  fixture.sees("{}");
  fixture.context.established = true;
  fixture.next.external_name = "oid-2";
  fixture.sees("{}");
  fixture.next.external_name = "oid-3";
  EXPECT_THAT(statuses(fixture.sees("{}")), ElementsAre("pending:moved"));
}

TEST_F(Judge, WallClockThatWasSetBackMakesNoObservationOlder) {
  next.body = body("5", "2");
  next.observed_ns = row.observed_ns - 30 * kSecond;
  EXPECT_THAT(statuses(judges(Present{next, {}})), ElementsAre("pending"))
      << "order is the monotonic clock's, and the ledger's";
}

TEST_F(Judge, UnreadAttributeIsUnknownAndNeitherDriftNorDeletion) {
  next.unread = {{"a", Code::denied, "needs pg_monitor"}};
  const Judgement out = sees(R"({"b":2,"verifier":)" + digest_value('0') + R"(,"address":"h:1"})");
  EXPECT_THAT(statuses(out), IsEmpty());
  ASSERT_THAT(out.unknown, SizeIs(1));
  EXPECT_EQ(out.unknown[0].path, "a");
}

TEST_F(Judge, AttributeThatWasReadOnceAndReturnsChangedIsADriftNotAFill) {
  next.unread = {{"a", Code::denied, "needs pg_monitor"}};
  sees(R"({"b":2,"verifier":)" + digest_value('0') + R"(,"address":"h:1"})");
  next.unread.clear();
  EXPECT_THAT(statuses(sees(body("5", "2"))), ElementsAre("pending"));
}

TEST(JudgeFirst, AttributeReadableForTheFirstTimeIsFilledSilently) {
  ResourceFixture fixture;
  fixture.context.established = false;
  fixture.next.unread = {{"a", Code::denied, "needs pg_monitor"}};
  fixture.sees(R"({"b":2})");
  fixture.context.established = true;
  fixture.sees(R"({"b":2})");
  fixture.next.unread.clear();
  EXPECT_THAT(statuses(fixture.sees(R"({"a":1,"b":2})")), IsEmpty());
  EXPECT_EQ(fixture.row.baseline, R"({"a":1,"b":2})");
  EXPECT_THAT(statuses(fixture.sees(R"({"a":3,"b":2})")), ElementsAre("pending"));
}

TEST_F(Judge, UnreadableBodyIsUnknown) {
  const Judgement out = sees("{");
  EXPECT_THAT(statuses(out), IsEmpty());
  EXPECT_THAT(out.unknown, SizeIs(1));
  EXPECT_EQ(row.observed, row.baseline);
}

TEST_F(Judge, HealthAttributeNeverOpensADrift) {
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"load":"high","verifier":)" + digest_value('0') + R"(,"address":"h:1"})")),
              IsEmpty());
}

TEST_F(Judge, EquivalentByTheProviderIsNoChangeButNeverForACredential) {
  demoted = {{"a", false, "rounds"}, {"verifier", false, "rehash"}};
  EXPECT_THAT(statuses(sees(body("5", "2", '1'))), ElementsAre("auto-applied"));
  EXPECT_EQ(log[0].drift.cls, ChangeClass::credential);
}

TEST_F(Judge, UnsettledChangeIsUnknownAndJudgedAgain) {
  demoted = {{"a", true, "pending restart"}};
  next.digest = {1, 2};
  const Judgement out = sees(body("5", "2"));
  EXPECT_THAT(statuses(out), IsEmpty());
  EXPECT_EQ(out.suppressed.at("unsettled"), 1u);
  EXPECT_EQ(row.digest, Digest{}) << "the same record must not be settled by its digest";
  demoted.clear();
  EXPECT_THAT(statuses(sees(body("5", "2"))), ElementsAre("pending"));
}

TEST_F(Judge, ExpectationAndBaselineViolatedAtOnceAreTwoDrifts) {
  rules.expect.push_back(expectation("a", "1"));
  EXPECT_THAT(statuses(sees(body("5", "2"))), ElementsAre("pending", "pending"));
  EXPECT_EQ(drift(0).against, Against::baseline);
  EXPECT_EQ(drift(1).against, Against::expectation);
  EXPECT_THAT(statuses(sees(body("1", "2"))), ElementsAre("reverted", "reverted"));
}

TEST_F(Judge, ExpectationOnANewResourceStandsBesideItsCreation) {
  ResourceFixture fixture;
  fixture.rules.expect.push_back(expectation("a", "1"));
  EXPECT_THAT(statuses(fixture.sees(R"({"a":5})")), ElementsAre("pending", "pending"));
  EXPECT_EQ(fixture.drift(0).operation, Operation::created);
  EXPECT_EQ(fixture.drift(1).operation, Operation::changed);
}

TEST_F(Judge, ExpectationCannotBeAcceptedByPolicyAuto) {
  rules.policy.push_back(policy("a", Action::automatic));
  rules.expect.push_back(expectation("a", "1"));
  EXPECT_THAT(statuses(sees(body("5", "2"))), ElementsAre("auto-applied", "pending"));
  EXPECT_THAT(drift().reason, testing::HasSubstr("expectation"));
}

TEST_F(Judge, ExpectationOnASensitiveValueIsUnknown) {
  rules.expect.push_back(expectation("verifier", R"("clear")"));
  const Judgement out = sees(body("1", "2"));
  EXPECT_THAT(statuses(out), IsEmpty());
  EXPECT_THAT(out.unknown, SizeIs(1));
}

}  // namespace
}  // namespace driftd::core
