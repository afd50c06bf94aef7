// SPDX-License-Identifier: Apache-2.0
// The example provider `files` in each language: in a worker of a running agent, and under driftd-check.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "support/agent.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
namespace fs = std::filesystem;

class Toys : public testing::TestWithParam<std::string> {
 protected:
  Toys() { put("The quick brown fox jumps over the lazy dog"); }
  void put(const std::string& text) const {
    fs::create_directories(dir_.file("watched"));
    dir_.write("watched/fox", text);
  }
  static std::string folder() { return Agent::build("providers-examples/" + GetParam()); }
  /// Returns the digest of the file as the agent shows it. Empty if there is none.
  static std::string digest(const Agent& agent) {
    for (const auto& row : agent.rows({"resources", "etc", "--bodies"})) {
      if (row.dump().find("fox") == std::string::npos) continue;
      const auto at = row.dump().find("\"digest\":\"");
      if (at != std::string::npos) return row.dump().substr(at + 10, 64);
    }
    return {};
  }
  TempDir dir_;
};

TEST_P(Toys, UseTheSecretAndTheirWatchShowsADriftLongBeforeTheInterval) {
  Agent agent(dir_,
              "defaults: { interval: 1h }\nbackends:\n  - { name: etc, provider: files, settings: { path: " +
                  dir_.file("watched") + ", key: \"${env:TOY_KEY}\" } }\nsinks:\n  desk: { type: notifications }\n",
              {{"TOY_KEY", "key"}}, {folder()});
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"etc"}); }, seconds(60))) << agent.log();
  EXPECT_EQ(digest(agent), "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8") << agent.log();
  // The watch begins some time after the first cycle, so the file is changed again until a drift appears.
  int times = 0;
  const auto changed_and_seen = [&] {
    put("changed " + std::to_string(++times));
    return eventually([&] { return !agent.rows({"drifts"}).empty(); }, seconds(3));
  };
  EXPECT_TRUE(eventually(changed_and_seen, seconds(60))) << agent.log();
  EXPECT_EQ(agent.stop(), 0) << agent.log();
}

TEST_P(Toys, BreakNoRuleOfDriftdCheck) {
  put("some text");
  const std::string settings =
      dir_.write("settings.json", R"({"path": ")" + dir_.file("watched") + R"(", "key": "a key for tests"})");
  const Output checked = run({Agent::build("bin/driftd-check"), folder() + "/files.so", "--settings", settings}, {},
                             std::chrono::minutes(4));
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, testing::HasSubstr("(0 must"));
  // Their runtimes end the process when malloc fails (so does the destructor of nlohmann::json), and Go's starts
  // threads and sets signal handlers while it is loaded. No rule of level `must` forbids that.
  const std::string no_memory = "memory.failing_allocations";
  const std::map<std::string, std::set<std::string>> of_the_runtime = {
      {"c", {}},
      {"cpp", {no_memory}},
      {"rust", {no_memory}},
      {"go", {no_memory, "binary.load_signals", "binary.load_threads"}}};
  std::istringstream lines(checked.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string id = line.substr(0, line.find(' '));
    if (line.find(" broken ") == std::string::npos || id.find('.') == std::string::npos) continue;
    EXPECT_TRUE(of_the_runtime.at(GetParam()).contains(id)) << line;
  }
}

INSTANTIATE_TEST_SUITE_P(In, Toys, testing::Values("c", "cpp", "rust", "go"),
                         [](const auto& language) { return language.param; });

}  // namespace
}  // namespace driftd::test
