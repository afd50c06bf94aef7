// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/provider.h>

#include "base/result.hpp"

namespace driftd::worker {

/// The one host table of this process.
const driftd_host_table* host_table();
/// Converts a status of a plugin; an unknown number becomes `internal`.
Code code_of(driftd_status status);

}  // namespace driftd::worker
