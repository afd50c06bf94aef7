// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"

namespace driftd::kafka {

/// `host:port` or `[v6]:port`; port 9092 when there is none. Throws sdk::Failure INVALID.
std::string parse_endpoint(const std::string& text);

struct Tls {
  bool on = false;
  bool verify = true;                     ///< chain and name of the broker's certificate
  std::string ca, certificate, key;       ///< PEM files; no ca: the system's
  std::string key_password_token;
  std::string server_name;                ///< the name every broker's certificate must carry; empty: the host connected to
};

struct Sasl {
  std::string mechanism;  ///< PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; empty: none
  std::string username, password_token, bearer_token;
};

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::vector<std::string> bootstrap;  ///< canonical `host:port`, at least one
  Tls tls;
  Sasl sasl;
  std::chrono::milliseconds connect{5000}, call{20000};
  sdk::Scope scope;

  /// `User:name` as the authorizer sees us by default; empty: the broker decides (client certificate).
  std::string principal() const;
};

/// From the JSON that open() gets. Throws sdk::Failure: INVALID with the setting's name; UNSUPPORTED for GSSAPI.
Settings parse_settings(std::string_view json);

}  // namespace driftd::kafka
