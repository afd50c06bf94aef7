// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driftd/sdk/call.hpp"

namespace driftd::terraform {

using PgAnswer = std::unique_ptr<PGresult, decltype(&PQclear)>;
/// Files by libpq's option names: sslrootcert, sslcert, sslkey.
using PgFiles = std::map<std::string, std::string>;

/// One connection to a PostgreSQL server. Every wait ends at its time limit, at the deadline of the call and on cancel;
/// a connection that failed must not be used again. Not thread-safe.
class PgSession {
 public:
  /// `files` override those of conn_str; with an sslrootcert the server's name is verified unless conn_str sets another
  /// sslmode. Throws INVALID (conn_str cannot be parsed; the text does not quote it), UNAUTHENTICATED, DENIED,
  /// UNAVAILABLE, DEADLINE, CANCELLED.
  PgSession(sdk::Call& call, const std::string& conn_str, const PgFiles& files, std::chrono::milliseconds timeout);

  /// Runs one read-only statement with only pg_catalog on the search path, whatever the role, the database or a pooler
  /// has set. Throws like the constructor, and NOT_FOUND if schema or table do not exist.
  PgAnswer query(sdk::Call& call, const std::string& sql, std::chrono::milliseconds timeout);
  /// Quotes `text` as an SQL literal.
  /// Throws INVALID if it is not valid in the encoding of the connection.
  std::string literal(const std::string& text) const;
  /// Returns true if the server is another machine and the connection is not encrypted.
  bool in_clear() const;
  /// Returns host:port/database for error texts.
  const std::string& where() const { return where_; }

 private:
  /// Waits for `events` of poll(2). Throws UNAVAILABLE at `until_ns`, DEADLINE or CANCELLED. `timeout` is for the error
  /// text.
  void wait(sdk::Call& call, short events, std::int64_t until_ns, std::chrono::milliseconds timeout) const;
  void connect(sdk::Call& call, std::chrono::milliseconds timeout);
  [[noreturn]] void refuse_connection() const;  ///< the code follows the SQLSTATE or the text of the error

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::string where_ = "postgres";  ///< until the server's address is known
};

}  // namespace driftd::terraform
