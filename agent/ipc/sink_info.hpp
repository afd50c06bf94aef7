// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/ports/sink_plugin.hpp"

namespace driftd::ipc {

/// Parses what only a sink plugin says in its `describe` document: title, bodies, batch, retry, flush. Returns
/// `invalid` with file, member, expected and found, and `unsupported` if this agent can produce none of `bodies`. The
/// text must be one that parse_info() could read: a JSON object of bounded depth. Pure; any thread.
Result<core::SinkPluginInfo> parse_sink_info(const std::string& describe, const std::string& file);

}  // namespace driftd::ipc
