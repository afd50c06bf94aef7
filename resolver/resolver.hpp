// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "resolver/settings.hpp"

namespace driftd::resolver {

/// Resolves the bindings and writes the file; with `follow` until `stop`. Returns the exit code: 0 if the file has all
/// required bindings, 1 if not. [one thread]
int run(Settings settings, std::stop_token stop);

}  // namespace driftd::resolver
