// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/event/event.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// One message that carries an event, on the canonical subject or on a view of it.
struct NatsMessage {
  std::string subject;
  std::string message_id;  ///< `Nats-Msg-Id`: the event's id; for the views with the suffix `_t` or `_s`
};

/// Returns the messages of one event, the canonical one first. A replay has its own message ids (`_r<marker>`), because
/// the stream would otherwise drop it within the duplicate window; `ce-id` stays the same.
std::vector<NatsMessage> messages_of(const core::StoredEvent& event, const NatsSettings& settings,
                                     const std::string& replay_marker);

using NatsHeaders = std::vector<std::pair<std::string, std::string>>;
/// Returns the CloudEvents headers (binary mode), values percent-encoded.
NatsHeaders headers_of(const core::StoredEvent& event, const NatsSettings& settings);
/// Returns the bytes of a message with its headers, as they count towards the server's limits.
std::size_t message_bytes(const core::StoredEvent& event, const NatsSettings& settings, const std::string& message_id);

}  // namespace driftd::sinks
