// SPDX-License-Identifier: Apache-2.0
// Whether a store that is opened is the one that was closed, or a new incarnation of it (ADR 0012).
#pragma once

#include "store/state.hpp"

namespace driftd::store {

/// Compares the open database with its mark and with the file that it was. Goes on in its incarnation, or begins a new
/// one in a transaction of its own: higher than each before it, with an `incarnation` event to be announced. Fills
/// incarnation, commits and clock of the state and its mark; durable when it returns.
Status take_incarnation(SqliteStore::State& state, const std::filesystem::path& file);

/// Writes the mark of what was committed. A mark that cannot be written is logged: it sees less, and nothing is lost.
void keep_mark(SqliteStore::State& state);

}  // namespace driftd::store
