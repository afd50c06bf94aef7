// SPDX-License-Identifier: Apache-2.0
// Rows that do not match their checksum: named, and taken back to what can be vouched for.
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// Rows that nothing else can give back are whole: a backend, which kinds have their baseline, the store's own
/// counters. `corrupt` names the row and the ways out. For open(), before anything is believed.
Status check_irreplaceable_rows(Connection& db, const std::filesystem::path& file);
/// Indexes say what their tables say; where they do not and all rows are whole, they are made anew. `corrupt`: a row
/// and its index disagree and the row is wrong, so that its name cannot be told.
Status check_indexes(Connection& db, const std::filesystem::path& file);
/// How many rows of state have a wrong checksum.
Result<std::int64_t> count_wrong(Connection& db);

/// In a transaction. Each wrong row ends with a `corrupt` event: a resource forgets its baseline and takes the next
/// observation for it; a drift goes, and its resource is judged again; a declaration goes until its source says it
/// again; a sink gets again all that the store still has. State::mended names them. `corrupt`: as
/// check_irreplaceable_rows().
Status mend(SqliteStore::State& state);

/// Tables that hold digests.
enum class Holder { resource, drift, declaration };
/// In a transaction. The same for one row whose checksum is right and whose text is none: rotation cannot bring its
/// digests along, and must not be held up by it for ever.
Status mend_unreadable(SqliteStore::State& state, Holder of, std::int64_t rowid);

}  // namespace driftd::store
