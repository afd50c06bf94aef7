// SPDX-License-Identifier: Apache-2.0
// A realm with 5,000 clients: what a full list costs, and that one change in it does not cost another.
#include <sys/resource.h>

#include <iostream>
#include <utility>

#include "world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using Steady = std::chrono::steady_clock;

constexpr int kClients = 5000;
constexpr int kBatch = 250;

class KeycloakLarge : public SharedKeycloak {
 protected:
  KeycloakLarge() {
    for (int begin = 0; begin < kClients; begin += kBatch) {
      json clients = json::array();
      for (int i = begin; i < begin + kBatch; ++i) {
        clients.push_back({{"clientId", "load-" + std::to_string(i)},
                           {"secret", "s" + std::to_string(i)},
                           {"redirectUris", {"https://app" + std::to_string(i) + ".example/*"}}});
      }
      admin("POST", "/partialImport", {{"ifResourceExists", "FAIL"}, {"clients", clients}});
    }
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
  const Collected listed = opened->refresh({}, std::chrono::minutes(3));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begin);
  ASSERT_EQ(listed.status, DRIFTD_OK);
  EXPECT_EQ(listed.complete.at("client"), kClients + 7u) << "with the realm's own and driftd";
  // The probe keeps every record; what the provider itself needs is what is above them.
  std::size_t kept = 0;
  for (const auto& record : listed.records) kept += record.body.size() + record.status.size() + record.id.size();
  std::cout << "listed " << listed.records.size() << " records in " << took.count() << " ms, peak +"
            << (peak_kib() - before) / 1024 << " MiB, of which bodies " << kept / 1024 / 1024 << " MiB\n";
  EXPECT_LT(took, std::chrono::minutes(1));
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
