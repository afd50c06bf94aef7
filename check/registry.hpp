// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "check/check.hpp"

namespace driftd::check {

/// All checks for one kind of plugin, in the order of the groups.
std::vector<Check> all_checks(PluginKind kind = PluginKind::provider);

/// Returns the checks that `wanted` names by id, by group or by `group.*`, each once and in the order of `all`. Returns
/// all if `wanted` is empty. Returns `invalid` if a name matches no check; the message suggests the nearest one.
Result<std::vector<Check>> select_checks(const std::vector<Check>& all, const std::vector<std::string>& wanted);

std::string group_of(const Check& check);  ///< `memory`
const char* render(Level level);           ///< `must`, `should`

}  // namespace driftd::check
