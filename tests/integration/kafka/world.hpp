// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include "support/kafka.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {

/// Runs the lines of the README's grants against `server`, by Kafka's own tools, with `password` in place of CHANGE-ME.
void grant_readme(const KafkaServer& server, const std::string& password);

/// A secure broker that all tests of the process share. `driftd` has the README's rights and no others.
class SharedKafka : public testing::Test {
 protected:
  static std::unique_ptr<KafkaServer>& shared();
  SharedKafka();

  /// Settings of a login by PLAIN without TLS, for librdkafka before 2.6.1 cannot log in to Kafka 4 by SCRAM. secrets()
  /// has the password that its token stands for.
  static nlohmann::json settings();
  static nlohmann::json sasl(const std::string& mechanism, const std::string& user, const std::string& token);
  static std::map<std::string, std::string> secrets();
  ProviderProbe probe(const nlohmann::json& more = nlohmann::json::object()) const;
  const KafkaServer& server() const { return *shared(); }
  /// Creates a topic by Kafka's own tool and waits until it is listed.
  void make_topic(const std::string& name, std::vector<std::string> more = {}) const;
  /// Adds or deletes configurations of a topic: `name=value`, or the name alone to delete it; several with commas.
  void alter_topic(const std::string& name, const std::string& what, bool add = true) const;
  /// Remove and add an ACL binding of User:driftd.
  void revoke(std::vector<std::string> binding) const;
  void grant(std::vector<std::string> binding) const;
};

/// Every text that a call returned, to look for secrets and reasons in.
std::string all_texts(const Collected& seen);

}  // namespace driftd::test
