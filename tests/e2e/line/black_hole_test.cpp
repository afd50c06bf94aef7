// SPDX-License-Identifier: Apache-2.0
// Backends whose servers never answer: a provider that obeys a cancel returns in time, one that ignores it is killed,
// and the good backend beside them misses no cycle.
#include "check/address.hpp"
#include "support/naps.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using check::BlackHole;
using std::chrono::seconds;
using testing::HasSubstr;

std::string address(const BlackHole& hole) { return "\"" + hole.host() + ":" + std::to_string(hole.port()) + "\""; }

/// A backend whose calls may take one second, so that its calls to a server that does not answer reach their budget.
std::string backend(const std::string& name, const std::string& provider, const std::string& settings) {
  return "  - { name: " + name + ", provider: " + provider + ", settings: { " + settings +
         " }, budgets: { call: 1s } }\n";
}

/// Backends whose providers obey a cancel: of a server that never reads, and of one whose queue of connections is full.
const std::vector<std::string> kObeyCancel = {"redis-deaf", "redis-full", "postgres-deaf", "postgres-full"};

class BlackHoles : public testing::Test {
 protected:
  BlackHoles() {
    redis_.grant_readme("redis-canary");
    const std::string postgres = "database: postgres, user: driftd, password: \"${env:REDIS_PASSWORD}\", endpoints: [";
    agent_ = std::make_unique<Agent>(
        dir_,
        "defaults:\n  interval: 200ms\nbackends:\n" + redis_backend(redis_) + "    interval: 1s\n" +
            backend("redis-deaf", "redis", "address: " + address(deaf_)) +
            backend("redis-full", "redis", "address: " + address(full_)) +
            backend("postgres-deaf", "postgres", postgres + address(deaf_) + "]") +
            backend("postgres-full", "postgres", postgres + address(full_) + "]") +
            backend("stubborn", "black_hole", "address: " + address(full_)) +
            "sinks:\n  desk: { type: notifications }\n",
        std::map<std::string, std::string>{{"REDIS_PASSWORD", "redis-canary"}},
        std::vector<std::string>{Agent::build("providers"), Agent::build("tests/faulty_providers")});
  }
  /// Returns a number of a backend's row, such as `cycles`, or -1 if there is no such backend.
  std::int64_t number(const std::string& backend, const char* member) {
    const auto row = agent_->backend(backend);
    return row ? row->at(member).get<std::int64_t>() : -1;
  }

  TempDir dir_;
  RedisServer redis_;
  BlackHole deaf_{BlackHole::Kind::deaf}, full_{BlackHole::Kind::full};
  std::unique_ptr<Agent> agent_;
};

TEST_F(BlackHoles, PatientProvidersReturnStubbornOnesAreKilledAndNobodyElseWaits) {
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(40))) << agent_->log();
  const std::int64_t before = number("cache", "cycles");
  const Naps naps;
  for (const auto& name : kObeyCancel) {
    EXPECT_TRUE(eventually([&] { return number(name, "failures") >= 2; }, seconds(40))) << name << "\n"
                                                                                        << agent_->log();
    EXPECT_EQ(agent_->backend(name)->at("worker").value("restarts", -1), 0) << name << " was killed\n" << agent_->log();
  }
  EXPECT_TRUE(eventually(
      [&] { return agent_->log().find("[stubborn] crashed: no answer within") != std::string::npos; }, seconds(40)))
      << agent_->log();
  ASSERT_TRUE(eventually([&] { return number("cache", "cycles") >= before + 10; }, seconds(40)));
  const long expected_cycles = naps.seconds() - 1;
  EXPECT_GE(number("cache", "cycles") - before, expected_cycles);
  EXPECT_EQ(number("cache", "failures"), 0);
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
}

}  // namespace
}  // namespace driftd::test
