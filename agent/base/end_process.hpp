// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd {

/// Ends the process at once with this exit status: no destructor runs and nothing is flushed. A function of its own
/// file, so that a simulation of many lives of an agent in one process can be linked with another one
/// (tests/simulation). [any thread]
[[noreturn]] void end_process(int status);

}  // namespace driftd
