// SPDX-License-Identifier: Apache-2.0
#include "base/header_value.hpp"

namespace driftd {

std::string header_value(std::string_view value) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(value.size());
  for (const char ch : value) {
    const auto byte = static_cast<unsigned char>(ch);
    if (byte > 0x20 && byte < 0x7f && ch != '"' && ch != '%') {
      out += ch;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace driftd
