// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/event/event.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// One message that carries an event: the canonical subject, or a view of it.
struct NatsMessage {
  std::string subject;
  std::string message_id;  ///< `Nats-Msg-Id`: the event's id, `_t` / `_s` behind it for the views
};

/// Messages of one event, the canonical one first. A replay has its own message ids (`_r<marker>`): within the
/// duplicate window the stream would drop it otherwise; `ce-id` stays.
std::vector<NatsMessage> messages_of(const core::StoredEvent& event, const NatsSettings& settings,
                                     const std::string& replay_marker);

/// CloudEvents headers, binary mode, values percent-encoded.
std::vector<std::pair<std::string, std::string>> headers_of(const core::StoredEvent& event,
                                                            const NatsSettings& settings);

/// CloudEvents header value: space, `"`, `%` and what is not printable ASCII as %XX.
std::string percent_encode(std::string_view value);

}  // namespace driftd::sinks
