// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/consumer/result.hpp"
#include "driftd/consumer/slot.hpp"

namespace driftd::consumer {

/// BackendChangeType of the protobuf file, with its numbers.
enum class ChangeType {
  unspecified = 0,
  created = 1,
  updated = 2,
  deleted = 3,
  credential_rotated = 4,
  health_changed = 5,
  endpoint_changed = 6,
  config_drift_detected = 7,
};

/// The place of an event in the order of its backend.
struct EventOrder {
  std::uint64_t incarnation = 0, sequence = 0;
  auto operator<=>(const EventOrder&) const = default;
};

/// What the library takes of an event (driftd.v1.BackendChangeEvent).
struct BackendEvent {
  std::string id;       ///< ce-id: the same for a duplicate and a replay
  std::string key;      ///< ce-partitionkey, the resource; empty: one for the whole backend
  EventOrder order;     ///< an event below the last one of its key is old
  std::string backend;  ///< its name
  ChangeType type = ChangeType::unspecified;
  std::string endpoint;  ///< where the backend is now, if the event says so; else empty
  std::string health;    ///< `up`, `down`, `degraded` of a health_changed; else empty
};

/// Parses the body of a message. `invalid` if it is not a BackendChangeEvent. An id or order of 0 in the body may be
/// set from the message's headers afterwards.
Result<BackendEvent> parse_backend_event(std::string_view body);

/// BackendEventSubscription of the protobuf file: who wants which events.
struct Subscription {
  std::string subscriber_id;
  std::vector<std::string> backend_names;  ///< sorted, each once; alternates are among them
  std::vector<ChangeType> event_types;
};

/// Makes the subscription of a pattern from its bindings. It has every type that the library acts on.
Subscription subscription_of(const std::string& pattern, const std::vector<SlotBinding>& bindings);

/// Returns the NATS subject of all events of a backend: `backend.<name>.>`, with what a subject must not contain
/// escaped.
std::string subject_of_backend(const std::string& backend);

}  // namespace driftd::consumer
