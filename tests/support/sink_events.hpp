// SPDX-License-Identifier: Apache-2.0
// Sample events for tests of sinks and consumers.
#pragma once

#include <string>

#include "proto/codec.hpp"

namespace driftd::test {

/// Returns an event of the backend `orders-kafka` (type kafka, source kubernetes) about the topic `t<n>`.
inline core::BackendEvent sample_event(std::int64_t n, const std::string& what = "config.updated",
                                       core::ChangeType type = core::ChangeType::config_drift_detected) {
  core::BackendEvent event;
  event.backend_uid = "0123456789abcdef";
  event.backend_name = "orders-kafka";
  event.backend_type = "kafka";
  event.provider = "kafka";
  event.type = type;
  event.what = what;
  event.source = "kubernetes";
  event.old_state = core::BackendSnapshot{"orders-kafka",     "kafka",    "kafka:9092", R"({"retention.ms":"1"})",
                                          {{"region", "eu"}}, {"publish"}};
  event.new_state = core::BackendSnapshot{"orders-kafka",     "kafka",    "kafka:9092", R"({"retention.ms":"2"})",
                                          {{"region", "eu"}}, {"publish"}};
  event.changed_fields = {"topic/t" + std::to_string(n) + ":config[\"retention.ms\"]"};
  event.policy = core::Action::manual;
  event.reconciliation_status = "pending";
  event.metadata = {{"namespace", "shop"}};
  event.affected_patterns = {"orders"};
  event.resource = core::ResourceId{"topic", "t" + std::to_string(n)};
  event.operation = core::Operation::changed;
  event.drift_id = "d-0123456789abcdef";
  event.agent = "a";
  event.cluster = "default";
  return event;
}

/// Returns the same event as the outbox stores it, with the sequence number `n`.
inline core::StoredEvent sample_stored(std::int64_t n, const std::string& what = "config.updated",
                                       core::ChangeType type = core::ChangeType::config_drift_detected) {
  const std::string id = "abcdefghij0123456789-" + std::to_string(1'000'000'000'000'000 + n);
  return proto::to_stored_event(sample_event(n, what, type),
                                {id, n, static_cast<std::uint64_t>(n), 1'763'700'000'000'000'000});
}

}  // namespace driftd::test
