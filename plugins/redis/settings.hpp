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

/// Address of one server.
struct Address {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string socket;  ///< path of a Unix socket; then host and port are unused
  /// `host:port`, `[v6]:port`, `unix:/path`.
  std::string text() const;
};

/// Parses `host`, `host:port`, `[v6]:port` or `unix:/path`. Throws INVALID that names `setting`.
Address parse_address(const std::string& text, const std::string& setting);

struct Login {
  std::string username, password_token;
};

/// The name under which Sentinels know the primary.
struct SentinelMaster {
  std::string master;
  Login login;  ///< for the Sentinels
};

/// Whether a change that driftd puts back is written into the server's own files.
enum class Rewrite { automatic, never };

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::vector<Address> addresses;  ///< at least one
  Login login;
  std::optional<net::Tls> tls;
  std::optional<SentinelMaster> sentinel;
  std::vector<std::string> config = {"*"};  ///< names and globs for CONFIG GET
  std::chrono::milliseconds connect{5000}, call{20'000};
  sdk::Scope scope;
  Rewrite rewrite = Rewrite::never;
};

/// Parses the JSON that open() gets. Throws INVALID with the name of the setting.
Settings parse_settings(std::string_view json);

}  // namespace driftd::redis
