// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include "support/kafka.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {

/// The lines of the README's grants, with `password` in place of CHANGE-ME, run by Kafka's own tools against `server`.
void grant_readme(const KafkaServer& server, const std::string& password);

/// A secure broker that all tests of the process share; `driftd` has the README's rights and none more.
class SharedKafka : public testing::Test {
 protected:
  static std::unique_ptr<KafkaServer>& shared();
  SharedKafka();

  /// Settings of a login by PLAIN (librdkafka before 2.6.1 cannot log in to Kafka 4 by SCRAM) in the clear; the
  /// password's token is resolved by secrets().
  static nlohmann::json settings();
  static nlohmann::json sasl(const std::string& mechanism, const std::string& user, const std::string& token);
  static std::map<std::string, std::string> secrets();
  ProviderProbe probe(const nlohmann::json& more = nlohmann::json::object()) const;
  const KafkaServer& server() const { return *shared(); }
  /// A topic made by Kafka's own tool, listed when this returns.
  void make_topic(const std::string& name, std::vector<std::string> more = {}) const;
  void alter_topic(const std::string& name, const std::string& what, bool add = true) const;
  /// Removes and adds bindings of User:driftd.
  void revoke(std::vector<std::string> binding) const;
  void grant(std::vector<std::string> binding) const;
};

/// Everything a call said, to look for secrets in.
std::string all_said(const Collected& seen);

}  // namespace driftd::test
