// SPDX-License-Identifier: Apache-2.0
// A policy tried on the history, and rules that hold for a time.
#include "core/judge/policy_trial.hpp"

#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Drift past(Action action, Against against = Against::baseline) {
  Drift out;
  out.resource = {"topic", "orders"};
  out.action = action;
  out.against = against;
  return out;
}
Change changed(const std::string& path, ChangeClass cls = ChangeClass::config) { return {path, cls, {}, {}, false}; }

PolicyRule timed(std::optional<Nanos> from, std::optional<Nanos> until, Action action = Action::automatic) {
  PolicyRule out = policy("**", action);
  out.from_ns = from;
  out.until_ns = until;
  return out;
}

TEST(TimedPolicies, HoldFromTheirBeginAndNotAtTheirEnd) {
  const PolicyRule rule = timed(10, 20);
  EXPECT_FALSE(rule.holds(9));
  EXPECT_TRUE(rule.holds(10));
  EXPECT_TRUE(rule.holds(19));
  EXPECT_FALSE(rule.holds(20));
  EXPECT_TRUE(timed({}, 20).holds(0));
  EXPECT_TRUE(timed(10, {}).holds(1'000));
}

TEST(TimedPolicies, TheGenerationTellsWhichRulesHold) {
  Rules rules;
  rules.generation = 7;
  rules.policy = {timed(10, 20), policy("a", Action::ignore), timed(20, 30, Action::ignore)};
  std::vector<std::uint64_t> seen;
  for (const Nanos at : {5, 10, 20, 30}) seen.push_back(rules_at(rules, at).generation);
  EXPECT_EQ(seen[0], seen[3]) << "before the first and after the last, the same rules hold";
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(seen[1], seen[2]) << "as many rules hold, but other ones";
  EXPECT_EQ(rules_at(rules, 15).policy.size(), 2u);
  rules.policy = {policy("a", Action::ignore)};
  EXPECT_EQ(rules_at(rules, 5).generation, 7u) << "rules without times keep theirs";
}

TEST(TimedPolicies, TheNextTurnIsTheFirstEdgeAhead) {
  Rules rules;
  rules.policy = {timed(10, 20), timed({}, 15), policy("a", Action::ignore)};
  EXPECT_EQ(next_turn(rules, 0), 10);
  EXPECT_EQ(next_turn(rules, 10), 15);
  EXPECT_EQ(next_turn(rules, 15), 20);
  EXPECT_EQ(next_turn(rules, 20), std::nullopt);
}

TEST(PolicyTrial, SaysWhichRuleWouldHaveDecided) {
  Rules rules;
  rules.policy = {policy("retention", Action::automatic)};
  const auto verdict = try_policy(rules, past(Action::manual), changed("retention"), false);
  EXPECT_EQ(verdict.action, Action::automatic);
  EXPECT_EQ(verdict.where, rules.policy[0].where);
  EXPECT_EQ(try_policy(rules, past(Action::manual), changed("other"), false).action, Action::manual);
}

TEST(PolicyTrial, AnIgnoreRuleJudgesNothingButHidesNoDeletion) {
  Rules rules;
  rules.ignore = {ignore_rule("**.seen")};
  EXPECT_EQ(try_policy(rules, past(Action::manual), changed("a.seen"), false).action, std::nullopt);
  const auto gone = try_policy(rules, past(Action::manual), changed(std::string(kIdentityPath)), false);
  EXPECT_EQ(gone.action, Action::manual);
}

TEST(PolicyTrial, AutoAgainstAnExpectationAsksAsTheJudgeDoes) {
  Rules rules;
  rules.policy = {policy("**", Action::automatic)};
  const auto verdict = try_policy(rules, past(Action::manual, Against::expectation), changed("a"), false);
  EXPECT_EQ(verdict.action, Action::manual);
  EXPECT_THAT(verdict.where, HasSubstr("cannot accept what an expectation forbids"));
}

/// What never can be put back asks a person, whatever the policy says, so the trial must not promise it.
TEST(PolicyTrial, EnforceAsksWhereTheJudgeDoes) {
  Rules rules;
  rules.policy = {policy("**", Action::enforce)};
  EXPECT_EQ(try_policy(rules, past(Action::manual), changed("retention"), false).action, Action::enforce);
  const Change secret = changed("password", ChangeClass::credential);
  EXPECT_EQ(try_policy(rules, past(Action::manual), secret, false).action, Action::manual);
  Change withheld = changed("env");
  withheld.redacted = true;
  EXPECT_EQ(try_policy(rules, past(Action::manual), withheld, false).action, Action::manual);
  for (const auto operation : {Operation::created, Operation::deleted, Operation::recreated}) {
    Drift gone = past(Action::manual);
    gone.operation = operation;
    const auto verdict = try_policy(rules, gone, changed(std::string(kIdentityPath)), false);
    EXPECT_EQ(verdict.action, Action::manual) << render(operation);
    EXPECT_THAT(verdict.where, HasSubstr("cannot put it back"));
  }
}

TEST(PolicyTrial, OnlyAStatesHistoryTellsOfAnApply) {
  EXPECT_EQ(try_policy({}, past(Action::automatic), changed("a"), true).action, Action::automatic);
  EXPECT_EQ(try_policy({}, past(Action::automatic), changed("a"), false).action, Action::manual);
}

TEST(PolicyTrace, NamesWhyEachRuleDoesNotDecide) {
  Rules rules;
  rules.ignore = {ignore_rule("**.seen")};
  rules.policy = {policy("a", Action::ignore), timed({}, 50), policy("**", Action::manual),
                  policy("**", Action::ignore)};
  rules.policy[0].match.kind = Glob::of_name("role");
  std::vector<std::string> reasons;
  std::vector<bool> applies;
  for (const auto& trace : trace_rules(rules, {"topic", "orders"}, changed("a"), 60)) {
    reasons.push_back(trace.why_not);
    applies.push_back(trace.applies);
  }
  EXPECT_THAT(reasons,
              ElementsAre("the path is another one", "the kind is topic", HasSubstr("it ended at 1970"), "", "", ""));
  EXPECT_THAT(applies, ElementsAre(false, false, false, true, false, false)) << "the first that applies decides";
}

TEST(PolicyTrace, SaysThatEnforceAsksAboutWhatIsNeverPutBack) {
  Rules rules;
  rules.policy = {policy("**", Action::enforce)};
  const auto says = [&](const Change& change) { return trace_rules(rules, {"topic", "orders"}, change, 0)[0].says; };
  EXPECT_EQ(says(changed("a")), "enforce for path **");
  EXPECT_THAT(says(changed("a", ChangeClass::credential)), HasSubstr("enforce (which asks: it holds a credential)"));
  EXPECT_THAT(says(changed(std::string(kIdentityPath))),
              HasSubstr("(which asks: driftd neither creates nor deletes resources)"));
}

TEST(PolicyTrace, WithoutARuleTheDefaultOfTheClassDecides) {
  const auto traces = trace_rules({}, {"topic", "orders"}, changed("a", ChangeClass::credential), 0);
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_TRUE(traces[0].applies);
  EXPECT_EQ(traces[0].where, "default for class credential");
  EXPECT_EQ(traces[0].says, "auto");
}

}  // namespace
}  // namespace driftd::core
