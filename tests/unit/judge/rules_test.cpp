// SPDX-License-Identifier: Apache-2.0
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

const ResourceId kOrders{"topic", "orders"};
Path at(const std::string& text) { return *Path::parse(text); }

TEST(Rules, FirstMatchingPolicyWins) {
  Rules rules;
  rules.policy = {policy("a", Action::ignore), policy("**", Action::automatic)};
  EXPECT_EQ(choose_policy(rules, kOrders, at("a"), ChangeClass::config, false).action, Action::ignore);
  EXPECT_EQ(choose_policy(rules, kOrders, at("b.c"), ChangeClass::config, false).action, Action::automatic);
  EXPECT_EQ(choose_policy(rules, kOrders, at("a"), ChangeClass::config, false).where, "driftd.yaml:9:3");
}

TEST(Rules, PolicyMatchesKindIdPathAndClassTogether) {
  Rules rules;
  rules.policy = {policy("**", Action::ignore)};
  rules.policy[0].match.kind = Glob::of_name("topic");
  rules.policy[0].match.id = Glob::of_name("ord*");
  rules.policy[0].match.cls = ChangeClass::config;
  const auto chosen = [&](const ResourceId& id, ChangeClass cls) {
    return choose_policy(rules, id, at("a"), cls, false).action;
  };
  EXPECT_EQ(chosen(kOrders, ChangeClass::config), Action::ignore);
  EXPECT_EQ(chosen({"role", "orders"}, ChangeClass::config), Action::manual);
  EXPECT_EQ(chosen({"topic", "bills"}, ChangeClass::config), Action::manual);
  EXPECT_EQ(chosen(kOrders, ChangeClass::endpoint), Action::automatic);
}

TEST(Rules, DefaultOfTheUsersClassPolicyBeatsTheBuiltInOne) {
  Rules rules;
  rules.class_policy[ChangeClass::credential] = Action::manual;
  const PolicyChoice chosen = choose_policy(rules, kOrders, at("a"), ChangeClass::credential, false);
  EXPECT_EQ(chosen.action, Action::manual);
  EXPECT_EQ(chosen.where, "default for class credential");
}

TEST(Rules, AppliedStateMakesOnlyConfigAutomaticAndOnlyByDefault) {
  Rules rules;
  rules.class_policy[ChangeClass::config] = Action::manual;
  EXPECT_EQ(choose_policy(rules, kOrders, at("a"), ChangeClass::config, true).action, Action::automatic);
  rules.config_policy_set = true;
  EXPECT_EQ(choose_policy(rules, kOrders, at("a"), ChangeClass::config, true).action, Action::manual);
}

TEST(Rules, IgnoreRuleNeverCoversTheResourceItself) {
  Rules rules;
  rules.ignore = {ignore_rule("**")};
  EXPECT_NE(find_ignore(rules, kOrders, at("a"), ChangeClass::config), nullptr);
  EXPECT_EQ(find_ignore(rules, kOrders, Path{}, ChangeClass::config), nullptr);
}

TEST(Rules, PolicyOnAnAttributeDoesNotCoverTheResourceItself) {
  Rules rules;
  rules.policy = {policy("*", Action::ignore), policy("**", Action::automatic)};
  EXPECT_EQ(choose_policy(rules, kOrders, Path{}, ChangeClass::config, false).action, Action::automatic);
}

}  // namespace
}  // namespace driftd::core
