// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"

namespace driftd::postgres {

/// Where one server listens; `host` is an address, a name, or the folder of a Unix socket (starts with `/`).
struct Endpoint {
  std::string host;
  std::string port = "5432";
  /// `host:port`, `[v6]:port`, `unix:/folder:port`.
  std::string text() const;
};

/// `host`, `host:port`, `[v6]:port`, `unix:/folder`, `unix:/folder/.s.PGSQL.5432`. Throws sdk::Failure INVALID.
Endpoint parse_endpoint(const std::string& text);

enum class Verifiers { function, pg_authid, off };

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::vector<Endpoint> endpoints;  ///< tried in order, at least one
  std::string database = "postgres", user, password_token;
  std::string sslmode = "prefer", sslrootcert, sslcert, sslkey, session_attrs = "any";
  std::chrono::milliseconds connect{5000}, statement{20000};
  sdk::Scope scope;
  std::vector<std::string> databases;     ///< beside `database`; `*`: all that can be connected to
  std::vector<std::string> fingerprints;  ///< globs over schemas whose tables are fingerprinted; empty: none
  Verifiers verifiers = Verifiers::function;
};

/// From the JSON that open() gets. Throws sdk::Failure INVALID with the setting's name.
Settings parse_settings(std::string_view json);

}  // namespace driftd::postgres
