// SPDX-License-Identifier: Apache-2.0
// The chain of audit lines. Runs on the thread that owns the connection; writing needs a transaction.
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// Appends a line to the chain.
Status write_audit(Connection& db, const core::AuditEntry& entry);
/// Deletes up to `limit` of the oldest lines that are older than `before`, together with lines between them that were
/// written by a clock ahead of `now`. The last deleted line becomes the anchor of the chain. Returns true if there is
/// more to delete.
Result<bool> prune_audit(Connection& db, Nanos before, Nanos now, int limit);
/// Logs where the chain begins and ends, for a comparison from outside.
void log_chain(Connection& db, const std::string& when);

}  // namespace driftd::store
