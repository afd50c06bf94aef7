// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace driftd::keycloak {

/// What the token endpoint answers.
struct AccessToken {
  std::string bearer;                ///< secret
  std::chrono::seconds lifetime{0};  ///< from the moment of the answer
  /// Milliseconds since the epoch by the server's clock when the token was made; 0 if the token does not say it.
  std::int64_t issued_ms = 0;
};

/// Parses the answer of the token endpoint. Empty if it holds no token. Pure.
std::optional<AccessToken> parse_token(std::string_view body);

}  // namespace driftd::keycloak
