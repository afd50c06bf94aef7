// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/event/event.hpp"

namespace driftd::proto {

/// Protobuf bytes of an event under its stamp: redacted, states replaced by digests above 64 KiB (`truncated`).
/// Deterministic; any thread.
std::string encode(const core::BackendEvent& event, const core::EventStamp& stamp);
std::string encode(const core::AgentEvent& event, const core::EventStamp& stamp);

/// The outbox form of an event: encoded payload plus what sinks need to address it.
core::StoredEvent to_stored_event(const core::BackendEvent& event, const core::EventStamp& stamp);
core::StoredEvent to_stored_event(const core::AgentEvent& event, const core::EventStamp& stamp);

/// JSON of a stored event's payload, snake_case field names, 64-bit numbers as strings (proto3 JSON); `corrupt` when
/// the bytes are no event. The same bytes give the same text, in each attempt and each process.
Result<std::string> to_json(const core::StoredEvent& event);

/// CloudEvents 1.0 structured JSON (`application/cloudevents+json`) with the event's JSON as data.
Result<std::string> cloudevent_json(const core::StoredEvent& event);

}  // namespace driftd::proto
