// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sinks/nats/link.hpp"
#include "sinks/nats/marks.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// The library's words, but for a lost connection: nothing is buffered behind one (connect()), which it calls a buffer that
/// is too small.
std::string status_text(natsStatus status);

/// A connection with its JetStream context.
struct Broker {
  Connection connection;
  StreamContext stream;  ///< null: core NATS
};

/// Connects; reconnects by itself for ever afterwards, with our own backoff and without replaying what was buffered.
/// Blocks up to the connect time-out per server; [io]. No secret is in the error.
Result<Broker> connect(const NatsSettings& settings, const std::string& name, Inbox& inbox);

struct Inspection {
  std::string created;  ///< of the stream
  std::optional<std::int64_t> rewind_to;
};
/// Creates the stream when it is absent, and looks whether it went backwards: created anew, or a message that it had
/// acknowledged is no longer ours. `known_created` empty: never seen before. Blocks; [io].
Result<Inspection> inspect(const Broker& broker, const NatsSettings& settings, const Marks& marks,
                           const std::string& known_created);

}  // namespace driftd::sinks
