// SPDX-License-Identifier: Apache-2.0
// HCP Terraform as a state backend: versions, runs, lineage and the pace of the questions.
#include <gmock/gmock.h>

#include "backend_probe.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;

class TerraformCloud : public testing::Test {
 protected:
  json backend() const {
    return {{"type", "cloud"},
            {"hostname", server_.url("")},
            {"organization", "acme"},
            {"workspaces", {{"name", "platform"}}},
            {"token", "token-of-token"}};
  }
  void publish(const std::string& version, int serial, int value) const {
    const std::string state =
        R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) +
        R"(,"lineage":"abc","outputs":{},"resources":[{"mode":"managed","type":"terraform_data","name":"a",)" +
        R"("provider":"p","instances":[{"attributes":{"input":{"value":)" + std::to_string(value) + "}}}]}]}";
    server_.control({{"token", "token-canary"},
                     {"state_version", version},
                     {"serial", serial},
                     {"state", state},
                     {"run", {{"id", "run-" + version}, {"status", "applied"}}}});
  }
  StateServer server_;  // not HCP Terraform, but a local server with its documented API
};

TEST_F(TerraformCloud, TheCurrentStateVersionIsReadWithItsRun) {
  auto probe = probe_of(backend());
  server_.control({{"token", "token-canary"}});
  expect_failure(probe.refresh(), DRIFTD_DENIED, "read state versions of acme/platform");
  publish("sv-1", 1, 1);
  const auto first = probe.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  EXPECT_EQ(input_of(first), 1);
  const auto& metadata = first.find("instance", "terraform_data.a")->metadata;
  EXPECT_EQ(metadata.at("run_id"), "run-sv-1");
  EXPECT_EQ(metadata.at("run_status"), "applied");
  EXPECT_EQ(metadata.at("state_version"), "sv-1");
  server_.requests();
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  EXPECT_THAT(server_.requests(), ElementsAre("GET /api/v2/workspaces/ws-1/current-state-version 200"));
  publish("sv-2", 2, 5);
  EXPECT_EQ(input_of(probe.refresh(first.cursor)), 5);
  auto wrong = probe_of([&] {
    json out = backend();
    out["token"] = "token-of-wrong";
    return out;
  }());
  expect_failure(wrong.refresh(), DRIFTD_UNAUTHENTICATED, "the token was refused");
  expect_failures_conclude_nothing(probe, server_, first.cursor);
}

TEST_F(TerraformCloud, AFreshWorkerTellsTheLineageInEachHealth) {
  publish("sv-1", 1, 1);
  const std::string cursor = probe_of(backend()).refresh().cursor;
  auto probe = probe_of(backend());
  EXPECT_EQ(probe.health().health.system_identity, "abc");
  ASSERT_TRUE(probe.refresh(cursor).unchanged);
  EXPECT_TRUE(probe.discover().discovery_complete);
  EXPECT_EQ(probe.health().health.system_identity, "abc") << "after a discovery, too";
  auto other = probe_of(backend());
  ASSERT_TRUE(other.refresh(cursor).unchanged);
  EXPECT_TRUE(other.discover().discovery_complete);
  EXPECT_EQ(other.health().health.system_identity, "abc");
}

TEST_F(TerraformCloud, ItsWorkspaceIsAskedAtThePaceOfTheSettings) {
  publish("sv-1", 1, 1);
  auto probe = probe_of(backend(), {{"poll_interval_ms", 60000}});
  EXPECT_EQ(probe.refresh().next_ms, 60000);
}

}  // namespace
}  // namespace driftd::test
