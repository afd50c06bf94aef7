// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "check/check.hpp"

namespace driftd::check {

/// All checks in the order of the groups.
std::vector<Check> all_checks();

/// Those that `wanted` names: an id, a group, or `group.*`; empty: all. Each once, in the order of the list. `invalid`
/// when a word names nothing; the sentence has the nearest that exists.
Result<std::vector<Check>> select_checks(const std::vector<Check>& all, const std::vector<std::string>& wanted);

std::string group_of(const Check& check);  ///< `memory`
const char* render(Level level);           ///< `must`, `should`

}  // namespace driftd::check
