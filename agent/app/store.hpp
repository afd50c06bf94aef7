// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::app {

/// Sinks of an event of the agent itself.
std::vector<std::string> sinks_of(const std::vector<core::Route>& routes, const core::AgentEvent& event);

/// The store that a config describes: where it lies, how long it keeps what, where its own events go. Whoever opens a store
/// of a config begins with these, so that a command's events go where the agent's go.
store::Settings store_settings(const config::Config& config);

}  // namespace driftd::app
