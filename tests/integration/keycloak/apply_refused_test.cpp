// SPDX-License-Identifier: Apache-2.0
// What a real Keycloak, its roles and other writers do to a request of driftd.apply: said, and nothing half done.
#include <utility>

#include "apply_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(KeycloakApply, AMissingRoleIsNamedForEachKindAndNothingChanges) {
  const std::string client = "/clients/" + make_client("no-right");
  admin("POST", "/roles", {{"name", "no-right"}});
  admin("POST", "/groups", {{"name", "no-right"}});
  admin("POST", client + "/roles", {{"name", "inner"}});
  admin("POST", "/identity-provider/instances", {{"alias", "no-right"}, {"providerId", "github"}});
  const std::string flow = make_flow("no-right");
  const std::string component = component_uuid("max-clients");
  struct Case {
    const char* kind;
    std::string rest, attribute, value, role;
  };
  const std::vector<Case> cases{
      {"realm", "", "displayName", "\"theirs\"", "manage-realm"},
      {"client", "no-right", "description", "\"theirs\"", "manage-clients"},
      {"client_scope", "own", "attributes[\"gui.order\"]", "\"9\"", "manage-clients"},
      {"role", "no-right", "description", "\"theirs\"", "manage-realm"},
      {"role", "no-right/inner", "description", "\"theirs\"", "manage-clients"},
      {"group", "no-right", "description", "\"theirs\"", "manage-users"},
      {"identity_provider", "no-right", "trustEmail", "true", "manage-identity-providers"},
      {"authentication_flow", "no-right", "description", "\"theirs\"", "manage-realm"},
      {"required_action", "CONFIGURE_TOTP", "priority", "55", "manage-realm"},
      {"component", "max-clients/" + component, "config[\"max-clients\"]", "[\"9\"]", "manage-realm"}};
  server().set_roles(realm_, readme_roles());
  p_ = probe();  // with another token
  for (const auto& [kind, rest, attribute, value, role] : cases) {
    const json before = body(kind, rest);
    json at = before;
    for (const auto& name :
         {attribute.substr(0, attribute.find('[')),
          attribute.find('[') == std::string::npos
              ? std::string()
              : attribute.substr(attribute.find('[') + 2, attribute.size() - attribute.find('[') - 4)}) {
      if (!name.empty()) at = at.is_object() && at.contains(name) ? at[name] : json();
    }
    const sdk::Apply request{
        false, {kind, id_of(rest)}, "", key(), {{0, attribute, at.is_null() ? "" : at.dump(), value}}};
    EXPECT_EQ(p_->apply(dry(request)).outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << kind;
    const auto out = p_->apply(request);
    EXPECT_EQ(out.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << kind << ": " << out.reason();
    EXPECT_THAT(out.reason(), AllOf(HasSubstr("the role " + role + " is missing"), HasSubstr("--rolename " + role),
                                    HasSubstr("nothing was changed")));
    EXPECT_EQ(body(kind, rest), before);
  }
}

TEST_F(KeycloakApply, WhatKeycloakRefusesIsSaidInItsOwnWords) {
  make_client("refused", {{"redirectUris", {"https://a.example/*"}}});
  const auto said = [&](const std::string& kind, const std::string& rest, const sdk::Change& change) {
    const json before = body(kind, rest);
    const auto out = p_->apply({false, {kind, id_of(rest)}, "", key(), {change}});
    EXPECT_EQ(out.status, DRIFTD_OK) << out.reason();
    EXPECT_EQ(out.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
    EXPECT_FALSE(out.outcome.changed);
    EXPECT_EQ(body(kind, rest), before);
    return out.reason();
  };
  EXPECT_THAT(said("client", "refused", {0, "redirectUris", "[\"https://a.example/*\"]", "[\"::bad::\"]"}),
              HasSubstr("A redirect URI is not a valid URI"));
  const std::string limit = "max-clients/" + component_uuid("max-clients");
  const std::string now = body("component", limit)["config"]["max-clients"].dump();
  EXPECT_THAT(said("component", limit, {0, "config[\"max-clients\"]", now, "[\"many\"]"}),
              HasSubstr("should be a number"));
  EXPECT_THAT(said("realm", "", {0, "sslRequired", "\"external\"", "\"maybe\""}), HasSubstr("Failed to update realm"));
}

/// Keycloak answers 204 to a component without this value, and keeps it.
TEST_F(KeycloakApply, WhatKeycloakAcceptsWithoutDoingItIsTakenBack) {
  const std::string limit = "max-clients/" + component_uuid("max-clients");
  const json before = body("component", limit);
  const auto out = p_->apply({false,
                              {"component", id_of(limit)},
                              "",
                              key(),
                              {{0, "config[\"max-clients\"]", before["config"]["max-clients"].dump(), ""},
                               {1, "name", before["name"].dump(), "\"theirs\""}}});
  EXPECT_EQ(out.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(out.reason(), AllOf(HasSubstr("keeps another value of config"), HasSubstr("taken back")));
  EXPECT_FALSE(out.outcome.changed);
  EXPECT_EQ(body("component", limit), before);
}

TEST_F(KeycloakApply, WhatWasDoneBeforeAFailureIsTakenBack) {
  make_flow("half");
  const json before = body("authentication_flow", "half");
  const auto out = p_->apply(
      {false,
       {"authentication_flow", id("half")},
       "",
       key(),
       {{0, "description", before["description"].dump(), "\"theirs\""},
        {1, "executions[0].requirement", before["executions"][0]["requirement"].dump(), "\"NO_SUCH_REQUIREMENT\""}}});
  EXPECT_EQ(out.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << out.reason();
  EXPECT_THAT(out.reason(), HasSubstr("taken back"));
  EXPECT_THAT(out.outcome.left, IsEmpty());
  EXPECT_EQ(body("authentication_flow", "half"), before);
}

TEST_F(KeycloakApply, AValueThatMovedIsAConflictAndOneThatIsThereIsDone) {
  const std::string path = "/clients/" + make_client("moved", {{"description", "ours"}});
  auto request = drifted("client", "moved", [&] { admin("PUT", path, {{"description", "theirs"}}); });
  admin("PUT", path, {{"description", "of a third"}});
  const auto stale = p_->apply(request);
  EXPECT_EQ(stale.status, DRIFTD_CONFLICT);
  EXPECT_THAT(stale.reason(), HasSubstr("description changed since it was judged"));
  EXPECT_EQ(get(path)["description"], "of a third");
  admin("PUT", path, {{"description", "ours"}});
  const auto there = p_->apply(request);
  EXPECT_EQ(there.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS});
  EXPECT_FALSE(there.outcome.changed);
}

/// Another writer comes between the reading and each write in turn.
TEST_F(KeycloakApply, AWriterInBetweenIsAConflictAndIsNotOverwritten) {
  const std::string path = "/clients/" + make_client("raced", {{"description", "ours"}});
  auto request = drifted("client", "raced", [&] { admin("PUT", path, {{"description", "theirs"}}); });
  int requests = 0;
  p_->before_each_request([&] {
    if (++requests == 3)
      admin("PUT", path, {{"description", "of a third"}});  // list, read, then the one before the PUT
  });
  const auto out = p_->apply(request);
  EXPECT_EQ(out.status, DRIFTD_CONFLICT) << out.reason();
  EXPECT_EQ(get(path)["description"], "of a third");
  p_->before_each_request({});
}

/// realm and client send only what changes.
TEST_F(KeycloakApply, AnotherMemberThatChangesMeanwhileStays) {
  const std::string path = "/clients/" + make_client("beside", {{"description", "ours"}});
  auto request = drifted("client", "beside", [&] { admin("PUT", path, {{"description", "theirs"}}); });
  int requests = 0;
  p_->before_each_request([&] {
    if (++requests == 4) admin("PUT", path, {{"name", "of a third"}});
  });
  EXPECT_TRUE(p_->apply(request).outcome.changed);
  EXPECT_EQ(get(path)["name"], "of a third");
  EXPECT_EQ(get(path)["description"], "ours");
  p_->before_each_request({});
}

TEST_F(KeycloakApply, WhatIsGoneIsNotCreated) {
  const std::string path = "/clients/" + make_client("gone", {{"description", "ours"}});
  const auto request = drifted("client", "gone", [&] { admin("PUT", path, {{"description", "theirs"}}); });
  admin("DELETE", path);
  EXPECT_EQ(p_->apply(dry(request)).status, DRIFTD_NOT_FOUND);
  EXPECT_EQ(p_->apply(request).status, DRIFTD_NOT_FOUND);
  EXPECT_TRUE(get("/clients?clientId=gone").empty());
  EXPECT_EQ(p_->apply({false, {"realm", "nowhere"}, "", key(), {{0, "enabled", "false", "true"}}}).status,
            DRIFTD_NOT_FOUND);
}

TEST_F(KeycloakApply, AnIdempotencyKeyIsAppliedOnce) {
  const std::string path = "/clients/" + make_client("keyed", {{"description", "ours"}});
  const auto request = drifted("client", "keyed", [&] { admin("PUT", path, {{"description", "theirs"}}); });
  EXPECT_TRUE(p_->apply(request).outcome.changed);
  admin("PUT", path, {{"description", "theirs"}});
  const auto again = p_->apply(request);
  EXPECT_EQ(again.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS});
  EXPECT_FALSE(again.outcome.changed);
  EXPECT_EQ(get(path)["description"], "theirs");
  auto other = request;
  other.changes[0].new_value = "\"another\"";
  EXPECT_EQ(p_->apply(other).status, DRIFTD_INVALID);
}

TEST_F(KeycloakApply, AdminEventsAreTurnedOnWithConsentOnly) {
  server().set_events(realm_, false);
  const sdk::Apply on{false, {"realm", realm_}, "", key(), {{0, "adminEventsEnabled", "false", "true"}}};
  const auto refused = p_->apply(on);
  EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(refused.reason(), HasSubstr("settings.apply.turn_on_admin_events"));
  EXPECT_EQ(get("")["adminEventsEnabled"], false);
  const auto consenting = probe({{"apply", {{"turn_on_admin_events", true}}}});
  const auto done = consenting->apply(on);
  EXPECT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_THAT(done.outcome.commands, Contains("kcadm.sh update realms/" + realm_ + " -s adminEventsEnabled=true"));
  EXPECT_EQ(get("")["adminEventsEnabled"], true);
  EXPECT_EQ(get("")["adminEventsDetailsEnabled"], false) << "it was not asked for";
  const Collected seeing = consenting->refresh();
  EXPECT_EQ(json::parse(seeing.find("realm", realm_)->status).at("events"), "seen");
}

/// The shown commands are real ones: kcadm.sh makes of them what the provider makes, and takes it back.
TEST_F(KeycloakApply, TheShownCommandsDoTheSame) {
  const std::string path = "/clients/" + make_client("shown", {{"attributes", {{"x.y", "it's \"1\""}}}});
  admin("POST", "/roles", {{"name", "shown"}});
  admin("POST", "/roles", {{"name", "shown-inner"}});
  const std::string role = "/roles-by-id/" + get("/roles/shown")["id"].get<std::string>();
  const json should = body("client", "shown"), role_should = body("role", "shown");
  const auto client = drifted("client", "shown", [&] {
    admin("PUT", path, {{"attributes", {{"x.y", "2"}, {"added", "3"}}}, {"redirectUris", {"https://evil.example"}}});
    admin("DELETE", path_of_scope(path + "/default-client-scopes/", "email"));
  });
  const auto composite =
      drifted("role", "shown", [&] { admin("POST", role + "/composites", json::array({get("/roles/shown-inner")})); });
  const json is = body("client", "shown"), role_is = body("role", "shown");
  const auto planned = p_->apply(dry(client)), contained = p_->apply(dry(composite));
  const auto all = [](auto first, const auto& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  server().kcadm(all(planned.outcome.commands, contained.outcome.commands));
  EXPECT_EQ(body("client", "shown"), should);
  EXPECT_EQ(body("role", "shown"), role_should);
  server().kcadm(all(planned.outcome.undo, contained.outcome.undo));
  EXPECT_EQ(body("client", "shown"), is);
  EXPECT_EQ(body("role", "shown"), role_is);
}

}  // namespace
}  // namespace driftd::test
