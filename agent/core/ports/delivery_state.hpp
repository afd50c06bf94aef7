// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/event_draft.hpp"

namespace driftd::core {

/// State of one event of a sink that the cursor alone does not tell.
struct DeliveryState {
  std::int64_t seq = 0;
  int attempts = 0;
  Nanos next_ns = 0;
  bool dead = false;
  std::string error{};
  int refusals = 0;  ///< how often the receiver refused its content
};
struct SinkCursor {
  std::string sink;
  std::int64_t low_water = 0;  ///< every routed event up to this seq is settled or is among `exceptions`
  std::vector<DeliveryState> exceptions;
  std::map<std::string, std::string> notes;  ///< e.g. JetStream: creation time of the stream, last acked sequence and
                                             ///< id
};
struct SinkSettlement {
  std::string sink;
  std::int64_t low_water = 0;
  std::vector<DeliveryState> upsert;  ///< failing or dead
  std::vector<std::int64_t> settled;  ///< exceptions that were delivered
  std::optional<std::map<std::string, std::string>> notes;
  std::vector<std::int64_t> dropped;  ///< dead letters that a person gave up, also if low_water goes back
  std::vector<EventDraft> events;     ///< events about it (`dead_letter`, `gap`), written in the same transaction
  /// False: it only says what was delivered, and need not be on the disk when settle() returns (ADR 0023). A killed
  /// process loses nothing of it. After a power loss, what was saved within 100 ms may be delivered again.
  bool durable = true;
};

}  // namespace driftd::core
