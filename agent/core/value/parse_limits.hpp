// SPDX-License-Identifier: Apache-2.0
// What a foreign JSON text may be. Apart from value.hpp, which all rooms read.
#pragma once

#include "core/value/value.hpp"

namespace driftd::core {

/// What a document may be before it is refused. A value costs 56 to 200 bytes of memory, however few of text, and a
/// walk knows the path of each: the levels above all values may be 20 times as many as the values.
struct ParseLimits {
  std::size_t bytes = 64u << 20;
  std::size_t nodes = 4'000'000;
};
/// Of a record's body: what a stranger may make one resource cost the agent.
inline constexpr ParseLimits kBodyLimits{.bytes = 8u << 20, .nodes = 100'000};

/// parse() within limits of one's own. `budget` where the text is beyond them or nested deeper than 256. [any thread]
Result<Value> parse(std::string_view json, const ParseLimits& limits);

}  // namespace driftd::core
