// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "driftd/sdk/types.hpp"
#include "keycloak/mapping.hpp"
#include "keycloak/names.hpp"
#include "keycloak/rights.hpp"
#include "keycloak/settings.hpp"
#include "keycloak/token.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

const Place kPlace{"orders", "driftd.owner"};

TEST(KeycloakNames, ASlashInANameIsNoBorder) {
  EXPECT_EQ(id_of({"orders", "app", "admin"}), "orders/app/admin");
  EXPECT_EQ(id_of({"orders", "app/admin"}), "orders/app%2Fadmin");
  EXPECT_EQ(id_of({"orders", "app%2Fadmin"}), "orders/app%252Fadmin");
  for (const auto& parts : {std::vector<std::string>{"a", "b"}, {"a", "b/c"}, {"a", "100%", "%2F"}})
    EXPECT_EQ(parts_of(id_of(parts)), parts);
  EXPECT_THAT(parts_of("orders//x"), IsEmpty());
  EXPECT_THAT(parts_of("orders/50%"), IsEmpty());
}

TEST(KeycloakMapping, AClientHasItsMappersByNameAndNoIdentities) {
  const auto record =
      client_record(kPlace, json::parse(R"({"id": "U", "clientId": "app", "secret": "s", "access": {"view": true},
        "attributes": {"driftd.owner": "op-1"}, "registeredNodes": {"n": 5}, "clientAuthenticatorType": "client-secret",
        "protocolMappers": [{"id": "M", "name": "m", "config": {"claim.name": "x"}}]})"));
  EXPECT_EQ(record.id, "orders/app");
  EXPECT_EQ(record.external_name, "U");
  EXPECT_THAT(record.unread, IsEmpty());
  EXPECT_EQ(json::parse(record.body),
            json::parse(R"({"clientId": "app", "secret": "s", "attributes": {"driftd.owner": "op-1"},
              "clientAuthenticatorType": "client-secret", "protocolMappers": {"m": {"config": {"claim.name": "x"}}}})"));
  EXPECT_EQ(json::parse(record.status), json::parse(R"({"registeredNodes": {"n": 5}, "owner": "op-1"})"));
  EXPECT_EQ(record.metadata.at("driftd.io/owner"), "op-1");
}

TEST(KeycloakMapping, ASecretThatIsNotShownIsUnreadOnlyWhereThereIsOne) {
  const auto unread = [](const char* body) { return client_record(kPlace, json::parse(body)).unread.size(); };
  EXPECT_EQ(unread(R"({"clientId": "a", "clientAuthenticatorType": "client-secret"})"), 1u);
  EXPECT_EQ(unread(R"({"clientId": "a", "clientAuthenticatorType": "client-secret", "publicClient": true})"), 0u);
  EXPECT_EQ(unread(R"({"clientId": "a", "clientAuthenticatorType": "client-jwt"})"), 0u);
}

TEST(KeycloakMapping, EachMapperKeepsItsOwnName) {
  EXPECT_EQ(detail::by_name(json::parse(R"([{"id": "1", "name": "a", "x": 1}, {"id": "2", "name": "b", "x": 2}])")),
            json::parse(R"({"a": {"x": 1}, "b": {"x": 2}})"));
}

TEST(KeycloakMapping, MappersOfOneNameStayAList) {
  const json twice = json::parse(R"([{"name": "m"}, {"name": "m"}])");
  EXPECT_EQ(detail::by_name(twice), twice);
}

TEST(KeycloakMapping, RolesNameWhatTheyContainByTheClientsName) {
  const auto record = role_record(
      kPlace, "app", json::parse(R"({"id": "R", "name": "writer", "containerId": "U"})"),
      json::parse(R"([{"name": "b", "clientRole": true, "containerId": "U"}, {"name": "a/x"}])"), {{"U", "app"}});
  EXPECT_EQ(record.id, "orders/app/writer");
  EXPECT_EQ(json::parse(record.body)["composites"], json::parse(R"(["a%2Fx", "app/b"])"));
}

TEST(KeycloakMapping, AFlowIsItsExecutionsInOrderWithTheirConfiguration) {
  const auto record =
      flow_record(kPlace, json::parse(R"({"id": "F", "alias": "browser", "authenticationExecutions": [1]})"),
                  json::parse(R"([{"id": "E", "providerId": "otp", "requirement": "REQUIRED", "level": 0, "index": 0,
        "displayName": "OTP", "requirementChoices": [], "authenticationConfig": "C"},
        {"authenticationFlow": true, "displayName": "forms", "requirement": "ALTERNATIVE", "level": 0, "index": 1}])"),
                  {{"C", json::parse(R"({"id": "C", "alias": "cfg", "config": {"k": "v"}})")}});
  EXPECT_EQ(json::parse(record.body), json::parse(R"({"alias": "browser", "executions": [
    {"providerId": "otp", "requirement": "REQUIRED", "level": 0, "index": 0, "config": {"k": "v"}, "configAlias": "cfg"},
    {"authenticationFlow": true, "flow": "forms", "requirement": "ALTERNATIVE", "level": 0, "index": 1}]})"));
}

TEST(KeycloakMapping, ARealmShowsItsEventsAndLeavesUnreadWhatMayNotBeRead) {
  const json realm = json::parse(R"({"id": "U", "realm": "orders", "defaultRole": {"id": "R", "name": "d"}})");
  const auto record = realm_record(kPlace, realm, {true, 42, std::vector<std::string>{"a"}, {}});
  EXPECT_EQ(json::parse(record.status),
            json::parse(R"({"events": "seen", "phase": "Ready", "lastReconcileEventTime": 42})"));
  EXPECT_EQ(json::parse(record.body),
            json::parse(R"({"realm": "orders", "defaultRole": "d", "defaultDefaultClientScopes": ["a"]})"));
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].path, "defaultOptionalClientScopes");
  const auto blind = realm_record(kPlace, realm, {false, 0, {}, {}});
  EXPECT_EQ(json::parse(blind.status), json::parse(R"({"events": "blind", "phase": "Degraded"})"));
}

TEST(KeycloakToken, TheServersClockIsThatOfTheToken) {
  // {"iat":1795727446}
  const auto token = parse_token(R"({"access_token": "x.eyJpYXQiOjE3OTU3Mjc0NDZ9.y", "expires_in": 60})");
  ASSERT_TRUE(token);
  EXPECT_EQ(token->issued_ms, 1'795'727'446'000);
  EXPECT_EQ(token->lifetime, std::chrono::seconds(60));
  EXPECT_EQ(parse_token(R"({"access_token": "opaque", "expires_in": 60})")->issued_ms, 0);
  EXPECT_FALSE(parse_token(R"({"error": "invalid_client"})"));
  EXPECT_FALSE(parse_token("<html>"));
}

TEST(KeycloakRights, TheCommandNamesTheClientThatHoldsTheRole) {
  const Login own{"orders", "driftd", "t", {}, {}}, master{"master", "driftd", "t", {}, {}};
  EXPECT_THAT(grant_command(own, "orders", "view-events"), HasSubstr("-r orders --uusername service-account-driftd "
                                                                     "--cclientid realm-management --rolename "
                                                                     "view-events"));
  EXPECT_THAT(grant_command(master, "orders", "view-events"), HasSubstr("-r master --uusername service-account-driftd "
                                                                        "--cclientid orders-realm"));
}

/// Returns the text of the refusal; empty if the settings are accepted.
std::string refusal(const std::string& members) {
  try {
    parse_settings(R"({"url": "https://h/", "auth": {"client_id": "c", "client_secret": "t"})" + members + "}");
    return {};
  } catch (const sdk::Failure& failure) {
    return failure.what();
  }
}

TEST(KeycloakSettings, DefaultsDetectAndLeaveRemediationToThePolicy) {
  const auto settings = parse_settings(R"({"url": "https://h/a/", "auth": {"client_id": "c", "client_secret": "t"}})");
  EXPECT_EQ(settings.url, "https://h/a");
  EXPECT_TRUE(settings.detection);
  EXPECT_TRUE(settings.use_events);
  EXPECT_TRUE(settings.remediate);
  EXPECT_FALSE(settings.turn_on_admin_events);
  EXPECT_EQ(settings.login.realm, "master");
  EXPECT_EQ(refusal(R"(, "drift_detection": {"enabled": false, "auto_remediate": false, "minimum_age_hours": 1})"), "");
}

TEST(KeycloakSettings, WhatHasNoEffectIsRefusedAndSaysWhereItIsDecided) {
  EXPECT_THAT(refusal(R"(, "drift_detection": {"minimum_age_hours": 24})"), HasSubstr("minimum_age: 24h"));
  EXPECT_THAT(refusal(R"(, "events": "maybe")"), HasSubstr("required or off"));
  EXPECT_THAT(refusal(R"(, "page": 1)"), HasSubstr("settings.page"));
  EXPECT_THAT(refusal(R"(, "tls": {"key": "k"})"), HasSubstr("settings.tls"));
  EXPECT_THROW(parse_settings(R"({"url": "h", "auth": {"client_id": "c", "client_secret": "t"}})"), sdk::Failure);
  EXPECT_THROW(parse_settings(R"({"url": "https://h"})"), sdk::Failure);
  EXPECT_THROW(parse_settings(R"({"url": "https://h", "auth": {"client_id": "c"}})"), sdk::Failure);
}

}  // namespace
}  // namespace driftd::keycloak
