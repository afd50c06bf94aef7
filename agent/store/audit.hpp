// SPDX-License-Identifier: Apache-2.0
// The chain of audit lines. Runs on the thread that owns the connection; writing needs a transaction.
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// Appends a line to the chain.
Status write_audit(SqliteStore::State& state, const core::AuditEntry& entry);
/// Writes the line if the rules that it sets are others than those that the log last named for the backend.
Status write_rules(SqliteStore::State& state, core::AuditEntry line);
/// Writes a line about each request whose process ended before it wrote how the request ended.
Status end_open_requests(SqliteStore::State& state);
/// Returns about how many bytes of store.db the audit log takes.
Result<std::int64_t> audit_bytes(Connection& db);
/// Deletes up to `limit` of the oldest lines that are older than `before`, together with lines between them that were
/// written by a clock ahead of `now`. The last deleted line becomes the anchor of the chain. Returns true if there is
/// more to delete.
Result<bool> prune_audit(Connection& db, Nanos before, Nanos now, int limit);
/// Logs where the chain begins and ends, for a comparison from outside.
void log_chain(Connection& db, const std::string& when);

}  // namespace driftd::store
