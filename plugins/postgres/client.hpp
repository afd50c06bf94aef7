// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "driftd/sdk/call.hpp"
#include "postgres/rows.hpp"
#include "postgres/settings.hpp"

namespace driftd::postgres {

/// A server that answers queries. One call at a time.
class Client {
 public:
  virtual ~Client() = default;
  /// Runs one statement, read-only and with nothing but pg_catalog on its search path. Throws sdk::Failure: DENIED (the
  /// server's words), UNAVAILABLE, DEADLINE, CANCELLED, CORRUPT (a value that the server
  /// cannot convert or send), BUDGET (it passes a limit of the server), INTERNAL.
  virtual Rows query(sdk::Call& call, const std::string& sql) = 0;
  /// The same of a database that somebody else may own: within `timeout` and the time of a statement, whatever
  /// statement_timeout is set there, and without waiting for locks. BUDGET: it took longer, or what it reads is locked.
  /// Not for pg_settings, which would show our limits.
  virtual Rows query_within(sdk::Call& call, const std::string& sql, std::chrono::milliseconds timeout) = 0;
  /// Waits for a notification of a LISTEN, or so long. True: one or more arrived.
  virtual bool notified(sdk::Call& call, std::chrono::milliseconds timeout) = 0;
  virtual int version() const = 0;           ///< 150004 for 15.4
  virtual std::string endpoint() const = 0;  ///< the one of the settings that answered
  virtual bool usable() const = 0;           ///< false: an answer was lost; throw it away
};

/// Connects to the first endpoint that takes us, within `timeout` for each; a query may take as long as `statement`.
/// All waits end when the host cancels; the server is then asked to stop. Throws sdk::Failure: UNAVAILABLE,
/// UNAUTHENTICATED, DENIED, INVALID, UNSUPPORTED (server older than 12), DEADLINE, CANCELLED.
std::unique_ptr<Client> connect(sdk::Call& call, const Settings& settings, std::chrono::milliseconds timeout,
                                std::chrono::milliseconds statement);

}  // namespace driftd::postgres
