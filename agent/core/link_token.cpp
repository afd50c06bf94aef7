// SPDX-License-Identifier: Apache-2.0
#include "core/link_token.hpp"

#include "base/digest.hpp"

namespace driftd::core {

std::string link_hash(std::string_view token) {
  const bool hex = token.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!hex || token.size() != 2 * kLinkTokenBytes) return {};
  return to_hex(sha256(token));
}

}  // namespace driftd::core
