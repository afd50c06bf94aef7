// SPDX-License-Identifier: Apache-2.0
// What the simulation puts in the place of functions of the system, for our objects only (ld --wrap).
#pragma once

#include <cstdint>

namespace driftd::sim {

/// Thrown instead of ending the process, when the agent under test ends itself.
struct ProcessEnded {
  int status = 0;
};

/// Sets the seed of what the agent takes for random bytes, and of SQLite's.
void seed_random_bytes(std::uint64_t seed);

}  // namespace driftd::sim
