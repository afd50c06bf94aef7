// SPDX-License-Identifier: Apache-2.0
// Large answers of the API cost little memory: the agent stays within 64 MiB above its idle memory, however often and
// by however many clients it is asked.
#include <fstream>

#include "support/patience.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

constexpr int kDrifts = 10'000;
constexpr long kMayGrow = 64 * 1024;  // KiB

std::string many_topics(int partitions) {
  const std::string number = std::to_string(partitions);
  std::string out = R"({"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"abc","outputs":{},"resources":[)";
  for (int i = 0; i < kDrifts; ++i) {
    out += (i == 0 ? "" : ",") + std::string(R"({"mode":"managed","type":"kafka_topic","name":"t)") +
           std::to_string(i) + R"(","provider":"p","instances":[{"attributes":{"name":"orders","partitions":)" +
           number + R"(,"config":{"retention.ms":")" + number + R"(","segment.ms":")" + number + R"("}}}]})";
  }
  return out + "]}";
}

/// Requests `path` `times` times in each of `at_once` processes. Returns how many bytes they got in total.
long ask(const Agent& agent, const std::string& path, int at_once, int times) {
  const std::string one = "for i in $(seq " + std::to_string(times) + "); do curl -sf --unix-socket '" +
                          agent.socket() + "' 'http://localhost" + path + "'; done";
  std::string all = "(";
  for (int i = 0; i < at_once; ++i) all += "(" + one + ") & ";
  return std::stol(run({"sh", "-c", all + "wait) | wc -c"}).out);
}

class MemoryOfAnAgent : public ::testing::Test {
 protected:
  TempDir dir;
  std::string state = dir.write("infra/terraform.tfstate", many_topics(3));
  Agent agent{dir, "defaults:\n  interval: 1s\nbackends:\n" + terraform_backend(state)};

  /// Returns an answer with one row, which contains the total.
  std::string total(const std::string& path) {
    return run({"curl", "-s", "--unix-socket", agent.socket(), "http://localhost" + path + "?limit=1"}).out;
  }
  /// Returns the resident memory in KiB of an agent that has nothing to do: the smallest value, once 200 values in a
  /// row were not clearly smaller.
  long idle() {
    long least = kib_of(agent.pid(), "VmRSS:");
    int same = 0;
    eventually(
        [&] {
          const long now = kib_of(agent.pid(), "VmRSS:");
          same = now < least - 64 ? 0 : same + 1;
          least = std::min(least, now);
          return same >= 200;
        },
        std::chrono::seconds(30));
    return least;
  }
};

TEST_F(MemoryOfAnAgent, TenThousandDriftsAskedForAgainAndAgainStayWithin64MiB) {
  if (kSanitized) GTEST_SKIP() << "LOUD: a sanitizer's shadow counts as the agent's memory, so its bound is not tested";
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"platform"}); }, std::chrono::seconds(60))) << agent.log();
  replace_file(state, many_topics(4));
  const std::string all = "\"total\":" + std::to_string(kDrifts);
  ASSERT_TRUE(eventually([&] { return total("/v1/drifts").find(all) != std::string::npos; }, std::chrono::seconds(60)))
      << agent.log();
  const long before = idle();
  std::ofstream("/proc/" + std::to_string(agent.pid()) + "/clear_refs") << "5";  // resets VmHWM, the peak
  for (const char* path : {"/v1/drifts?limit=10000", "/v1/resources?limit=10000"}) {
    EXPECT_GT(ask(agent, path, 1, 10), 10L * kDrifts * 100) << path;
    EXPECT_LE(kib_of(agent.pid(), "VmHWM:") - before, kMayGrow)
        << path << " in a row: KiB above idle, which was " << before;
    EXPECT_GT(ask(agent, path, 4, 3), 12L * kDrifts * 100) << path;
    EXPECT_LE(kib_of(agent.pid(), "VmHWM:") - before, kMayGrow)
        << path << " four at once: KiB above idle, which was " << before;
  }
  EXPECT_EQ(agent.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
