// SPDX-License-Identifier: Apache-2.0
// Which operations are entries of the change log, and how far it was sent. Runs on the thread that owns the connection;
// writing needs a transaction.
#pragma once

#include "core/ports/change_log.hpp"
#include "store/state.hpp"

namespace driftd::store {

/// Returns true if the operation is in the store with an end: what is written of it from now on makes no entry.
Result<bool> has_ended(Connection& db, const std::string& operation);
/// Gives an operation that has just ended its number in the change log, if its provider has one
/// (Settings::logs_changes) and the provider was asked to write.
Status log_change(SqliteStore::State& state, const core::Enforcement& operation);

}  // namespace driftd::store
