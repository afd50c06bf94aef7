// SPDX-License-Identifier: Apache-2.0
// Where a provider goes on from. What it gave is opaque and holds hashes over what it listed, so that whoever had the
// store could try guesses on it: it is kept encrypted, under a key that the store's newest key makes (ADR 0014).
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// The columns of a backend's row; each of them is encrypted for its place alone.
enum class CursorOf { refresh, watch };

/// As it is stored; empty stays empty.
Result<std::string> encrypt_cursor(const InstallationKey& key, const std::string& uid, CursorOf of,
                                   const std::string& cursor);
/// As the provider gave it. What cannot be opened (of a version that kept it as it came, of another key, another row,
/// damaged) is none: everything is listed anew.
std::string decrypt_cursor(const InstallationKey& key, const std::string& uid, CursorOf of, const std::string& stored);

/// No row keeps one that cannot be opened, and sweep() will clear the pages that did. For open(), before anybody reads
/// one.
Status drop_unread_cursors(SqliteStore::State& state);
/// In a transaction: no row keeps any.
Status drop_cursors(Connection& db);

}  // namespace driftd::store
