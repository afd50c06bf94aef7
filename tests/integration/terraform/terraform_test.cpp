// SPDX-License-Identifier: Apache-2.0
// A state in a local file: its changes are seen and hinted, and a bad or missing file proves no deletion.
#include <gmock/gmock.h>
#include <filesystem>

#include "settled.hpp"
#include "support/process.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {
namespace {

/// A state with `kafka_topic.orders`.
std::string state(int serial, int partitions) {
  return R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) +
         R"(,"lineage":"abc","outputs":{},"resources":[{"mode":"managed","type":"kafka_topic","name":"orders",)" +
         R"("provider":"p","instances":[{"attributes":{"partitions":)" + std::to_string(partitions) + "}}]}]}";
}

class Terraform : public testing::Test {
 protected:
  Terraform() : path_(dir_.write("terraform.tfstate", state(1, 3))) {}
  ProviderProbe probe() const { return ProviderProbe("providers/terraform.so", {{"path", path_}}); }
  /// Renames a new file over the state.
  void replace(const std::string& text) const { std::filesystem::rename(dir_.write("fresh", text), path_); }
  TempDir dir_;
  std::string path_;
};

TEST_F(Terraform, WholeStateIsCompleteAndUnchangedUntilTheFileChanges) {
  auto p = probe();
  const auto first = settled(p);
  ASSERT_EQ(first.status, DRIFTD_OK);
  EXPECT_EQ(first.complete,
            (std::map<std::string, std::uint64_t>{{"state", 1}, {"instance", 1}, {"output", 0}, {"registration", 0}}));
  EXPECT_TRUE(p.refresh(first.cursor).unchanged);
  replace(state(1, 4));
  const auto second = p.refresh(first.cursor);
  EXPECT_FALSE(second.unchanged);
  EXPECT_EQ(second.body("instance", "kafka_topic.orders")["partitions"], 4);
}

TEST_F(Terraform, BadOrMissingFileCompletesNothing) {
  auto p = probe();
  const std::string good = state(1, 3);
  for (const std::string& bad :
       {std::string(), good.substr(0, 60), std::string("no json"), std::string(R"({"version":99})")}) {
    replace(bad);
    const auto seen = p.refresh();
    EXPECT_NE(seen.status, DRIFTD_OK);
    EXPECT_NE(seen.status, DRIFTD_NOT_FOUND);
    EXPECT_TRUE(seen.complete.empty());
    EXPECT_EQ(seen.diagnostics.size(), 1u);
  }
  std::filesystem::remove(path_);
  const auto gone = p.refresh();
  EXPECT_EQ(gone.status, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(gone.complete.empty());
  EXPECT_EQ(p.read({{"instance", "kafka_topic.orders"}}).status, DRIFTD_UNAVAILABLE)
      << "a missing file confirms no deletion";
}

TEST_F(Terraform, RemovedInstanceIsNotFoundByRead) {
  auto p = probe();
  replace(R"({"version":4,"serial":2,"lineage":"abc","outputs":{},"resources":[]})");
  const auto seen = p.read({{"instance", "kafka_topic.orders"}});
  EXPECT_EQ(seen.status, DRIFTD_OK);
  EXPECT_NE(seen.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(Terraform, RenameAndWriteInPlaceAreHintedWithinASecond) {
  for (const bool in_place : {false, true}) {
    const auto within_a_second = [&] {
      auto p = probe();
      const auto begin = std::chrono::steady_clock::now();
      const auto change = [&] { in_place ? void(dir_.write("terraform.tfstate", state(2, 5))) : replace(state(2, 6)); };
      const auto seen = p.watch(
          {}, [](const Collected& c) { return c.marks > 1; }, std::chrono::seconds(5), change);
      EXPECT_GT(seen.marks, 1) << (in_place ? "written in place" : "renamed");
      return std::chrono::steady_clock::now() - begin < std::chrono::seconds(1);
    };
    EXPECT_TRUE(one_of(3, within_a_second)) << (in_place ? "written in place" : "renamed");
  }
}

TEST_F(Terraform, LineageIsTheSystemIdentity) {
  auto p = probe();
  EXPECT_EQ(p.health().health.system_identity, "abc");
  EXPECT_EQ(p.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  std::filesystem::remove(path_);
  EXPECT_EQ(p.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
}

}  // namespace
}  // namespace driftd::test
