// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"

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

}  // namespace driftd::core
