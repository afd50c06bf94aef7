// SPDX-License-Identifier: Apache-2.0
// Semantics 10–13: the life of a drift and the decisions on it.
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Verb = Decision::Verb;

struct Life : testing::Test, ResourceFixture {
  Life() {
    context.established = false;
    sees(R"({"a":1,"b":2,"timeout":"1s"})");
    context.established = true;
  }
  Judgement a_is(const std::string& a) { return sees(R"({"a":)" + a + R"(,"b":2,"timeout":"1s"})"); }
  Judgement a_and_b_are(const std::string& a, const std::string& b) {
    return sees(R"({"a":)" + a + R"(,"b":)" + b + R"(,"timeout":"1s"})");
  }
  void claim() {
    row.open.at(0).claimed_by = "desk";
    row.open.at(0).claim_until_ns = now() + 60 * kSecond;
  }
};

TEST_F(Life, IdOfADriftSaysNothingOfItsValue) {
  const ResourceFixture before = *this;
  a_is("5");
  const std::string id = drift().id;
  static_cast<ResourceFixture&>(*this) = before;
  a_is("6");
  EXPECT_EQ(drift().id, id) << "an id goes everywhere: guesses at a secret could be tried on it";
}

TEST_F(Life, MovedWhileClaimedMakesTheDecisionStale) {
  a_is("5");
  claim();
  const std::string seen = drift().digest;
  EXPECT_THAT(statuses(a_is("6")), ElementsAre("pending:moved"));
  EXPECT_EQ(drift().claimed_by, "");
  const auto decided = decides(Verb::approve, 0, seen);
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, Code::conflict);
  EXPECT_THAT(decided.error().message, HasSubstr("moved since you looked"));
  EXPECT_EQ(parse(*row.baseline)->find("a")->number()->token, "1");
  EXPECT_TRUE(decides(Verb::approve, 0, drift().digest));
}

/// The writer of a value decides where in it the change is.
TEST_F(Life, RefusalAndLogShowALongValueWhereItDiffers) {
  const std::string same(2'000, 'x');
  context.established = false;
  a_is("\"" + same + "allow-few" + same + "\"");
  context.established = true;
  a_is("\"" + same + "allow-all" + same + "\"");
  const auto refused = decides(Verb::approve, 0, "another");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr("allow-few"), HasSubstr("allow-all")));
  const std::string kept = audit_changes(drift().changes);
  EXPECT_THAT(kept, testing::AllOf(HasSubstr("allow-few"), HasSubstr("allow-all")));
  EXPECT_LT(kept.size(), 3'000u);
}

TEST_F(Life, RevertedWhileClaimedWithdrawsAndTheDecisionConflicts) {
  a_is("5");
  claim();
  const std::string id = drift().id;
  const Judgement back = a_is("1");
  EXPECT_THAT(statuses(back), ElementsAre("reverted"));
  EXPECT_EQ(back.transitions[0].drift.claimed_by, "");
  const auto decided = decide(row, id, {Verb::approve, "ann", "", {}, {}, now()});
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, Code::not_found);
}

TEST_F(Life, RevertedCarriesItsChangesSwapped) {
  a_is("5");
  const Judgement back = a_is("1");
  ASSERT_THAT(back.transitions[0].changes, SizeIs(1));
  EXPECT_EQ(back.transitions[0].changes[0].old_value, "5");
  EXPECT_EQ(back.transitions[0].changes[0].new_value, "1");
}

TEST_F(Life, UnknownWhileOpenStaysOpenWithStaleSince) {
  a_is("5");
  EXPECT_THAT(statuses(cannot_tell()), IsEmpty());
  const auto since = drift().stale_since_ns;
  ASSERT_TRUE(since);
  cannot_tell();
  EXPECT_EQ(drift().stale_since_ns, since);
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
  EXPECT_FALSE(drift().stale_since_ns);
}

TEST_F(Life, UnknownResourceForgetsItsDigestSoThatTheNextEqualRecordIsJudged) {
  next.digest = {1, 2};
  a_is("5");
  EXPECT_EQ(row.digest, (Digest{1, 2}));
  cannot_tell();
  EXPECT_EQ(row.digest, Digest{});
}

TEST_F(Life, UnreadPathOfAnOpenDriftStandsAsLastSeen) {
  a_and_b_are("5", "6");
  next.unread = {{"a", Code::denied, "needs pg_monitor"}};
  EXPECT_THAT(statuses(sees(R"({"b":6,"timeout":"1s"})")), IsEmpty());
  EXPECT_THAT(paths(drift()), ElementsAre("a", "b"));
  EXPECT_TRUE(drift().stale_since_ns);
  EXPECT_THAT(statuses(sees(R"({"b":2,"timeout":"1s"})")), ElementsAre("pending:moved"));
  EXPECT_THAT(paths(drift()), ElementsAre("a"));
}

/// A value that cannot be read may have become anything: the drift still shows the value that was read when it opened.
TEST_F(Life, AnApprovalOfWhatIsNewTakesNoBodyThatNobodySaw) {
  is_gone();
  ASSERT_TRUE(decides(Verb::approve));
  ASSERT_THAT(statuses(sees(R"({"chart":"1.0"})")), ElementsAre("pending"));
  ASSERT_EQ(drift().operation, Operation::created);
  const std::string seen = drift().digest;
  next.unread = {{"**", Code::unavailable, "a release is in flight"}};
  sees(R"({"chart":"6.6.6"})");
  const auto refused = decides(Verb::approve, 0, seen);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot be read whole"));
  EXPECT_FALSE(row.baseline);
  next.unread.clear();
  EXPECT_THAT(statuses(sees(R"({"chart":"6.6.6"})")), ElementsAre("pending:moved"));
  EXPECT_FALSE(decides(Verb::approve, 0, seen)) << "another value than the one that was shown";
  EXPECT_TRUE(decides(Verb::approve, 0, drift().digest));
}

TEST_F(Life, PolicyEditedIsJudgedAgainAndSupersedesTheOldDrift) {
  a_is("5");
  rules.policy.push_back(policy("a", Action::automatic));
  EXPECT_THAT(statuses(a_is("5")), ElementsAre("superseded", "auto-applied"));
  EXPECT_THAT(row.open, IsEmpty());
}

TEST_F(Life, PolicyEditedToIgnoreSupersedesARejectedDrift) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::reject));
  rules.policy.push_back(policy("a", Action::ignore));
  EXPECT_THAT(statuses(a_is("5")), ElementsAre("superseded", "ignored"));
}

TEST_F(Life, IgnoreRuleAddedSupersedesTheOpenDrift) {
  a_is("5");
  rules.ignore.push_back(ignore_rule("a"));
  EXPECT_THAT(statuses(a_is("5")), ElementsAre("superseded"));
}

TEST_F(Life, ExpectationRemovedSupersedesItsDrift) {
  rules.expect.push_back(expectation("b", "9"));
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("pending"));
  rules.expect.clear();
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("superseded"));
}

TEST_F(Life, ExpectationRemovedWhileItsPathIsUnknownSupersedesItsDrift) {
  rules.expect.push_back(expectation("b", "9"));
  a_is("1");
  rules.expect.clear();
  next.unread = {{"b", Code::denied, "needs pg_monitor"}};
  EXPECT_THAT(statuses(sees(R"({"a":1,"timeout":"1s"})")), ElementsAre("superseded"));
}

TEST_F(Life, SchemaRevisionReBaselinesChangedPathsAndKeepsTheOthers) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::reject));
  sees(R"({"a":5,"b":2,"timeout":"2s"})");
  ASSERT_THAT(paths(drift()), ElementsAre("a", "timeout"));
  context.former[1] = context.schema;
  context.schema = schema_of(R"({"schema":"driftd-schema/1","kind":"role","revision":2,"class":"config",
    "attributes":{"timeout":{"type":"string","class":"endpoint"}}})");
  sees(R"({"a":5,"b":2,"timeout":"2s"})");
  EXPECT_THAT(paths(drift()), ElementsAre("a"));
  EXPECT_EQ(parse(*row.baseline)->find("timeout")->string()->c_str(), std::string("2s"));
}

TEST_F(Life, SchemaRevisionSupersedesADriftWhosePathsAllChangedTheirType) {
  sees(R"({"a":1,"b":2,"timeout":"2s"})");
  context.former[1] = context.schema;
  context.schema = schema_of(R"({"schema":"driftd-schema/1","kind":"role","revision":2,"class":"config",
    "attributes":{"timeout":{"type":"string"}}})");
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"timeout":"2s"})")), ElementsAre("superseded"));
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"timeout":"2s"})")), IsEmpty());
}

TEST_F(Life, SchemaRevisionWithoutChangeOfReadingKeepsBaselineAndDrift) {
  a_is("5");
  const std::string id = drift().id;
  context.former[1] = context.schema;
  std::string text = kRoleSchema;
  text.replace(text.find("\"revision\":1"), 12, "\"revision\":2");
  context.schema = schema_of(text);
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
  EXPECT_EQ(drift().id, id);
  EXPECT_EQ(row.schema_revision, 2u);
}

TEST_F(Life, AttributeOfANewerSchemaRevisionIsFilledSilently) {
  context.former[1] = context.schema;
  context.schema = schema_of(R"({"schema":"driftd-schema/1","kind":"role","revision":2,"class":"config",
    "attributes":{"timeout":{"type":"duration","unit":"ms"},"fresh":{"type":"int","since":2}}})");
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"fresh":3,"timeout":"1s"})")), IsEmpty());
  EXPECT_THAT(statuses(sees(R"({"a":1,"b":2,"fresh":4,"timeout":"1s"})")), ElementsAre("pending"));
}

TEST_F(Life, RejectedIsSilentUntilTheValueMovesThenPendingAgain) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::reject));
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
  EXPECT_EQ(drift().status, DriftStatus::rejected);
  EXPECT_THAT(statuses(a_is("6")), ElementsAre("pending:moved"));
  EXPECT_EQ(drift().actor, "");
}

TEST_F(Life, IgnoredByAPersonIsFineAtThisValueAndTellsOfAnyOther) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::ignore));
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
  EXPECT_THAT(statuses(a_is("6")), ElementsAre("pending:moved"));
}

TEST_F(Life, RejectedDriftOfWhichAPartRevertsStaysRejected) {
  a_and_b_are("5", "6");
  ASSERT_TRUE(decides(Verb::reject));
  EXPECT_THAT(statuses(a_is("5")), ElementsAre("rejected:moved"));
  EXPECT_THAT(statuses(a_and_b_are("5", "7")), ElementsAre("pending:moved"));
}

/// A deletion says of each attribute that it is absent. If the resource comes back without one, that needs a new
/// decision.
TEST_F(Life, WordOnADeletionSaysNothingOfTheResourceOnceItIsBack) {
  for (const auto verb : {Decision::Verb::reject, Decision::Verb::ignore}) {
    ResourceFixture fixture;
    fixture.context.established = false;
    fixture.sees(R"({"a":1,"b":2})");
    fixture.context.established = true;
    fixture.is_gone();
    ASSERT_TRUE(fixture.decides(verb));
    EXPECT_THAT(fixture.row.open, SizeIs(1));
    fixture.sees(R"({"a":1})");
    ASSERT_THAT(fixture.row.open, SizeIs(1));
    EXPECT_EQ(fixture.drift().operation, Operation::changed);
    EXPECT_EQ(fixture.drift().status, DriftStatus::pending);
    EXPECT_FALSE(fixture.drift().decided_ns);
  }
}

TEST_F(Life, ApprovedMovesTheBaselineByItsOwnPathsAndEnds) {
  a_is("5");
  const auto approved = decides(Verb::approve, 0, drift().digest);
  ASSERT_TRUE(approved);
  EXPECT_THAT(statuses(*approved), ElementsAre("approved"));
  EXPECT_EQ(row.baseline, R"({"a":5,"b":2,"timeout":"1s"})");
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
}

TEST_F(Life, DecisionKeepsActorTimeAndReason) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::reject, 0, drift().digest, now() + 100 * kSecond));
  EXPECT_EQ(drift().actor, "ann");
  EXPECT_EQ(drift().reason, "because");
  EXPECT_EQ(drift().decided_ns, now());
}

TEST_F(Life, ExpiredDecisionFallsBackToPending) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::ignore, 0, {}, now() + 10 * kSecond));
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
  wait(10 * kSecond);
  EXPECT_THAT(statuses(a_is("5")), ElementsAre("pending"));
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
}

TEST_F(Life, ExpiredDecisionFallsBackWithoutASightingToo) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::reject, 0, {}, now() + 10 * kSecond));
  EXPECT_THAT(statuses(expire_decisions(row, now() + 5 * kSecond)), IsEmpty());
  EXPECT_THAT(statuses(expire_decisions(row, now() + 10 * kSecond)), ElementsAre("pending"));
}

TEST_F(Life, ExpiryInThePastOrOnAnApprovalIsInvalid) {
  a_is("5");
  EXPECT_EQ(decides(Verb::reject, 0, {}, now()).error().code, Code::invalid);
  EXPECT_EQ(decides(Verb::approve, 0, {}, now() + 100 * kSecond).error().code, Code::invalid);
}

TEST_F(Life, UndoReturnsARejectedDriftToPending) {
  a_is("5");
  EXPECT_EQ(decides(Verb::undo).error().code, Code::conflict);
  ASSERT_TRUE(decides(Verb::reject));
  const auto undone = decides(Verb::undo);
  ASSERT_TRUE(undone);
  EXPECT_THAT(statuses(*undone), ElementsAre("pending"));
  EXPECT_EQ(undone->transitions[0].from, DriftStatus::rejected);
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
}

TEST_F(Life, DecidedDriftMustBeUndoneBeforeItIsDecidedAgain) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::reject));
  const auto again = decides(Verb::approve);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::conflict);
  EXPECT_THAT(again.error().message, HasSubstr("already rejected by ann"));
}

TEST_F(Life, ApprovedDriftCannotBeUndone) {
  a_is("5");
  const std::string id = drift().id;
  ASSERT_TRUE(decides(Verb::approve));
  EXPECT_EQ(decide(row, id, {Verb::undo, "ann", "", {}, {}, now()}).error().code, Code::not_found);
}

TEST_F(Life, ApprovingADriftAgainstAnExpectationConflicts) {
  rules.expect.push_back(expectation("b", "9"));
  a_is("1");
  const auto approved = decides(Verb::approve);
  ASSERT_FALSE(approved);
  EXPECT_EQ(approved.error().code, Code::conflict);
  EXPECT_THAT(approved.error().message, HasSubstr("change `expect:`"));
  EXPECT_TRUE(decides(Verb::reject));
}

TEST_F(Life, DriftIgnoredByPolicyCanStillBeApproved) {
  rules.policy.push_back(policy("a", Action::ignore));
  a_is("5");
  EXPECT_TRUE(decides(Verb::approve));
  EXPECT_THAT(row.open, IsEmpty());
}

TEST_F(Life, RetiredDriftEndsWhateverWasDecided) {
  a_is("5");
  ASSERT_TRUE(decides(Verb::reject));
  const auto retired = decides(Verb::retire);
  ASSERT_TRUE(retired);
  EXPECT_THAT(statuses(*retired), ElementsAre("retired"));
  EXPECT_THAT(row.open, IsEmpty());
}

TEST_F(Life, DigestBindsPathsAndValuesNotTheBody) {
  a_is("5");
  const std::string digest = drift().digest;
  sees(R"({"a":5,"b":2,"seen_at":"now","timeout":"1s"})");
  EXPECT_EQ(drift().digest, digest);
  EXPECT_TRUE(decides(Verb::approve, 0, digest));
}

TEST_F(Life, IdentityThatIsForgottenIsTakenSilentlyAndARecreationThatStoodIsSuperseded) {
  next.external_name = "oid-1";
  EXPECT_THAT(statuses(a_is("1")), IsEmpty());
  next.external_name = "oid-2";
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("pending"));
  row.external_name.clear();  // the store does the same when another system is accepted
  next.external_name = "oid-9";
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("superseded"));
  EXPECT_EQ(row.external_name, "oid-9");
  EXPECT_THAT(statuses(a_is("1")), IsEmpty());
}

}  // namespace
}  // namespace driftd::core
