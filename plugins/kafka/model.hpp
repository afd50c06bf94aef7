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

/// How one part of an answer went. OK, NOT_FOUND, DENIED, UNAVAILABLE, UNSUPPORTED …
struct Outcome {
  driftd_status code = DRIFTD_OK;
  std::string text;  ///< the broker's word, empty when OK
  bool ok() const { return code == DRIFTD_OK; }
};

struct Broker {
  std::int32_t id = -1;
  std::string host;
  int port = 0;
};

struct Partition {
  std::int32_t id = -1, leader = -1;  ///< leader -1: nobody leads it
  std::vector<std::int32_t> replicas, isr;
};

struct Topic {
  std::string name;
  Outcome outcome;
  std::vector<Partition> partitions;
};

/// One Metadata answer for all topics that we may describe.
struct Metadata {
  std::string cluster_id;
  std::vector<Broker> brokers;  ///< the live ones
  std::vector<Topic> topics;
};

/// Where a value was set (DescribeConfigs, KIP-226); `unknown` from brokers before 1.1.
enum class Source { unknown, topic, broker, broker_default, fixed, builtin, other };

struct ConfigEntry {
  std::string name;
  std::optional<std::string> value;  ///< none: not set, or hidden
  Source source = Source::unknown;
  bool sensitive = false;
  std::vector<ConfigEntry> synonyms;  ///< all places that could set it, the strongest first
};

/// The configuration of one topic or broker.
struct Configs {
  std::string name;
  Outcome outcome;
  std::vector<ConfigEntry> entries;
};

/// One ACL binding, in Kafka's own words (`Topic`, `Literal`, `DescribeConfigs`, `Allow`).
struct Acl {
  std::string principal, host, operation, permission, type, name, pattern;
};
struct Acls {
  Outcome outcome;
  bool open = false;  ///< the cluster has no authorizer: everybody may everything
  std::vector<Acl> bindings;
};

struct Group {
  std::string id, state;
  bool simple = false;  ///< offsets only, no members ever joined by the group protocol
};
struct Groups {
  Outcome outcome;  ///< not OK: `groups` is what could be seen
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

/// What a SCRAM hello brought. Until the first one has ended its outcome says so.
struct ScramHelloResult {
  Outcome outcome{DRIFTD_UNAVAILABLE, "no SCRAM hello has been answered yet"};
  std::string salt;  ///< base64
  std::int32_t iterations = 0;
  std::int64_t observed_ns = 0;  ///< when it was said
  bool answered = false;         ///< a broker answered, if only with a refusal
};

/// What is known of a topic that was asked for by its name.
using Presence = std::map<std::string, Outcome>;

}  // namespace driftd::kafka
