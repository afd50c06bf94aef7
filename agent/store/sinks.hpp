// SPDX-License-Identifier: Apache-2.0
// Rows of sinks, their exceptions and totals. Runs on the thread that owns the connection; writing needs a transaction.
#pragma once

#include <string>

#include "store/state.hpp"

namespace driftd::store {

struct SinkRow {
  std::int64_t id = 0, low_water = 0;
};
/// Returns an open sink; `not_found` names it.
Result<SinkRow> find_sink(Connection& db, const std::string& name);
/// Opens a sink and reads its cursor. A new sink starts after the newest event.
Result<core::SinkCursor> register_sink(Connection& db, const std::string& name);
/// Closes a sink. If it has unsettled events: with `drop_pending` they count as dropped and a `gap` event is written,
/// otherwise the result is `conflict`.
Status remove_sink(SqliteStore::State& state, const std::string& name, bool drop_pending);
/// Moves the low-water mark (also back), writes and removes exceptions, updates the totals and appends the agent events
/// that report it.
Status apply_settlement(SqliteStore::State& state, const core::SinkSettlement& settlement);
/// Returns the totals of the open sinks and of closed ones that dropped something.
Result<std::vector<core::SinkTotals>> read_totals(Connection& db);

}  // namespace driftd::store
