// SPDX-License-Identifier: Apache-2.0
// Limits for JSON texts of others. Not in value.hpp, because all rooms include that.
#pragma once

#include "core/value/value.hpp"

namespace driftd::core {

/// Maximum size of a document. A value costs 56 to 200 bytes of memory, however short its text is. A walk builds the
/// path of each value, so the sum of the depths of all values is limited to 20 times `nodes`.
struct ParseLimits {
  std::size_t bytes = 64u << 20;
  std::size_t nodes = 4'000'000;
};
/// Limits for a record's body. Whoever can write to the monitored system chooses its size.
inline constexpr ParseLimits kBodyLimits{.bytes = 8u << 20, .nodes = 100'000};

/// parse() with other limits. Returns `budget` if the text exceeds them or is nested deeper than 256. [any thread]
Result<Value> parse(std::string_view json, const ParseLimits& limits);

}  // namespace driftd::core
