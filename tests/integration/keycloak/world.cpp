// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <set>

namespace driftd::test {

using nlohmann::json;

KeycloakServer& SharedKeycloak::server() {
  static KeycloakServer kServer;
  return kServer;
}

const std::vector<std::string>& SharedKeycloak::readme_roles() {
  static const std::vector<std::string> kRoles{"view-realm", "view-clients", "view-users", "view-identity-providers",
                                               "view-events"};
  return kRoles;
}

SharedKeycloak::SharedKeycloak() {
  static int count = 0;
  realm_ = "r" + std::to_string(++count);
  server().make_realm(realm_);
  server().make_account(realm_, kSecret, readme_roles());
}

SharedKeycloak::SharedKeycloak(const std::string& realm) : realm_(realm) {
  static std::set<std::string> made;
  if (!made.insert(realm).second) return;
  server().make_realm(realm);
  server().make_account(realm, kSecret, readme_roles());
}

json SharedKeycloak::settings() const {
  return {{"url", server().url()},
          {"realms", {realm_}},
          {"auth", {{"realm", realm_}, {"client_id", "driftd"}, {"client_secret", "token-1"}}},
          {"poll_interval_ms", 200}};
}

std::unique_ptr<ProviderProbe> SharedKeycloak::probe(const json& more) const {
  json all = settings();
  all.merge_patch(more);
  return std::make_unique<ProviderProbe>("providers/keycloak.so", all, secrets());
}

std::string SharedKeycloak::make_client(const std::string& client_id, json more) const {
  more["clientId"] = client_id;
  admin("POST", "/clients", more);
  return server().client_uuid(realm_, client_id);
}

Collected SharedKeycloak::watch_change(ProviderProbe& probe, const std::string& kind, const std::string& id,
                                       const std::function<void()>& change, bool gone) const {
  const Collected listed = probe.refresh();
  EXPECT_EQ(listed.status, DRIFTD_OK) << (listed.diagnostics.empty() ? "" : listed.diagnostics.back().text);
  EXPECT_NE(listed.cursor, "");
  bool changed = false;
  const auto enough = [&](const Collected& seen) {
    for (const auto& record : seen.records) {
      if (record.kind == kind && record.id == id && record.tombstone == gone) return true;
    }
    return false;
  };
  return probe.watch(listed.cursor, enough, std::chrono::seconds(20), [&] {
    if (!std::exchange(changed, true)) change();
  });
}

}  // namespace driftd::test
