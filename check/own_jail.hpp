// SPDX-License-Identifier: Apache-2.0
// The jail of a worker, around a process of a check.
#pragma once

#include "check/check.hpp"
#include "check/runner.hpp"

namespace driftd::check {

inline constexpr const char* kNoEscape =
    "; a worker starts no program, forks nothing, writes no file and reads only what settings of format path or socket "
    "name";

void expect_jail();  ///< throws CheckNotMade if this kernel has no mechanism of the jail
/// Puts this process into a worker's jail. The plugin must not be loaded yet.
void enter_jail(const Subject& subject, const std::string& settings_schema, const std::string& settings_json);

/// Returns the text of a child that passed. Otherwise ends this check in the same way.
std::string text_or_rethrow(const Outcome& outcome);

}  // namespace driftd::check
