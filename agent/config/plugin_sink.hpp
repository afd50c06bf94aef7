// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/secrets.hpp"
#include "config/section.hpp"

namespace driftd::config {

/// Reads the keys of `type: plugin`, `settings` among them, whose own keys are checked when the plugin is found.
/// `settings` is what the whole section holds, with tokens in place of secrets.
sinks::PluginSettings read_plugin_sink(Section& sink, const Settings& settings);

}  // namespace driftd::config
