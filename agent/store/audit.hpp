// SPDX-License-Identifier: Apache-2.0
// The chain of audit lines. On the thread that owns the connection; writing needs a transaction.
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// Appends a line behind the head of the chain.
Status write_audit(Connection& db, const core::AuditEntry& entry);
/// Deletes at most `limit` of the oldest lines that are older than `before`, and with them those in between that a
/// clock wrote which was ahead of `now`; the last one becomes the chain's anchor. Returns whether there is more.
Result<bool> prune_audit(Connection& db, Nanos before, Nanos now, int limit);
/// One line in the agent's log that says where the chain begins and ends, for a comparison from outside.
void log_chain(Connection& db, const std::string& when);

}  // namespace driftd::store
