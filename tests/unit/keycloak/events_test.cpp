// SPDX-License-Identifier: Apache-2.0
// Which resources an admin event names. The paths are those that Keycloak 26.3 wrote.
#include <gmock/gmock.h>

#include "driftd/sdk/types.hpp"
#include "keycloak/events.hpp"

namespace driftd::keycloak {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// `kind:key`, `kind` for a sweep.
std::vector<std::string> touched(const std::string& operation, const std::string& type, const std::string& path) {
  AdminEvent event;
  event.operation = operation;
  event.resource_type = type;
  event.path = path;
  std::vector<std::string> out;
  for (const auto& touch : touches_of(event))
    out.push_back(touch.kind + (touch.how == Touch::How::sweep ? "" : ":" + touch.key));
  return out;
}

TEST(KeycloakEventPaths, OneResourceIsNamedByItsUuidOrItsName) {
  EXPECT_THAT(touched("UPDATE", "CLIENT", "clients/U1"), ElementsAre("client:U1"));
  EXPECT_THAT(touched("ACTION", "CLIENT", "clients/U1/client-secret"), ElementsAre("client:U1"));
  EXPECT_THAT(touched("CREATE", "PROTOCOL_MAPPER", "clients/U1/protocol-mappers/models/M"), ElementsAre("client:U1"));
  EXPECT_THAT(touched("CREATE", "PROTOCOL_MAPPER", "client-scopes/U2/protocol-mappers/models/M"),
              ElementsAre("client_scope:U2"));
  EXPECT_THAT(touched("CREATE", "CLIENT_SCOPE_CLIENT_MAPPING", "clients/U1/default-client-scopes/U2"),
              ElementsAre("client:U1"));
  EXPECT_THAT(touched("UPDATE", "CLIENT_ROLE", "clients/U1/roles/writer"), ElementsAre("role:U1/writer"));
  EXPECT_THAT(touched("DELETE", "REALM_ROLE", "roles/admin"), ElementsAre("role:admin"));
  EXPECT_THAT(touched("CREATE", "REALM_ROLE", "roles-by-id/U3/composites"), ElementsAre("role:U3"));
  EXPECT_THAT(touched("UPDATE", "IDENTITY_PROVIDER", "identity-provider/instances/gh"),
              ElementsAre("identity_provider:gh"));
  EXPECT_THAT(touched("CREATE", "IDENTITY_PROVIDER_MAPPER", "identity-provider/instances/gh/mappers/M"),
              ElementsAre("identity_provider:gh"));
  EXPECT_THAT(touched("UPDATE", "AUTH_EXECUTION", "authentication/flows/mine/executions"),
              ElementsAre("authentication_flow:mine"));
}

TEST(KeycloakEventPaths, WhatDoesNotNameTheResourceIsASweepOfItsKind) {
  EXPECT_THAT(touched("CREATE", "AUTH_FLOW", "authentication/flows/browser/copy"), ElementsAre("authentication_flow"));
  EXPECT_THAT(touched("CREATE", "AUTHENTICATOR_CONFIG", "authentication/executions/E/config"),
              ElementsAre("authentication_flow"));
  EXPECT_THAT(touched("UPDATE", "REQUIRED_ACTION", "authentication/required-actions/CONFIGURE_TOTP"),
              ElementsAre("required_action"));
  EXPECT_THAT(touched("UPDATE", "COMPONENT", "components/U4"), ElementsAre("component"));
  EXPECT_THAT(touched("CREATE", "GROUP", "groups/U5/children"), ElementsAre("group"));
  EXPECT_THAT(touched("UPDATE", "CLIENT", "something/new/of/a/later/version"), ElementsAre("client"));
  EXPECT_THAT(touched("UPDATE", "REALM", ""), ElementsAre("realm"));
  EXPECT_THAT(touched("UPDATE", "REALM", "events/config"), ElementsAre("realm"));
  EXPECT_THAT(touched("CREATE", "GROUP", "default-groups/U5"), ElementsAre("realm"));
}

TEST(KeycloakEventPaths, UsersAndTypesOfNoKindTouchNothing) {
  EXPECT_THAT(touched("CREATE", "USER", "users/U"), IsEmpty());
  EXPECT_THAT(touched("CREATE", "CLIENT_ROLE_MAPPING", "users/U/role-mappings/clients/C"), IsEmpty());
  EXPECT_THAT(touched("CREATE", "REALM_ROLE_MAPPING", "groups/U5/role-mappings/realm"), ElementsAre("group:U5"));
  EXPECT_THAT(event_filter(), testing::Not(HasSubstr("=USER")));
}

TEST(KeycloakEventPaths, ASweepMakesSingleReadingsOfItsKindNeedless) {
  AdminEvent one, all;
  one.operation = all.operation = "CREATE";
  one.resource_type = all.resource_type = "GROUP";
  one.path = "groups/U5";
  all.path = "groups/U5/children";
  EXPECT_THAT(touches_of(std::vector<AdminEvent>{one, all}), ElementsAre(Touch{"group", Touch::How::sweep}));
}

TEST(KeycloakEventPaths, AnAnswerThatIsNoListOfEventsIsCorrupt) {
  EXPECT_THROW(parse_events(nlohmann::json::object()), sdk::Failure);
  EXPECT_THROW(parse_events(nlohmann::json::parse(R"([{"id": "a"}])")), sdk::Failure);
  const auto events = parse_events(nlohmann::json::parse(
      R"([{"time": 5, "operationType": "UPDATE", "resourceType": "CLIENT", "resourcePath": "clients/U",
           "representation": "secret-canary"}])"));
  EXPECT_THAT(events.at(0).key(), testing::AllOf(HasSubstr("5"), HasSubstr("clients/U")));
}

}  // namespace
}  // namespace driftd::keycloak
