// SPDX-License-Identifier: Apache-2.0
// Values are put back into a real Keycloak, kind by kind, with the roles that the README asks for and no others.
#include <utility>

#include "apply_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(KeycloakApply, RealmWithItsMailServerAndClientScopes) {
  json mail = {{"host", "mail.example"}, {"from", "a@b.example"}, {"auth", "true"}, {"user", "u"}, {"password", "pw"}};
  admin("PUT", "", {{"smtpServer", mail}, {"attributes", with(get("")["attributes"], "my.own", "1")}});
  const std::string scopes = path_of_scope("/default-default-client-scopes/", "email");
  const auto done = restored("realm", "", [&] {
    mail["host"] = "other.example";
    mail["password"] = "**********";
    json attributes = with(get("")["attributes"], "added", "x");
    attributes.erase("my.own");
    admin("PUT", "", {{"smtpServer", mail}, {"attributes", attributes}, {"accessTokenLifespan", 77}});
    admin("DELETE", scopes);
  });
  EXPECT_THAT(done.outcome.commands,
              ElementsAre(AllOf(HasSubstr("kcadm.sh update realms/" + realm_), HasSubstr("-s accessTokenLifespan=300"),
                                HasSubstr("smtpServer.host=\"mail.example\""), Not(HasSubstr("password"))),
                          "kcadm.sh update " + scopes.substr(1) + " -r " + realm_ + " -b '{}'"));
  EXPECT_EQ(get("")["smtpServer"]["password"], "**********") << "the password of the mail server is lost";
}

TEST_F(KeycloakApply, ClientWithMapperAndScopesAndItsSecretStays) {
  const std::string uuid = make_client("app", {{"secret", "canary-of-app"},
                                               {"description", "ours"},
                                               {"redirectUris", {"https://a.example/*", "https://b.example/*"}},
                                               {"attributes", {{"x.y", "1"}, {"kept", "2"}}},
                                               {"protocolMappers",
                                                {{{"name", "m"},
                                                  {"protocol", "openid-connect"},
                                                  {"protocolMapper", "oidc-usermodel-attribute-mapper"},
                                                  {"config", {{"claim.name", "team"}, {"user.attribute", "team"}}}}}}});
  const json mapper = get("/clients/" + uuid)["protocolMappers"][0];
  const auto done = restored("client", "app", [&] {
    admin("PUT", "/clients/" + uuid,
          {{"description", "theirs"},
           {"redirectUris", {"https://evil.example/*"}},
           {"attributes", {{"x.y", ""}, {"kept", "3"}, {"added", "x"}}}});
    json other = mapper;
    other["config"]["claim.name"] = "sub";
    admin("PUT", "/clients/" + uuid + "/protocol-mappers/models/" + mapper["id"].get<std::string>(), other);
    admin("PUT", path_of_scope("/clients/" + uuid + "/optional-client-scopes/", "own"));
    admin("DELETE", path_of_scope("/clients/" + uuid + "/default-client-scopes/", "email"));
  });
  EXPECT_EQ(done.outcome.commands.size(), 4u);
  EXPECT_EQ(get("/clients/" + uuid + "/client-secret")["value"], "canary-of-app");
  for (const auto& command : done.outcome.commands) EXPECT_THAT(command, Not(HasSubstr("canary"))) << command;
}

TEST_F(KeycloakApply, ClientScopeWithItsMappers) {
  const std::string path = path_of_scope("/client-scopes/", "own");
  restored("client_scope", "own", [&] {
    json scope = get(path);
    scope["description"] = "theirs";
    scope["attributes"] = {{"gui.order", "3"}, {"kept", "1"}};
    json mapper = scope["protocolMappers"][0];
    mapper["config"]["claim.name"] = "sub";
    admin("PUT", path, scope);
    admin("PUT", path + "/protocol-mappers/models/" + mapper["id"].get<std::string>(), mapper);
  });
}

TEST_F(KeycloakApply, RoleWithTheRolesThatItContains) {
  const std::string uuid = make_client("of-roles");
  admin("POST", "/clients/" + uuid + "/roles", {{"name", "writer"}});
  for (const char* name : {"a/b", "inner"})
    admin("POST", "/roles", {{"name", name}, {"attributes", {{"team", {"x"}}}}});
  const json outer = get("/roles/a%2Fb"), inner = get("/roles/inner");
  const json writer = get("/clients/" + uuid + "/roles/writer");
  const std::string path = "/roles-by-id/" + outer["id"].get<std::string>();
  admin("POST", path + "/composites", json::array({writer}));
  const auto done = restored("role", "a%2Fb", [&] {
    admin("DELETE", path + "/composites", json::array({writer}));
    admin("POST", path + "/composites", json::array({inner}));
    json role = get(path);
    role["description"] = "theirs";
    role["attributes"] = {{"team", {"y", "z"}}};
    admin("PUT", path, role);
  });
  EXPECT_THAT(done.outcome.commands, Contains(HasSubstr("kcadm.sh create roles-by-id/")));
  restored("role", "of-roles/writer", [&] {
    json role = writer;
    role["description"] = "theirs";
    admin("PUT", "/roles-by-id/" + writer["id"].get<std::string>(), role);
  });
}

TEST_F(KeycloakApply, GroupWithItsRoles) {
  const std::string uuid = make_client("of-groups");
  admin("POST", "/clients/" + uuid + "/roles", {{"name", "reader"}});
  admin("POST", "/roles", {{"name", "member"}});
  admin("POST", "/groups", {{"name", "top"}, {"attributes", {{"team", {"x"}}}}});
  const std::string path = "/groups/" + get("/groups?search=top").at(0)["id"].get<std::string>();
  const json member = json::array({get("/roles/member")});
  const json reader = json::array({get("/clients/" + uuid + "/roles/reader")});
  admin("POST", path + "/role-mappings/realm", member);
  restored("group", "top", [&] {
    admin("DELETE", path + "/role-mappings/realm", member);
    admin("POST", path + "/role-mappings/clients/" + uuid, reader);
    admin("PUT", path, {{"name", "top"}, {"description", "theirs"}, {"attributes", {{"other", {"y"}}}}});
  });
}

TEST_F(KeycloakApply, IdentityProviderWithItsMappersAndItsSecretStays) {
  admin(
      "POST", "/identity-provider/instances",
      {{"alias", "gh"}, {"providerId", "github"}, {"config", {{"clientId", "c"}, {"clientSecret", "hidden-canary"}}}});
  const std::string path = "/identity-provider/instances/gh";
  admin("POST", path + "/mappers",
        {{"name", "m"},
         {"identityProviderAlias", "gh"},
         {"identityProviderMapper", "hardcoded-attribute-idp-mapper"},
         {"config", {{"attribute", "a"}, {"attribute.value", "v"}, {"syncMode", "INHERIT"}}}});
  const auto done = restored("identity_provider", "gh", [&] {
    json mapper = get(path + "/mappers").at(0);
    mapper["config"]["attribute.value"] = "w";
    admin("PUT", path + "/mappers/" + mapper["id"].get<std::string>(), mapper);
    json other = get(path);
    other["trustEmail"] = true;
    other["displayName"] = "theirs";
    other["config"]["baseUrl"] = "https://evil.example";
    admin("PUT", path, other);
  });
  EXPECT_EQ(get(path)["config"]["clientSecret"], "**********") << "the secret is lost";
  for (const auto& command : done.outcome.commands) EXPECT_THAT(command, Not(HasSubstr("Secret"))) << command;
}

TEST_F(KeycloakApply, AuthenticationFlowWithItsExecutions) {
  const std::string path = make_flow("mine");
  restored("authentication_flow", "mine", [&] {
    json execution = get("/authentication/flows/mine/executions").at(1);
    execution["requirement"] = "ALTERNATIVE";
    admin("PUT", "/authentication/flows/mine/executions", execution);
    const std::string config = config_of("mine");
    admin("PUT", config, with(get(config), "config", {{"defaultProvider", "evil"}}));
    admin("PUT", path, with(get(path), "description", "theirs"));
  });
}

TEST_F(KeycloakApply, RequiredActionAndComponent) {
  const std::string action = "/authentication/required-actions/CONFIGURE_TOTP";
  restored("required_action", "CONFIGURE_TOTP",
           [&] { admin("PUT", action, with(with(get(action), "defaultAction", true), "priority", 77)); });
  const std::string component = component_uuid("max-clients");
  restored("component", "max-clients/" + component, [&] {
    admin("PUT", "/components/" + component, with(get("/components/" + component), "config", {{"max-clients", {"7"}}}));
  });
}

TEST_F(KeycloakApply, BuiltInFlowsCredentialsAndIdentitiesAreRefused) {
  make_client("kept", {{"secret", "canary-of-kept"}});
  const auto refused = [&](const std::string& kind, const std::string& rest, const std::string& path, const json& to) {
    const json now = body(kind, rest);
    const json from = now.contains(path) ? now[path] : json();
    const auto out = p_->apply({true, {kind, id_of(rest)}, "", key(), {{0, path, from.dump(), to.dump()}}});
    EXPECT_EQ(out.status, DRIFTD_OK) << out.reason();
    EXPECT_EQ(out.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << kind << " " << path;
    return out.reason();
  };
  EXPECT_THAT(refused("client", "kept", "secret", "mine"), HasSubstr("credentials are never put back"));
  EXPECT_THAT(refused("client", "kept", "clientId", "mine"), HasSubstr("cannot be set"));
  EXPECT_THAT(refused("authentication_flow", "browser", "description", "mine"), HasSubstr("built in"));
  EXPECT_THAT(refused("realm", "", "realm", "mine"), HasSubstr("cannot be set"));
  EXPECT_THAT(refused("client", "kept", "nonsense", "mine"), HasSubstr("nonsense"));
  const auto off = probe({{"drift_detection", {{"auto_remediate", false}}}});
  const auto out = off->apply({true, {"client", id("kept")}, "", key(), {{0, "enabled", "true", "false"}}});
  EXPECT_THAT(out.reason(), HasSubstr("auto_remediate is false"));
}

TEST_F(KeycloakApply, AMapperThatIsGoneIsNotCreatedAndOneTooManyIsNotDeleted) {
  const std::string scope = path_of_scope("/client-scopes/", "own");
  const json should = body("client_scope", "own");
  const std::string uuid = get(scope)["protocolMappers"][0]["id"];
  const json mapper = get(scope + "/protocol-mappers/models/" + uuid);
  admin("DELETE", scope + "/protocol-mappers/models/" + uuid);
  const json is = body("client_scope", "own");
  const auto gone = p_->apply(put_back({"client_scope", id("own")}, is, should, key()));
  EXPECT_EQ(gone.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(gone.reason(), HasSubstr("would have to be created"));
  EXPECT_EQ(body("client_scope", "own"), is);
  admin("POST", scope + "/protocol-mappers/models", mapper);
  const auto extra = p_->apply(put_back({"client_scope", id("own")}, should, is, key()));
  EXPECT_EQ(extra.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(extra.reason(), HasSubstr("a mapper without consentRequired is none; driftd never deletes it"));
  EXPECT_EQ(get(scope)["protocolMappers"].size(), 1u);
  EXPECT_EQ(body("client_scope", "own"), should) << "its parts were taken away";
}

}  // namespace
}  // namespace driftd::test
