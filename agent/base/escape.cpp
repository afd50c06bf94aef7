// SPDX-License-Identifier: Apache-2.0
#include "base/escape.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace driftd {
namespace {

unsigned byte(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
}

}  // namespace

char32_t code_point(std::string_view s) {
  char32_t out = s.size() == 1 ? byte(s, 0) : byte(s, 0) & (0xffu >> (s.size() + 1));
  for (std::size_t i = 1; i < s.size(); ++i) out = out << 6 | (byte(s, i) & 0x3f);
  return out;
}

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

bool is_control_character(std::string_view sequence) {
  const char32_t c = code_point(sequence);
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string_view front(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (byte(text, bytes) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

std::pair<std::string, std::string> around_difference(std::string_view before, std::string_view now,
                                                      std::size_t bytes) {
  if (std::max(before.size(), now.size()) <= bytes) return {std::string(before), std::string(now)};
  const auto shorter = static_cast<std::ptrdiff_t>(std::min(before.size(), now.size()));
  const auto same = static_cast<std::size_t>(
      std::mismatch(before.begin(), before.begin() + shorter, now.begin()).first - before.begin());
  const std::size_t from = same > bytes / 2 ? front(before, same - bytes / 3).size() : 0;
  const auto cut = [&](std::string_view text) {
    const std::string_view rest = text.substr(from), shown = front(rest, bytes);
    return (from > 0 ? "…" : "") + std::string(shown) + (shown.size() < rest.size() ? "…" : "");
  };
  return {cut(before), cut(now)};
}

std::string valid_utf8(std::string text) {
  std::size_t at = 0;
  const auto good = [&] {
    const std::size_t n = byte(text, at) < 0x80 ? 1 : utf8_sequence(std::string_view(text).substr(at));
    at += n;
    return n != 0;
  };
  while (at < text.size() && good()) {
  }
  if (at == text.size()) return text;
  std::string out = text.substr(0, at);
  while (at < text.size()) {
    const std::size_t from = at;
    if (good()) {
      out.append(text, from, at - from);
    } else {
      out += "\xef\xbf\xbd";
      ++at;
    }
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t n = std::max<std::size_t>(utf8_sequence(text), 1);
    const std::string_view one = text.substr(0, n);
    const bool valid_utf8 = utf8_sequence(text) != 0;
    if (valid_utf8 && !is_control_character(one)) {
      out += one;
    } else {
      const auto c = static_cast<unsigned>(code_point(one));
      out += n == 1 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{:04x}", c);
    }
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace driftd
