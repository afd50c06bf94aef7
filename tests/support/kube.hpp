// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real kube-apiserver (tests/servers/kube) with its etcd on free loopback ports. It has a CA, RBAC, a token of an
/// admin and service accounts, but no kubelet and no controllers, so objects stay as they were written.
class KubeServer {
 public:
  struct Answer {
    int status = 0;
    nlohmann::json body;  ///< discarded if it is not valid JSON
    std::string text;
  };

  /// Returns when it is ready. `flags` are additional flags of the API server.
  explicit KubeServer(std::vector<std::string> flags = {});
  ~KubeServer();

  std::string server() const { return "https://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  std::string ca_file() const { return dir_.file("ca.pem"); }
  std::string file(const std::string& name) const { return dir_.file(name); }
  std::string admin_token() const { return "admin-token-of-the-test"; }
  /// Returns the path of a file with certificate and key of the user `certified` in the group `people`.
  std::string client_certificate() const { return dir_.file("client-both.pem"); }
  static std::string tools();  ///< the folder of the programs etcd, kube-apiserver, helm and informer

  void stop();   ///< ends the API server by SIGTERM
  void kill();   ///< ends the API server by SIGKILL
  void start();  ///< starts the API server again on the same port and waits until it is ready
  /// Ends the API server and starts it with other flags instead of those of the constructor.
  void restart_with(std::vector<std::string> flags);
  void pause() { apiserver_.signal(SIGSTOP); }
  void resume() { apiserver_.signal(SIGCONT); }
  void compact() const;  ///< makes etcd forget every version but the newest
  /// Returns a counter of the API server since its start, summed over the lines that have these labels (`code="404"`).
  int counted(const std::string& metric, const std::vector<std::string>& labels) const;

  /// Sends a request as the admin. `type` is the content type of the body; empty means JSON, and a merge patch for
  /// PATCH. The status is 0 if there was no answer. Any thread.
  Answer request(const std::string& method, const std::string& path, const std::string& body = {},
                 std::string type = {}) const;
  /// Sends a request with another token.
  Answer request_as(const std::string& token, const std::string& method, const std::string& path,
                    const std::string& body = {}, std::string type = {}) const;
  /// These send POST, PATCH, GET and DELETE as the admin, and throw if the server refuses.
  nlohmann::json create(const std::string& path, const nlohmann::json& object) const;
  nlohmann::json patch(const std::string& path, const nlohmann::json& change) const;
  nlohmann::json get(const std::string& path) const;
  void remove(const std::string& path) const;
  /// Deletes an object, takes its finalizers away, and returns true when it is gone. The objects of a
  /// CustomResourceDefinition may stay in the server's store.
  bool remove_wholly(const std::string& path) const;
  /// Creates the objects of YAML documents that are separated by `---`. Existing ones stay. Returns when the rights
  /// that a binding grants to a service account are in force.
  void apply(const std::string& yaml) const;

  void create_namespace(const std::string& name) const;
  /// Creates the Secret with these values as stringData.
  nlohmann::json create_secret(const std::string& space, const std::string& name, const nlohmann::json& values,
                               const nlohmann::json& labels = nlohmann::json::object()) const;
  /// Returns a token of a service account, made by TokenRequest. With `secret` it is valid only as long as that Secret
  /// exists.
  std::string token_of(const std::string& space, const std::string& account, const std::string& secret = {}) const;
  /// Makes the service account `account` and a Role with these rules in the namespace `space`. Returns its token when
  /// the rights are in force.
  std::string account(const std::string& space, const std::string& account, const nlohmann::json& rules) const;
  /// Returns settings of the k8s provider for this server, with the admin's token.
  nlohmann::json settings(const std::vector<std::string>& namespaces) const;
  /// Returns the path of a kubeconfig of the admin.
  std::string kubeconfig() const { return dir_.file("kubeconfig"); }
  /// Creates a CRD of PrismBackend that accepts any spec, and waits until it is served and listed. `scope` is
  /// Namespaced or Cluster; a CRD of the other scope is replaced, with its objects.
  void install_prism(const std::string& scope = "Namespaced") const;
  /// Runs `helm WORDS…` as the admin.
  Output helm(std::vector<std::string> words) const;
  std::string log() const { return read_file(dir_.file("apiserver.log")); }

 private:
  void make_certificates() const;
  void start_etcd();
  bool ready() const;
  /// These wait until a right is in force: the API server decides by its informers, which are a moment behind its
  /// store.
  void await_binding(const nlohmann::json& binding) const;
  void await_right(const std::string& token, const std::string& space, const nlohmann::json& rules) const;

  TempDir dir_;
  std::vector<std::string> flags_;
  int port_, etcd_port_, peer_port_;
  Child etcd_, apiserver_;
};

/// A TCP relay on loopback that can cut, slow down, silence and redirect its connections.
class Relay {
 public:
  explicit Relay(int to);
  ~Relay();
  int port() const { return port_; }
  /// Cuts each connection when the server has sent this number of bytes on it. 0: never.
  void cut_after(std::size_t bytes);
  /// Limits what the server sends on each connection, on the average since the connection began.
  void slow(std::size_t bytes_per_second);
  void cut_now();   ///< cuts all connections
  void mute_now();  ///< existing connections stay open but pass nothing; new ones work
  void close();     ///< cuts all connections, and each new one until open()
  void open();
  void point_to(int port);  ///< later connections go to this port
  int cuts() const;
  int connections() const;  ///< how many were made in all

 private:
  struct State;
  std::shared_ptr<State> state_;
  int port_ = 0;
};

}  // namespace driftd::test
