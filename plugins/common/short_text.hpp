// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace driftd::common {

/// A longer text is cut behind its last whole word, so that no part of a secret is left of one that the host, which
/// knows them all, would have taken out as a whole. At max_bytes `max_bytes` bytes and the dots. Pure.
inline std::string short_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const auto blank = text.find_last_of(" \t\r\n", max_bytes);
  return std::string(text.substr(0, blank == text.npos ? 0 : blank)) + "…";
}

}  // namespace driftd::common
