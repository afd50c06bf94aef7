// SPDX-License-Identifier: Apache-2.0
#include "store/checksums.hpp"
#include "store/cursors.hpp"
#include "store/fields.hpp"
#include "store/rows.hpp"

namespace driftd::store {
namespace {

using State = core::HealthReport::State;

State health_of(std::int64_t number) {
  const bool known = number >= 0 && number <= static_cast<std::int64_t>(State::down);
  return known ? static_cast<State>(number) : State::unknown;
}

Status insert_backend(Connection& db, const InstallationKey& key, const core::BackendRow& row) {
  DRIFTD_TRY(const auto cursor, encrypt_cursor(key, row.uid, CursorOf::refresh, row.cursor));
  DRIFTD_TRY(const auto watch_cursor, encrypt_cursor(key, row.uid, CursorOf::watch, row.watch_cursor));
  DRIFTD_CHECK(db.statement("INSERT INTO backend (uid, name, type, provider, registration, system_identity, cursor, "
                            "watch_cursor, health, sequence, deleted_ns, notes) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")
                   .bind(row.uid, row.name, row.type, row.provider, row.registration, row.system_identity, cursor,
                         watch_cursor, static_cast<int>(row.health), row.sequence, row.deleted_ns, to_text(row.notes))
                   .run());
  const auto id = db.last_rowid();
  for (const auto& [kind, value] : row.established) DRIFTD_CHECK(establish(db, id, kind, value));
  return {};
}

Status add_established(Connection& db, std::vector<core::BackendRow>& rows) {
  std::map<std::string, core::BackendRow*> by_uid;
  for (auto& row : rows) by_uid[row.uid] = &row;
  auto query = db.statement("SELECT b.uid, e.kind, e.value FROM established e JOIN backend b ON b.id = e.backend");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return {};
    const auto found = by_uid.find(query.text(0));
    if (found != by_uid.end()) found->second->established[query.text(1)] = query.integer(2) != 0;
  }
}

/// Writes the checksums of rows whose name or identity was changed in place.
Status sign_changed(Connection& db) {
  DRIFTD_CHECK(db.statement("UPDATE resource SET crc = " DRIFTD_CRC_RESOURCE " WHERE crc IS NULL").run());
  return db.statement("UPDATE drift SET crc = " DRIFTD_CRC_DRIFT " WHERE crc IS NULL").run();
}

/// External names (oids, uids, topic ids) belong to one system; under another accepted one they mean nothing.
Status forget_identities(Connection& db, const core::BackendRow& row) {
  if (row.system_identity.empty()) return {};
  DRIFTD_CHECK(
      db.statement(
            "UPDATE resource SET external_name = '', observed_external_name = '', revision = revision + 1, crc = NULL "
            "WHERE crc IS " DRIFTD_CRC_RESOURCE
            " AND backend = (SELECT id FROM backend WHERE uid = ? AND system_identity NOT IN ('', ?)) "
            "AND external_name || observed_external_name <> ''")
          .bind(row.uid, row.system_identity)
          .run());
  return sign_changed(db);
}

/// Drifts of a backend itself are stored under its name and are renamed with it.
Status rename_itself(Connection& db, const core::BackendRow& row) {
  auto known = db.statement("SELECT id, name FROM backend WHERE uid = ?");
  DRIFTD_TRY(const bool found, known.bind(row.uid).next());
  if (!found || known.text(1) == row.name) return {};
  const std::int64_t id = known.integer(0);
  const std::string former = known.text(1);
  DRIFTD_CHECK(db.statement("DELETE FROM drift WHERE open = 1 AND backend = ? AND kind = 'backend' AND name = ?")
                   .bind(row.uid, row.name)
                   .run());  // removes the row that this one replaces
  DRIFTD_CHECK(db.statement("UPDATE OR REPLACE resource SET name = ?, crc = NULL WHERE crc IS " DRIFTD_CRC_RESOURCE
                            " AND backend = ? AND kind = 'backend' AND name = ?")
                   .bind(row.name, id, former)
                   .run());
  DRIFTD_CHECK(db.statement("UPDATE drift SET name = ?, crc = NULL WHERE crc IS " DRIFTD_CRC_DRIFT
                            " AND open = 1 AND backend = ? AND kind = 'backend' AND name = ?")
                   .bind(row.name, row.uid, former)
                   .run());
  return sign_changed(db);
}

}  // namespace

Result<std::int64_t> backend_id(Connection& db, const std::string& uid) {
  auto query = db.statement("SELECT id, " DRIFTD_WHOLE(DRIFTD_CRC_BACKEND) " FROM backend WHERE uid = ?");
  DRIFTD_TRY(const bool found, query.bind(uid).next());
  if (!found) return fail(Code::not_found, "the store has no backend with uid '" + uid + "'; register it first");
  if (query.integer(1) == 0) return fail(wrong_checksum("the row of backend " + uid));
  return query.integer(0);
}

Status establish(Connection& db, std::int64_t backend, const std::string& kind, bool value) {
  return db
      .statement(
          "INSERT OR REPLACE INTO established (backend, kind, value, crc) VALUES (?1, ?2, ?3, driftd_crc(?1, ?2, ?3))")
      .bind(backend, kind, value ? 1 : 0)
      .run();
}

Status write_backend(Connection& db, const InstallationKey& key, const core::BackendRow& row) {
  DRIFTD_CHECK(forget_identities(db, row));
  DRIFTD_CHECK(rename_itself(db, row));
  DRIFTD_CHECK(
      db.statement("UPDATE backend SET name = ?, type = ?, provider = ?, registration = ?, system_identity = ?, "
                   "deleted_ns = ?, notes = ?, " DRIFTD_UNSIGN(DRIFTD_CRC_BACKEND) " WHERE uid = ?")
          .bind(row.name, row.type, row.provider, row.registration, row.system_identity, row.deleted_ns,
                to_text(row.notes), row.uid)
          .run());
  if (db.changes() != 0) return {};
  return insert_backend(db, key, row);
}

Result<std::vector<core::BackendRow>> read_backends(Connection& db, const InstallationKey& key) {
  std::vector<core::BackendRow> rows;
  auto query = db.statement(
      "SELECT uid, name, type, provider, registration, system_identity, cursor, watch_cursor, "
      "health, sequence, deleted_ns, notes FROM backend ORDER BY id");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    core::BackendRow row{query.text(0),
                         query.text(1),
                         query.text(2),
                         query.text(3),
                         query.text(4),
                         query.text(5),
                         decrypt_cursor(key, query.text(0), CursorOf::refresh, query.text(6)),
                         decrypt_cursor(key, query.text(0), CursorOf::watch, query.text(7)),
                         {},
                         health_of(query.integer(8))};
    row.sequence = static_cast<std::uint64_t>(query.integer(9));
    row.deleted_ns = query.maybe_integer(10);
    DRIFTD_TRY(row.notes, parse_strings(query.text(11)));
    rows.push_back(std::move(row));
  }
  DRIFTD_CHECK(add_established(db, rows));
  return rows;
}

}  // namespace driftd::store
