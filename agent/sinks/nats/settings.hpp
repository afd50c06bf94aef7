// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace driftd::sinks {

/// `type: nats`. Secrets are clear text here and appear in no log or error.
struct NatsSettings {
  std::vector<std::string> servers = {"nats://127.0.0.1:4222"};
  bool jetstream = true;  ///< false: core NATS, delivered when the server has it, best effort
  std::string stream = "DRIFT";
  bool create_stream = true;  ///< creates the stream if it is absent; an existing one is never changed
  std::string domain;         ///< JetStream domain; empty: none
  int replicas = 1;
  std::chrono::seconds max_age{7 * 86'400};
  std::chrono::seconds duplicate_window{600};
  bool views = true;              ///< also publishes on `backend.type.…` and `backend.source.…`
  bool kind_change_type = false;  ///< `type_format: kind.changetype`: ce-type as in the resource-watcher RFC
  std::chrono::milliseconds ack_wait{5'000};
  std::chrono::milliseconds connect_timeout{2'000};
  std::string user, password, token;
  std::string credentials_file;  ///< .creds
  std::string nkey_public, nkey_seed_file;
  bool tls = false;
  std::string tls_ca, tls_cert, tls_key;  ///< files
};

}  // namespace driftd::sinks
