// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/backend.hpp"
#include "core/ports/session.hpp"

namespace driftd::secrets {

/// Settings that the plugin's schema does not call sensitive get their value in place of the token that every
/// `${env:…}` became when the config was read; sensitive ones keep it. An endpoint that the config does not name is
/// taken from the settings, without user-info and query; the type of one whose provider is a path from its plugin. A
/// backend without its plugin stays as it is.
Status reveal_plain_references(core::BackendSpec& spec, const std::vector<core::SessionFactory::ScanResult>& plugins);

/// The plugin for a provider's id, alias or path, or nullptr.
const core::ProviderInfo* find_plugin(const std::vector<core::SessionFactory::ScanResult>& plugins,
                                      const std::string& provider);

}  // namespace driftd::secrets
