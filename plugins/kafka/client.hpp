// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "kafka/handle.hpp"

namespace driftd::kafka {

/// Return true if this build's library supports topic ids (librdkafka 2.3) and listing SCRAM users (2.2).
bool has_topic_ids();
bool has_scram_users();

/// Requests to a cluster. Thread-safe. Every request takes one of the host's permits; every wait ends at the deadline
/// of the call, on cancellation, or after the time-outs of the settings. All functions throw UNAVAILABLE,
/// UNAUTHENTICATED, DEADLINE, CANCELLED or INTERNAL; a failure of one resource is in its Outcome.
class Client {
 public:
  Client(std::shared_ptr<Handle> handle, const Settings& settings) : handle_(std::move(handle)), settings_(settings) {}

  /// Waits up to `timeout` until one of the brokers answers. Returns at once if one has answered before.
  void connect(sdk::Call& call, std::chrono::milliseconds timeout) const;
  /// Returns the brokers and every topic that we may describe.
  Metadata metadata(sdk::Call& call) const;
  /// Checks each topic by its name: OK, NOT_FOUND, DENIED. Never creates a topic.
  Presence topic_presence(sdk::Call& call, const std::vector<std::string>& names) const;
  static constexpr std::size_t kBatch = 200;  ///< topics in one request
  /// Returns one entry for each of `names` in their order; at most kBatch names, because an answer may hold 96 KiB for
  /// each and as much again for its synonyms.
  std::vector<Configs> topic_configs(sdk::Call& call, const std::vector<std::string>& names) const;
  /// A broker that does not answer is UNAVAILABLE and does not hide the others; after it each further broker gets only
  /// the `connect` time-out.
  std::vector<Configs> broker_configs(sdk::Call& call, const std::vector<std::int32_t>& ids) const;
  Acls acls(sdk::Call& call) const;      ///< all bindings
  Groups groups(sdk::Call& call) const;  ///< consumer groups of all brokers
  /// Returns topic ids by name; empty if the library does not support them (has_topic_ids).
  std::map<std::string, std::string> topic_ids(sdk::Call& call, const std::vector<std::string>& names) const;
  /// The outcome is DENIED without Describe on Cluster.
  ScramUsers scram_users(sdk::Call& call) const;
  /// Returns a random topic name that cannot exist. DENIED for it proves that some topics are hidden from us. It is new
  /// each time because librdkafka caches answers by name.
  static std::string unused_topic_name();
  /// Returns the id of the cluster that answers now, by one small request.
  std::string identity(sdk::Call& call, std::chrono::milliseconds timeout) const;

 private:
  using Event = std::shared_ptr<rd_kafka_event_t>;
  using Send = std::function<void(rd_kafka_AdminOptions_t*, rd_kafka_queue_t*)>;
  struct MetadataRequest;
  /// Requests all topics, or the one of that name (one Metadata request if it does not exist). Returns null if no
  /// broker answered within `timeout` or `wait`.
  std::shared_ptr<const MetadataRequest> request(sdk::Call& call, const std::string& topic, const Wait& wait,
                                                 std::chrono::milliseconds timeout) const;
  std::string cluster_id() const;  ///< as the library knows it
  /// Sends one admin request and waits for its answer, which may be an error of any kind.
  Event admin(sdk::Call& call, rd_kafka_admin_op_t op, const std::string& doing, const Send& send) const;
  Event admin(sdk::Call& call, rd_kafka_admin_op_t op, const std::string& doing, std::chrono::milliseconds timeout,
              const Send& send) const;
  Configs broker_config(sdk::Call& call, const std::string& name, std::chrono::milliseconds timeout) const;

  std::shared_ptr<Handle> handle_;  ///< shared with other clients of the instance
  const Settings& settings_;
};

}  // namespace driftd::kafka
