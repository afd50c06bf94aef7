// SPDX-License-Identifier: Apache-2.0
#include "store/sinks.hpp"

#include "store/checksums.hpp"
#include "store/events.hpp"
#include "store/fields.hpp"
#include "store/gaps.hpp"

namespace driftd::store {
namespace {

constexpr std::string_view kNewestSeq = "SELECT seq FROM sqlite_sequence WHERE name = 'event'";

Result<std::int64_t> count(Statement& query) {
  DRIFTD_TRY(const bool found, query.next());
  return found ? query.integer(0) : 0;
}

Result<std::vector<core::DeliveryState>> read_exceptions(Connection& db, std::int64_t sink) {
  std::vector<core::DeliveryState> out;
  auto query = db.statement("SELECT seq, attempts, next_ns, dead, error, refusals, crc IS " DRIFTD_CRC_DELIVERY
                            " FROM delivery WHERE sink = ? ORDER BY seq");
  query.bind(sink);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    if (query.integer(6) == 0) return fail(wrong_checksum("a delivery of event " + std::to_string(query.integer(0))));
    out.push_back({query.integer(0), static_cast<int>(query.integer(1)), query.integer(2), query.integer(3) != 0,
                   query.text(4), static_cast<int>(query.integer(5))});
  }
}

/// Totals change with each step: an event that leaves the outstanding set counts as acknowledged or dropped; one that
/// comes back does not any more.
struct Change {
  std::int64_t acked = 0, dropped = 0;
};

/// Removes an exception. Returns false if there was none.
Result<bool> end_exception(Connection& db, const SinkRow& sink, std::int64_t seq) {
  DRIFTD_CHECK(db.statement("DELETE FROM delivery WHERE sink = ? AND seq = ?").bind(sink.id, seq).run());
  return db.changes() != 0;
}

Status settle_one(Connection& db, const SinkRow& sink, std::int64_t seq, Change& change) {
  DRIFTD_TRY(const bool found, end_exception(db, sink, seq));
  if (found && seq <= sink.low_water) ++change.acked;
  return {};
}

/// Removes the route too, so that the event stays dropped if the mark goes back.
Status drop_one(Connection& db, const SinkRow& sink, std::int64_t seq, Change& change) {
  DRIFTD_TRY(const bool found, end_exception(db, sink, seq));
  if (!found && seq <= sink.low_water) return {};  // it was acknowledged
  DRIFTD_CHECK(db.statement("DELETE FROM route WHERE sink = ? AND seq = ?").bind(sink.id, seq).run());
  change.dropped += db.changes();
  return {};
}

Status except_one(Connection& db, const SinkRow& sink, const core::DeliveryState& state, Change& change) {
  auto known = db.statement("SELECT count(*) FROM delivery WHERE sink = ? AND seq = ?");
  DRIFTD_TRY(const auto before, count(known.bind(sink.id, state.seq)));
  DRIFTD_CHECK(
      db.statement("INSERT OR REPLACE INTO delivery (sink, seq, dead, attempts, next_ns, error, refusals, crc) "
                   "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, driftd_crc(?1, ?2, ?3, ?4, ?5, ?6, ?7) WHERE EXISTS "
                   "(SELECT 1 FROM route WHERE sink = ?1 AND seq = ?2)")
          .bind(sink.id, state.seq, state.dead ? 1 : 0, state.attempts, state.next_ns, state.error, state.refusals)
          .run());
  if (db.changes() != 0 && before == 0 && state.seq <= sink.low_water) --change.acked;
  return {};
}

/// Routed events in (from, to] that have no exception.
Result<std::int64_t> plain_between(Connection& db, std::int64_t sink, std::int64_t from, std::int64_t to) {
  auto routes = db.statement("SELECT count(*) FROM route WHERE sink = ? AND seq > ? AND seq <= ?");
  DRIFTD_TRY(const auto all, count(routes.bind(sink, from, to)));
  auto exceptions = db.statement("SELECT count(*) FROM delivery WHERE sink = ? AND seq > ? AND seq <= ?");
  DRIFTD_TRY(const auto excepted, count(exceptions.bind(sink, from, to)));
  return all - excepted;
}

Status move_mark(Connection& db, const SinkRow& sink, std::int64_t to, Change& change) {
  if (to == sink.low_water) return {};
  const bool forward = to > sink.low_water;
  const auto low = std::min(to, sink.low_water);
  DRIFTD_TRY(const auto passed, plain_between(db, sink.id, low, std::max(to, sink.low_water)));
  change.acked += forward ? passed : -passed;
  return db.statement("UPDATE sink SET low_water = ?, " DRIFTD_UNSIGN(DRIFTD_CRC_SINK) " WHERE id = ?")
      .bind(to, sink.id)
      .run();
}

/// Returns what cannot be sent again if the mark goes back.
Result<Gap> deleted_behind(Connection& db, const SinkRow& sink, std::int64_t to, const Change& change) {
  if (to >= sink.low_water) return Gap{};
  DRIFTD_TRY(const auto acked, count(db.statement("SELECT acked FROM sink WHERE id = ?").bind(sink.id)));
  return deleted_after(db, sink.id, to, acked + change.acked);
}

struct Left {
  std::int64_t pending = 0, dead = 0, first = 0, last = 0;
};
Result<Left> left_of(Connection& db, const SinkRow& sink) {
  auto query = db.statement(
      "SELECT count(*) FILTER (WHERE dead = 0), count(*) FILTER (WHERE dead = 1), min(seq), max(seq) "
      "FROM (SELECT seq, dead FROM delivery WHERE sink = ?1 UNION ALL SELECT r.seq, 0 FROM route r "
      "WHERE r.sink = ?1 AND r.seq > ?2 AND NOT EXISTS "
      "(SELECT 1 FROM delivery d WHERE d.sink = ?1 AND d.seq = r.seq))");
  DRIFTD_TRY(const bool found, query.bind(sink.id, sink.low_water).next());
  if (!found) return Left{};
  return Left{query.integer(0), query.integer(1), query.integer(2), query.integer(3)};
}

std::string describe(const Left& left) {
  return std::to_string(left.pending) + " events pending and " + std::to_string(left.dead) + " dead letters (events " +
         std::to_string(left.first) + " to " + std::to_string(left.last) + ")";
}

Status write_dropped_event(SqliteStore::State& state, const std::string& name, const Left& left) {
  core::AgentEvent event;
  event.what = "gap";
  event.message = "sink " + name + " was removed with " + describe(left) + ", which it never gets";
  event.details = {{"sink", name},
                   {"from", std::to_string(left.first)},
                   {"to", std::to_string(left.last)},
                   {"count", std::to_string(left.pending + left.dead)},
                   {"reason", std::string(kSinkRemoved)}};
  return insert_own_event(state, std::move(event), name);
}

}  // namespace

Status count_dropped(Connection& db, std::int64_t sink, std::string_view reason, std::int64_t count) {
  return db
      .statement(
          "UPDATE sink SET dropped = dropped + ?1, drop_reasons = json_set(drop_reasons, '$.' || ?2, "
          "coalesce(json_extract(drop_reasons, '$.' || ?2), 0) + ?1), " DRIFTD_UNSIGN(DRIFTD_CRC_SINK) " WHERE id = ?3")
      .bind(count, std::string(reason), sink)
      .run();
}

Result<SinkRow> find_sink(Connection& db, const std::string& name) {
  auto query =
      db.statement("SELECT id, low_water, " DRIFTD_WHOLE(DRIFTD_CRC_SINK) " FROM sink WHERE name = ? AND closed = 0");
  DRIFTD_TRY(const bool found, query.bind(name).next());
  if (!found) return fail(Code::not_found, "the store has no sink '" + name + "'; open it first");
  if (query.integer(2) == 0) return fail(wrong_checksum("the delivery mark of sink " + name));
  return SinkRow{query.integer(0), query.integer(1)};
}

Result<core::SinkCursor> register_sink(Connection& db, const std::string& name) {
  DRIFTD_TRY(const auto newest, db.integer(kNewestSeq));
  DRIFTD_CHECK(db.statement("INSERT INTO sink (name, low_water) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET "
                            "closed = 0, low_water = ?2, notes = '{}', crc = NULL WHERE closed = 1")
                   .bind(name, newest)
                   .run());
  auto query = db.statement("SELECT id, low_water, notes, " DRIFTD_WHOLE(DRIFTD_CRC_SINK) " FROM sink WHERE name = ?");
  DRIFTD_TRY(const bool found, query.bind(name).next());
  if (!found) return fail(Code::internal, "store: sink " + name + " was not written");
  if (query.integer(3) == 0) return fail(wrong_checksum("the delivery mark of sink " + name));
  core::SinkCursor cursor;
  cursor.sink = name;
  cursor.low_water = query.integer(1);
  DRIFTD_TRY(cursor.notes, parse_strings(query.text(2)));
  DRIFTD_TRY(cursor.exceptions, read_exceptions(db, query.integer(0)));
  return cursor;
}

Status apply_settlement(SqliteStore::State& state, const core::SinkSettlement& settlement) {
  Connection& db = *state.db;
  DRIFTD_TRY(const auto sink, find_sink(db, settlement.sink));
  Change change;
  for (const auto seq : settlement.settled) DRIFTD_CHECK(settle_one(db, sink, seq, change));
  for (const auto& state : settlement.upsert) DRIFTD_CHECK(except_one(db, sink, state, change));
  for (const auto seq : settlement.dropped) DRIFTD_CHECK(drop_one(db, sink, seq, change));
  DRIFTD_TRY(const auto deleted, deleted_behind(db, sink, settlement.low_water, change));
  DRIFTD_CHECK(move_mark(db, sink, settlement.low_water, change));
  if (settlement.notes) {
    DRIFTD_CHECK(db.statement("UPDATE sink SET notes = ?, " DRIFTD_UNSIGN(DRIFTD_CRC_SINK) " WHERE id = ?")
                     .bind(to_text(*settlement.notes), sink.id)
                     .run());
  }
  DRIFTD_CHECK(insert_events(state, settlement.events));
  if (deleted.count != 0) DRIFTD_CHECK(write_loss_event(state, settlement.sink, deleted));
  if (change.dropped != 0) DRIFTD_CHECK(count_dropped(db, sink.id, kDeadLetterDropped, change.dropped));
  if (change.acked == 0) return {};
  return db.statement("UPDATE sink SET acked = acked + ?, " DRIFTD_UNSIGN(DRIFTD_CRC_SINK) " WHERE id = ?")
      .bind(change.acked, sink.id)
      .run();
}

Status remove_sink(SqliteStore::State& state, const std::string& name, bool drop_pending) {
  Connection& db = *state.db;
  DRIFTD_TRY(const auto sink, find_sink(db, name));
  DRIFTD_TRY(const auto left, left_of(db, sink));
  const auto count = left.pending + left.dead;
  if (count != 0 && !drop_pending) {
    return fail(Code::conflict, "sink " + name + " still has " + describe(left) +
                                    "; put it back into the config until they are "
                                    "delivered, or name it under delivery.drop_pending to give them up");
  }
  DRIFTD_CHECK(db.statement("DELETE FROM route WHERE sink = ?").bind(sink.id).run());
  DRIFTD_CHECK(db.statement("DELETE FROM delivery WHERE sink = ?").bind(sink.id).run());
  DRIFTD_CHECK(
      db.statement("UPDATE sink SET closed = 1, " DRIFTD_UNSIGN(DRIFTD_CRC_SINK) " WHERE id = ?").bind(sink.id).run());
  if (count == 0) return {};
  DRIFTD_CHECK(count_dropped(db, sink.id, kSinkRemoved, count));
  return write_dropped_event(state, name, left);
}

Result<std::vector<core::SinkTotals>> read_totals(Connection& db) {
  std::vector<core::SinkTotals> out;
  auto query = db.statement(
      "SELECT s.name, s.emitted, s.acked, s.dropped, "
      "(SELECT count(*) FROM route r WHERE r.sink = s.id AND r.seq > s.low_water) - "
      "(SELECT count(*) FROM delivery d WHERE d.sink = s.id AND d.seq > s.low_water AND d.dead = 1) + "
      "(SELECT count(*) FROM delivery d WHERE d.sink = s.id AND d.seq <= s.low_water AND d.dead = 0), "
      "(SELECT count(*) FROM delivery d WHERE d.sink = s.id AND d.dead = 1), s.drop_reasons "
      "FROM sink s WHERE s.closed = 0 OR s.dropped > 0 ORDER BY s.name");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    core::SinkTotals totals{
        query.text(0), query.integer(1), query.integer(2), query.integer(4), query.integer(5), query.integer(3), {}};
    DRIFTD_TRY(totals.dropped_by, parse_counts(query.text(6)));
    out.push_back(std::move(totals));
  }
}

}  // namespace driftd::store
