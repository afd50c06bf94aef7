// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include "support/agent.hpp"
#include "support/kafka.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {

inline constexpr const char* kKafkaPassword = "kafka-canary-of-the-line";

/// An agent that reads the one broker that all tests of a process share, and a NATS server with JetStream. The user
/// `driftd` logs in by PLAIN over TLS and has the rights of the README.
class KafkaLine : public testing::Test {
 protected:
  KafkaLine() : kafka_(shared()) {}
  static KafkaServer& shared();

  /// Returns the configuration of a backend. `more` is further settings in YAML's flow style.
  std::string backend(const std::string& name, const std::string& more) const;
  /// Starts an agent with these backends and waits until each kind of each of them has its baseline.
  void start(const std::string& backends, const std::vector<std::string>& names, const std::vector<std::string>& kinds,
             const std::string& plugins = "providers");
  void make_topic(const std::string& name) const;
  testing::AssertionResult arrives(const Expected& expected, long count = 1) const {
    return test::arrives(nats_, expected, count);
  }
  /// Expects a pending drift after `change`, and that `back` reverts it.
  void expect_pending_then_reverted(const std::string& resource, const std::string& field,
                                    const std::function<void()>& change, const std::function<void()>& back) const;
  /// Returns the coverage of a kind. Empty if there is none.
  nlohmann::json coverage(const std::string& backend, const std::string& kind) const;
  std::vector<nlohmann::json> drifts() const { return agent_->rows({"drifts", "--all"}); }
  bool any_deleted() const;
  /// Waits until the backend has had more than `more` cycles from now on. Returns false if it takes too long.
  bool cycles(const std::string& backend, int more) const;
  /// Stops the agent. Returns the output of its commands, its log, its files and the messages of the stream.
  std::string everything();

  TempDir dir_;
  KafkaServer& kafka_;
  NatsServer nats_;
  std::unique_ptr<Agent> agent_;
};

}  // namespace driftd::test
