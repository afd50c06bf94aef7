// SPDX-License-Identifier: Apache-2.0
// Event rows that the disk or a person has changed: they are kept apart, reported and never sent.
#include <algorithm>

#include "base/log.hpp"
#include "store/events.hpp"
#include "store/sinks.hpp"

namespace driftd::store {
namespace {

/// Moves one row. Empty if it was moved before.
Result<std::optional<std::string>> move_row(SqliteStore::State& state, std::int64_t seq) {
  auto copy = state.db->statement(
      "INSERT INTO quarantine SELECT seq, ?2, 'checksum', id, sequence, recorded_ns, agent_event, key, backend, "
      "backend_type, source, what, cluster, provider, resource, type, crc, payload, incarnation, routed FROM event "
      "WHERE seq = ?1 "
      "RETURNING CAST(id AS TEXT)");
  DRIFTD_TRY(const bool found, copy.bind(seq, state.clock.wall()).next());
  if (!found) return std::optional<std::string>{};
  std::optional<std::string> id = copy.text(0);
  DRIFTD_CHECK(copy.run());
  DRIFTD_CHECK(state.db->statement("DELETE FROM event WHERE seq = ?").bind(seq).run());
  return id;
}

Status quarantine_one(SqliteStore::State& state, std::int64_t seq) {
  DRIFTD_TRY(const auto id, move_row(state, seq));
  DRIFTD_TRY(const auto outstanding, outstanding_of(*state.db, seq));
  if (!id && outstanding.empty()) return {};  // it was moved before
  DRIFTD_CHECK(drop_routes(*state.db, seq, outstanding, kCorrupt));
  std::string names;
  for (const auto& sink : outstanding) names += (names.empty() ? "" : ",") + sink.name;
  core::AgentEvent event;
  event.what = "corrupt";
  event.message = "event row " + std::to_string(seq) + " of the store " +
                  (id ? "does not match its checksum; it is in quarantine and is not delivered"
                      : "is missing, although it was not delivered") +
                  (names.empty() ? std::string() : " to " + names) + "; check the disk";
  event.details = {{"seq", std::to_string(seq)}, {"event_id", id.value_or("")}, {"undelivered", names}};
  return insert_own_event(state, std::move(event));
}

}  // namespace

Result<std::vector<Outstanding>> outstanding_of(Connection& db, std::int64_t seq) {
  std::vector<Outstanding> out;
  // CROSS JOIN makes SQLite begin with the sinks. It knows no sizes of tables, and would scan all of `route` for each
  // event.
  auto query = db.statement(
      "SELECT s.id, s.name, coalesce(d.dead, 0) FROM sink s CROSS JOIN route r ON r.sink = s.id AND r.seq = ?1 "
      "LEFT JOIN delivery d ON d.sink = s.id AND d.seq = ?1 "
      "WHERE ?1 > s.low_water OR d.seq IS NOT NULL");
  query.bind(seq);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back({query.integer(0), query.text(1), query.integer(2) != 0});
  }
}

Result<std::vector<std::int64_t>> drop_routes(Connection& db, std::int64_t seq,
                                              const std::vector<Outstanding>& outstanding, std::string_view reason) {
  for (const auto& route : outstanding) DRIFTD_CHECK(count_dropped(db, route.sink, reason, 1));
  std::vector<std::int64_t> settled;
  auto remove = db.statement("DELETE FROM route WHERE sink IN (SELECT id FROM sink) AND seq = ? RETURNING sink");
  remove.bind(seq);
  while (true) {
    DRIFTD_TRY(const bool more, remove.next());
    if (!more) break;
    const auto sink = remove.integer(0);
    const auto is_it = [sink](const Outstanding& one) { return one.sink == sink; };
    if (std::none_of(outstanding.begin(), outstanding.end(), is_it)) settled.push_back(sink);
  }
  DRIFTD_CHECK(db.statement("DELETE FROM delivery WHERE sink IN (SELECT id FROM sink) AND seq = ?").bind(seq).run());
  return settled;
}

Status quarantine(SqliteStore::State& state, const std::vector<std::int64_t>& seqs) {
  for (const auto seq : seqs) DRIFTD_CHECK(quarantine_one(state, seq));
  return {};
}

Task<Result<std::vector<core::StoredEvent>>> quarantine_bad(StatePtr state, Result<EventPage> page) {
  if (!page) co_return fail(page.error());
  if (page->bad.empty()) co_return std::move(page->events);
  auto bad = std::make_shared<std::vector<std::int64_t>>(std::move(page->bad));
  Work work = [state, bad] { return quarantine(*state, *bad); };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return std::move(page->events);
}

}  // namespace driftd::store
