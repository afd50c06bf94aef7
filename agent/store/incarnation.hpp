// SPDX-License-Identifier: Apache-2.0
// Decides whether an opened store is the one that was closed, or a new incarnation of it (ADR 0012).
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// Compares the open database with its mark and with its former file. Continues its incarnation, or begins a new one in
/// a transaction of its own: higher than any before, with an `incarnation` event to be announced. Fills incarnation,
/// commits and clock of the state and its mark. Durable when it returns.
Status take_incarnation(SqliteStore::State& state, const std::filesystem::path& file);

/// Writes the mark of the last commit. A mark that cannot be written is logged: it will detect less, and nothing is
/// lost.
void keep_mark(SqliteStore::State& state);

}  // namespace driftd::store
