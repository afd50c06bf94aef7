// SPDX-License-Identifier: Apache-2.0
// Maps the answers of a cluster to records. Pure: no I/O, no clock; the reader sets observed_ns.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driftd/sdk/types.hpp"
#include "kafka/model.hpp"
#include "kafka/settings.hpp"

namespace driftd::kafka {

using Records = std::vector<sdk::Record>;

/// Number of unhealthy partitions of a cluster or a topic. `under_min_isr` -1: not known.
struct ReplicaHealth {
  std::int64_t offline = 0, under_replicated = 0, under_min_isr = 0, partitions = 0;
};
/// If `min_isr` is 0 (not known), no partition counts as below it.
ReplicaHealth replica_health(const Topic& topic, std::int64_t min_isr);
/// Returns the effective min.insync.replicas; 0 if it cannot be read.
std::int64_t min_isr(const Configs& configs);

/// `defaults` is the configuration of a broker that answered; null if none did, with the reason in `why`.
sdk::Record map_cluster(const std::vector<std::string>& bootstrap, const Metadata& metadata, const Configs* defaults,
                        const Outcome& why, const ReplicaHealth& all);
/// Canonical: `host:port`, `[v6]:port`.
std::string endpoint_of(const Broker& broker);
/// A live broker.
sdk::Record map_broker(const Broker& broker, const Configs& configs);
/// Maps a broker that does not answer: it is stopped or unregistered, which cannot be told apart. All of it is unread.
sdk::Record map_silent_broker(const std::string& id);
/// Returns the broker ids that hold replicas but are not among the live brokers.
std::set<std::int32_t> silent_brokers(const Metadata& metadata);
/// `id` is the topic's UUID, empty if the library does not support it. If the configuration has more than 64 KiB, its
/// longest values are unread by name: the owner of a topic may make each value up to 32 KiB long.
sdk::Record map_topic(const Topic& topic, const Configs& configs, const std::string& id);
/// If all topics together have more than `max_bytes` bytes, the `config` of those with the largest bodies becomes
/// unread until the rest fits. So the owner of large values loses, not the topics that come later in the alphabet.
void bound_topics(Records& topics, std::size_t max_bytes);
sdk::Record map_acl(const Acl& acl);        ///< its id is that of acl_id()
sdk::Record map_group(const Group& group);  ///< id and state
/// `iterations` comes from the cluster's list; nullopt: use that of the hello. `hello` is null if no hello is
/// configured for this user.
sdk::Record map_scram_user(const ScramName& of, std::optional<std::int32_t> iterations, const ScramHelloResult* hello);
/// `<user>/<mechanism>`; a mechanism holds no `/`.
std::string scram_id(const ScramName& of);
/// Returns false if no credential can have this id.
bool is_scram_id(const std::string& id);

/// `User:alice|*|Read|Allow|Topic|orders|Literal`; `|` and `%` inside a part are written %7C and %25.
std::string acl_id(const Acl& acl);
/// Returns true if this build's library knows every part of the binding.
bool known(const Acl& acl);
/// Returns false if an older library would leave out this binding. Its absence from a list of such a library does not
/// prove that it is gone.
bool listed_by_every_library(const std::string& id);
/// Returns a binding that may hide topics from `principal` (empty: from anybody), that is, a Deny of Describe on
/// topics; null if there is none.
const Acl* hiding_topics(const std::vector<Acl>& bindings, const std::string& principal);

/// Returns a configuration value as JSON: keys that hold a list in Kafka become a list of texts, all others stay texts.
std::string value_json(const std::string& key, const std::string& value);
/// Returns the character between the elements of such a list; NUL if the key holds no list.
char list_separator(std::string_view key);

}  // namespace driftd::kafka
