// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include "support/agent.hpp"
#include "support/kafka.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {

inline constexpr const char* kKafkaPassword = "kafka-canary-of-the-line";

/// An agent over the one broker that all tests of the file share, and a NATS server with JetStream. `driftd` logs in by
/// PLAIN over TLS and has the rights of the README.
class KafkaLine : public testing::Test {
 protected:
  KafkaLine() : kafka_(shared()) {}
  static KafkaServer& shared();

  /// A backend; `more`: further settings, as they stand in braces.
  std::string backend(const std::string& name, const std::string& more) const;
  /// Starts the agent on these and waits until `kinds` of each have their baseline.
  void start(const std::string& backends, const std::vector<std::string>& names, const std::vector<std::string>& kinds,
             const std::string& plugins = "providers");
  void make_topic(const std::string& name) const;
  testing::AssertionResult arrives(const Expected& expected, long count = 1) const {
    return test::arrives(nats_, expected, count);
  }
  /// A change of configuration is asked about, and taking it back reverts it.
  void asked_and_reverted(const std::string& resource, const std::string& field, const std::function<void()>& change,
                          const std::function<void()>& back) const;
  /// One entry of a backend's coverage; empty when there is none.
  nlohmann::json coverage(const std::string& backend, const std::string& kind) const;
  std::vector<nlohmann::json> drifts() const { return agent_->rows({"drifts", "--all"}); }
  bool any_deleted() const;
  /// So many cycles from now on.
  bool cycles(const std::string& backend, int more) const;
  /// Ends the agent: all that it and the stream ever said and stored.
  std::string everything();

  TempDir dir_;
  KafkaServer& kafka_;
  NatsServer nats_;
  std::unique_ptr<Agent> agent_;
};

}  // namespace driftd::test
