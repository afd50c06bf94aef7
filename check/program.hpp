// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::check {

/// driftd-check with these arguments. Exit 0: every `must` holds; 1: one is broken; 2: wrong command line or settings;
/// 3: no `must` is broken, but some could not be made.
int run(int argc, char** argv);

}  // namespace driftd::check
