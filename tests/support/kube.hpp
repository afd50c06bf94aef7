// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real kube-apiserver (tests/servers/kube) with its etcd on free loopback ports, with a CA, RBAC, an admin's token
/// and service accounts. No kubelet and no controllers: objects stay as they are written.
class KubeServer {
 public:
  struct Answer {
    int status = 0;
    nlohmann::json body;  ///< discarded if it is not valid JSON
    std::string text;
  };

  /// Returns when it is ready. `flags`: more of the API server's.
  explicit KubeServer(std::vector<std::string> flags = {});
  ~KubeServer();

  std::string server() const { return "https://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  std::string ca_file() const { return dir_.file("ca.pem"); }
  std::string file(const std::string& name) const { return dir_.file(name); }
  std::string admin_token() const { return "admin-token-of-the-test"; }
  /// certificate and key in one file, of user `certified` in group `people`.
  std::string client_certificate() const { return dir_.file("client-both.pem"); }
  static std::string tools();  ///< the folder of etcd, helm, informer

  void stop();   ///< the API server, SIGTERM
  void kill();   ///< the API server, SIGKILL
  void start();  ///< again, on the same port; waits until it is ready
  void pause() { apiserver_.signal(SIGSTOP); }
  void resume() { apiserver_.signal(SIGCONT); }
  void compact() const;  ///< etcd forgets every version but the newest
  /// One of the API server's own counters since its start, summed over the lines that have these labels (`code="404"`).
  int counted(const std::string& metric, const std::vector<std::string>& labels) const;

  /// As the admin. `type`: of the body; empty: JSON, for PATCH a merge patch. Any thread.
  Answer request(const std::string& method, const std::string& path, const std::string& body = {},
                 std::string type = {}) const;
  /// As whoever has this token.
  Answer request_as(const std::string& token, const std::string& method, const std::string& path,
                    const std::string& body = {}, std::string type = {}) const;
  /// POST; throws when it was not created.
  nlohmann::json create(const std::string& path, const nlohmann::json& object) const;
  nlohmann::json patch(const std::string& path, const nlohmann::json& change) const;
  nlohmann::json get(const std::string& path) const;
  void remove(const std::string& path) const;
  /// YAML documents, one after the other, each created where its kind belongs. What a binding grants to a service
  /// account is granted by then.
  void apply(const std::string& yaml) const;

  void create_namespace(const std::string& name) const;
  /// Creates the Secret with these values as stringData.
  nlohmann::json create_secret(const std::string& space, const std::string& name, const nlohmann::json& values,
                               const nlohmann::json& labels = nlohmann::json::object()) const;
  /// A service account's token by TokenRequest. `secret`: with whose end it ends.
  std::string token_of(const std::string& space, const std::string& account, const std::string& secret = {}) const;
  /// A service account `account` in `space` and a Role there with these rules, and its token, which has these rights by
  /// then.
  std::string account(const std::string& space, const std::string& account, const nlohmann::json& rules) const;
  /// Settings of the provider for this server, as whoever has the token in `token_file`.
  nlohmann::json settings(const std::vector<std::string>& namespaces) const;
  /// A kubeconfig of the admin.
  std::string kubeconfig() const { return dir_.file("kubeconfig"); }
  /// The CRD of PrismBackend, any spec; waits until it is served and listed.
  void install_prism() const;
  /// `helm WORDS…` as the admin.
  Output helm(std::vector<std::string> words) const;
  std::string log() const { return read_file(dir_.file("apiserver.log")); }

 private:
  void make_certificates() const;
  void start_etcd();
  bool ready() const;
  /// The API server judges by what its informers have seen, which is a moment behind what it has stored.
  void await_binding(const nlohmann::json& binding) const;
  void await_right(const std::string& token, const std::string& space, const nlohmann::json& rules) const;

  TempDir dir_;
  std::vector<std::string> flags_;
  int port_, etcd_port_, peer_port_;
  Child etcd_, apiserver_;
};

/// A TCP relay on loopback that can cut, slow down, silence and turn aside what runs through it.
class Relay {
 public:
  explicit Relay(int to);
  ~Relay();
  int port() const { return port_; }
  /// Each connection is cut once so many bytes came back; 0: never.
  void cut_after(std::size_t bytes);
  void slow(std::size_t bytes_per_second);  ///< what comes back on each connection, on the average since it began
  void cut_now();                           ///< all connections
  void mute_now();                          ///< existing connections stay open but pass nothing; new ones work
  void close();                             ///< all are cut, and new ones until it is opened again
  void open();
  void point_to(int port);  ///< later connections go there
  int cuts() const;
  int connections() const;  ///< ever made

 private:
  struct State;
  std::shared_ptr<State> state_;
  int port_ = 0;
};

}  // namespace driftd::test
