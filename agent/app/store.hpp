// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::app {

/// Returns the sinks of an event of the agent itself.
std::vector<std::string> agent_event_sinks(const std::vector<core::Route>& routes, const core::AgentEvent& event);

/// Returns the key that agent.installation_key names. Empty if the key lies in data_dir or was not read. Returns
/// `corrupt` if it is not a key; the text names the place in the config and contains nothing of it.
Result<std::optional<store::GivenKey>> given_key(const config::Config& config);

/// Reads a key from a file outside of data_dir, which others may be allowed to read. Returns `denied` if others may
/// write it.
Result<store::InstallationKey> read_key_file(const std::string& file);

/// Returns the settings of the store that a config describes: its folder, its key, its retention, and the routes of its
/// own events. Every command that opens a store begins with these, so that its events go where the agent's go. The
/// config must have its secrets resolved.
Result<store::Settings> store_settings(const config::Config& config);

}  // namespace driftd::app
