// SPDX-License-Identifier: Apache-2.0
// Group chaos, part 2: checks that need child processes of their own.
#pragma once

#include "check/check.hpp"

namespace driftd::check {

// group_chaos_child.cpp
void kill_and_list(const Subject& subject);
void inside_jail(const Subject& subject);

}  // namespace driftd::check
