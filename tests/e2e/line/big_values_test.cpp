// SPDX-License-Identifier: Apache-2.0
// Large values in lists: they block the agent only shortly, cost little memory, and hide no other rows.
#include <atomic>
#include <fstream>
#include <thread>

#include "support/patience.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The backend `heavy` has topics of 990,000 bytes each; `platform` has a small state file.
class BigValues : public testing::Test {
 protected:
  static constexpr long kMayGrow = 64 * 1024;  // KiB
  TempDir dir;
  std::string state = dir.write("infra/terraform.tfstate", tfstate(7, 3));
  Agent agent{dir,
              config(10),
              {{"HOOK_SECRET", "hook-canary-of-24-bytes!"}},
              {Agent::build("providers"), Agent::build("tests/faulty_providers")}};

  std::string config(int topics) const {
    return "defaults:\n  interval: 1h\nbackends:\n" + terraform_backend(state) + "    interval: 1s\n" +
           "  - { name: heavy, provider: heavy, settings: { count: " + std::to_string(topics) +
           " }, budgets: { call: 120s } }\n";
  }
  void change_topics(int from, int to) const {
    std::string text = read_file(agent.config());
    const std::string before = "count: " + std::to_string(from) + " ", now = "count: " + std::to_string(to) + " ";
    const auto at = text.find(before);
    if (at == std::string::npos) throw std::runtime_error("no " + before + " in the config");
    replace_file(agent.config(), text.replace(at, before.size(), now));
  }
  std::string get(const std::string& target) const {
    return run({"curl", "-s", "-m", "100", "--unix-socket", agent.socket(), "http://localhost" + target}, {},
               seconds(110))
        .out;
  }
  /// Requests `target`, and /livez again and again until `target` is answered. Returns the slowest answer of /livez in
  /// seconds, and in `bytes` the size of the answer of `target`.
  double slowest_probe(const std::string& target, std::size_t& bytes) const {
    std::atomic<bool> done = false;
    std::thread list([&] {
      bytes = get(target).size();
      done = true;
    });
    double slowest = 0;
    while (!done) {
      const auto out = run({"curl", "-s", "-o", "/dev/null", "-w", "%{time_total}", "--unix-socket", agent.socket(),
                            "http://localhost/livez"})
                           .out;
      slowest = std::max(slowest, std::stod(out));
    }
    list.join();
    return slowest;
  }
};

TEST_F(BigValues, AListOf150MiBNeitherStandsTheAgentStillNorGrowsIt) {
  if (kSanitized) GTEST_SKIP() << "LOUD: a sanitizer's shadow counts as the agent's memory, so its bound is not tested";
  change_topics(10, 150);
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"heavy"}); }, seconds(120))) << agent.log();
  for (const char* target : {"/v1/resources?limit=10000", "/v1/resources?limit=10000&whole=true"}) {
    const long before = kib_of(agent.pid(), "VmRSS:");
    std::ofstream("/proc/" + std::to_string(agent.pid()) + "/clear_refs") << "5";  // resets VmHWM, the peak
    std::size_t bytes = 0;
    EXPECT_LT(slowest_probe(target, bytes), 1.0) << target;
    EXPECT_GT(bytes, 100'000u) << target;
    EXPECT_LT(bytes, 20u << 20) << target;
    EXPECT_LE(kib_of(agent.pid(), "VmHWM:") - before, kMayGrow)
        << target << ": KiB above the " << before << " before it";
  }
  EXPECT_THAT(get("/v1/resources?kind=topic&limit=10000"), HasSubstr("\"total\":150,\"truncated\":false"));
  EXPECT_THAT(get("/v1/resources?kind=topic&limit=10000&whole=true"), HasSubstr("\"total\":150,\"truncated\":true"));
  EXPECT_EQ(agent.stop(), 0);
}

/// 120 events of a megabyte each wait for a webhook. The sink's runner loads a limited number of bytes at a time, and
/// each event arrives.
TEST_F(BigValues, ABacklogOfLargeEventsIsDeliveredWithinABound) {
  if (kSanitized) GTEST_SKIP() << "LOUD: a sanitizer's shadow counts as the agent's memory, so its bound is not tested";
  HttpReceiver receiver;
  receiver.kill();
  replace_file(agent.config(), read_file(agent.config()) + "sinks:\n" + webhook_sink(receiver));
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"heavy"}); }, seconds(60))) << agent.log();
  ASSERT_EQ(agent.stop(), 0);
  change_topics(10, 130);
  agent.start();
  const std::string all = "\"total\":120,";
  ASSERT_TRUE(
      eventually([&] { return get("/v1/drifts?backend=heavy&limit=1").find(all) != std::string::npos; }, seconds(120)))
      << agent.log();
  ASSERT_EQ(agent.stop(), 0);

  // Without the plugin no resource is read, so the memory measured is that of delivery.
  const std::string none = dir.file("none"), faulty = Agent::build("tests/faulty_providers");
  std::filesystem::create_directory(none);
  std::string text = read_file(agent.config());
  ASSERT_NE(text.find(faulty), std::string::npos);
  replace_file(agent.config(), text.replace(text.find(faulty), faulty.size(), none));
  receiver.start();
  agent.start();
  const auto delivered = [&] { return events_of_webhook(receiver).size() >= 120; };
  EXPECT_TRUE(eventually(delivered, seconds(120))) << events_of_webhook(receiver).size() << " of 120\n" << agent.log();
  const long peak = kib_of(agent.pid(), "VmHWM:");
  std::cout << "the peak is " << peak / 1024 << " MiB with a backlog of 120 MiB\n";
  EXPECT_LE(peak, 2 * kMayGrow);
  EXPECT_EQ(agent.stop(), 0);
}

TEST_F(BigValues, ASmallDriftIsSeenBesideSixtyFourBigOnes) {
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"heavy", "platform"}); }, seconds(60))) << agent.log();
  ASSERT_EQ(agent.stop(), 0);
  change_topics(10, 74);
  agent.start();
  const std::string all = "\"total\":64,";
  ASSERT_TRUE(
      eventually([&] { return get("/v1/drifts?backend=heavy&limit=1").find(all) != std::string::npos; }, seconds(120)))
      << agent.log();
  replace_file(state, tfstate(7, 4));  // the same serial; with another one it would be an apply and no drift
  ASSERT_TRUE(eventually([&] { return get("/v1/drifts?backend=platform").find("partitions") != std::string::npos; },
                         seconds(60)))
      << agent.log();

  const auto list = agent.cli({"drifts"});
  EXPECT_EQ(list.code, 1) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("partitions"), HasSubstr("topic/topic-073"), Not(HasSubstr("are not shown"))));
  EXPECT_THAT(list.out, HasSubstr("are cut"));
  EXPECT_EQ(agent.rows({"drifts"}).size(), 65u) << "the JSON output lists all of them";
  const auto big = agent.rows({"drifts", "--backend", "heavy", "--limit", "1"});
  ASSERT_EQ(big.size(), 1u);
  const std::string id = big[0].at("id");
  const auto whole = agent.rows({"drifts", "--drift", id});
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].at("changes").at(1).at("new").size(), 90'000u) << "one drift alone is shown in full";
  EXPECT_EQ(agent.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
