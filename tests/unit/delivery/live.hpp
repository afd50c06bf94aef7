// SPDX-License-Identifier: Apache-2.0
// What the tests of a runner's life share: the size of a large event, and what a receiver answers.
#pragma once

#include "world.hpp"

namespace driftd::delivery::test {

constexpr std::size_t kLarge = 3u << 19;  ///< bytes; three of them exceed one answer of the store

inline Attempt of(Outcome outcome) { return {outcome, "HTTP 503 from ops", 0}; }

}  // namespace driftd::delivery::test
