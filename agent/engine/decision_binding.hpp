// SPDX-License-Identifier: Apache-2.0
// Binds a person's decision to the value that the person saw, and makes its audit lines. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "core/audit.hpp"
#include "core/enforce/operation.hpp"
#include "core/judge/judge.hpp"
#include "core/redact.hpp"

namespace driftd::engine {

/// Returns the binding of a drift and its current values: 64 hex characters, a keyed hash under the store's key. Nobody
/// without the key can search for two values whose bindings begin alike, so a short prefix is enough to name one. After
/// a rotation of the key a binding that was shown before is refused, as if the value had changed.
std::string decision_binding(const core::RedactionKey& store_key, const core::Drift& drift);

/// Translates the binding in a decision into what core::decide compares: the drift's digest if the binding, or a prefix
/// of at least 8 characters, matches, and otherwise a digest that no drift has. Fails with `invalid` if it is shorter
/// or not lower-case hex.
Result<core::Decision> resolve_binding(const core::RedactionKey& store_key, const core::StoredResource& stored,
                                       const std::string& drift_id, core::Decision decision);

/// The same for a decision about a drift that ended.
Result<core::Decision> resolve_binding(const core::RedactionKey& store_key, const core::Drift& drift,
                                       core::Decision decision);

/// Makes the audit line of a claim, or of its end.
core::AuditEntry claim_entry(const core::RedactionKey& store_key, const core::Drift& drift, const core::Claim& claim,
                             const std::string& backend);
/// Makes the audit line of a decision that was applied; `from` is the drift's status before it.
core::AuditEntry decision_entry(const core::RedactionKey& store_key, const core::Drift& drift, core::DriftStatus from,
                                const core::Decision& decision, const std::string& backend);
/// Makes the audit line of a decision that expired by `now_ns`; empty if this transition is not an expiry.
std::optional<core::AuditEntry> expiry_entry(const core::RedactionKey& store_key, const core::StoredResource& before,
                                             const core::Transition& transition, const std::string& backend,
                                             Nanos now_ns);

/// Makes the audit line of a step of an enforcement.
core::AuditEntry enforcement_entry(const core::RedactionKey& store_key, const core::Enforcement& operation);

}  // namespace driftd::engine
