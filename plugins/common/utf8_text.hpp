// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace driftd::common {

/// Returns the length in bytes of the UTF-8 character at the start of `text`; 0 if there is no valid one (RFC 3629).
/// `text` must not be empty. Pure.
inline std::size_t utf8_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xC2 && first <= 0xDF   ? 2
                           : first >= 0xE0 && first <= 0xEF ? 3
                           : first >= 0xF0 && first <= 0xF4 ? 4
                                                            : 0;
  if (size == 0 || text.size() < size) return 0;
  std::uint32_t code = first & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  return overlong || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF ? 0 : size;
}

/// Returns true if all of `text` is valid UTF-8.
/// True for an empty text. Pure.
inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_character(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

/// Returns the longest beginning of `text` of at most `max_bytes` bytes that does not end inside a character.
/// It is a view of `text`, which must be valid UTF-8. Pure.
inline std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) {
  std::size_t end = max_bytes;
  if (text.size() <= end) return text;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

/// Returns true if `text` begins with an escaped byte, `\xNN`.
/// Such a text would be mistaken for the escape of utf8_text(). Pure.
inline bool shows_a_byte(std::string_view text) {
  const auto digit = [&](std::size_t i) {
    return (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
  };
  return text.size() >= 4 && text[0] == '\\' && text[1] == 'x' && digit(2) && digit(3);
}

/// Returns valid UTF-8: each byte that is not part of a valid character becomes `\xNN`. Records and JSON allow nothing
/// else, and one bad name would cost its whole listing. Different texts stay different: where a text holds `\xNN`
/// literally, its backslash becomes `\x5c`. Pure.
inline std::string utf8_text(std::string_view text) {
  std::string out;
  std::size_t from = 0, at = 0;
  const auto copy = [&] { out.append(text, from, at - from); };
  while (at < text.size()) {
    const std::size_t size = utf8_character(text.substr(at));
    if (size != 0 && !shows_a_byte(text.substr(at))) {
      at += size;
      continue;
    }
    copy();
    const unsigned char c = static_cast<unsigned char>(text[at]);
    out.append("\\x").append(1, "0123456789abcdef"[c >> 4]).append(1, "0123456789abcdef"[c & 15]);
    from = ++at;
  }
  copy();
  return out;
}

}  // namespace driftd::common
