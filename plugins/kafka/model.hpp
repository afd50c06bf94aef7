// SPDX-License-Identifier: Apache-2.0
// What a cluster answers, as plain values: the border between the client library and the mapping.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driftd/provider.h"

namespace driftd::kafka {

/// Result of one part of an answer: OK, NOT_FOUND, DENIED, UNAVAILABLE, UNSUPPORTED …
struct Outcome {
  driftd_status code = DRIFTD_OK;
  std::string text;  ///< text of the broker, empty if OK
  bool ok() const { return code == DRIFTD_OK; }
};

struct Broker {
  std::int32_t id = -1;
  std::string host;
  int port = 0;
};

struct Partition {
  std::int32_t id = -1, leader = -1;        ///< leader -1: no leader
  std::vector<std::int32_t> replicas, isr;  ///< broker ids; isr: in-sync replicas
};

/// One topic of a Metadata answer.
struct Topic {
  std::string name;
  Outcome outcome;
  std::vector<Partition> partitions;  ///< empty if the outcome is not OK
};

/// One Metadata answer with all topics that we may describe.
struct Metadata {
  std::string cluster_id;       ///< empty: not known
  std::vector<Broker> brokers;  ///< the live ones
  std::vector<Topic> topics;
};

/// Where a value was set (DescribeConfigs, KIP-226); `unknown` from brokers before 1.1.
enum class Source { unknown, topic, broker, broker_default, fixed, builtin, other };

struct ConfigEntry {
  std::string name;
  std::optional<std::string> value;  ///< nullopt: not set, or hidden
  Source source = Source::unknown;
  bool sensitive = false;             ///< the broker hides its value
  std::vector<ConfigEntry> synonyms;  ///< all places that could set it, the highest priority first
};

/// The configuration of one topic or broker.
struct Configs {
  std::string name;
  Outcome outcome;
  std::vector<ConfigEntry> entries;  ///< empty if the outcome is not OK
};

/// One ACL binding with Kafka's own names (`Topic`, `Literal`, `DescribeConfigs`, `Allow`).
struct Acl {
  std::string principal, host, operation, permission, type, name, pattern;
};
struct Acls {
  Outcome outcome;
  bool open = false;          ///< the cluster has no authorizer: everything is allowed
  std::vector<Acl> bindings;  ///< empty if the outcome is not OK
};

struct Group {
  std::string id, state;  ///< Stable, Empty, Dead …
  bool simple = false;    ///< offsets only: no member ever joined by the group protocol
};
struct Groups {
  Outcome outcome;  ///< if not OK, `groups` is incomplete
  std::vector<Group> groups;
};

struct ScramUser {
  std::string name;
  std::map<std::string, std::int32_t> iterations;  ///< mechanism → iterations
};
struct ScramUsers {
  Outcome outcome;
  std::vector<ScramUser> users;
};

/// Result of a SCRAM hello (the first message of a login). Before the first one has ended its outcome is UNAVAILABLE.
struct ScramHelloResult {
  Outcome outcome{DRIFTD_UNAVAILABLE, "no SCRAM hello has been answered yet"};
  std::string salt;              ///< base64
  std::int32_t iterations = 0;   ///< of the key derivation
  std::int64_t observed_ns = 0;  ///< when the hello was sent
  bool answered = false;         ///< a broker answered, even if only with a refusal
};

/// Outcome by topic name: whether the topic exists.
using Presence = std::map<std::string, Outcome>;

}  // namespace driftd::kafka
