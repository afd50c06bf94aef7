// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace driftd::core {

/// The outcome of one attempt to deliver one event.
struct Attempt {
  enum class Outcome {
    delivered,    ///< acknowledged by the receiver
    retry_event,  ///< this event failed; uses up one attempt of its schedule
    retry_sink,   ///< the endpoint certainly failed (no connection); opens the circuit and uses up no attempt
    refused,      ///< the answer may be about this event or about all; delivery/endpoint_health finds out which
    permanent,    ///< the receiver refuses this event for good; it becomes a dead letter
    disabled      ///< the receiver asked never to be called again (HTTP 410)
  };
  Outcome outcome = Outcome::delivered;
  std::string detail;               ///< `HTTP 503 from ops`, `no ack within 5 s`; no secrets
  std::int64_t retry_after_ms = 0;  ///< the sink's runner waits this long, at most 1 h
  /// The receiver refused the event's content, and might not the next time. Its number is kept, also over a restart of
  /// the agent, and comes with the next attempt (StoredEvent::refusals): the sink decides when it is `permanent`.
  bool content_refused = false;
};

}  // namespace driftd::core
