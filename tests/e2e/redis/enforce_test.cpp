// SPDX-License-Identifier: Apache-2.0
// The agent puts values of a real Redis back, through the real provider in its worker, and is killed while it does.
#include <gmock/gmock.h>
#include <csignal>
#include <random>

#include "support/agent.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class RedisEnforced : public testing::Test {
 protected:
  RedisEnforced() { server_.grant_readme("redis-canary"); }
  void allow_writes() {
    EXPECT_EQ(server_.command({"ACL", "SETUSER", "driftd", "+config|set", "+config|rewrite", "+acl|setuser"}), "OK");
  }
  void start(const std::string& brakes = "per_hour: 1000, per_cycle: 100") {
    agent_ = std::make_unique<Agent>(
        dir_,
        "enforce: { enabled: true, minimum_age: 0s, " + brakes +
            " }\ndefaults:\n  interval: 200ms\nbackends:\n  - name: cache\n    provider: redis\n    enforce: true\n"
            "    policy: { config: enforce }\n    settings: { address: \"" +
            server_.address() + "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" }\n",
        std::map<std::string, std::string>{{"REDIS_PASSWORD", "redis-canary"}});
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(60))) << agent_->log();
  }
  void set(const std::string& value) { ASSERT_EQ(server_.command({"CONFIG", "SET", "maxmemory-policy", value}), "OK"); }
  bool is(const std::string& value) {
    return server_.command({"CONFIG", "GET", "maxmemory-policy"}) == "maxmemory-policy\n" + value;
  }
  std::vector<std::string> states() {
    std::vector<std::string> out;
    for (const auto& one : agent_->rows({"operations"})) out.push_back(one.value("state", ""));
    return out;
  }
  TempDir dir_;
  RedisServer server_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(RedisEnforced, DriftsAreEqualAgainAndTheCommandsAreKept) {
  allow_writes();
  ASSERT_NO_FATAL_FAILURE(start());
  set("allkeys-lru");
  ASSERT_TRUE(eventually([&] { return is("noeviction") && states() == std::vector<std::string>{"done"}; }, seconds(30)))
      << agent_->cli({"enforce", "status"}).out << agent_->log();
  const auto one = agent_->rows({"operations"}).at(0);
  EXPECT_THAT(one.dump(), AllOf(HasSubstr("CONFIG SET"), HasSubstr("allkeys-lru"), HasSubstr("noeviction")));
  const auto drifts = agent_->rows({"drifts", "--all"});
  ASSERT_EQ(drifts.size(), 1u);
  EXPECT_EQ(drifts[0].value("status", ""), "enforced");
  EXPECT_EQ(agent_->ask({"audit", "verify"}).value("whole", false), true);
}

TEST_F(RedisEnforced, AMissingRightIsSaidAndNothingIsHalfDone) {
  ASSERT_NO_FATAL_FAILURE(start());
  set("allkeys-lru");
  ASSERT_TRUE(eventually(
      [&] {
        return !states().empty() || !agent_->ask({"enforce", "status"}).at("backends").at(0).at("held").empty();
      },
      seconds(30)));
  ASSERT_TRUE(eventually(
      [&] {
        const auto held = agent_->ask({"enforce", "status"}).at("backends").at(0).at("held");
        return held.dump().find("config|set") != std::string::npos;
      },
      seconds(30)))
      << agent_->cli({"enforce", "status"}).out;
  EXPECT_TRUE(is("allkeys-lru"));
  EXPECT_EQ(agent_->rows({"drifts"}).at(0).value("status", ""), "pending");
}

TEST_F(RedisEnforced, TheSwitchHoldsAndDryRunShowsTheCommand) {
  allow_writes();
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(agent_->cli({"enforce", "off", "--reason", "incident"}).code, 0);
  set("allkeys-lru");
  ASSERT_TRUE(eventually([&] { return agent_->rows({"drifts"}).size() == 1; }, seconds(30)));
  const auto drift = agent_->rows({"drifts"}).at(0);
  const Output plan = agent_->cli({"enforce", drift.value("ref", ""), "--dry-run"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("would run: CONFIG SET"), HasSubstr("incident")));
  const Output refused = agent_->cli({"enforce", drift.value("ref", "")});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("switched off by"));
  EXPECT_TRUE(is("allkeys-lru"));
  ASSERT_EQ(agent_->cli({"enforce", "on"}).code, 0);
  EXPECT_TRUE(eventually([&] { return is("noeviction"); }, seconds(30)));
}

TEST_F(RedisEnforced, ASecondWriterIsStoppedAgainstAfterThreeRounds) {
  allow_writes();
  ASSERT_NO_FATAL_FAILURE(start());
  for (int round = 0; round < 3; ++round) {
    set("allkeys-lru");
    ASSERT_TRUE(eventually([&] { return is("noeviction"); }, seconds(30))) << agent_->cli({"enforce", "status"}).out;
    ASSERT_TRUE(eventually([&] { return states().size() == static_cast<std::size_t>(round) + 1; }, seconds(30)));
    ASSERT_TRUE(eventually([&] { return agent_->rows({"drifts"}).empty(); }, seconds(30)));
  }
  set("allkeys-lru");
  ASSERT_TRUE(eventually(
      [&] {
        return !agent_->ask({"enforce", "status"}).at("backends").at(0).at("stopped").empty();
      },
      seconds(30)));
  EXPECT_TRUE(is("allkeys-lru"));
  EXPECT_THAT(agent_->cli({"enforce", "status"}).out, HasSubstr("two writers fight"));
  EXPECT_EQ(states().size(), 3u);
}

/// SIGKILL at moments that walk through the whole operation.
TEST_F(RedisEnforced, AKilledAgentTellsTheTruthAtItsNextStart) {
  allow_writes();
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(agent_->stop(), 0);
  std::mt19937 random(18);
  for (int round = 0; round < 12; ++round) {
    set(round % 2 == 0 ? "allkeys-lru" : "volatile-lru");
    agent_->start();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(random() % 900);
    (void)eventually([&] { return std::chrono::steady_clock::now() >= until || is("noeviction"); }, seconds(5));
    agent_->kill();
  }
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(60))) << agent_->log();
  const auto settled = [&] {
    const auto status = agent_->ask({"enforce", "status"}).at("backends").at(0);
    return status.at("open").empty() && (agent_->rows({"drifts"}).empty() || !status.at("held").empty());
  };
  ASSERT_TRUE(eventually(settled, seconds(30))) << agent_->cli({"enforce", "status"}).out;
  for (const auto& one : agent_->rows({"operations", "--limit", "1000"})) {
    const std::string state = one.value("state", "");
    // `undone`: it was written, and the test's next value stood there when the next process looked
    EXPECT_TRUE(state == "done" || state == "failed" || state == "conflict" || state == "undone") << one.dump();
  }
  EXPECT_EQ(is("noeviction"), agent_->rows({"drifts"}).empty());
  EXPECT_EQ(agent_->ask({"audit", "verify"}).value("whole", false), true);
}

}  // namespace
}  // namespace driftd::test
