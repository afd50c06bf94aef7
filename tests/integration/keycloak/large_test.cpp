// SPDX-License-Identifier: Apache-2.0
// A realm with 5,000 clients: what a full list costs, and that one change in it does not cost another.
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using Steady = std::chrono::steady_clock;

constexpr int kClients = 5000;

class KeycloakLarge : public SharedKeycloak {
 protected:
  /// Copies one client, which the admin API made, within the database: the API takes minutes for so many.
  KeycloakLarge() {
    make_client("template", {{"redirectUris", {"https://app.example/*"}}, {"attributes", {{"team", "load"}}}});
    server().stop();
    const std::string source =
        " FROM CLIENT c, SYSTEM_RANGE(1, " + std::to_string(kClients) +
        ") WHERE c.CLIENT_ID = 'template' AND c.REALM_ID = (SELECT ID FROM REALM WHERE NAME = '" + realm_ + "')";
    const std::string id = "'00000000-0000-4000-8000-' || LPAD(CAST(X AS VARCHAR), 12, '0')";
    const std::string kept =
        "ENABLED, FULL_SCOPE_ALLOWED, NOT_BEFORE, PUBLIC_CLIENT, BEARER_ONLY, SURROGATE_AUTH_REQUIRED, REALM_ID, "
        "PROTOCOL, NODE_REREG_TIMEOUT, FRONTCHANNEL_LOGOUT, CONSENT_REQUIRED, SERVICE_ACCOUNTS_ENABLED, "
        "CLIENT_AUTHENTICATOR_TYPE, STANDARD_FLOW_ENABLED, IMPLICIT_FLOW_ENABLED, DIRECT_ACCESS_GRANTS_ENABLED, "
        "ALWAYS_DISPLAY_IN_CONSOLE";
    std::string sql = "INSERT INTO CLIENT (ID, CLIENT_ID, SECRET, " + kept + ") SELECT " + id +
                      ", 'load-' || X, 's' || X, " + kept + source + ";";
    // Without client scopes, which Keycloak reads by several queries for each client: the list is what is tested.
    for (const char* table :
         {"REDIRECT_URIS (CLIENT_ID, \"VALUE\")", "CLIENT_ATTRIBUTES (CLIENT_ID, NAME, \"VALUE\")"}) {
      const std::string all = table, name = all.substr(0, all.find(' '));
      const std::string rest = all.substr(all.find(',') + 1, all.size() - all.find(',') - 2);
      sql += "INSERT INTO " + all + " SELECT " + id + "," + rest + " FROM " + name + " t, SYSTEM_RANGE(1, " +
             std::to_string(kClients) + ") WHERE t.CLIENT_ID = (SELECT c.ID" +
             " FROM CLIENT c WHERE c.CLIENT_ID = 'template' AND c.REALM_ID = (SELECT ID FROM REALM WHERE NAME = '" +
             realm_ + "'));";
    }
    server().sql(sql);
    server().start();
  }
  static std::size_t count(const std::string& text) {
    const auto all = server().requests();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const auto& each) { return each.find(text) != std::string::npos; }));
  }
  static std::chrono::seconds cpu() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  }
  static long peak_kib() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  }
};

TEST_F(KeycloakLarge, FiveThousandClientsAreListedWholeAndOneChangeIsReadAlone) {
  const auto opened = probe({{"include", {"realm", "client"}}});
  const long before = peak_kib();
  const auto begin = Steady::now();
  const auto cpu_before = cpu();
  const Collected listed = opened->refresh({}, std::chrono::minutes(3));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begin);
  ASSERT_EQ(listed.status, DRIFTD_OK);
  EXPECT_EQ(listed.complete.at("client"), kClients + 8u) << "with the realm's own, driftd and the template";
  EXPECT_EQ(listed.body("client", id("load-4711"))["redirectUris"], json::array({"https://app.example/*"}));
  // 5,008 clients in pages of 500 that overlap by one
  EXPECT_EQ(count("/clients?"), 11u);
  EXPECT_LE(server().requests().size(), 16u) << "and the realm, its scopes, its events";
  // The probe keeps every record; what the provider itself needs is what is above them.
  std::size_t kept = 0;
  for (const auto& record : listed.records) kept += record.body.size() + record.status.size() + record.id.size();
  std::cout << "listed " << listed.records.size() << " records in " << took.count() << " ms, peak +"
            << (peak_kib() - before) / 1024 << " MiB, of which bodies " << kept / 1024 / 1024 << " MiB\n";
  // How long it takes is up to the server and to what else the machine does; what this process needs is ours.
  EXPECT_LT(cpu() - cpu_before, std::chrono::seconds(20));
  EXPECT_LT(peak_kib() - before, 200 * 1024);

  const std::string uuid = server().client_uuid(realm_, "load-4711");
  const std::size_t requests = server().requests().size();
  bool changed = false;
  const Collected seen = opened->watch(
      listed.cursor, [&](const Collected& now) { return now.find("client", id("load-4711")) != nullptr; },
      std::chrono::seconds(30),
      [&] {
        if (!std::exchange(changed, true)) admin("PUT", "/clients/" + uuid, {{"description", "x"}});
      });
  EXPECT_NE(seen.find("client", id("load-4711")), nullptr);
  const auto all = server().requests();
  for (std::size_t i = requests; i < all.size(); ++i)
    EXPECT_EQ(all[i].find("/clients?"), std::string::npos) << "all clients were listed for one change";
}

}  // namespace
}  // namespace driftd::test
