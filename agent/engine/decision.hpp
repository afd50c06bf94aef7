// SPDX-License-Identifier: Apache-2.0
// What ties a person's decision to the value that the person saw, and the lines it leaves in the audit log. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/audit.hpp"
#include "core/judge/judge.hpp"
#include "core/redact.hpp"

namespace driftd::engine {

/// Names this drift with the values it has now: 64 hex characters under the key of the store. Without that key nobody
/// can look for two values whose bindings begin alike, so a short beginning is enough to name one. A rotation of the
/// key makes another one: what was shown before is refused, as if the value had moved.
std::string decision_binding(const core::RedactionKey& store_key, const core::Drift& drift);

/// The decision as core::decide takes it: a binding, or at least its first 8 characters, becomes the whole digest of
/// the drift, and one of another value a digest that no drift has. `invalid`: shorter, or not lower-case hex.
Result<core::Decision> resolve_binding(const core::RedactionKey& store_key, const core::StoredResource& stored,
                                       const std::string& drift_id, core::Decision decision);

/// The line of a decision that was applied; `from`: the drift's status before.
core::AuditEntry decision_entry(const core::RedactionKey& store_key, const core::Drift& drift, core::DriftStatus from,
                                const core::Decision& decision, const std::string& backend);
/// The line of a decision that ran out by `now_ns`, if that is what this transition is.
std::optional<core::AuditEntry> expiry_entry(const core::RedactionKey& store_key, const core::StoredResource& before,
                                             const core::Transition& transition, const std::string& backend,
                                             Nanos now_ns);

}  // namespace driftd::engine
