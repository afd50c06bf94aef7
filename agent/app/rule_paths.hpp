// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/config.hpp"
#include "core/ports/session.hpp"

namespace driftd::app {

/// Returns a warning for each rule of the backend itself (policy, ignore, expect) whose path can belong to no
/// attribute, with the nearest path that can. There is none where that is not certain: for a path that begins with a
/// wildcard, and for a kind of which the provider does not say that its schema names every attribute (`complete` of
/// describe).
std::vector<config::ConfigError> unknown_rule_paths(const config::Config& config, const core::BackendSpec& spec,
                                                    const core::ProviderInfo& info);
/// Logs these warnings for each backend whose plugin was found.
void warn_of_rule_paths(const config::Config& config, const std::vector<core::SessionFactory::ScanResult>& plugins);

}  // namespace driftd::app
