// SPDX-License-Identifier: Apache-2.0
// Rows that do not match their checksum are named, and reset to what is certain.
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// Returns `corrupt`, with the row and the ways out, if a row is wrong that nothing else can restore: a backend, the
/// kinds with a baseline, the store's own counters. For open(), before anything of the store is used.
Status check_irreplaceable_rows(Connection& db, const std::filesystem::path& file);
/// Checks that indexes agree with their tables, and rebuilds those that do not if all rows are right. Returns `corrupt`
/// if a row and its index disagree and the row is wrong, so that the row cannot be named.
Status check_indexes(Connection& db, const std::filesystem::path& file);
/// Returns how many rows of state have a wrong checksum.
Result<std::int64_t> count_wrong(Connection& db);

/// Repairs wrong rows, in a transaction, and writes a `corrupt` event for each. A resource loses its baseline and takes
/// the next observation for it; a drift is removed and its resource is judged again; a declaration is removed until its
/// source repeats it; a sink gets everything again that the store still has; a route is rebuilt from its event.
/// State::mended names the rows. Returns `corrupt` as check_irreplaceable_rows() does.
Status mend(SqliteStore::State& state);

/// Tables that contain digests.
enum class Holder { resource, drift, declaration };
/// Does the same for one row whose checksum is right but whose text is invalid: rotation cannot convert its digests,
/// and must not be blocked by it for ever. To be called in a transaction.
Status mend_unreadable(SqliteStore::State& state, Holder of, std::int64_t rowid);

}  // namespace driftd::store
