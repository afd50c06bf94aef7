// SPDX-License-Identifier: Apache-2.0
// The cursors of providers. A cursor is opaque and contains hashes of what the provider listed, so that somebody with
// the store could test guesses on it. Therefore it is encrypted, under a key derived from the store's newest key (ADR
// 0014).
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// The cursor columns of a backend's row. Each value is encrypted for its row and column and cannot be opened
/// elsewhere.
enum class CursorOf { refresh, watch };

/// Returns a cursor as it is stored, encrypted. Empty stays empty.
Result<std::string> encrypt_cursor(const InstallationKey& key, const std::string& uid, CursorOf of,
                                   const std::string& cursor);
/// Returns a stored cursor as the provider gave it. One that cannot be opened (stored in clear by an older version, of
/// another key or row, damaged) is treated as none, so that everything is listed again.
std::string decrypt_cursor(const InstallationKey& key, const std::string& uid, CursorOf of, const std::string& stored);

/// Removes the cursors that cannot be opened from all rows, and makes sweep() clear the pages that held them. For
/// open(), before anything reads a cursor.
Status drop_undecryptable_cursors(SqliteStore::State& state);
/// Removes the cursors of all rows. To be called in a transaction.
Status drop_cursors(Connection& db);

}  // namespace driftd::store
