// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::app {

/// Sinks of an event of the agent itself.
std::vector<std::string> agent_event_sinks(const std::vector<core::Route>& routes, const core::AgentEvent& event);

/// The key that agent.installation_key names; nothing: it lies in data_dir, or was not read. `corrupt`: what is there
/// is no key; the text names the place in the config and holds nothing of it.
Result<std::optional<store::GivenKey>> given_key(const config::Config& config);

/// The key that stands in a file outside of data_dir, whoever may read it; `denied`: others may write it.
Result<store::InstallationKey> read_key_file(const std::string& file);

/// The store that a config describes: where it lies, under which key, how long it keeps what, where its own events go.
/// Whoever opens a store of a config begins with these, so that a command's events go where the agent's go. Of a config
/// with its secrets.
Result<store::Settings> store_settings(const config::Config& config);

}  // namespace driftd::app
