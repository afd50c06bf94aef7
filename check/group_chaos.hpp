// SPDX-License-Identifier: Apache-2.0
// The second room of group chaos: checks that need processes of their own.
#pragma once

#include "check/check.hpp"

namespace driftd::check {

// group_chaos_apart.cpp
void kill_and_list(const Subject& subject);
void inside_jail(const Subject& subject);

}  // namespace driftd::check
