// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "common/short_text.hpp"

namespace driftd::kafka {

/// Makes one line of bounded length from a text of a broker or library, for diagnostics.
inline std::string one_line(std::string text) {
  constexpr std::size_t kMostText = 400;
  text = common::short_text(text, kMostText);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

}  // namespace driftd::kafka
