// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace driftd::common {

/// A text that holds a secret by its form: a private key, or a URL with a password in it. One rule for every provider: a
/// value that one digests and another shows could never be compared. Pure.
inline bool holds_secret(std::string_view text) {
  if (text.find("PRIVATE KEY-----") != text.npos) return true;
  const auto scheme = text.find("://");
  if (scheme == text.npos) return false;
  const auto end = text.find_first_of("/ \n", scheme + 3);
  const std::string_view authority = text.substr(scheme + 3, end == text.npos ? end : end - scheme - 3);
  const auto at = authority.rfind('@');
  return at != authority.npos && authority.find(':') < at;
}

}  // namespace driftd::common
