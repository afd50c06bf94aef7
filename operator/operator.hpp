// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "operator/settings.hpp"

namespace driftd::op {

/// Runs until `stop` is requested. Returns the exit code: 0, or 1 if the lease was lost, so that Kubernetes starts it
/// again.
int run(Settings settings, std::stop_token stop);

}  // namespace driftd::op
