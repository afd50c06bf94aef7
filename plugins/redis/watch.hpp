// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driftd/sdk/call.hpp"
#include "redis/settings.hpp"

namespace driftd::redis {

/// Subscribes to `+switch-master` at the first Sentinel of the settings that accepts us, and sends a hint for each
/// message. A server that is not a Sentinel pushes nothing; then this only waits. Returns when the call is cancelled.
void watch_sentinels(sdk::Call& call, const Settings& settings);

}  // namespace driftd::redis
