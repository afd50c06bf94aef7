// SPDX-License-Identifier: Apache-2.0
// Reading and writing of state rows. Runs on the thread that owns the connection; writing needs a transaction.
#pragma once

#include <optional>
#include <string>

#include "core/judge/judge.hpp"
#include "core/ports/store.hpp"
#include "store/keys.hpp"
#include "store/sqlite.hpp"

namespace driftd::store {

/// Returns the row id of a backend; `not_found` names the uid.
Result<std::int64_t> backend_id(Connection& db, const std::string& uid);
/// Updates registration, health, identity and notes of a known uid; inserts the whole row of a new one.
Status write_backend(Connection& db, const InstallationKey& key, const core::BackendRow& row);
Status establish(Connection& db, std::int64_t backend, const std::string& kind, bool value);
Result<std::vector<core::BackendRow>> read_backends(Connection& db, const InstallationKey& key);

/// Writes rows with their open and ended drifts if each stored revision is still `next.revision`. Returns the new
/// revisions, or `conflict`. Writes all rows before the first drift: the pages of the drifts' index, which are written
/// again and again, then stay in SQLite's small cache.
Result<std::vector<std::int64_t>> write_resources(Connection& db, std::int64_t backend, const std::string& backend_uid,
                                                  const std::vector<core::ResourceWrite>& writes, Nanos now);
/// Returns the stored row with its open drifts, or one with revision 0.
Result<core::StoredResource> read_resource(Connection& db, std::int64_t backend, const core::ResourceId& id);

/// Writes or withdraws what a source declares. [declarations.cpp]
Status write_declaration(Connection& db, const core::DeclarationWrite& write);

/// Columns of read_drift(), for a table or alias called `d`.
#define DRIFTD_DRIFT_COLUMNS                                                                                        \
  "d.id, d.backend, d.kind, d.name, d.class, d.against, d.action, d.operation, d.status, d.digest, d.opened_ns, "   \
  "d.updated_ns, d.stale_since_ns, d.actor, d.reason, d.decided_ns, d.expires_ns, d.claimed_by, d.claim_until_ns, " \
  "d.changes, d.approvals_needed, d.approvals, d.former"
inline constexpr int kDriftColumns = 23;
Result<core::Drift> read_drift(const Statement& row);

/// Columns of read_resource_row(), for a table or alias called `r`; its open drifts are read apart.
#define DRIFTD_RESOURCE_COLUMNS                                                                            \
  "r.id, r.kind, r.name, r.revision, r.digest_low, r.digest_high, r.rules_generation, r.schema_revision, " \
  "r.observed_ns, r.external_name, r.observed_external_name, r.origin, r.version, r.status, r.metadata, "  \
  "r.was_unread, "                                                                                         \
  "r.baseline, r.observed, r.has_open"
inline constexpr int kResourceColumns = 19;
Result<core::StoredResource> read_resource_row(const Statement& row);
Result<std::vector<core::Drift>> read_open_drifts(Connection& db, std::int64_t resource);

}  // namespace driftd::store
