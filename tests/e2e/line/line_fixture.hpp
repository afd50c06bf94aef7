// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "world.hpp"

namespace driftd::test {

/// Returns the open drifts of this backend, as `driftd drifts` lists them.
inline std::vector<nlohmann::json> drifts(const Agent& agent, const std::string& backend) {
  std::vector<nlohmann::json> out;
  for (auto& drift : agent.rows({"drifts"})) {
    if (drift.value("backend", "") == backend) out.push_back(drift);
  }
  return out;
}

/// A Terraform state and a redis-server, and agents that read them. Every secret contains `canary`.
class Line : public testing::Test {
 protected:
  Line() : state_(dir_.write("infra/terraform.tfstate", tfstate(7, 3))) { redis_.grant_readme("redis-canary"); }

  Agent agent(const std::string& interval, const std::string& backends, const std::string& sinks) const {
    return Agent(dir_, "defaults:\n  interval: " + interval + "\nbackends:\n" + backends + "sinks:\n" + sinks,
                 {{"REDIS_PASSWORD", "redis-canary"},
                  {"PG_PASSWORD", "pg-canary"},
                  {"HOOK_SECRET", "hook-canary-of-24-bytes!"}});
  }
  static void start(Agent& agent, const std::vector<std::string>& backends) {
    agent.start();
    ASSERT_TRUE(eventually([&] { return agent.established(backends); }, std::chrono::seconds(40))) << agent.log();
  }

  TempDir dir_;
  std::string state_;
  RedisServer redis_;
};

}  // namespace driftd::test
