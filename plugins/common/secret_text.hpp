// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace driftd::common {

/// A text that holds a secret by its form: a private key, or a URL with a password in it. One rule for every provider: a
/// value that one digests and another shows could never be compared. Pure.
inline bool holds_secret(std::string_view text) {
  if (text.find("PRIVATE KEY-----") != text.npos) return true;
  for (auto scheme = text.find("://"); scheme != text.npos; scheme = text.find("://", scheme + 3)) {
    const std::string_view rest = text.substr(scheme + 3);
    const std::string_view authority = rest.substr(0, rest.find_first_of("/ \n"));
    const auto at = authority.rfind('@');
    if (at != authority.npos && authority.find(':') < at) return true;
  }
  return false;
}

}  // namespace driftd::common
