// SPDX-License-Identifier: Apache-2.0
// Parses what a plugin says of itself: its `describe` document and its schemas, as a worker sends them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/ports/session.hpp"
#include "ipc/messages.hpp"

namespace driftd::ipc {

/// Returns the names in `kinds` of a describe document, or `invalid` with file, member, expected and found.
Result<std::vector<std::string>> declared_kinds(const std::string& describe, const std::string& file);
/// Returns the `extensions` of a describe document, known to this host or not. Entries without id or revision are
/// skipped.
std::set<core::Extension> declared_extensions(const std::string& describe);
/// Returns the names of the gauges that describe declares.
std::set<std::string> declared_metrics(const std::string& describe);
/// Checks and parses all of it. Returns `invalid` with file, member, expected and found.
Result<std::shared_ptr<const core::ProviderInfo>> parse_info(const LoadAnswer& loaded);

}  // namespace driftd::ipc
