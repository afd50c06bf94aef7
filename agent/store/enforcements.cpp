// SPDX-License-Identifier: Apache-2.0
#include "store/enforcements.hpp"

#include "store/fields.hpp"

namespace driftd::store {
namespace {

Status read_states(const Statement& row, core::Enforcement& out) {
  DRIFTD_TRY(out.changes, parse_changes(row.text(8)));
  DRIFTD_TRY(out.cause, core::parse_enforcement_cause(row.text(14)));
  DRIFTD_TRY(out.state, core::parse_enforcement_state(row.text(17)));
  DRIFTD_TRY(out.commands, parse_list(row.text(18)));
  DRIFTD_TRY(out.undo, parse_list(row.text(19)));
  return {};
}

core::Enforcement read_columns(const Statement& row) {
  core::Enforcement out;
  out.id = row.text(0);
  out.backend_uid = row.text(1);
  out.backend = row.text(2);
  out.resource = {row.text(3), row.text(4)};
  out.external_name = row.text(5);
  out.drift_id = row.text(6);
  out.digest = row.text(7);
  out.desired = row.text(9);
  out.observed = row.text(10);
  out.provider = row.text(11);
  out.provider_version = row.text(12);
  out.trace_id = row.text(13);
  out.actor = row.text(15);
  out.reason = row.text(16);
  out.text = row.text(20);
  out.key = row.text(21);
  out.writer = row.text(22);
  out.attempts = static_cast<int>(row.integer(23));
  out.planned_ns = row.integer(24);
  out.updated_ns = row.integer(25);
  out.ended_ns = row.maybe_integer(26);
  out.retry_ns = row.maybe_integer(27);
  out.accepted = row.integer(28) != 0;
  out.forgiven = row.integer(29) != 0;
  out.api_version = row.text(30);
  return out;
}

}  // namespace

Result<core::Enforcement> read_enforcement(const Statement& row) {
  core::Enforcement out = read_columns(row);
  DRIFTD_CHECK(read_states(row, out));
  return out;
}

core::Enforcement read_what_is_whole(const Statement& row, std::string& damage) {
  core::Enforcement out = read_columns(row);
  if (const Status read = read_states(row, out); !read) damage = read.error().message;
  return out;
}

namespace {

Result<std::vector<core::Enforcement>> read_all(Statement& query) {
  std::vector<core::Enforcement> out;
  std::size_t read = 0;
  while (read < kPageBytes) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    DRIFTD_TRY(auto one, read_enforcement(query));
    read += one.desired.size() + one.observed.size() + one.text.size() + 1'000;
    out.push_back(std::move(one));
  }
  return out;
}

Result<std::vector<core::EnforcementStop>> read_stops(Connection& db, const std::string& backend_uid) {
  std::vector<core::EnforcementStop> out;
  auto query = db.statement(
      "SELECT backend, kind, name, reason, actor, at_ns, lifted_ns, lifted_by FROM enforcement_stop WHERE backend = ?");
  query.bind(backend_uid);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    core::EnforcementStop one;
    one.backend_uid = query.text(0);
    one.resource = {query.text(1), query.text(2)};
    one.reason = query.text(3);
    one.actor = query.text(4);
    one.at_ns = query.integer(5);
    one.lifted_ns = query.maybe_integer(6);
    one.lifted_by = query.text(7);
    out.push_back(std::move(one));
  }
}

/// The bodies are for people; the brakes and a restart do not need them.
Result<core::EnforcementRecord> read_record(Connection& db, const std::string& backend_uid, Nanos since) {
  core::EnforcementRecord out;
  auto query = db.statement(
      "SELECT id, backend, backend_name, kind, name, external_name, drift, digest, changes, '', '', provider, "
      "provider_version, trace_id, cause, actor, reason, state, commands, undo, text, key, writer, attempts, "
      "planned_ns, "
      "updated_ns, ended_ns, retry_ns, accepted, forgiven, api_version FROM operation WHERE backend = ? AND (open = 1 "
      "OR planned_ns "
      ">= ? OR state IN "
      "('unknown', 'rollback_failed')) ORDER BY planned_ns, id");
  query.bind(backend_uid, since);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    DRIFTD_TRY(auto one, read_enforcement(query));
    out.operations.push_back(std::move(one));
  }
  DRIFTD_TRY(out.stops, read_stops(db, backend_uid));
  return out;
}

}  // namespace

/// The bodies are written once: later steps of the operation do not know them.
Status write_enforcement(Connection& db, const core::Enforcement& one) {
  return db
      .statement(
          "INSERT INTO operation (" DRIFTD_OPERATION_COLUMNS
          ", open) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,"
          "?24,?25,?26,?27,?28,?29,?30,?31,?32) ON CONFLICT (id) DO UPDATE SET state = ?18, commands = ?19, undo = "
          "?20, "
          "text = ?21, attempts = ?24, updated_ns = ?26, ended_ns = ?27, retry_ns = ?28, accepted = ?29, forgiven = "
          "?30, open = ?32")
      .bind(one.id, one.backend_uid, one.backend, one.resource.kind, one.resource.id, one.external_name, one.drift_id,
            one.digest, to_text(one.changes), one.desired, one.observed, one.provider, one.provider_version,
            one.trace_id, core::render(one.cause), one.actor, one.reason, core::render(one.state),
            to_text(one.commands), to_text(one.undo), one.text, one.key, one.writer, one.attempts, one.planned_ns,
            one.updated_ns, one.ended_ns, one.retry_ns, one.accepted ? 1 : 0, one.forgiven ? 1 : 0, one.api_version,
            core::is_open(one.state) ? 1 : 0)
      .run();
}

Status write_enforcement_stop(Connection& db, const core::EnforcementStop& stop) {
  return db
      .statement(
          "INSERT OR REPLACE INTO enforcement_stop (backend, kind, name, reason, actor, at_ns, lifted_ns, lifted_by) "
          "VALUES (?,?,?,?,?,?,?,?)")
      .bind(stop.backend_uid, stop.resource.kind, stop.resource.id, stop.reason, stop.actor, stop.at_ns, stop.lifted_ns,
            stop.lifted_by)
      .run();
}

Result<bool> prune_enforcements(Connection& db, Nanos before, int limit) {
  DRIFTD_CHECK(db.statement("DELETE FROM operation WHERE id IN (SELECT id FROM operation WHERE open = 0 AND "
                            "ended_ns < ? AND (change_seq IS NULL OR change_seq <= coalesce((SELECT value FROM meta "
                            "WHERE key = 'change_log_acked'), 0)) LIMIT ?)")
                   .bind(before, limit)
                   .run());
  return db.changes() == limit;
}

Task<Result<core::EnforcementRecord>> SqliteStore::enforcement_record(std::string backend_uid, Nanos since) {
  auto read = [uid = std::move(backend_uid), since](Connection& db) { return read_record(db, uid, since); };
  auto record = co_await on_store(state_, std::move(read));
  co_return record;
}

Task<Result<std::vector<core::Enforcement>>> SqliteStore::enforcements(core::EnforcementFilter filter) {
  auto read = [filter = std::move(filter)](Connection& db) {
    auto query = db.statement("SELECT " DRIFTD_OPERATION_COLUMNS
                              " FROM operation WHERE (?1 = '' OR backend_name = ?1) AND (?2 = '' OR drift = ?2 OR id = "
                              "?2) AND (?3 = '' OR state = ?3) ORDER BY planned_ns DESC, id LIMIT ?4");
    query.bind(filter.backend, filter.about, filter.state, filter.limit);
    return read_all(query);
  };
  auto rows = co_await read_on_io_pool(state_, std::move(read));
  co_return rows;
}

}  // namespace driftd::store
