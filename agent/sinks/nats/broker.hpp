// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "sinks/nats/link.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// A connection with its JetStream context.
struct Broker {
  Connection connection;
  StreamContext stream;  ///< null: core NATS

  /// How often it was made again. Grows before anything can be published on the new connection, so a look at the stream
  /// holds for as long as this stays the same. Any thread.
  std::uint64_t reconnects() const;
};

/// Connects; reconnects by itself for ever afterwards, with our own backoff and without replaying what was buffered.
/// Blocks up to the connect time-out per server; [io]. No secret is in the error.
Result<Broker> connect(const NatsSettings& settings, const std::string& name, Inbox& inbox);

/// The error of a call to the server. `subject`: where the call went; if the server refused that, the error says which
/// right is missing. `inbox` may be null.
Error failure(const NatsSettings& settings, natsStatus status, int code, const std::string& subject,
              const Inbox* inbox);

}  // namespace driftd::sinks
