// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "check/check.hpp"

namespace driftd::check {

/// Returns the random generator of one check. The same seed gives the same numbers.
std::mt19937_64 random_of(const Subject& subject, const char* id);
std::size_t below(std::mt19937_64& random, std::size_t end);  ///< a number from 0 to end - 1
/// Returns `count` different numbers from 1 to `last` in ascending order: the first and last ones, and random ones
/// between them.
std::vector<std::uint64_t> spread(std::mt19937_64& random, std::uint64_t last, std::size_t count);
std::string random_bytes(std::mt19937_64& random, std::size_t size);
std::string random_word(std::mt19937_64& random, std::size_t size);  ///< [a-z0-9]

}  // namespace driftd::check
