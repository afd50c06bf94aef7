// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sinks/common/marks.hpp"
#include "sinks/nats/broker.hpp"

namespace driftd::sinks {

/// What was known about the stream before it is checked.
struct KnownStream {
  Marks marks;
  std::string created;  ///< creation time of the stream; empty if it was never seen
  unsigned checks = 0;  ///< number of checks so far; selects the sample of older marks
};

struct Loss {
  std::size_t marks_kept = 0;  ///< this many of the oldest marks still hold
  std::int64_t rewind_to = 0;
};

struct Inspection {
  std::uint64_t reconnects = 0;  ///< number of the connection on which the check was made
  std::string created;
  std::vector<std::string> subjects;  ///< subjects that the stream accepts
  std::optional<Loss> loss;           ///< set if the stream lost messages that it had acknowledged
  std::string warnings;               ///< what cannot be checked, or will be evicted; empty if nothing
  std::int64_t max_message = -1;      ///< bytes of a message with its headers that the stream takes; -1: any
};

/// Creates the stream if it is absent, and checks whether it went backwards: it was created again, is shorter than it
/// was, or has another message at our last position or at one of a sample of earlier positions. Returns `unavailable`,
/// with what to do, for a stream that can take no event: a mirror, a sealed one, one that acknowledges nothing. Blocks;
/// [io].
Result<Inspection> inspect(const Broker& broker, const NatsSettings& settings, const KnownStream& memory,
                           const Inbox& inbox);

}  // namespace driftd::sinks
