// SPDX-License-Identifier: Apache-2.0
#include "base/escape.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace driftd {
namespace {

unsigned byte(std::string_view text, std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; }

/// Of a sequence of one to three bytes, which all that is obeyed has; 0xFFFF: of four.
unsigned code_point(std::string_view s) {
  if (s.size() == 1) return byte(s, 0);
  if (s.size() == 2) return (byte(s, 0) & 0x1f) << 6 | (byte(s, 1) & 0x3f);
  if (s.size() == 3) return (byte(s, 0) & 0x0f) << 12 | (byte(s, 1) & 0x3f) << 6 | (byte(s, 2) & 0x3f);
  return 0xffff;
}

}  // namespace

std::size_t utf8_sequence(std::string_view s) {
  const unsigned a = byte(s, 0);
  const unsigned b = byte(s, 1);
  const auto tail = [](unsigned c) { return c >= 0x80 && c <= 0xbf; };
  if (a < 0x80) return 1;
  if (a >= 0xc2 && a <= 0xdf) return tail(b) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) {
    const bool second = tail(b) && (a != 0xe0 || b >= 0xa0) && (a != 0xed || b <= 0x9f);
    return second && tail(byte(s, 2)) ? 3 : 0;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    const bool second = tail(b) && (a != 0xf0 || b >= 0x90) && (a != 0xf4 || b <= 0x8f);
    return second && tail(byte(s, 2)) && tail(byte(s, 3)) ? 4 : 0;
  }
  return 0;
}

bool is_obeyed(std::string_view sequence) {
  const unsigned c = code_point(sequence);
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t n = std::max<std::size_t>(utf8_sequence(text), 1);
    const std::string_view one = text.substr(0, n);
    const bool well_formed = utf8_sequence(text) != 0;
    if (well_formed && !is_obeyed(one)) {
      out += one;
    } else {
      const unsigned c = code_point(one);
      out += n == 1 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{:04x}", c);
    }
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace driftd
