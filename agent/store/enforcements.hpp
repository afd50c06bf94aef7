// SPDX-License-Identifier: Apache-2.0
// Rows of operations and of stops. Runs on the thread that owns the connection; writing needs a transaction.
#pragma once

#include "core/enforce/operation.hpp"
#include "store/state.hpp"

namespace driftd::store {

Status write_enforcement(Connection& db, const core::Enforcement& operation);
Status write_enforcement_stop(Connection& db, const core::EnforcementStop& stop);
/// Deletes up to `limit` operations that ended before `before`. Returns true if there may be more.
Result<bool> prune_enforcements(Connection& db, Nanos before, int limit);

}  // namespace driftd::store
