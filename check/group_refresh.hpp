// SPDX-License-Identifier: Apache-2.0
// Group refresh, parts 2 and 3: everything but the listing itself.
#pragma once

#include "check/check.hpp"

namespace driftd::check {

// group_refresh_read.cpp
void read_equals(const Subject& subject);
void unknown_identity(const Subject& subject);
void observed(const Subject& subject);
void diff(const Subject& subject);
void watch_quiet(const Subject& subject);
// group_refresh_extensions.cpp
void discover(const Subject& subject);
void apply(const Subject& subject);

}  // namespace driftd::check
