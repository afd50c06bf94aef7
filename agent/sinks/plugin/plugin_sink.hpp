// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "core/ports/session.hpp"
#include "core/ports/sink.hpp"
#include "sinks/plugin/settings.hpp"

namespace driftd::sinks {

/// Opens a sink whose events go to a plugin (sink.h) in a supervised worker process of `sessions`. An event is
/// delivered once the plugin said so. A worker that ends, hangs or breaks the protocol costs this sink a pause and
/// nothing else. `known` is what a scan found about the plugin, nullptr if it was not found: it is retried forever
/// then, until the agent restarts, unless the settings say otherwise. Returns `invalid` without a plugin.
Result<std::unique_ptr<core::Sink>> open_plugin(std::string name, PluginSettings settings,
                                                std::shared_ptr<core::SessionFactory> sessions,
                                                const core::ProviderInfo* known, asio::any_io_executor core);

}  // namespace driftd::sinks
