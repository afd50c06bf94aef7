// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/backend.hpp"
#include "core/ports/session.hpp"

namespace driftd::secrets {

/// Replaces the token of each reference (`${env:…}`, `${file:…}` …) by its value in settings that the plugin's schema
/// does not mark as sensitive; sensitive ones keep the token. If the config names no endpoint, it is taken from the
/// settings, without user info and query. The type of a backend whose provider is a path comes from the plugin. A
/// backend without its plugin stays unchanged.
Status reveal_plain_references(core::BackendSpec& spec, const std::vector<core::SessionFactory::ScanResult>& plugins);

/// Returns the plugin for a provider's id, alias or path, or nullptr.
const core::ProviderInfo* find_plugin(const std::vector<core::SessionFactory::ScanResult>& plugins,
                                      const std::string& provider);
/// Returns the sink plugin for an id or path, or nullptr.
const core::ProviderInfo* find_sink_plugin(const std::vector<core::SessionFactory::ScanResult>& plugins,
                                           const std::string& plugin);

}  // namespace driftd::secrets
