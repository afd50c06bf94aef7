// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/sink.h>

#include "base/result.hpp"

namespace driftd::worker {

/// The one host table of this process; static. A plugin may call its functions on any thread with any handle, so
/// each that takes a handle looks it up first, and counts what breaks a rule as a misuse.
const driftd_host_table* host_table();
/// The same for sink plugins.
const driftd_sink_host_table* sink_host_table();
/// Converts a status of a plugin; an unknown number becomes `internal`.
Code code_of(driftd_status status);

}  // namespace driftd::worker
