// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace driftd::common {

/// Shortens a text to at most `max_bytes` bytes and an ellipsis. It is cut behind a whole word: a part of a secret
/// would remain visible, because the host removes only whole secrets. Pure.
/// Empty but for the ellipsis if its first word is longer than `max_bytes`.
inline std::string short_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const auto blank = text.find_last_of(" \t\r\n", max_bytes);
  return std::string(text.substr(0, blank == text.npos ? 0 : blank)) + "…";
}

}  // namespace driftd::common
