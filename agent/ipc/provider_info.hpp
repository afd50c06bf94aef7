// SPDX-License-Identifier: Apache-2.0
// What a plugin says of itself: its `describe` document and its schemas, as a worker sends them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/ports/session.hpp"
#include "ipc/messages.hpp"

namespace driftd::ipc {

/// The names in `kinds` of a describe document. `invalid` names file, member, expected and found.
Result<std::vector<std::string>> declared_kinds(const std::string& describe, const std::string& file);
/// What describe lists as `extensions`, known here or not; what has no id or revision is no extension.
std::set<core::Extension> declared_extensions(const std::string& describe);
/// Names of the gauges that describe declares.
std::set<std::string> declared_metrics(const std::string& describe);
/// Checks and types all of it; `invalid` names file, member, expected and found.
Result<std::shared_ptr<const core::ProviderInfo>> parse_info(const LoadAnswer& loaded);

}  // namespace driftd::ipc
