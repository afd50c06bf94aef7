// SPDX-License-Identifier: Apache-2.0
// An attribute in a state that is nested too deeply or is longer than a record may be hides nothing but itself.
#include <fstream>

#include "support/agent.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class TerraformPoison : public testing::Test {
 protected:
  /// Writes a state with two topics: `bombed` with these attributes, and `quiet` with so many partitions.
  void write(int serial, const std::string& bombed, int partitions) const {
    const auto instance = [](const std::string& name, const std::string& attributes) {
      return R"({"mode":"managed","type":"kafka_topic","name":")" + name +
             R"(","provider":"p","instances":[{"attributes":)" + attributes + "}]}";
    };
    const std::string path = dir_.file("platform.tfstate");
    std::ofstream(path + ".new") << R"({"version":4,"terraform_version":"1.9.0","serial":)" << serial
                                 << R"(,"lineage":"l","outputs":{},"resources":[)" << instance("bombed", bombed) << ","
                                 << instance("quiet", R"({"partitions":)" + std::to_string(partitions) + "}") << "]}";
    std::filesystem::rename(path + ".new", path);
  }
  std::string status() const { return agent_->backend("platform")->dump(); }
  bool open(const std::string& resource) const {
    for (const auto& drift : agent_->rows({"drifts", "--all"})) {
      if (drift.at("resource") == resource) return true;
    }
    return false;
  }

  TempDir dir_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(TerraformPoison, AnAttributeThatNestsOrIsTooLongHidesNothingButItself) {
  write(1, R"({"partitions":3,"labels":{"a":"b"}})", 3);
  agent_ = std::make_unique<Agent>(
      dir_,
      "defaults: { interval: 500ms, policy: { config: manual } }\nbackends:\n  - name: platform\n    provider: "
      "terraform\n"
      "    settings: { backend: { type: local, path: " +
          dir_.file("platform.tfstate") +
          " } }\n    policy: [ { match: { kind: \"*\" }, action: manual } ]\nsinks:\n  out: { type: file, path: " +
          dir_.file("events.jsonl") + " }\n",
      std::map<std::string, std::string>{});
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"platform"}); }, seconds(60))) << agent_->log();
  const std::string lists = std::string(100'000, '[') + std::string(100'000, ']');
  write(2, R"({"partitions":3,"labels":)" + lists + "}", 6);
  ASSERT_TRUE(eventually([&] { return open("instance/kafka_topic.quiet"); }, seconds(60))) << status() << agent_->log();
  EXPECT_TRUE(eventually([&] { return status().find("nests deeper than 128") != std::string::npos; }, seconds(60)))
      << status();
  write(3, R"({"partitions":3,"labels":")" + std::string(7u << 20, 'x') + "\"}", 6);
  EXPECT_TRUE(eventually([&] { return status().find("larger than 4 MiB") != std::string::npos; }, seconds(60)))
      << status();
  EXPECT_FALSE(open("instance/kafka_topic.bombed")) << "a resource that cannot be read is neither changed nor deleted";
  write(4, R"({"partitions":9,"labels":)" + lists + "}", 6);
  EXPECT_TRUE(eventually([&] { return open("instance/kafka_topic.bombed"); }, seconds(60))) << status();
  for (const auto& drift : agent_->rows({"drifts", "--all"}))
    EXPECT_EQ(drift.at("operation"), "changed") << drift.dump();
  EXPECT_EQ(agent_->stop(), 0);
}

}  // namespace
}  // namespace driftd::test
