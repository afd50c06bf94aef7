// SPDX-License-Identifier: Apache-2.0
// A cluster's answers to records. Pure: no I/O, no clock; the reader sets observed_ns.
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

/// How many partitions of a cluster or a topic are not as they should be. `under_min_isr` -1: not known.
struct ReplicaHealth {
  std::int64_t offline = 0, under_replicated = 0, under_min_isr = 0, partitions = 0;
};
/// `min_isr` 0: not known, nothing is under it.
ReplicaHealth replica_health(const Topic& topic, std::int64_t min_isr);
/// min.insync.replicas in force; 0 when it cannot be read.
std::int64_t min_isr(const Configs& configs);

/// `defaults`: of a broker that answered; null: none did, `why` says so.
sdk::Record map_cluster(const std::vector<std::string>& bootstrap, const Metadata& metadata, const Configs* defaults,
                        const Outcome& why, const ReplicaHealth& all);
/// Canonical: `host:port`, `[v6]:port`.
std::string endpoint_of(const Broker& broker);
/// A live broker.
sdk::Record map_broker(const Broker& broker, const Configs& configs);
/// A broker that does not answer: stopped or unregistered, nobody says which. All of it is unread.
sdk::Record map_silent_broker(const std::string& id);
/// Ids that hold replicas, but are not among the live brokers.
std::set<std::int32_t> silent_brokers(const Metadata& metadata);
/// `id`: the topic's UUID, empty when the library does not tell. Of a configuration of more than 64 KiB the longest
/// values are unread by name: whoever owns a topic may make each as long as 32 KiB.
sdk::Record map_topic(const Topic& topic, const Configs& configs, const std::string& id);
/// Where topics have more than `max_bytes` bytes together, those with the largest bodies have their `config` unread
/// until the rest fits. So it is who writes much that loses, not who stands behind them in the alphabet.
void bound_topics(Records& topics, std::size_t max_bytes);
sdk::Record map_acl(const Acl& acl);
sdk::Record map_group(const Group& group);
/// `iterations` as the cluster lists them; none: the hello's. `hello` null: nobody asks for this one's salt.
sdk::Record map_scram_user(const ScramName& of, std::optional<std::int32_t> iterations, const ScramHelloResult* hello);
/// `<user>/<mechanism>`; a mechanism holds no `/`.
std::string scram_id(const ScramName& of);
/// False: no credential can have this id.
bool is_scram_id(const std::string& id);

/// `User:alice|*|Read|Allow|Topic|orders|Literal`; `|` and `%` inside a part are written %7C and %25.
std::string acl_id(const Acl& acl);
/// No part of it is one that this build's library does not know.
bool known(const Acl& acl);
/// False: `id` is of a binding that an older library than the one which listed it leaves out, so that it is not gone
/// there.
bool listed_by_every_library(const std::string& id);
/// The binding that may hide topics from `principal` (empty: from anybody): a Deny of Describe on topics. Null: none.
const Acl* hiding_topics(const std::vector<Acl>& bindings, const std::string& principal);

/// A configuration value as JSON: keys that hold a list in Kafka become a list of texts, all others stay as they are.
std::string value_json(const std::string& key, const std::string& value);

}  // namespace driftd::kafka
