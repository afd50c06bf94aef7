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
  NatsServer();  ///< returns when it answers
  int port() const { return port_; }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  void sigkill();  ///< at once, without a farewell
  void stop();     ///< SIGTERM, waits
  void start();    ///< again, on the same port and folder
  void wipe();     ///< removes what JetStream stored; only while it is down
  void keep();     ///< a copy of what it stored, as of a backup; only while it is down
  void put_back(); ///< replaces what it stored by that copy; only while it is down
  /// Somebody else's messages get into what it stored; only while it is down (another process serves the folder a while).
  void intrude(const std::string& subject, int count);
  bool reachable() const;

 private:
  TempDir dir_;
  int port_;
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

/// Everything stored in a stream, in its order, read by sequence; nothing where there is no such stream (yet). Throws when
/// the server does not answer.
std::vector<NatsReceived> stream_contents(const std::string& url, const std::string& stream);

}  // namespace driftd::test
