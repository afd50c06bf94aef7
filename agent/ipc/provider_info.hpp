// SPDX-License-Identifier: Apache-2.0
// Parses what a plugin says of itself: its `describe` document and its schemas, as a worker sends them.
// Both sides use it: the worker refuses a bad plugin early, and the agent believes no worker. Pure; any thread.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/ports/session.hpp"
#include "ipc/messages.hpp"

namespace driftd::ipc {

/// Returns the names in `kinds` of a describe document, or `invalid` with file, member, expected and found. There
/// are 1 to 256, each once, each of 1 to 128 bytes without control characters. `file` is for the message.
Result<std::vector<std::string>> declared_kinds(const std::string& describe, const std::string& file);
/// Returns the `extensions` of a describe document, known to this host or not. Entries without id or revision are
/// skipped. Empty if the document cannot be read, because declared_kinds() and parse_info() report that.
std::set<core::Extension> declared_extensions(const std::string& describe);
/// Returns the names of the gauges that describe declares. Empty if there are none or the document cannot be read.
std::set<std::string> declared_metrics(const std::string& describe);
/// Checks and parses all of it, the schema of each kind included. Of a sink plugin: as sink_info.hpp. Returns `invalid`
/// with file, member, expected and found, or `corrupt` if the settings schema has a `writeOnly` that is not true or
/// false. The result is shared and immutable.
Result<std::shared_ptr<const core::ProviderInfo>> parse_info(const LoadAnswer& loaded);

}  // namespace driftd::ipc
