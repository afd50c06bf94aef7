// SPDX-License-Identifier: Apache-2.0
#include "store/checksums.hpp"
#include "store/rows.hpp"
#include "store/state.hpp"

namespace driftd::store {
namespace {

using Rows = std::vector<core::StoredResource>;
using Entries = std::vector<core::IndexEntry>;
using Revisions = std::vector<std::pair<std::string, std::uint32_t>>;

Result<Entries> read_index(Connection& db, const std::string& uid) {
  Entries out;
  DRIFTD_TRY(const auto backend, backend_id(db, uid));
  auto query = db.statement(
      "SELECT kind, name, digest_low, digest_high, rules_generation, revision, present, has_open "
      "FROM resource WHERE backend = ?");
  query.bind(backend);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    core::IndexEntry entry;
    entry.id = {query.text(0), query.text(1)};
    entry.digest = {static_cast<std::uint64_t>(query.integer(2)), static_cast<std::uint64_t>(query.integer(3))};
    entry.rules_generation = static_cast<std::uint64_t>(query.integer(4));
    entry.revision = query.integer(5);
    entry.present = query.integer(6) != 0;
    entry.has_open = query.integer(7) != 0;
    out.push_back(std::move(entry));
  }
}

Result<Revisions> read_revisions(Connection& db, const std::string& uid) {
  Revisions out;
  DRIFTD_TRY(const auto backend, backend_id(db, uid));
  auto query = db.statement("SELECT DISTINCT kind, schema_revision FROM resource WHERE backend = ?");
  query.bind(backend);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.emplace_back(query.text(0), static_cast<std::uint32_t>(query.integer(1)));
  }
}

Result<std::vector<core::ResourceId>> delete_gone(Connection& db, const std::string& uid, std::int64_t limit) {
  std::vector<core::ResourceId> out;
  DRIFTD_TRY(const auto backend, backend_id(db, uid));
  auto query = db.statement(
      "DELETE FROM resource WHERE id IN (SELECT id FROM resource WHERE backend = ? AND present = 0 AND has_open = 0 "
      "AND "
      "baseline IS NULL ORDER BY observed_ns LIMIT ?) RETURNING kind, name");
  query.bind(backend, limit);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back({query.text(0), query.text(1)});
  }
}

Result<bool> delete_kind(Connection& db, const std::string& uid, const std::string& kind, std::int64_t limit) {
  DRIFTD_TRY(const auto backend, backend_id(db, uid));
  DRIFTD_CHECK(db.statement("DELETE FROM resource WHERE id IN (SELECT id FROM resource WHERE backend = ? AND kind = ? "
                            "AND has_open = 0 LIMIT ?)")
                   .bind(backend, kind, limit)
                   .run());
  if (db.changes() == limit) return true;
  DRIFTD_CHECK(db.statement("DELETE FROM established WHERE backend = ?1 AND kind = ?2 AND NOT EXISTS (SELECT 1 FROM "
                            "resource WHERE backend = ?1 AND kind = ?2)")
                   .bind(backend, kind)
                   .run());
  return false;
}

Result<Rows> read_each(Connection& db, const std::string& uid, const std::vector<core::ResourceId>& ids) {
  Rows out;
  out.reserve(ids.size());
  DRIFTD_TRY(const auto backend, backend_id(db, uid));
  for (const auto& id : ids) {
    DRIFTD_TRY(auto row, read_resource(db, backend, id));
    out.push_back(std::move(row));
  }
  return out;
}

/// In one read transaction: without it, each statement locks and unlocks the database.
Result<Rows> read_rows(Connection& db, const std::string& uid, const std::vector<core::ResourceId>& ids) {
  if (db.in_transaction()) return read_each(db, uid, ids);
  DRIFTD_CHECK(db.statement("BEGIN").run());
  auto rows = read_each(db, uid, ids);
  if (db.in_transaction()) DRIFTD_CHECK(db.statement("ROLLBACK").run());  // an error may have ended it
  return rows;
}

constexpr std::size_t kMinPrefix = 6;  // `d-` and four characters

/// Returns the id of the only open (`open` is 1) or ended drift that begins with `given`. Returns `given` itself if it
/// is a complete id or too short for a prefix.
Result<std::string> whole_id(Connection& db, const std::string& given, int open) {
  const bool plain = given.find_first_not_of("0123456789abcdef", 2) == std::string::npos && given.starts_with("d-");
  if (given.size() < kMinPrefix || !plain) return given;
  auto query =
      db.statement("SELECT id FROM drift WHERE id = ?1 OR (open = ?3 AND id > ?1 AND id < ?2) ORDER BY id LIMIT 3");
  query.bind(given, given + "g", open);  // sorts after every hex digit
  std::vector<std::string> found;
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    found.push_back(query.text(0));
  }
  if (found.empty() || found.front() == given) return given;
  if (found.size() == 1) return found.front();
  return fail(Code::conflict, std::string("several ") + (open == 1 ? "open" : "ended") + " drifts begin with " + given +
                                  ", such as " + found[0] + " and " + found[1] + "; give more of the id");
}

Result<core::Store::Owner> read_owner(Connection& db, const std::string& given) {
  DRIFTD_TRY(const std::string drift_id, whole_id(db, given, 1));
  auto query = db.statement("SELECT open, backend, kind, name, status, ended_ns FROM drift WHERE id = ?");
  DRIFTD_TRY(const bool found, query.bind(drift_id).next());
  if (!found) return fail(Code::not_found, "no drift " + drift_id + "; `driftd drifts` lists the open ones");
  if (query.integer(0) == 0) {
    return fail(Code::conflict, "drift " + drift_id + " is closed: " + query.text(4) + " since " +
                                    render_time(query.integer(5)) + "; `driftd drifts` lists the open ones");
  }
  core::Store::Owner owner;
  owner.drift_id = drift_id;
  owner.backend_uid = query.text(1);
  DRIFTD_TRY(const auto backend, backend_id(db, owner.backend_uid));
  DRIFTD_TRY(owner.resource, read_resource(db, backend, {query.text(2), query.text(3)}));
  return owner;
}

Result<core::Store::EndedDrift> read_ended(Connection& db, const std::string& given) {
  DRIFTD_TRY(const std::string drift_id, whole_id(db, given, 0));
  core::Store::EndedDrift out;
  {
    auto query = db.statement("SELECT " DRIFTD_DRIFT_COLUMNS ", d.open, crc IS " DRIFTD_CRC_DRIFT
                              " FROM drift d WHERE d.id = ?");
    DRIFTD_TRY(const bool found, query.bind(drift_id).next());
    if (!found) return fail(Code::not_found, "no drift " + drift_id + "; `driftd drifts --all` lists those that ended");
    if (query.integer(kDriftColumns) != 0) return fail(Code::conflict, "drift " + drift_id + " is open");
    if (query.integer(kDriftColumns + 1) == 0) return fail(wrong_checksum("drift " + drift_id));
    DRIFTD_TRY(out.drift, read_drift(query));
  }
  out.owner.drift_id = drift_id;
  out.owner.backend_uid = out.drift.backend_uid;
  DRIFTD_TRY(const auto backend, backend_id(db, out.owner.backend_uid));
  DRIFTD_TRY(out.owner.resource, read_resource(db, backend, out.drift.resource));
  return out;
}

/// Runs `read` on the store thread. If it meets a row with a wrong checksum, runs it once more as work of a
/// transaction, which mends the row.
template <class Read>
Task<std::invoke_result_t<Read, Connection&>> on_whole_rows(StatePtr state, Read read) {
  auto again = read;
  auto rows = co_await on_store(state, std::move(read));
  if (rows || rows.error().code != Code::corrupt) co_return rows;
  const auto out = std::make_shared<std::decay_t<decltype(*rows)>>();
  Work work = [state, out, again = std::move(again)]() -> Status {
    DRIFTD_TRY(*out, again(*state->db));
    return {};
  };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return std::move(*out);
}

}  // namespace

Task<Result<std::vector<core::BackendRow>>> SqliteStore::backends() {
  auto read = [state = state_](Connection& db) { return read_backends(db, state->key); };
  auto rows = co_await on_store(state_, std::move(read));
  co_return rows;
}

Task<Result<Entries>> SqliteStore::index(std::string backend_uid) {
  auto read = [uid = std::move(backend_uid)](Connection& db) { return read_index(db, uid); };
  auto entries = co_await on_store(state_, std::move(read));
  co_return entries;
}

Task<Result<Revisions>> SqliteStore::schema_revisions(std::string backend_uid) {
  auto read = [uid = std::move(backend_uid)](Connection& db) { return read_revisions(db, uid); };
  auto revisions = co_await on_store(state_, std::move(read));
  co_return revisions;
}

Task<Result<std::vector<core::ResourceId>>> SqliteStore::forget_gone(std::string backend_uid, std::int64_t limit) {
  const auto state = state_;
  const auto out = std::make_shared<std::vector<core::ResourceId>>();
  Work work = [state, out, uid = std::move(backend_uid), limit]() -> Status {
    DRIFTD_TRY(*out, delete_gone(*state->db, uid, limit));
    return {};
  };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return std::move(*out);
}

Task<Result<bool>> SqliteStore::forget_kind(std::string backend_uid, std::string kind, std::int64_t limit) {
  const auto state = state_;
  const auto more = std::make_shared<bool>(false);
  Work work = [state, more, uid = std::move(backend_uid), kind = std::move(kind), limit]() -> Status {
    DRIFTD_TRY(*more, delete_kind(*state->db, uid, kind, limit));
    return {};
  };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return *more;
}

Task<Result<Rows>> SqliteStore::load(std::string backend_uid, std::vector<core::ResourceId> ids) {
  auto read = [uid = std::move(backend_uid), ids = std::move(ids)](Connection& db) { return read_rows(db, uid, ids); };
  auto rows = co_await on_whole_rows(state_, std::move(read));
  co_return rows;
}

Task<Result<core::Store::Owner>> SqliteStore::owner_of(std::string drift_id) {
  auto read = [id = std::move(drift_id)](Connection& db) { return read_owner(db, id); };
  auto owner = co_await on_whole_rows(state_, std::move(read));
  co_return owner;
}

Task<Result<core::Store::EndedDrift>> SqliteStore::ended_drift(std::string drift_id) {
  auto read = [id = std::move(drift_id)](Connection& db) { return read_ended(db, id); };
  auto ended = co_await on_whole_rows(state_, std::move(read));
  co_return ended;
}

}  // namespace driftd::store
