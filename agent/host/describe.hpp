// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>

#include "core/ports/session.hpp"
#include "host/messages.hpp"

namespace driftd::host {

struct Library;

/// Asks a plugin for describe and all its schemas; `invalid` names what is missing.
Result<Loaded> ask_plugin(const Library& library);
/// What describe lists as `extensions`, known here or not; what has no id or revision is no extension.
std::set<core::Extension> declared_extensions(const std::string& describe);
/// Names of the gauges that describe declares.
std::set<std::string> declared_metrics(const std::string& describe);
/// Checks and types all of it; `invalid` names file, member, expected and found.
Result<std::shared_ptr<const core::ProviderInfo>> parse_info(const Loaded& loaded);

}  // namespace driftd::host
