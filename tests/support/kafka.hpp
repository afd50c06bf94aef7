// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real Apache Kafka broker in KRaft mode, broker and controller in one process, in a folder of its own on free
/// loopback ports. It ends with the object. One thread.
///
/// Clients of the PLAINTEXT listener, such as Kafka's own tools, are super users. With `secure` the authorizer is on
/// and there are four more listeners: SASL without TLS, SASL over TLS with a certificate for 127.0.0.1, SASL over TLS
/// with a certificate for broker.example only, and MTLS, which asks for a client certificate instead of a login.
class KafkaServer {
 public:
  struct Options {
    std::string version = "4.0.0";
    bool secure = false;
    bool log_requests = false;                       ///< logs a line for each request
    std::vector<std::string> conf;                   ///< more lines of server.properties
    std::map<std::string, std::string> plain_users;  ///< users of SASL PLAIN: name → password
    int node = 1;
    const KafkaServer* join = nullptr;  ///< joins that server's cluster; null: a cluster of its own
  };
  KafkaServer() : KafkaServer(Options{}) {}
  explicit KafkaServer(const Options& options);  ///< starts it; throws if it does not start
  ~KafkaServer();
  KafkaServer(const KafkaServer&) = delete;
  KafkaServer& operator=(const KafkaServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(ports_.at("PLAINTEXT")); }
  std::string sasl_address() const { return "127.0.0.1:" + std::to_string(ports_.at("SASL")); }
  std::string tls_address() const { return "127.0.0.1:" + std::to_string(ports_.at("TLS")); }
  std::string other_name_address() const { return "127.0.0.1:" + std::to_string(ports_.at("OTHERNAME")); }
  std::string mtls_address() const { return "127.0.0.1:" + std::to_string(ports_.at("MTLS")); }
  std::string ca() const { return dir_.file("tls/ca.pem"); }
  std::string cluster_id() const { return cluster_; }

  void start();
  void stop();  ///< sends SIGTERM and waits for its end
  void kill();  ///< sends SIGKILL
  void pause() const { child_.signal(SIGSTOP); }
  void go_on() const { child_.signal(SIGCONT); }
  std::string log() const { return read_file(dir_.file("server.log")); }
  /// Returns how many requests `client` has made, by the name of the API. Needs `log_requests`.
  std::map<std::string, int> requests(const std::string& client) const;

  /// These run Kafka's own tools with `--bootstrap-server` and return what they printed. They throw if the exit code is
  /// not 0.
  std::string topics(std::vector<std::string> words) const;
  std::string configs(std::vector<std::string> words) const;
  std::string acls(std::vector<std::string> words) const;
  std::string groups(std::vector<std::string> words) const;
  /// Sets the SCRAM credential of a user.
  void scram_user(const std::string& name, const std::string& password,
                  const std::string& mechanism = "SCRAM-SHA-256") const;
  /// Runs shell lines unchanged, with kafka-acls.sh and the other tools on PATH. Each call of a tool starts a JVM.
  Output shell(const std::string& lines) const;
  /// Makes a certificate for `CN=<common name>`, signed by the broker's own authority. Returns the path of a file with
  /// the certificate and its key.
  std::string client_certificate(const std::string& common_name) const;
  /// Starts Kafka's console consumer, runs `meanwhile` when it has joined the group, then ends it, so that it leaves.
  void consume(const std::string& topic, const std::string& group, const std::function<void()>& meanwhile = {}) const;
  /// Waits until the broker lists the topic, or with `listed` false, until it does not. Throws if that does not happen.
  void await_topic(const std::string& name, bool listed) const;

 private:
  std::string tool(const std::string& name, std::vector<std::string> words) const;
  void choose_ports();
  void write_conf() const;
  void make_certificates() const;
  void issue(const std::string& name, const std::string& common_name, const std::string& names) const;

  TempDir dir_;
  Options options_;
  std::string cluster_;
  std::map<std::string, int> ports_;
  Child child_;
};

/// Runs the tool whose Java class is `main`, in one JVM that all calls of this process share, because a JVM starts
/// slowly. The output contains stdout and stderr together.
Output kafka_tool(const std::string& version, const std::string& main, const std::vector<std::string>& words);

}  // namespace driftd::test
