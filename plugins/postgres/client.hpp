// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "driftd/sdk/call.hpp"
#include "postgres/rows.hpp"
#include "postgres/settings.hpp"

namespace driftd::postgres {

/// A connection that runs queries. One call at a time.
class Client {
 public:
  virtual ~Client() = default;
  /// Runs one read-only statement with only pg_catalog on the search path. Throws DENIED (with the server's text),
  /// UNAVAILABLE, DEADLINE, CANCELLED, CORRUPT (the server cannot convert or send a value), BUDGET (a limit of the
  /// server is exceeded), INTERNAL.
  virtual Rows query(sdk::Call& call, const std::string& sql) = 0;
  /// The same for a database that somebody else may own: it ends within `timeout` and the statement time-out of the
  /// settings, whatever statement_timeout is set there, and does not wait for locks. Throws BUDGET if it took longer or
  /// a lock was held. Not for pg_settings, which would show our limits.
  virtual Rows query_within(sdk::Call& call, const std::string& sql, std::chrono::milliseconds timeout) = 0;
  /// Waits up to `timeout` for a notification of a LISTEN. Returns true if at least one arrived.
  virtual bool notified(sdk::Call& call, std::chrono::milliseconds timeout) = 0;
  virtual int version() const = 0;           ///< 150004 for 15.4
  virtual std::string endpoint() const = 0;  ///< the endpoint of the settings that answered
  virtual bool usable() const = 0;           ///< false: an answer was lost, the connection must be dropped
};

/// A connection that changes the server, made for one request. One call at a time.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Runs one statement as it is, with only pg_catalog on the search path. Throws DENIED, CORRUPT (the server refuses
  /// it), BUDGET; UNAVAILABLE, DEADLINE, CANCELLED if nobody knows whether it ran.
  virtual Rows execute(sdk::Call& call, const std::string& sql) = 0;
  /// Quote a name, a text by libpq (PQescapeIdentifier, PQescapeLiteral). Throw INVALID for bytes that are not UTF-8.
  virtual std::string identifier(const std::string& name) = 0;
  virtual std::string literal(const std::string& text) = 0;
};

/// Connects like connect(), with rights to write.
std::unique_ptr<Writer> connect_writer(sdk::Call& call, const Settings& settings, const std::string& endpoint);

/// Connects to the first endpoint that accepts us, with `timeout` for each; a query may take as long as `statement`.
/// All waits end when the host cancels; the server is then asked to stop. Throws UNAVAILABLE, UNAUTHENTICATED, DENIED,
/// INVALID, UNSUPPORTED (server older than 12), DEADLINE, CANCELLED.
std::unique_ptr<Client> connect(sdk::Call& call, const Settings& settings, std::chrono::milliseconds timeout,
                                std::chrono::milliseconds statement);

}  // namespace driftd::postgres
