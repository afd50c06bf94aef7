// SPDX-License-Identifier: Apache-2.0
// Each kind of a real Keycloak: how it is listed, and that a change through the admin API is noticed by its event.
#include <algorithm>
#include <utility>

#include "world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

class KeycloakKinds : public SharedKeycloak {
 protected:
  /// Returns the body of the resource as the watch emitted it because of `change`; null if it did not.
  json changed(const std::string& kind, const std::string& rest, const std::function<void()>& change) const {
    const auto opened = probe();
    return watch_change(*opened, kind, rest.empty() ? realm_ : id(rest), change)
        .body(kind, rest.empty() ? realm_ : id(rest));
  }
};

TEST_F(KeycloakKinds, AllKindsAreListedWholeWithTheReadmesRolesAlone) {
  make_client("app");
  const auto opened = probe();
  const Collected seen = opened->refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  for (const auto& diagnostic : seen.diagnostics) ADD_FAILURE() << diagnostic.kind << ": " << diagnostic.text;
  EXPECT_EQ(seen.complete.size(), 9u);
  EXPECT_EQ(seen.complete.at("realm"), 1u);
  EXPECT_NE(seen.find("role", id("realm-management/view-users")), nullptr);
  EXPECT_NE(seen.find("authentication_flow", id("browser")), nullptr);
  EXPECT_NE(seen.find("required_action", id("CONFIGURE_TOTP")), nullptr);
  EXPECT_EQ(seen.find("client", id("app"))->external_name, server().client_uuid(realm_, "app"));
}

TEST_F(KeycloakKinds, RealmIsSeen) {
  json body = changed("realm", "", [&] { admin("PUT", "", {{"accessTokenLifespan", 77}}); });
  EXPECT_EQ(body.value("accessTokenLifespan", 0), 77);
}

TEST_F(KeycloakKinds, ClientIsSeenAlsoItsSecret) {
  const std::string uuid = make_client("app", {{"secret", "one"}});
  json body = changed("client", "app", [&] { admin("POST", "/clients/" + uuid + "/client-secret"); });
  EXPECT_NE(body.value("secret", ""), "");
  EXPECT_NE(body.value("secret", ""), "one");
}

TEST_F(KeycloakKinds, MapperOfAClientIsSeenByItsName) {
  const std::string uuid = make_client("app");
  json body = changed("client", "app", [&] {
    admin("POST", "/clients/" + uuid + "/protocol-mappers/models",
          {{"name", "m"},
           {"protocol", "openid-connect"},
           {"protocolMapper", "oidc-usermodel-attribute-mapper"},
           {"config", {{"claim.name", "x"}}}});
  });
  EXPECT_EQ(body["protocolMappers"]["m"]["config"]["claim.name"], "x") << body;
}

TEST_F(KeycloakKinds, DeletedClientAndItsRolesAreReportedAsGone) {
  const std::string uuid = make_client("app");
  admin("POST", "/clients/" + uuid + "/roles", {{"name", "writer"}});
  const auto opened = probe();
  const Collected seen = watch_change(
      *opened, "role", id("app/writer"), [&] { admin("DELETE", "/clients/" + uuid); }, true);
  ASSERT_NE(seen.find("client", id("app")), nullptr);
  EXPECT_TRUE(seen.find("client", id("app"))->tombstone);
  EXPECT_NE(seen.find("role", id("app/writer")), nullptr);
  const Collected asked = opened->read({{"client", id("app")}, {"role", id("app/writer")}, {"client", id("account")}});
  EXPECT_EQ(asked.records.size(), 1u);
  ASSERT_NE(asked.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(KeycloakKinds, RenamedClientIsTheNewOneAndTheOldIsGone) {
  const std::string uuid = make_client("before");
  const auto opened = probe();
  const Collected seen = watch_change(*opened, "client", id("after"), [&] {
    admin("PUT", "/clients/" + uuid, {{"clientId", "after"}});
  });
  ASSERT_NE(seen.find("client", id("before")), nullptr);
  EXPECT_TRUE(seen.find("client", id("before"))->tombstone);
}

TEST_F(KeycloakKinds, ClientScopeIsSeen) {
  const json scopes = get("/client-scopes");
  const std::string uuid = scopes.at(0).at("id"), name = scopes.at(0).at("name");
  json body = changed("client_scope", name, [&] {
    json scope = scopes.at(0);
    scope["description"] = "changed";
    admin("PUT", "/client-scopes/" + uuid, scope);
  });
  EXPECT_EQ(body.value("description", ""), "changed");
}

TEST_F(KeycloakKinds, RolesOfRealmAndClientAreSeen) {
  const std::string uuid = make_client("app");
  admin("POST", "/roles", {{"name", "a/b"}});
  json body = changed("role", "a%2Fb", [&] {
    const json role = get("/roles/a%2Fb");
    admin("POST", "/clients/" + uuid + "/roles", {{"name", "writer"}});
    admin("POST", "/roles-by-id/" + role.at("id").get<std::string>() + "/composites",
          json::array({get("/clients/" + uuid + "/roles/writer")}));
  });
  EXPECT_EQ(body["composites"], json::array({"app/writer"}));
  json created = changed("role", "app/reader", [&] {
    admin("POST", "/clients/" + uuid + "/roles", {{"name", "reader"}});
  });
  EXPECT_EQ(created.value("name", ""), "reader");
}

TEST_F(KeycloakKinds, GroupsAreSeenDownTheTree) {
  admin("POST", "/groups", {{"name", "top"}});
  const std::string top = get("/groups").at(0).at("id");
  json created = changed("group", "top/sub%2Fx", [&] {
    admin("POST", "/groups/" + top + "/children", {{"name", "sub/x"}});
  });
  EXPECT_EQ(created.value("name", ""), "sub/x");
  const auto opened = probe();
  EXPECT_EQ(opened->read({{"group", id("top/sub%2Fx")}}).records.size(), 1u);
  const Collected seen = watch_change(
      *opened, "group", id("top/sub%2Fx"), [&] { admin("DELETE", "/groups/" + top); }, true);
  EXPECT_TRUE(seen.find("group", id("top"))->tombstone);
}

TEST_F(KeycloakKinds, IdentityProviderIsSeenAndItsSecretIsMasked) {
  const json provider{
      {"alias", "gh"}, {"providerId", "github"}, {"config", {{"clientId", "c"}, {"clientSecret", "hidden-canary"}}}};
  admin("POST", "/identity-provider/instances", provider);
  json body = changed("identity_provider", "gh", [&] {
    json other = get("/identity-provider/instances/gh");
    other["trustEmail"] = true;
    admin("PUT", "/identity-provider/instances/gh", other);
  });
  EXPECT_EQ(body.value("trustEmail", false), true);
  EXPECT_EQ(body["config"]["clientSecret"], "**********");
}

TEST_F(KeycloakKinds, AuthenticationFlowIsSeenWithItsExecutions) {
  admin("POST", "/authentication/flows/browser/copy", {{"newName", "mine"}});
  json body = changed("authentication_flow", "mine", [&] {
    json execution = get("/authentication/flows/mine/executions").at(1);
    execution["requirement"] = "ALTERNATIVE";
    admin("PUT", "/authentication/flows/mine/executions", execution);
  });
  EXPECT_EQ(body["executions"][1]["requirement"], "ALTERNATIVE");
}

TEST_F(KeycloakKinds, RequiredActionIsSeen) {
  json body = changed("required_action", "CONFIGURE_TOTP", [&] {
    json action = get("/authentication/required-actions/CONFIGURE_TOTP");
    action["defaultAction"] = true;
    admin("PUT", "/authentication/required-actions/CONFIGURE_TOTP", action);
  });
  EXPECT_EQ(body.value("defaultAction", false), true);
}

TEST_F(KeycloakKinds, ComponentIsSeen) {
  json component;
  for (const auto& each : get("/components")) {
    if (each.at("providerId") == "max-clients") component = each;
  }
  const std::string uuid = component.at("id");
  json body = changed("component", "max-clients/" + uuid, [&] {
    component["config"]["max-clients"] = {"7"};
    admin("PUT", "/components/" + uuid, component);
  });
  EXPECT_EQ(body["config"]["max-clients"], json::array({"7"}));
}

TEST_F(KeycloakKinds, OwnerIsShown) {
  make_client("owned", {{"attributes", {{"driftd.owner", "operator-1"}}}});
  const auto opened = probe();
  const Collected seen = opened->refresh();
  EXPECT_EQ(seen.find("client", id("owned"))->metadata.at("driftd.io/owner"), "operator-1");
  EXPECT_EQ(json::parse(seen.find("client", id("owned"))->status).value("owner", ""), "operator-1");
}

}  // namespace
}  // namespace driftd::test
