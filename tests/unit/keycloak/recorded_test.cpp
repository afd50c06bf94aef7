// SPDX-License-Identifier: Apache-2.0
// Answers of a real Keycloak 26.3 (testdata/), as records and as what may be put back.
#include <gmock/gmock.h>
#include <fstream>
#include <set>

#include "keycloak/apply_rules.hpp"
#include "keycloak/mapping.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;

const Place kOrders{"orders", "driftd.owner"};

json recorded(const std::string& name) {
  return json::parse(std::ifstream(std::string(DRIFTD_SOURCE_DIR) + "/tests/unit/keycloak/testdata/" + name + ".json"));
}

std::map<std::string, sdk::Record> records() {
  const json role = recorded("role"), provider = recorded("identity_provider"), flow = recorded("authentication_flow");
  const auto names = role.at("clients").get<ClientNames>();
  const auto configs = flow.at("configs").get<std::map<std::string, json>>();
  RealmState state{.events_seen = true};
  state.default_scopes = state.optional_scopes = std::vector<std::string>{"email"};
  std::map<std::string, sdk::Record> out;
  for (auto& record :
       {realm_record(kOrders, recorded("realm"), state), client_record(kOrders, recorded("client")),
        client_scope_record(kOrders, recorded("client_scope")),
        role_record(kOrders, {}, role.at("role"), role.at("composites"), names),
        group_record(kOrders, {"top"}, recorded("group")),
        identity_provider_record(kOrders, provider.at("provider"), provider.at("mappers")),
        flow_record(kOrders, flow.at("flow"), flow.at("executions"), configs),
        required_action_record(kOrders, recorded("required_action")), component_record(kOrders, recorded("component"))})
    out[record.kind] = record;
  return out;
}

TEST(KeycloakRecorded, EachKindIsOneRecordWithoutIdentitiesInItsBody) {
  const auto all = records();
  ASSERT_EQ(all.size(), 9u);
  for (const auto& [kind, record] : all) {
    const json body = json::parse(record.body);
    for (const char* name : {"id", "internalId", "access", "containerId", "subGroups", "authenticationExecutions"})
      EXPECT_FALSE(body.contains(name)) << kind << " " << name;
    EXPECT_TRUE(record.unread.empty()) << kind;
    EXPECT_EQ(record.external_name.empty(), kind == "required_action") << kind;
  }
  EXPECT_EQ(all.at("role").id, "orders/a%2Fb");
  EXPECT_EQ(json::parse(all.at("role").body).at("composites"), json::array({"app/writer"}));
  EXPECT_EQ(all.at("client").metadata.at("driftd.io/owner"), "production/identity-1");
  EXPECT_EQ(json::parse(all.at("client").body).at("protocolMappers").at("m").at("config").at("claim.name"), "team");
  EXPECT_EQ(json::parse(all.at("identity_provider").body).at("config").at("clientSecret"), "**********");
}

/// Another value for a scalar or a list of scalars; null for what has parts of its own.
json another(const json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return 1234567;
  if (value.is_string() || value.is_null()) return "theirs";
  const bool scalars =
      value.is_array() && std::none_of(value.begin(), value.end(), [](const json& one) { return one.is_structured(); });
  return scalars ? json::array({"theirs"}) : json();
}

/// Each scalar and each list of scalars of each kind can be put back, or says why not.
TEST(KeycloakRecorded, EachMemberIsSettableOrSaysWhyNot) {
  const AttributeRules rules(
      json::parse(std::ifstream(std::string(DRIFTD_SOURCE_DIR) + "/plugins/keycloak/schema.json")).at("kinds"));
  const std::set<std::string> never{"realm/realm",
                                    "realm/defaultRole",
                                    "realm/notBefore",
                                    "client/clientId",
                                    "client/secret",
                                    "client/notBefore",
                                    "client_scope/name",
                                    "role/name",
                                    "role/clientRole",
                                    "group/name",
                                    "identity_provider/alias",
                                    "identity_provider/providerId",
                                    "authentication_flow/alias",
                                    "authentication_flow/providerId",
                                    "authentication_flow/topLevel",
                                    "authentication_flow/builtIn",
                                    "required_action/alias",
                                    "required_action/providerId",
                                    "component/providerId",
                                    "component/providerType",
                                    "component/parentId",
                                    "realm/adminEventsEnabled",
                                    "realm/adminEventsDetailsEnabled",  // with consent it can
                                    "realm/requiredCredentials"};
  std::set<std::string> refused;
  for (const auto& [kind, record] : records()) {
    const json body = json::parse(record.body);
    for (const auto& [name, value] : body.items()) {
      json other = body;
      other[name] = another(value);
      if (other[name].is_null()) continue;
      const std::string why = forbidden(*rules_of(kind), rules, body, leaves_between(body, other), false);
      if (!why.empty()) refused.insert(kind + "/" + name);
    }
  }
  EXPECT_EQ(refused, never);
}

}  // namespace
}  // namespace driftd::keycloak
