// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/certificates.hpp"
#include "support/nats.hpp"

namespace driftd::test {

/// The programs of a current nats-server, built once (tests/servers/nats).
struct CurrentNats {
  std::string server, credentials;
};
/// Throws if they cannot be built.
const CurrentNats& current_nats();

/// Three real nats-servers with JetStream in one cluster, on free loopback ports, in a temporary folder of their own.
/// Clients, routes and servers speak TLS, and both sides show certificates. They end with the test.
class NatsCluster {
 public:
  enum class Login { nkey, creds };
  /// Returns when all three know each other and JetStream has a leader. `program`: the nats-server to run.
  NatsCluster(const std::string& program, Login login);
  std::vector<std::string> urls() const;
  const NatsAccess& access() const { return access_; }
  /// Of an account that the servers do not know. Only Login::creds has one.
  NatsAccess stranger() const;
  void sigkill(std::size_t node) { nodes_.at(node).child.kill(); }
  void start(std::size_t node);  ///< starts it again on the same ports and folder, and returns at once
  /// The node that leads a stream. Empty while there is no leader.
  std::optional<std::size_t> leader(const std::string& stream) const;
  int replicas(const std::string& stream) const;
  /// All messages of a stream. Asks again while the cluster has no leader.
  std::vector<NatsReceived> contents(const std::string& stream) const;

 private:
  struct Node {
    int port = 0, cluster_port = 0;
    Child child;
  };
  void write_config(std::size_t node, const std::string& login) const;
  std::string nkey_login();
  std::string operator_login();

  TempDir dir_;
  Certificates certificates_;
  std::string program_;
  NatsAccess access_;
  std::vector<Node> nodes_;
};

}  // namespace driftd::test
