// SPDX-License-Identifier: Apache-2.0
#include "base/escape_json.hpp"

#include <algorithm>

#include "base/escape.hpp"

namespace driftd {

std::string escaped_json(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const std::string_view one = json.substr(0, std::max<std::size_t>(utf8_sequence(json), 1));
    const std::string shown = escaped(one);
    out += shown.starts_with("\\x") ? "\\u00" + shown.substr(2) : shown;
    json.remove_prefix(one.size());
  }
  return out;
}

}  // namespace driftd
