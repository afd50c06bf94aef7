// SPDX-License-Identifier: Apache-2.0
// Claims, several approvals, and the undo of an approval (semantics 10 to 13).
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Verb = Decision::Verb;

struct Approvals : testing::Test, ResourceFixture {
  Approvals() {
    context.established = false;
    sees(R"({"a":1,"b":2})");
    context.established = true;
  }
  Judgement a_is(const std::string& a) { return sees(R"({"a":)" + a + R"(,"b":2})"); }
  void needs_two() {
    PolicyRule two = policy("**", Action::manual);
    two.approvals = 2;
    rules.policy = {two};
  }
  Result<Judgement> says(Verb verb, const std::string& who, std::optional<Nanos> expires = {}) {
    wait(kSecond);
    Decision decision{verb, who, "because", drift().digest, expires, now()};
    decision.take_over = take_over;
    decision.caller = caller;
    Result<Judgement> out = decide(row, drift().id, decision);
    if (out) row = out->next;
    if (out) last = out->transitions.front().drift;
    return out;
  }
  Result<Judgement> undoes(const Drift& approved) {
    wait(kSecond);
    Result<Judgement> out = undo_approval(row, approved, {Verb::undo, "ann", "", {}, {}, now()});
    if (out) row = out->next;
    return out;
  }
  Status claims(const std::string& who, std::optional<Nanos> lasts) {
    Claim one;
    one.actor = who;
    one.at_ns = now();
    if (lasts) one.until_ns = now() + *lasts;
    one.take_over = take_over;
    const auto out = claim(row, drift().id, one);
    if (!out) return fail(out.error());
    row = *out;
    return {};
  }
  bool take_over = false;
  Caller caller;
  Drift last;
};

TEST(ApprovalsGiven, AreThoseOfThisValueThatHaveNotExpired) {
  Drift drift;
  drift.digest = "nine";
  drift.approvals = {{.actor = "ann", .digest = "nine"},
                     {.actor = "bob", .digest = "eight"},
                     {.actor = "eve", .digest = "nine", .expires_ns = 5 * kSecond}};
  EXPECT_EQ(approvals_given(drift, 5 * kSecond - 1), 2);
  EXPECT_EQ(approvals_given(drift, 5 * kSecond), 1);
}

TEST_F(Approvals, ClaimOfAnotherHoldsUntilItsLeaseEnds) {
  a_is("5");
  ASSERT_TRUE(claims("bob", 60 * kSecond));
  for (const auto verb : {Verb::approve, Verb::reject, Verb::ignore}) {
    const auto refused = says(verb, "ann");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_THAT(refused.error().message, HasSubstr("claimed by bob until"));
  }
  EXPECT_EQ(claims("ann", 60 * kSecond).error().code, Code::conflict);
  wait(60 * kSecond);
  EXPECT_TRUE(claims("ann", 60 * kSecond)) << "by the clock it is over";
}

TEST_F(Approvals, ClaimerDecidesAndTheClaimEnds) {
  a_is("5");
  ASSERT_TRUE(claims("ann", 60 * kSecond));
  ASSERT_TRUE(claims("ann", 600 * kSecond)) << "the own claim is prolonged";
  ASSERT_TRUE(says(Verb::reject, "ann"));
  EXPECT_EQ(drift().claimed_by, "");
  EXPECT_EQ(claims("ann", kSecond).error().code, Code::conflict) << "nobody is asked";
}

TEST_F(Approvals, TakeOverIsSaidAloud) {
  a_is("5");
  ASSERT_TRUE(claims("bob", 60 * kSecond));
  take_over = true;
  ASSERT_TRUE(claims("ann", 60 * kSecond));
  EXPECT_EQ(drift().claimed_by, "ann");
  EXPECT_TRUE(says(Verb::ignore, "carl"));
}

TEST_F(Approvals, ReleaseEndsAClaim) {
  a_is("5");
  EXPECT_EQ(claims("ann", {}).error().code, Code::conflict) << "there is none";
  ASSERT_TRUE(claims("bob", 60 * kSecond));
  EXPECT_EQ(claims("ann", {}).error().code, Code::conflict);
  ASSERT_TRUE(claims("bob", {}));
  EXPECT_TRUE(says(Verb::approve, "ann"));
}

TEST_F(Approvals, SecondPersonAccepts) {
  needs_two();
  a_is("5");
  EXPECT_EQ(drift().approvals_needed, 2);
  ASSERT_TRUE(says(Verb::approve, "ann"));
  EXPECT_EQ(drift().status, DriftStatus::pending);
  EXPECT_EQ(approvals_given(drift(), now()), 1);
  EXPECT_EQ(parse(*row.baseline)->find("a")->number()->token, "1");
  const auto again = says(Verb::approve, "ann");
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("you approved it already"));
  ASSERT_TRUE(says(Verb::approve, "bob"));
  EXPECT_THAT(row.open, IsEmpty());
  EXPECT_EQ(last.status, DriftStatus::approved);
  EXPECT_THAT(last.approvals, SizeIs(2));
  EXPECT_EQ(parse(*row.baseline)->find("a")->number()->token, "5");
}

TEST_F(Approvals, MovedValueVoidsTheFirst) {
  needs_two();
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "ann"));
  a_is("6");
  EXPECT_THAT(drift().approvals, IsEmpty());
  ASSERT_TRUE(says(Verb::approve, "bob"));
  EXPECT_EQ(drift().status, DriftStatus::pending) << "ann was not shown 6";
}

TEST_F(Approvals, ValueThatWentAndCameBackIsAskedAnew) {
  needs_two();
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "ann"));
  a_is("6");
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "bob"));
  EXPECT_EQ(drift().status, DriftStatus::pending);
}

TEST_F(Approvals, WhoeverMadeTheChangeDoesNotApproveIt) {
  needs_two();
  next.metadata = {{"user", "ann@example.org"}};
  a_is("5");
  const auto refused = says(Verb::approve, "ann");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("ann made this change"));
  EXPECT_TRUE(says(Verb::reject, "ann")) << "she may still reject it";
}

TEST_F(Approvals, FirstApprovalExpires) {
  needs_two();
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "ann", now() + 10 * kSecond));
  wait(10 * kSecond);
  const Judgement over = expire_decisions(row, now());
  ASSERT_THAT(over.transitions, SizeIs(1));
  EXPECT_THAT(over.next.open.at(0).approvals, IsEmpty());
  ASSERT_TRUE(says(Verb::approve, "bob")) << "also before that was noted";
  EXPECT_EQ(drift().status, DriftStatus::pending);
}

TEST_F(Approvals, UndoWithdrawsTheOwn) {
  needs_two();
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "ann"));
  ASSERT_TRUE(says(Verb::undo, "ann"));
  EXPECT_THAT(drift().approvals, IsEmpty());
  EXPECT_FALSE(says(Verb::undo, "ann"));
  ASSERT_TRUE(says(Verb::approve, "bob"));
  EXPECT_EQ(drift().status, DriftStatus::pending);
}

TEST_F(Approvals, PolicyThatAsksForMoreNowCounts) {
  a_is("5");
  wait(kSecond);
  Decision decision{Verb::approve, "ann", "", drift().digest, {}, now()};
  decision.approvals_needed = 2;  // reloaded, and not judged again yet
  const auto first = decide(row, drift().id, decision);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->next.baseline, row.baseline);
}

TEST_F(Approvals, UndoPutsTheFormerBaselineBackAndAsksAgain) {
  a_is("5");
  const std::string before = *row.baseline, id = drift().id;
  ASSERT_TRUE(says(Verb::approve, "ann"));
  const Drift approved = last;
  const auto undone = undoes(approved);
  ASSERT_TRUE(undone) << undone.error().message;
  EXPECT_EQ(*row.baseline, before);
  ASSERT_THAT(row.open, SizeIs(1));
  EXPECT_EQ(drift().id, id);
  EXPECT_EQ(drift().status, DriftStatus::pending);
  EXPECT_THAT(statuses(a_is("5")), IsEmpty()) << "it is the same standing drift";
  ASSERT_TRUE(says(Verb::approve, "bob"));
  EXPECT_THAT(a_is("5").transitions, IsEmpty());
}

TEST_F(Approvals, UndoOfACreationAndOfADeletion) {
  is_gone();
  ASSERT_TRUE(says(Verb::approve, "ann"));
  const Drift deleted = last;
  ASSERT_TRUE(undoes(deleted));
  EXPECT_EQ(drift().operation, Operation::deleted);
  EXPECT_TRUE(row.baseline);
  EXPECT_THAT(statuses(is_gone()), IsEmpty());
  ASSERT_TRUE(says(Verb::approve, "ann"));
  a_is("7");
  ASSERT_EQ(drift().operation, Operation::created);
  ASSERT_TRUE(says(Verb::approve, "ann"));
  const Drift created = last;
  ASSERT_TRUE(undoes(created));
  EXPECT_FALSE(row.baseline);
  EXPECT_THAT(statuses(a_is("7")), IsEmpty());
}

TEST_F(Approvals, UndoConflictsOnceTheValueMoved) {
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "ann"));
  const Drift approved = last;
  a_is("6");
  const auto refused = undoes(approved);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("moved after its approval"));
  ASSERT_TRUE(says(Verb::approve, "ann"));
  EXPECT_THAT(undoes(approved).error().message, HasSubstr("no longer what its approval made"));
}

TEST_F(Approvals, UndoConflictsOnceTheResourceIsGone) {
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "ann"));
  const Drift approved = last;
  is_gone();
  EXPECT_EQ(undoes(approved).error().code, Code::conflict);
  ASSERT_TRUE(says(Verb::approve, "ann"));
  EXPECT_THAT(undoes(approved).error().message, HasSubstr("not there any more"));
}

TEST_F(Approvals, UndoLeavesOtherPathsOfTheBaselineAlone) {
  rules.policy = {policy("b", Action::automatic)};
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "ann"));
  const Drift approved = last;
  sees(R"({"a":5,"b":3})");
  ASSERT_TRUE(undoes(approved));
  EXPECT_EQ(*row.baseline, R"({"a":1,"b":3})");
}

TEST_F(Approvals, UndoKnowsOnlyApprovals) {
  a_is("5");
  const Drift open = drift();
  a_is("1");
  Drift reverted = open;
  reverted.status = DriftStatus::reverted;
  EXPECT_THAT(undoes(reverted).error().message, HasSubstr("closed: reverted"));
  Drift old = open;
  old.status = DriftStatus::approved;  // by a version that did not keep what it replaced
  EXPECT_THAT(undoes(old).error().message, HasSubstr("not known any more"));
}

/// Semantics 11: a rejected and an ignored value are silent until the value moves; both can be asked about again.
TEST_F(Approvals, IgnoreIsForThisValueAndTellsOfAnyOther) {
  a_is("5");
  ASSERT_TRUE(says(Verb::ignore, "ann"));
  EXPECT_THAT(statuses(a_is("5")), IsEmpty());
  EXPECT_THAT(statuses(a_is("6")), ElementsAre("pending:moved")) << "any other value is reported";
  EXPECT_THAT(statuses(a_is("5")), ElementsAre("pending:moved")) << "it was about that time; now it is asked again";
  ASSERT_TRUE(says(Verb::ignore, "ann"));
  EXPECT_THAT(statuses(a_is("1")), ElementsAre("reverted"));
  EXPECT_THAT(statuses(a_is("5")), ElementsAre("pending")) << "a new drift is a new question";
}

TEST_F(Approvals, IgnoredAndRejectedAreAskedAgainByUndoAndByTime) {
  for (const auto verb : {Verb::ignore, Verb::reject}) {
    a_is(verb == Verb::ignore ? "5" : "8");
    const std::string baseline = *row.baseline;
    ASSERT_TRUE(says(verb, "ann"));
    EXPECT_EQ(*row.baseline, baseline) << "neither moves it";
    ASSERT_TRUE(says(Verb::undo, "bob"));
    EXPECT_EQ(drift().status, DriftStatus::pending);
    ASSERT_TRUE(says(verb, "ann", now() + 10 * kSecond));
    wait(10 * kSecond);
    row = expire_decisions(row, now()).next;
    EXPECT_EQ(drift().status, DriftStatus::pending);
    a_is("1");
  }
}

/// A decision on two values holds while one of them goes back, and not for a third one.
TEST_F(Approvals, IgnoreOfTwoValuesHoldsForAPartOfThem) {
  sees(R"({"a":5,"b":6})");
  ASSERT_TRUE(says(Verb::ignore, "ann"));
  sees(R"({"a":5,"b":2})");
  EXPECT_EQ(drift().status, DriftStatus::ignored);
  sees(R"({"a":5,"b":7})");
  EXPECT_EQ(drift().status, DriftStatus::pending);
}

/// A name service that does not answer in time makes `uid:1000` of ann, and sudo makes root of her.
TEST_F(Approvals, NobodyApprovesTwiceUnderTwoNames) {
  const auto approves = [this](const std::string& who, std::int64_t uid, const std::string& claimed) {
    caller = {uid, uid, 4711, claimed};
    return says(Verb::approve, who);
  };
  needs_two();
  a_is("5");
  ASSERT_TRUE(approves("ann", 1000, "loginuid:ann"));
  const std::vector<std::tuple<std::string, int, std::string>> herself = {{"uid:1000", 1000, ""},
                                                                          {"annette", 1000, ""},
                                                                          {"root", 0, "loginuid:ann"},
                                                                          {"root", 0, "loginuid:uid:1000"},
                                                                          {"root", 0, "SUDO_USER:ann"}};
  for (const auto& [who, uid, claimed] : herself) {
    const auto refused = approves(who, uid, claimed);
    ASSERT_FALSE(refused) << who << " " << claimed;
    EXPECT_THAT(refused.error().message, HasSubstr("approved it already"));
  }
  EXPECT_TRUE(approves("root", 0, "loginuid:bob"));
  EXPECT_EQ(last.status, DriftStatus::approved);
}

TEST_F(Approvals, NobodyApprovesTwiceByWayOfRoot) {
  needs_two();
  a_is("5");
  caller = {0, 0, 4711, "loginuid:ann"};
  ASSERT_TRUE(says(Verb::approve, "root"));
  caller = {1000, 1000, 4712, ""};
  EXPECT_FALSE(says(Verb::approve, "ann"));
  caller = {1001, 1001, 4713, ""};
  EXPECT_TRUE(says(Verb::approve, "bob"));
}

TEST_F(Approvals, WhoMadeTheChangeDoesNotApproveItByWayOfRoot) {
  needs_two();
  next.metadata = {{"user", "ann@example.org"}};
  a_is("5");
  caller = {0, 0, 4711, "SUDO_USER:ann"};
  const auto refused = says(Verb::approve, "root");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("made this change"));
  caller = {};
  EXPECT_FALSE(says(Verb::approve, "ann@corp.example.org")) << "another spelling of the same account";
  EXPECT_TRUE(says(Verb::approve, "bob"));
}

/// Nobody knows who opened a link: two of them may be one person.
TEST_F(Approvals, AllLinksTogetherAreOnePerson) {
  needs_two();
  a_is("5");
  ASSERT_TRUE(says(Verb::approve, "link of notification e1, sent to desk (typed: Ann)"));
  const auto refused = says(Verb::approve, "link of notification e2, sent to oncall (typed: Bob)");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("links count as one person"));
  EXPECT_EQ(drift().status, DriftStatus::pending);
  ASSERT_TRUE(says(Verb::approve, "bob"));
  EXPECT_EQ(last.status, DriftStatus::approved);
}

TEST_F(Approvals, WhoMadeTheChangeDoesNotApproveItByALinkUnderTheSameName) {
  needs_two();
  a_is("5");
  row.metadata["modified_by"] = "ann";
  wait(kSecond);
  Decision decision{Verb::approve, "link of notification e1, sent to desk (typed: ann)", "", drift().digest, {}, now()};
  decision.caller.claimed = "typed:ann";
  const auto refused = decide(row, drift().id, decision);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("ann made this change"));
}

}  // namespace
}  // namespace driftd::core
