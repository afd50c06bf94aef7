// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"

namespace driftd::redis {

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string socket;  ///< path of a Unix socket; then host and port are unused
  std::string username, password_token;
  std::chrono::milliseconds connect{5000}, call{20'000};
  sdk::Scope scope;
};

/// From the JSON that open() gets. Throws sdk::Failure INVALID with the setting's name.
Settings parse_settings(std::string_view json);

}  // namespace driftd::redis
