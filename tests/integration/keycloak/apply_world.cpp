// SPDX-License-Identifier: Apache-2.0
#include "apply_world.hpp"

#include <regex>

#include "support/redis.hpp"

namespace driftd::test {

using nlohmann::json;

std::vector<std::string> KeycloakApply::write_roles() {
  static const std::string kGrants = readme_block("keycloak", "### To put values back", "sh");
  static const std::regex kRole("--rolename (\\S+)");
  std::vector<std::string> out = readme_roles();
  for (std::sregex_iterator it(kGrants.begin(), kGrants.end(), kRole), end; it != end; ++it) out.push_back((*it)[1]);
  return out;
}

KeycloakApply::KeycloakApply() : SharedKeycloak("apply") {
  if (get("/client-scopes").dump().find("\"own\"") == std::string::npos) {
    admin("POST", "/client-scopes",
          {{"name", "own"},
           {"description", "ours"},
           {"protocol", "openid-connect"},
           {"attributes", {{"gui.order", "1"}, {"kept", "1"}, {"consent.screen.text", "x"}}},
           {"protocolMappers",
            {{{"name", "m"},
              {"protocol", "openid-connect"},
              {"protocolMapper", "oidc-usermodel-attribute-mapper"},
              {"config", {{"claim.name", "team"}, {"user.attribute", "team"}}}}}}});
  }
  server().set_roles(realm_, write_roles());
  p_ = probe();
}

std::string KeycloakApply::key() {
  static int count = 0;
  return "key-" + std::to_string(++count);
}

json KeycloakApply::with(json object, const std::string& name, const json& value) {
  object[name] = value;
  return object;
}

json KeycloakApply::body(const std::string& kind, const std::string& rest) const {
  return p_->read({{kind, id_of(rest)}}).body(kind, id_of(rest));
}

sdk::Apply KeycloakApply::drifted(const std::string& kind, const std::string& rest,
                                  const std::function<void()>& drift) const {
  const json should = body(kind, rest);
  drift();
  return put_back({kind, id_of(rest)}, body(kind, rest), should, key());
}

AppliedCall KeycloakApply::restored(const std::string& kind, const std::string& rest,
                                    const std::function<void()>& drift) const {
  const json should = body(kind, rest);
  EXPECT_TRUE(should.is_object()) << kind << "/" << rest;
  drift();
  const json is = body(kind, rest);
  EXPECT_NE(is, should) << "nothing drifted";
  const auto request = put_back({kind, id_of(rest)}, is, should, key());
  const auto planned = p_->apply(dry(request));
  EXPECT_EQ(planned.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << planned.reason();
  EXPECT_FALSE(planned.outcome.changed);
  EXPECT_FALSE(planned.outcome.commands.empty());
  EXPECT_EQ(planned.outcome.commands.size(), planned.outcome.undo.size());
  EXPECT_EQ(body(kind, rest), is) << "a dry run changed something";
  auto done = p_->apply(request);
  EXPECT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_TRUE(done.outcome.changed);
  EXPECT_EQ(done.outcome.commands, planned.outcome.commands) << "what was shown is what runs";
  EXPECT_EQ(body(kind, rest), should);
  EXPECT_FALSE(p_->apply(request).outcome.changed) << "the same key twice";
  return done;
}

std::string KeycloakApply::path_of_scope(const std::string& front, const std::string& name) const {
  for (const auto& scope : get("/client-scopes")) {
    if (scope.at("name") == name) return front + scope.at("id").get<std::string>();
  }
  throw std::runtime_error("no client scope " + name);
}

std::string KeycloakApply::component_uuid(const std::string& provider_id) const {
  for (const auto& each : get("/components")) {
    if (each.at("providerId") == provider_id) return each.at("id");
  }
  throw std::runtime_error("no component " + provider_id);
}

std::string KeycloakApply::config_of(const std::string& flow) const {
  for (const auto& each : get("/authentication/flows/" + flow + "/executions")) {
    if (each.contains("authenticationConfig"))
      return "/authentication/config/" + each.at("authenticationConfig").get<std::string>();
  }
  throw std::runtime_error("no execution of " + flow + " has a configuration");
}

std::string KeycloakApply::make_flow(const std::string& alias) const {
  admin("POST", "/authentication/flows/browser/copy", {{"newName", alias}});
  for (const auto& each : get("/authentication/flows/" + alias + "/executions")) {
    if (each.value("providerId", "") != "identity-provider-redirector") continue;
    admin("POST", "/authentication/executions/" + each.at("id").get<std::string>() + "/config",
          {{"alias", "config of " + alias}, {"config", {{"defaultProvider", "ours"}}}});
  }
  for (const auto& each : get("/authentication/flows")) {
    if (each.at("alias") == alias) return "/authentication/flows/" + each.at("id").get<std::string>();
  }
  throw std::runtime_error("no flow " + alias);
}

}  // namespace driftd::test
