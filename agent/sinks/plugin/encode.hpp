// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/event/event.hpp"
#include "core/ports/sink_plugin.hpp"

namespace driftd::sinks {

/// Returns an event as a plugin gets it, with a body of that content type. Returns `corrupt` if the stored bytes are
/// not an event.
Result<core::PluginEvent> plugin_event(const core::StoredEvent& event, const std::string& content_type);

}  // namespace driftd::sinks
