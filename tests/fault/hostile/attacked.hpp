// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "support/agent.hpp"
#include "support/redis.hpp"

namespace driftd::test {

/// An agent with two kinds of backends: the victim, which a test attacks, and a neighbour, a Redis whose changes must
/// become drifts within seconds. Whatever happens to the victim, the agent lives, its memory stays within 64 MiB above
/// idle, the neighbour misses no cycle, and nothing leaks.
class Attacked : public testing::Test {
 protected:
  Attacked();
  ~Attacked() override;
  void TearDown() override;

  /// Starts the agent and waits until every backend has its baseline. `victim` is YAML of the victim's backends,
  /// `names` are their names, `secrets` is the agent's environment.
  void start_agent(const std::string& victim, const std::vector<std::string>& names,
                   std::map<std::string, std::string> secrets = {});
  /// Changes the neighbour and returns whether the change becomes a drift within 15 s. If not, it missed a cycle.
  testing::AssertionResult neighbour_is_watched();
  /// Expects everything that the class promises. Call it after an attack.
  void expect_unharmed();
  /// Returns everything that leaves the agent: its log, the answers of the API, the events of the file sink, the
  /// metrics and the files of the store.
  std::string all_output() const;
  /// Returns all drifts of a backend. `id` is one resource or a glob. Do not ask for ten thousand rows: that would be
  /// an attack of its own.
  std::vector<nlohmann::json> drifts(const std::string& backend, const std::string& id = "*") const;
  /// Waits until a drift of the backend contains the text `mark`. This shows that the backend is still judged.
  testing::AssertionResult drift_appears(const std::string& backend, const std::string& mark,
                                         const std::string& id = "*",
                                         std::chrono::milliseconds max_wait = std::chrono::seconds(30)) const;
  /// Waits until the backend's row (its coverage, its error …) contains the text `reason`.
  testing::AssertionResult backend_reports(const std::string& backend, const std::string& reason) const;
  /// Expects that no resource of the backend ever counted as deleted.
  void expect_nothing_deleted(const std::string& backend, const std::string& id = "*") const;
  /// The resident memory of the agent's process now, and its maximum since start_agent().
  long rss_kib() const;
  long peak_kib() const;

  TempDir dir_;
  std::string admin_;       ///< more lines of `admin:`; set it before start_agent()
  std::string more_sinks_;  ///< more lines of `sinks:`; set it before start_agent()
  RedisServer redis_;       ///< the neighbour
  std::string events_ = dir_.file("events.jsonl");
  std::unique_ptr<Agent> agent_;
  long idle_kib_ = 0;
  int changes_ = 0;
  pid_t pid_ = 0;
};

}  // namespace driftd::test
