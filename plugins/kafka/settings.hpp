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

/// `host:port` or `[v6]:port`; port 9092 when there is none. Throws sdk::Failure INVALID, which names the setting.
std::string parse_endpoint(const std::string& text, const std::string& setting);

struct Tls : net::Tls {
  bool on = false;
};

struct Sasl {
  std::string mechanism;  ///< PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; empty: none
  std::string username, password_token, bearer_token;
};

/// One SCRAM credential of the cluster: a user has one for each mechanism.
struct ScramName {
  std::string user, mechanism;  ///< mechanism: SCRAM-SHA-256 or SCRAM-SHA-512
  auto operator<=>(const ScramName&) const = default;
};

/// Whose salts are asked for by SCRAM hellos, and how often. Nobody's: it is off.
struct ScramHello {
  std::vector<ScramName> names;
  std::vector<std::string> servers;    ///< canonical `host:port`; none: the brokers of the cluster that is read
  std::chrono::seconds interval{600};  ///< at most one hello for each name in it
};

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::vector<std::string> bootstrap;  ///< canonical `host:port`, at least one
  Tls tls;
  Sasl sasl;
  ScramHello hello;
  std::chrono::milliseconds connect{5000}, call{20000};
  sdk::Scope scope;

  /// `User:name` as the authorizer sees us by default; empty: the broker decides (client certificate).
  std::string principal() const;
};

/// From the JSON that open() gets. Throws sdk::Failure: INVALID with the setting's name; UNSUPPORTED for GSSAPI.
Settings parse_settings(std::string_view json);

}  // namespace driftd::kafka
