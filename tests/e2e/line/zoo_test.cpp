// SPDX-License-Identifier: Apache-2.0
// Bad providers through `driftd run`: their own backends say why, the one beside them keeps its promise.
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

struct Animal {
  std::string name, budgets, reason;
};

const std::vector<Animal> kAnimals = {
    {"segfault", "", "killed by signal 11 (Segmentation fault) in refresh"},
    {"abort", "", "killed by signal 6 (Aborted) in refresh"},
    {"exits", "", "exited with 0 in refresh"},
    {"hangs", ", budgets: { call: 1s }", "no answer within 1 s: killed in refresh"},
    {"leaks", ", budgets: { rss: 64MiB }", "over the budget of 64 MiB"},
    {"garbage", "", "wrote garbage to the protocol"},
};

/// Any sanitizer makes a worker larger than the budget in the test; the zoo is the release build's.
class ZooLine : public testing::Test {
 protected:
  ZooLine() {
    redis_.grant_readme("redis-canary");
    std::string backends = redis_backend(redis_) + "    interval: 1s\n";
    for (const auto& animal : kAnimals) {
      backends += "  - { name: " + animal.name + ", provider: " + animal.name + animal.budgets + " }\n";
    }
    backends += "  - { name: shouts, provider: shouts }\n";
    agent_ = std::make_unique<Agent>(
        dir_, "defaults:\n  interval: 200ms\nbackends:\n" + backends + "sinks:\n  desk: { type: notifications }\n",
        std::map<std::string, std::string>{{"REDIS_PASSWORD", "redis-canary"}},
        std::vector<std::string>{Agent::build("providers"), Agent::build("tests/zoo")});
  }
  std::string why(const std::string& backend) const {
    const auto row = agent_->backend(backend);
    if (!row) return "no such backend";
    return row->at("health").value("state", "") + ": " + row->at("health").value("reason", "");
  }
  bool told(const Animal& animal) const { return why(animal.name).find(animal.reason) != std::string::npos; }

  TempDir dir_;
  RedisServer redis_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(ZooLine, EachBadBackendSaysWhyAndTheOneBesideItMissesNoCycle) {
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(40))) << agent_->log();
  const auto cycles = [&] { return agent_->backend("cache")->at("cycles").get<std::int64_t>(); };
  const std::int64_t before = cycles();
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& animal : kAnimals) {
    EXPECT_TRUE(eventually([&] { return told(animal); }, seconds(40))) << animal.name << " says " << why(animal.name);
  }
  ASSERT_TRUE(eventually([&] { return agent_->log().find("lines dropped") != std::string::npos; }, seconds(30)))
      << "100 MB of stderr arrived whole or not at all";
  // Ten more promises of a second each are kept while all of them die again and again.
  ASSERT_TRUE(eventually([&] { return cycles() >= before + 10; }, seconds(40)));
  const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
  EXPECT_GE(cycles() - before, took / seconds(1) - 1) << "in " << took.count() << " ms";
  EXPECT_EQ(agent_->backend("cache")->at("failures").get<std::int64_t>(), 0);
  EXPECT_EQ(why("cache"), "up: ");
  const std::string status = agent_->cli({"status"}).out;
  for (const auto& animal : kAnimals) EXPECT_THAT(status, HasSubstr(animal.reason));
  EXPECT_TRUE(agent_->running());
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
}

TEST_F(ZooLine, DriftOfTheGoodBackendIsStillSeenWithinItsInterval) {
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(40))) << agent_->log();
  redis_.command({"CONFIG", "SET", "maxmemory", "64mb"});
  EXPECT_TRUE(eventually([&] { return !agent_->rows({"drifts"}).empty(); }, seconds(2))) << agent_->log();
}

}  // namespace
}  // namespace driftd::test
