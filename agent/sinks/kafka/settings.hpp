// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace driftd::sinks {

/// `type: kafka`. Secrets are clear text here and appear in no log or error.
struct KafkaSettings {
  std::vector<std::string> bootstrap_servers;  ///< `host:port` or `[v6]:port`
  std::string topic = "driftd.events";
  bool create_topic = true;  ///< creates the topic if it is absent; an existing one is never changed
  /// Wanted properties of the topic. Empty: the broker's default (retention: 7 days), and nothing is compared.
  std::optional<int> partitions, replication_factor;
  std::optional<std::chrono::milliseconds> retention;
  bool json = false;                 ///< structured CloudEvents JSON instead of protobuf with headers
  std::string compression = "none";  ///< none | gzip | snappy | lz4 | zstd
  std::string transactional_id;      ///< empty: no transactions
  std::chrono::milliseconds ack_wait{30'000};
  std::chrono::milliseconds connect_timeout{5'000};
  std::string sasl_mechanism;  ///< PLAIN | SCRAM-SHA-256 | SCRAM-SHA-512; empty: no login
  std::string sasl_username, sasl_password;
  bool tls = false;
  bool tls_verify = true;                         ///< verify chain and name of the broker's certificate
  std::string tls_ca, tls_certificate, tls_key;   ///< files
  std::string tls_key_password, tls_server_name;  ///< server_name empty: the host connected to
};

}  // namespace driftd::sinks
