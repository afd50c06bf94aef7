// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real nats-server with JetStream on a free loopback port, in a temporary folder of its own. It ends with the test.
class NatsServer {
 public:
  /// Returns when it answers. `config` is the text of a server configuration file (accounts, rights, limits). One that
  /// is to be reloaded needs `jetstream { store_dir: … }`.
  /// `program` is the nats-server to run.
  explicit NatsServer(const std::string& config = "", std::string program = "nats-server");
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  void sigkill();  ///< sends SIGKILL
  void stop();     ///< sends SIGTERM and waits for its end
  void signal(int number) { child_.signal(number); }
  void start();                               ///< starts it again on the same port and folder
  void configure(const std::string& config);  ///< replaces the configuration, for the next start()
  // These four change what JetStream has stored. Call them only while the server is down.
  void wipe();      ///< removes everything
  void keep();      ///< makes a copy, like a backup
  void put_back();  ///< restores that copy
  /// Adds messages of somebody else to a stream. For this another server runs on the folder for a moment.
  void intrude(const std::string& subject, int count);
  bool reachable() const;

 private:
  TempDir dir_;
  std::string program_;
  int port_;
  bool configured_;
  Child child_;
};

/// A message as a consumer got it. `id` is the header Nats-Msg-Id, `ce_id` the header ce-id.
struct NatsReceived {
  std::string subject, id, ce_id, body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::chrono::steady_clock::time_point at{};  ///< when a subscriber got it
};

/// A core NATS subscription with a connection of its own that collects what arrives. Any thread.
class NatsSubscriber {
 public:
  NatsSubscriber(const std::string& url, const std::string& subject);
  ~NatsSubscriber();
  std::vector<NatsReceived> received() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How a client proves who it is. Empty members are not used.
struct NatsAccess {
  std::string ca, certificate, key;  ///< files; a server that asks for certificates needs all three
  std::string credentials;           ///< .creds file
  std::string nkey_public, nkey_seed_file;
};

/// The configuration of a stream that somebody else made. A limit below 1 means no limit.
struct ForeignStream {
  std::string name = "DRIFT";
  std::vector<std::string> subjects = {"backend.>", "driftd.agent.>"};
  std::int64_t max_msgs = -1, max_msgs_per_subject = -1, max_bytes = -1, duplicate_window_ms = 600'000;
  bool discard_old = false, discard_new_per_subject = false, work_queue = false;
  bool interest = false, memory = false, no_ack = false, sealed = false;
  std::int64_t max_msg_size = -1;
  std::string mirror{};  ///< the stream that it mirrors, instead of having subjects; empty: none
};
/// Changes a stream by the server's API. `verb` is CREATE, UPDATE, PURGE or DELETE. Throws if the server refuses.
void change_stream(const std::string& url, const std::string& verb, const ForeignStream& stream);

/// Returns what the server tells a new client to be the largest message, in bytes.
std::int64_t max_payload(const std::string& url);
/// Returns all messages of a stream in their order. Empty if there is no such stream (yet). Throws if the server does
/// not answer.
std::vector<NatsReceived> stream_contents(const std::string& url, const std::string& stream);
std::vector<NatsReceived> stream_contents(const std::vector<std::string>& urls, const NatsAccess& access,
                                          const std::string& stream);

/// What a server says of a stream. Empty members: no such stream, or no leader.
struct StreamState {
  std::string leader;  ///< server name
  int replicas = 0;
};
/// Returns nothing if no server answers for JetStream.
std::optional<StreamState> stream_state(const std::vector<std::string>& urls, const NatsAccess& access,
                                        const std::string& stream);

}  // namespace driftd::test
