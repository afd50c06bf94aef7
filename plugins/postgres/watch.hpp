// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driftd/sdk/call.hpp"
#include "postgres/settings.hpp"

namespace driftd::postgres {

/// Listens to the event trigger of our README, if it exists, and sends a hint for each DDL statement. If it does not,
/// or on a standby, it checks again every few minutes. Returns when the call is cancelled.
void watch_ddl(sdk::Call& call, const Settings& settings);

}  // namespace driftd::postgres
