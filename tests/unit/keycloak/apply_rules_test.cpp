// SPDX-License-Identifier: Apache-2.0
// What of a resource may be put back, what a PUT sends for it, and what an operator is shown.
#include <gmock/gmock.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "keycloak/apply_rules.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json kinds() {
  return json::parse(std::ifstream(std::string(DRIFTD_SOURCE_DIR) + "/plugins/keycloak/schema.json")).at("kinds");
}

std::string why_not(const std::string& kind, const json& body, const json& wanted, bool consent = false) {
  return forbidden(*rules_of(kind), AttributeRules(kinds()), body, leaves_between(body, wanted), consent);
}

TEST(KeycloakApplyRules, LeavesAreTheSmallestValuesThatDiffer) {
  const json now{{"a", 1}, {"attributes", {{"x.y", "1"}, {"z", "2"}}}, {"uris", {"u"}}};
  const json wanted{{"a", 1}, {"attributes", {{"x.y", "3"}}}, {"uris", {"v", "w"}}, {"new", true}};
  std::vector<std::string> texts;
  for (const auto& leaf : leaves_between(now, wanted)) texts.push_back(leaf.text());
  EXPECT_THAT(texts, ElementsAre("attributes[\"x.y\"]", "attributes.z", "new", "uris"));
  EXPECT_THAT(leaves_between(now, now), IsEmpty());
}

TEST(KeycloakApplyRules, ElementsOfAListOfObjectsAreLookedInto) {
  const json now{{"executions", {{{"config", {{"secret", "a"}}}}, {{"requirement", "REQUIRED"}}}}};
  json wanted = now;
  wanted["executions"][0]["config"]["secret"] = "b";
  const auto leaves = leaves_between(now, wanted);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].text(), "executions[0].config.secret");
  EXPECT_EQ(leaves[0].pattern(), "executions[*].config.secret");
  EXPECT_THAT(why_not("authentication_flow", now, wanted), HasSubstr("is a credential"));
}

/// Every attribute that the schema calls a credential is one that no request can put back.
TEST(KeycloakApplyRules, NoCredentialOfTheSchemaIsEverPutBack) {
  int seen = 0;
  const json all = kinds();
  for (const auto& [kind, document] : all.items()) {
    for (const auto& [path, rule] : document.at("attributes").items()) {
      if (rule.value("class", "") != "credential" || path.find('[') != std::string::npos) continue;
      const auto dot = path.find('.');
      json now = json::object(), wanted = json::object();
      const auto set = [&](json& to, const json& value) {
        if (dot == std::string::npos)
          to[path] = value;
        else
          to[path.substr(0, dot)][path.substr(dot + 1)] = value;
      };
      set(now, "was");
      set(wanted, "is");
      EXPECT_THAT(why_not(kind, now, wanted), HasSubstr("never put back")) << kind << " " << path;
      EXPECT_THAT(why_not(kind, now, json::object()), HasSubstr("never put back")) << kind << " " << path << " unset";
      ++seen;
    }
  }
  EXPECT_GT(seen, 25);
}

TEST(KeycloakApplyRules, AMaskAndADigestAreNeverWritten) {
  const json now{{"config", {{"unknownToken", "**********"}}}}, wanted{{"config", {{"unknownToken", "x"}}}};
  EXPECT_THAT(why_not("identity_provider", now, wanted), HasSubstr("not known"));
  EXPECT_THAT(why_not("identity_provider", wanted, now), HasSubstr("not known"));
  EXPECT_THAT(why_not("client", {{"name", "a"}}, {{"name", {{"$hmac", "key:1:00"}}}}), HasSubstr("not known"));
  EXPECT_EQ(why_not("client", {{"name", "a"}}, {{"name", "b"}}), "");
}

TEST(KeycloakApplyRules, IdentitiesAndUnknownMembersCannotBeSet) {
  EXPECT_THAT(why_not("client", {{"clientId", "a"}}, {{"clientId", "b"}}), HasSubstr("clientId cannot be set"));
  EXPECT_THAT(why_not("role", {{"clientRole", true}}, {{"clientRole", false}}), HasSubstr("clientRole cannot be set"));
  EXPECT_THAT(why_not("identity_provider", {{"types", {"a"}}}, {{"types", {"b"}}}), HasSubstr("types"));
  EXPECT_THAT(why_not("realm", json::object(), {{"nonsense", 1}}), HasSubstr("nonsense"));
  EXPECT_EQ(why_not("client", json::object(), {{"description", "x"}}), "")
      << "Keycloak leaves it out while it is empty";
  EXPECT_THAT(why_not("client", {{"description", "x"}}, json::object()), HasSubstr("only emptied"));
  EXPECT_EQ(why_not("role", {{"description", "x"}}, json::object()), "");
}

TEST(KeycloakApplyRules, ABuiltInFlowIsNotTouched) {
  json flow{{"builtIn", true}, {"description", "a"}}, wanted = flow;
  wanted["description"] = "b";
  EXPECT_THAT(why_not("authentication_flow", flow, wanted), HasSubstr("built in"));
  flow["builtIn"] = wanted["builtIn"] = false;
  EXPECT_EQ(why_not("authentication_flow", flow, wanted), "");
}

TEST(KeycloakApplyRules, AdminEventsAreTurnedOnOnlyWithConsentAndNeverOff) {
  const json off{{"adminEventsEnabled", false}}, on{{"adminEventsEnabled", true}};
  EXPECT_THAT(why_not("realm", off, on), HasSubstr("settings.apply.turn_on_admin_events"));
  EXPECT_EQ(why_not("realm", off, on, true), "");
  EXPECT_THAT(why_not("realm", on, off, true), HasSubstr("never turned off"));
  const json details_off{{"adminEventsDetailsEnabled", false}}, details_on{{"adminEventsDetailsEnabled", true}};
  EXPECT_THAT(why_not("realm", details_off, details_on), HasSubstr("consent"));
  EXPECT_EQ(why_not("realm", details_on, details_off), "") << "they may hold secrets";
}

TEST(KeycloakApplyRules, APartialPutSendsWhatChangesAndNothingBeside) {
  const json now{{"clientId", "app"}, {"secret", "s"}, {"description", "a"}, {"attributes", {{"x", "1"}, {"y", "2"}}}};
  const json members{{"description", "b"}, {"attributes", {{"x", "3"}}}};
  EXPECT_EQ(put_body(*rules_of("client"), now, members),
            (json{{"description", "b"}, {"attributes", {{"x", "3"}, {"y", nullptr}}}}))
      << "y is taken away by null: a client's attributes are merged";
  EXPECT_EQ(put_body(*rules_of("realm"), now, members), members) << "a realm's are replaced";
}

TEST(KeycloakApplyRules, AWholePutKeepsTheRestAndLeavesOutWhatHasRequestsOfItsOwn) {
  const json now{{"id", "u"}, {"name", "r"}, {"description", "a"}, {"attributes", {{"x", {"1"}}}}, {"composite", true}};
  const json out = put_body(*rules_of("role"), now, {{"description", nullptr}});
  EXPECT_EQ(out, (json{{"id", "u"}, {"name", "r"}, {"attributes", {{"x", {"1"}}}}}));
}

TEST(KeycloakApplyRules, CommandsAreWhatAnOperatorTypes) {
  const json now{{"enabled", true}, {"attributes", {{"a.b", "1"}}}};
  const json wanted{{"enabled", false}, {"attributes", {{"a.b", "it's"}}}, {"redirectUris", {"https://x/*"}}};
  EXPECT_EQ(update_command("my realm", "/clients/U", leaves_between(now, wanted)),
            "kcadm.sh update clients/U -r 'my realm' -s 'attributes.\"a.b\"=\"it'\\''s\"' -s enabled=false "
            "-s 'redirectUris=[\"https://x/*\"]'");
  const auto unset = leaves_between({{"attributes", {{"a.b", "1"}}}}, {{"attributes", json::object()}});
  EXPECT_EQ(update_command("orders", "/groups/G", unset), "kcadm.sh update groups/G -r orders -d 'attributes.\"a.b\"'");
  EXPECT_EQ(update_command("orders", "/clients/U", unset, true),
            "kcadm.sh update clients/U -r orders -s 'attributes.\"a.b\"=null'");
  EXPECT_EQ(update_command("orders", "", leaves_between({{"a", 1}}, {{"a", 2}})),
            "kcadm.sh update realms/orders -s a=2");
  EXPECT_EQ(body_command("delete", "orders", "/groups/G/role-mappings/realm", json::array({{{"name", "r"}}})),
            "kcadm.sh delete groups/G/role-mappings/realm -r orders -b '[{\"name\":\"r\"}]'");
  EXPECT_EQ(body_command("delete", "orders", "/x", nullptr), "kcadm.sh delete x -r orders");
}

TEST(KeycloakApplyRules, KeycloaksOwnWordsAreTaken) {
  EXPECT_EQ(message_of({{"errorMessage", "should be a number"}, {"error", "x"}}), "should be a number");
  EXPECT_EQ(message_of({{"error", "invalid_input"}, {"error_description", "A redirect URI is not a valid URI"}}),
            "invalid_input: A redirect URI is not a valid URI");
  EXPECT_EQ(message_of({{"errors", {{{"errorMessage", "one"}}, {{"errorMessage", "two"}}}}}), "one; two");
  EXPECT_EQ(message_of("text"), "");
}

TEST(KeycloakApplyRules, SetsAreThoseOfTheSchema) {
  const AttributeRules rules(kinds());
  EXPECT_TRUE(rules.is_set("client", "redirectUris"));
  EXPECT_TRUE(rules.is_set("role", "attributes.team"));
  EXPECT_FALSE(rules.is_set("client", "attributes[\"a.b\"]"));
  EXPECT_TRUE(rules.is_set("component", "config[\"max-clients\"]"));
  EXPECT_FALSE(rules.is_set("component", "config[\"kc.user.profile.config\"]")) << "its own rule comes first";
  EXPECT_FALSE(rules.is_set("authentication_flow", "executions"));
}

}  // namespace
}  // namespace driftd::keycloak
