// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real nats-server with JetStream on a free loopback port in its own temporary folder; dies with the test.
class NatsServer {
 public:
  /// Returns when it answers. `config`: lines of a server configuration file (accounts, rights, limits).
  explicit NatsServer(const std::string& config = "");
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  void sigkill();  ///< SIGKILL
  void stop();     ///< SIGTERM, waits
  void signal(int number) { child_.signal(number); }
  void start();     ///< again, on the same port and folder
  void wipe();      ///< removes what JetStream stored; only while it is down
  void keep();      ///< a copy of what it stored, as of a backup; only while it is down
  void put_back();  ///< replaces what it stored by that copy; only while it is down
  /// Somebody else's messages get into what it stored; only while it is down (another process serves the folder a
  /// while).
  void intrude(const std::string& subject, int count);
  bool reachable() const;

 private:
  TempDir dir_;
  int port_;
  bool configured_;
  Child child_;
};

/// A message as a consumer got it.
struct NatsReceived {
  std::string subject, id, ce_id, body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::chrono::steady_clock::time_point at{};  ///< when a subscriber got it
};

/// A core NATS subscription of its own connection that collects what arrives. [any thread]
class NatsSubscriber {
 public:
  NatsSubscriber(const std::string& url, const std::string& subject);
  ~NatsSubscriber();
  std::vector<NatsReceived> received() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A stream as somebody else made it. Limits below 1: none.
struct ForeignStream {
  std::string name = "DRIFT";
  std::vector<std::string> subjects = {"backend.>", "driftd.agent.>"};
  std::int64_t max_msgs = -1, max_msgs_per_subject = -1, max_bytes = -1, duplicate_window_ms = 600'000;
  bool discard_old = false, discard_new_per_subject = false, work_queue = false;
};
/// `verb`: CREATE, UPDATE or DELETE, by the server's own API. Throws when the server refuses.
void change_stream(const std::string& url, const std::string& verb, const ForeignStream& stream);

/// Everything stored in a stream, in its order, read by sequence; nothing where there is no such stream (yet). Throws
/// when the server does not answer.
std::vector<NatsReceived> stream_contents(const std::string& url, const std::string& stream);

}  // namespace driftd::test
