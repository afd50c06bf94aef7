// SPDX-License-Identifier: Apache-2.0
// Rows of operations and of stops. Runs on the thread that owns the connection; writing needs a transaction.
#pragma once

#include "core/enforce/operation.hpp"
#include "store/state.hpp"

namespace driftd::store {

#define DRIFTD_OPERATION_COLUMNS                                                                                       \
  "id, backend, backend_name, kind, name, external_name, drift, digest, changes, desired, observed, provider, "        \
  "provider_version, trace_id, cause, actor, reason, state, commands, undo, text, key, writer, attempts, planned_ns, " \
  "updated_ns, ended_ns, retry_ns, accepted, forgiven, api_version"

/// Reads a row of DRIFTD_OPERATION_COLUMNS. `corrupt` if a column of it cannot be understood.
Result<core::Enforcement> read_enforcement(const Statement& row);
/// The same, but leaves out what cannot be understood, and sets `damage` to what that is.
core::Enforcement read_what_is_whole(const Statement& row, std::string& damage);
Status write_enforcement(Connection& db, const core::Enforcement& operation);
Status write_enforcement_stop(Connection& db, const core::EnforcementStop& stop);
/// Deletes up to `limit` operations that ended before `before`, but those whose entry of the change log waits. Returns
/// true if there may be more.
Result<bool> prune_enforcements(Connection& db, Nanos before, int limit);

}  // namespace driftd::store
