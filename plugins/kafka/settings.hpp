// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"
#include "net/tls.hpp"

namespace driftd::kafka {

/// Parses `host:port` or `[v6]:port`; the default port is 9092. Throws INVALID that begins with `setting`, the path of
/// the setting.
std::string parse_endpoint(const std::string& text, const std::string& setting);

struct Tls : net::Tls {
  bool on = false;  ///< false: plain connections
};

struct Sasl {
  std::string mechanism;  ///< PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; empty: none
  std::string username, password_token, bearer_token;  ///< the tokens are for sdk::Call::secret
};

/// Name of a SCRAM credential: a user has one for each mechanism.
struct ScramName {
  std::string user, mechanism;  ///< mechanism: SCRAM-SHA-256 or SCRAM-SHA-512
  auto operator<=>(const ScramName&) const = default;
};

/// Settings of SCRAM hellos: for which users, where and how often. No names: off.
struct ScramHello {
  std::vector<ScramName> names;        ///< credentials whose salts are read
  std::vector<std::string> servers;    ///< canonical `host:port`; empty: the brokers of the cluster
  std::chrono::seconds interval{600};  ///< at most one hello for each name in this time
};

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::vector<std::string> bootstrap;  ///< canonical `host:port`, at least one
  Tls tls;
  Sasl sasl;  ///< mechanism empty: no login
  ScramHello hello;
  std::chrono::milliseconds connect{5000}, call{20000};  ///< time-outs of a connection and of one request
  sdk::Scope scope;

  /// Returns `User:name` as the authorizer sees us by default; empty if the broker derives it from the client
  /// certificate.
  std::string principal() const;
};

/// Parses the JSON that open() gets. Throws INVALID with the name of the setting; UNSUPPORTED for GSSAPI.
Settings parse_settings(std::string_view json);

}  // namespace driftd::kafka
