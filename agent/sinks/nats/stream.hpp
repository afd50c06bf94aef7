// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sinks/nats/broker.hpp"
#include "sinks/nats/marks.hpp"

namespace driftd::sinks {

/// What is known of the stream before it is looked at.
struct KnownStream {
  Marks marks;
  std::string created;  ///< when the stream was made; empty: never seen before
  unsigned looks = 0;   ///< picks the sample of older marks
};

struct Loss {
  std::size_t marks_kept = 0;  ///< the oldest so many marks still hold
  std::int64_t rewind_to = 0;
};

struct Inspection {
  std::uint64_t reconnects = 0;  ///< of the connection on which it was made
  std::string created;
  std::vector<std::string> subjects;  ///< that the stream takes
  std::optional<Loss> loss;           ///< it lost messages that it had acknowledged
  std::string worries;                ///< what cannot be checked, or will be evicted; empty: none
};

/// Creates the stream when it is absent, and looks whether it went backwards: made anew, shorter than it was, or
/// another message stands at our last position or at one of a sample of positions behind it. Blocks; [io].
Result<Inspection> inspect(const Broker& broker, const NatsSettings& settings, const KnownStream& memory,
                           const Inbox& inbox);

}  // namespace driftd::sinks
