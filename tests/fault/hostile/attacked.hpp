// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "support/agent.hpp"
#include "support/redis.hpp"

namespace driftd::test {

/// An agent with a neighbour, a Redis whose changes are told within seconds, and a victim that is attacked. Whatever
/// happens to the victim: the agent lives, its memory stays within 64 MiB above idle, the neighbour misses no cycle,
/// nothing leaks.
class Attacked : public testing::Test {
 protected:
  Attacked();
  ~Attacked() override;
  void TearDown() override;

  /// Starts the agent with the victim's part of the config and waits for all baselines. `names`: the victim's backends.
  void begin(const std::string& victim, const std::vector<std::string>& names,
             std::map<std::string, std::string> secrets = {});
  /// A change of the neighbour becomes its drift in time. The measure of "misses no cycle".
  testing::AssertionResult neighbour_is_watched();
  /// Everything that the class promises; after an attack.
  void expect_unharmed();
  /// All that leaves the agent: log, answers of the API, events of the file sink, metrics, files of the store.
  std::string everything() const;
  /// `id`: of one resource, or a glob over ids. To ask for ten thousand rows is an attack of its own.
  std::vector<nlohmann::json> drifts(const std::string& backend, const std::string& id = "*") const;
  /// The backend is judged still: a change that speaks of `mark` becomes its drift.
  testing::AssertionResult told(const std::string& backend, const std::string& mark, const std::string& id = "*",
                                std::chrono::milliseconds most = std::chrono::seconds(30)) const;
  /// What the backend says of itself (coverage, culprits, error) speaks of `reason`.
  testing::AssertionResult named(const std::string& backend, const std::string& reason) const;
  /// No resource of the backend ever counted as deleted.
  void expect_nothing_deleted(const std::string& backend, const std::string& id = "*") const;
  /// Of the agent's process, in KiB: resident now, and the most since begin().
  long rss() const;
  long peak() const;

  TempDir dir_;
  std::string admin_;       ///< further lines of `admin:`, before begin()
  std::string more_sinks_;  ///< lines of `sinks:`, before begin()
  RedisServer redis_;
  std::string events_ = dir_.file("events.jsonl");
  std::unique_ptr<Agent> agent_;
  long idle_ = 0;
  int changes_ = 0;
  pid_t pid_ = 0;
};

}  // namespace driftd::test
