// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "kafka/handle.hpp"

namespace driftd::kafka {

/// True when this build of the library can name topics by their id (librdkafka 2.3), list SCRAM users (2.2).
bool has_topic_ids();
bool has_scram_users();

/// Asks a cluster. Any number of calls at once. Every request takes one of the host's permits; every wait ends at the
/// call's deadline, on cancellation, or after the settings' time-outs. All throw sdk::Failure: UNAVAILABLE,
/// UNAUTHENTICATED, DEADLINE, CANCELLED, INTERNAL; what concerns one resource is its Outcome.
class Client {
 public:
  Client(std::shared_ptr<Handle> handle, const Settings& settings) : handle_(std::move(handle)), settings_(settings) {}

  /// Waits, `timeout` long, until one of the brokers answers us. Returns at once when one did before.
  void connect(sdk::Call& call, std::chrono::milliseconds timeout) const;
  /// Brokers, and every topic that we may describe.
  Metadata metadata(sdk::Call& call) const;
  /// Each topic by its name: OK, NOT_FOUND, DENIED. Makes none.
  Presence topic_presence(sdk::Call& call, const std::vector<std::string>& names) const;
  static constexpr std::size_t kBatch = 200;  ///< topics in one request
  /// In the order of `names`, at timeout kBatch: an answer may hold 96 KiB of each, and the same again as where it was
  /// set.
  std::vector<Configs> topic_configs(sdk::Call& call, const std::vector<std::string>& names) const;
  /// One of several that does not answer is UNAVAILABLE and hides no other; from then on one is waited for `connect`
  /// long.
  std::vector<Configs> broker_configs(sdk::Call& call, const std::vector<std::int32_t>& ids) const;
  Acls acls(sdk::Call& call) const;
  Groups groups(sdk::Call& call) const;
  /// name → topic id; empty where the library has none (has_topic_ids).
  std::map<std::string, std::string> topic_ids(sdk::Call& call, const std::vector<std::string>& names) const;
  ScramUsers scram_users(sdk::Call& call) const;
  /// The name of a topic that nobody has and that no prefix of anybody's covers: who may not describe every topic is
  /// denied this one. Another each time, for the library answers a name that it was just asked by itself.
  static std::string unused_topic_name();
  /// Which cluster answers now: one small request.
  std::string identity(sdk::Call& call, std::chrono::milliseconds timeout) const;

 private:
  using Event = std::shared_ptr<rd_kafka_event_t>;
  using Send = std::function<void(rd_kafka_AdminOptions_t*, rd_kafka_queue_t*)>;
  struct MetadataRequest;
  /// All topics, or whether there is the one of that name (one Metadata request where there is not). Null when no
  /// broker answered within `timeout` or `wait`.
  std::shared_ptr<const MetadataRequest> request(sdk::Call& call, const std::string& topic, const Wait& wait,
                                                 std::chrono::milliseconds timeout) const;
  std::string cluster_id() const;
  /// Sends one admin request and waits for its answer, whose error may be of any kind.
  Event admin(sdk::Call& call, rd_kafka_admin_op_t op, const std::string& doing, const Send& send) const;
  Event admin(sdk::Call& call, rd_kafka_admin_op_t op, const std::string& doing, std::chrono::milliseconds timeout,
              const Send& send) const;
  Configs broker_config(sdk::Call& call, const std::string& name, std::chrono::milliseconds timeout) const;

  std::shared_ptr<Handle> handle_;
  const Settings& settings_;
};

}  // namespace driftd::kafka
