// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/event/event.hpp"

namespace driftd::proto {

/// Encodes an event with its stamp as protobuf: redacted, and if it is larger than 64 KiB with the SHA-256 in
/// place of its states and long values (`truncated`). Deterministic; any thread.
std::string encode(const core::BackendEvent& event, const core::EventStamp& stamp);
std::string encode(const core::AgentEvent& event, const core::EventStamp& stamp);

/// Returns an event as the outbox stores it: the encoded payload and what sinks need to address it.
core::StoredEvent to_stored_event(const core::BackendEvent& event, const core::EventStamp& stamp);
core::StoredEvent to_stored_event(const core::AgentEvent& event, const core::EventStamp& stamp);

/// Returns the payload of a stored event as proto3 JSON: snake_case field names, 64-bit numbers as strings. Returns
/// `corrupt` if the bytes are not an event. The same bytes give the same text in each attempt and each process.
Result<std::string> to_json(const core::StoredEvent& event);

/// Returns CloudEvents 1.0 structured JSON (`application/cloudevents+json`) with to_json() as its data.
Result<std::string> cloudevent_json(const core::StoredEvent& event);

}  // namespace driftd::proto
