// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <array>

namespace driftd {

std::string_view render(Code code) {
  static constexpr std::array<std::string_view, 15> kNames = {
      "ok",       "invalid",   "denied",         "unauthenticated", "not_found", "conflict", "throttled", "unavailable",
      "deadline", "cancelled", "cursor_expired", "unsupported",     "budget",    "corrupt",  "internal"};
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : kNames.back();
}

}  // namespace driftd
