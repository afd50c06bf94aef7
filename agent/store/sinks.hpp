// SPDX-License-Identifier: Apache-2.0
// Rows of sinks, their exceptions and totals. Runs on the thread that owns the connection; writing needs a transaction.
#pragma once

#include <string>
#include <string_view>

#include "store/state.hpp"

namespace driftd::store {

/// Why events count as dropped: the labels of `driftd books` and of the metrics (docs/delivery.md, totals).
inline constexpr std::string_view kRetention = "retention";       ///< not delivered within retention.undelivered
inline constexpr std::string_view kStoreFull = "store_full";      ///< dead letters, beyond retention.max_bytes
inline constexpr std::string_view kSinkRemoved = "drop_pending";  ///< its sink was removed with what it had not got
inline constexpr std::string_view kDeadLetterDropped = "dead_letter";  ///< `driftd deadletter drop`
inline constexpr std::string_view kCorrupt = "corrupt";                ///< its row did not match its checksum
/// Of a `gap` event only: they were delivered, so that they count as acknowledged and not as dropped.
inline constexpr std::string_view kLostByReceiver = "lost_by_receiver";
/// Adds events to those that a sink never gets. The caller removes their routes.
Status count_dropped(Connection& db, std::int64_t sink, std::string_view reason, std::int64_t count);

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
/// that report it, and a `gap` event if the mark goes back over events that were deleted.
Status apply_settlement(SqliteStore::State& state, const core::SinkSettlement& settlement);
/// Returns the totals of the open sinks and of closed ones that dropped something.
Result<std::vector<core::SinkTotals>> read_totals(Connection& db);

}  // namespace driftd::store
