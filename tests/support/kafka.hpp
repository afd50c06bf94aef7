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
/// loopback ports. Ends with the object. One thread.
///
/// Clients of the PLAINTEXT listener, such as Kafka's own tools, are super users. With `secure` the authorizer is on
/// and there are more listeners: SASL in the clear, SASL over TLS with a certificate for 127.0.0.1, and one with a
/// certificate for broker.example alone. A fourth, MTLS, asks for a client certificate instead of a login.
class KafkaServer {
 public:
  struct Options {
    std::string version = "4.0.0";
    bool secure = false;
    bool log_requests = false;                       ///< one line of the log for each request
    std::vector<std::string> conf;                   ///< lines of server.properties
    std::map<std::string, std::string> plain_users;  ///< who may log in by PLAIN: name → password
    int node = 1;
    const KafkaServer* join = nullptr;  ///< a broker of that server's cluster instead of a cluster of its own
  };
  KafkaServer() : KafkaServer(Options{}) {}
  explicit KafkaServer(const Options& options);  ///< started, or throws
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
  void stop();  ///< SIGTERM and wait
  void kill();  ///< SIGKILL
  void pause() const { child_.signal(SIGSTOP); }
  void go_on() const { child_.signal(SIGCONT); }
  std::string log() const { return read_file(dir_.file("server.log")); }
  /// Requests by `client` so far, by their API's name (`log_requests`).
  std::map<std::string, int> requests(const std::string& client) const;

  /// Kafka's own tools, with `--bootstrap-server` added: what they printed. Throws when one ends with another code than
  /// 0.
  std::string topics(std::vector<std::string> words) const;
  std::string configs(std::vector<std::string> words) const;
  std::string acls(std::vector<std::string> words) const;
  std::string groups(std::vector<std::string> words) const;
  /// Sets the SCRAM credential of a user.
  void scram_user(const std::string& name, const std::string& password,
                  const std::string& mechanism = "SCRAM-SHA-256") const;
  /// Runs shell lines as they stand, with kafka-acls.sh and its like on PATH, each a JVM of its own.
  Output shell(const std::string& lines) const;
  /// A certificate for `CN=<common name>` of the broker's own authority, with its key in the same file: its path.
  std::string client_certificate(const std::string& common_name) const;
  /// Kafka's console consumer joins a group, stays while `meanwhile` runs and leaves it.
  void consume(const std::string& topic, const std::string& group, const std::function<void()>& meanwhile = {}) const;
  void await_topic(const std::string& name, bool there) const;  ///< until the broker lists it, or does not

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

/// What Kafka's own tool of that name printed, run in a JVM that is kept warm; its exit code.
Output kafka_tool(const std::string& version, const std::string& main, const std::vector<std::string>& words);

}  // namespace driftd::test
