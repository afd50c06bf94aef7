// SPDX-License-Identifier: Apache-2.0
// Another state appears at the same address, on a server that does not report the lineage: that is one drift of the
// backend's identity, and nothing of that state is judged until the drift is decided.
#include <gmock/gmock.h>

#include "support/agent.hpp"
#include "support/nats.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

TEST(TerraformLineageLine, AnotherStateIsOneDriftOfTheIdentityUntilItIsApproved) {
  StateServer server;  // a local server with the documented API of HCP Terraform
  const auto publish = [&](const std::string& version, const std::string& lineage, int serial, int partitions) {
    const std::string state =
        R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) + R"(,"lineage":")" + lineage +
        R"(","outputs":{},"resources":[{"mode":"managed","type":"kafka_topic","name":"a","provider":"p","instances":[{"attributes":{"partitions":)" +
        std::to_string(partitions) + "}}]}]}";
    server.control({{"token", "token-canary"},
                    {"state_version", version},
                    {"serial", serial},
                    {"state", state},
                    {"run", nullptr}});
  };
  publish("sv-1", "first", 1, 3);
  const TempDir dir;
  const NatsServer nats;
  Agent a(dir,
          "defaults: { interval: 1s }\nbackends:\n  - name: platform\n    provider: terraform\n    settings: { "
          "backend: { type: cloud, hostname: \"" +
              server.url("") +
              "\", organization: acme, workspaces: { name: platform }, token: \"${env:TFC_TOKEN}\" } }\nsinks:\n  bus: "
              "{ type: nats, servers: [\"" +
              nats.url() + "\"], views: false }\n",
          {{"TFC_TOKEN", "token-canary"}});
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, seconds(60))) << a.log();
  const auto ref_of_open_drift = [&](const std::string& resource) {
    for (const auto& drift : a.rows({"drifts"})) {
      if (drift.at("resource") == resource) return drift.value("ref", std::string());
    }
    return std::string();
  };
  publish("sv-2", "second", 9, 6);
  ASSERT_TRUE(eventually([&] { return !ref_of_open_drift("backend/platform").empty(); }, seconds(30)))
      << a.cli({"drifts"}).out << a.log();
  EXPECT_EQ(a.rows({"drifts"}).size(), 1u) << "something of the other state was judged: " << a.cli({"drifts"}).out;
  EXPECT_TRUE(eventually([&] { return a.backend("platform")->at("state") == "held"; }));
  const Output approved = a.cli({"approve", ref_of_open_drift("backend/platform"), "--reason", "moved"});
  ASSERT_EQ(approved.code, 0) << approved.err;
  EXPECT_TRUE(eventually([&] { return !ref_of_open_drift("instance/kafka_topic.a").empty(); }, seconds(30)))
      << a.cli({"drifts"}).out << a.log();
  EXPECT_EQ(a.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
