// SPDX-License-Identifier: Apache-2.0
// What a definition registers: the backend that the agent discovers, and its record. Pure.
#pragma once

#include <optional>
#include <vector>

#include "driftd/sdk/extensions.hpp"
#include "k8s/prism.hpp"

namespace driftd::k8s {

/// Map a definition to the backend that the agent discovers, and to its record of kind `registration`. Values of
/// Secrets are in the record's sensitive paths only. `cause` is the object that changed, if known.
sdk::Backend backend_of(const Definition& definition, const Objects& objects, const Settings& settings);
sdk::Record registration_of(const Definition& definition, const Objects& objects, const Settings& settings,
                            const std::optional<Ref>& cause);

/// The same, but objects that do not have the form of their type become a fault of this definition: a record with
/// everything unread, and no backend.
sdk::Record registration_or_unreadable(const Definition& definition, const Objects& objects, const Settings& settings,
                                       const std::optional<Ref>& cause, std::vector<sdk::Diagnostic>& diagnostics);
std::optional<sdk::Backend> backend_or_fault(const Definition& definition, const Objects& objects,
                                             const Settings& settings, std::vector<sdk::Diagnostic>& diagnostics);

}  // namespace driftd::k8s
