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

  /// Returns how often it has reconnected. The number grows before anything can be published on the new connection, so
  /// a check of the stream holds while it stays the same. Any thread.
  std::uint64_t reconnects() const;
};

/// Connects. Afterwards the connection reconnects by itself for ever, with our own backoff and without replaying
/// buffered messages. Blocks up to the connect time-out for each server; [io]. Errors contain no secret.
Result<Broker> connect(const NatsSettings& settings, const std::string& name, Inbox& inbox);

/// Returns the error of a call to the server. `subject`: where the call went; if the server refused that, the error
/// names the missing permission. `inbox` may be null.
Error failure(const NatsSettings& settings, natsStatus status, int code, const std::string& subject,
              const Inbox* inbox);

}  // namespace driftd::sinks
