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
/// Files by libpq's names of them: sslrootcert, sslcert, sslkey.
using PgFiles = std::map<std::string, std::string>;

/// One connection to a PostgreSQL server. Every wait ends at its limit, at the call's deadline and on cancel; one that
/// failed is not used again. One thread at a time.
class PgSession {
 public:
  /// `files` go before conn_str's own; with an sslrootcert the server's name is verified unless conn_str has another
  /// sslmode. Throws sdk::Failure: INVALID (a conn_str that cannot be parsed; nothing of it is quoted),
  /// UNAUTHENTICATED, DENIED, UNAVAILABLE, DEADLINE, CANCELLED.
  PgSession(sdk::Call& call, const std::string& conn_str, const PgFiles& files, std::chrono::milliseconds timeout);

  /// Rows of one statement, read-only and with nothing but pg_catalog on its search path, whatever the role, the
  /// database or a pooler set. Throws as the constructor, and NOT_FOUND where schema or table do not exist.
  PgAnswer query(sdk::Call& call, const std::string& sql, std::chrono::milliseconds timeout);
  /// `text` as a literal of SQL.
  std::string literal(const std::string& text) const;
  /// The server is another machine, and the connection to it has no TLS.
  bool in_clear() const;
  /// host:port/database, for texts.
  const std::string& where() const { return where_; }

 private:
  void wait(sdk::Call& call, short events, std::int64_t until_ns, std::chrono::milliseconds timeout) const;
  void connect(sdk::Call& call, std::chrono::milliseconds timeout);
  [[noreturn]] void refuse_connection() const;

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::string where_ = "postgres";
};

}  // namespace driftd::terraform
