// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "driftd/sdk/secret_text.hpp"

namespace driftd::common {

/// Returns true for a private key or a URL with a password. The rule is shared with the agent (sdk/secret_text.hpp).
using sdk::holds_secret;

/// Returns true if `name` contains a word such as password or token, or if `value` contains a credential.
inline bool looks_secret(const std::string& name, const std::string& value) {
  static constexpr std::array kWords = {"password", "passwd",  "secret",     "token",   "credential",
                                        "apikey",   "api_key", "access_key", "private", "dsn"};
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto named = [&](const char* word) { return lower.find(word) != std::string::npos; };
  return std::any_of(kWords.begin(), kWords.end(), named) || holds_secret(value);
}

}  // namespace driftd::common
