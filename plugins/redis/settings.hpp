// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"
#include "net/tls.hpp"

namespace driftd::redis {

/// Where one server listens.
struct Address {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string socket;  ///< path of a Unix socket; then host and port are unused
  /// `host:port`, `[v6]:port`, `unix:/path`.
  std::string text() const;
};

/// `host`, `host:port`, `[v6]:port`, `unix:/path`. Throws sdk::Failure INVALID that names `setting`.
Address parse_address(const std::string& text, const std::string& setting);

struct Login {
  std::string username, password_token;
};

/// The primary that Sentinels name.
struct SentinelMaster {
  std::string master;
  Login login;  ///< at the Sentinels
};

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::vector<Address> addresses;  ///< at least one
  Login login;
  std::optional<net::Tls> tls;
  std::optional<SentinelMaster> sentinel;
  std::vector<std::string> config = {"*"};  ///< names and globs for CONFIG GET
  std::chrono::milliseconds connect{5000}, call{20'000};
  sdk::Scope scope;
};

/// From the JSON that open() gets. Throws sdk::Failure INVALID with the setting's name.
Settings parse_settings(std::string_view json);

}  // namespace driftd::redis
