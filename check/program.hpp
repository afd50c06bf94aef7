// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::check {

/// Runs driftd-check with these arguments and returns its exit code. 0: every `must` holds; 1: a `must` is broken; 2:
/// the command line or the settings are wrong; 3: no `must` is broken, but some could not be made.
int run(int argc, char** argv);

}  // namespace driftd::check
