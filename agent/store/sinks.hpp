// SPDX-License-Identifier: Apache-2.0
// Rows of sinks, their exceptions and books. On the thread that owns the connection; writing needs a transaction.
#pragma once

#include <string>

#include "store/state.hpp"

namespace driftd::store {

struct SinkRow {
  std::int64_t id = 0, low_water = 0;
};
/// An open sink; `not_found` names it.
Result<SinkRow> find_sink(Connection& db, const std::string& name);
/// Opens a sink, a new one after the newest event, and reads its cursor.
Result<core::SinkCursor> register_sink(Connection& db, const std::string& name);
/// Closes a sink. What it had not settled counts as dropped and is told in a `gap` event, or is a `conflict`.
Status remove_sink(SqliteStore::State& state, const std::string& name, bool drop_pending);
/// Moves the low-water mark (also back), writes and removes exceptions, keeps the books, appends what tells of it.
Status apply_settlement(SqliteStore::State& state, const core::SinkSettlement& settlement);
/// Books of the open sinks and of closed ones that dropped something.
Result<std::vector<core::SinkTotals>> read_books(Connection& db);

}  // namespace driftd::store
