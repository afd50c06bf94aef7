// SPDX-License-Identifier: Apache-2.0
#include "store/mend.hpp"

#include "base/log.hpp"
#include "store/checksums.hpp"
#include "store/events.hpp"
#include "store/migrations.hpp"
#include "store/routes.hpp"

namespace driftd::store {
namespace {

constexpr const char* kWrongChecksum = "does not match its checksum";
constexpr const char* kUnreadable = "cannot be read, so that no rotation of the key can bring its digests along";

/// A wrong row, as far as its own text can be trusted.
struct Wrong {
  std::int64_t id = 0;
  std::string text, also;
  const char* why = kWrongChecksum;
};

Result<std::vector<Wrong>> wrong_rows(Connection& db, std::string_view sql) {
  std::vector<Wrong> out;
  auto query = db.statement(sql);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back({query.integer(0), query.text(1), query.text(2), kWrongChecksum});
  }
}

Status write_corrupt_event(SqliteStore::State& state, const std::string& row, const std::string& done,
                           const char* why = kWrongChecksum) {
  core::AgentEvent event;
  event.what = "corrupt";
  event.message = row + " of the store " + why + ": " + done + "; check the disk";
  event.details = {{"row", row}};
  state.mended.push_back(row);
  return insert_own_event(state, std::move(event));
}

/// Removes the cursors: with one, the provider could answer "unchanged" about what was forgotten.
Status list_anew(Connection& db, std::string_view which, std::int64_t id) {
  return db
      .statement("UPDATE backend SET cursor = '', watch_cursor = '', " DRIFTD_UNSIGN(DRIFTD_CRC_BACKEND) " WHERE " +
                 std::string(which))
      .bind(id)
      .run();
}

/// The next observation becomes the baseline without a drift, because nobody can vouch for the former values.
Status mend_resource(SqliteStore::State& state, const Wrong& row) {
  Connection& db = *state.db;
  DRIFTD_CHECK(list_anew(db, "id = (SELECT backend FROM resource WHERE id = ?)", row.id));
  DRIFTD_CHECK(
      db.statement(
            "UPDATE resource SET revision = revision + 1, digest_low = 0, digest_high = 0, rules_generation = 0, "
            "observed_ns = 0, external_name = '', observed_external_name = '', origin = '', version = '', "
            "status = '{}', metadata = '{}', was_unread = CASE WHEN baseline IS NULL THEN '[]' ELSE '[\"**\"]' END, "
            "baseline = CASE WHEN baseline IS NULL THEN NULL ELSE '{}' END, "
            "observed = CASE WHEN observed IS NULL THEN NULL ELSE '{}' END, has_open = EXISTS "
            "(SELECT 1 FROM drift d WHERE d.resource = ?1 AND d.open = 1) WHERE id = ?1")
          .bind(row.id)
          .run());
  DRIFTD_CHECK(db.statement("UPDATE resource SET crc = " DRIFTD_CRC_RESOURCE " WHERE id = ?").bind(row.id).run());
  return write_corrupt_event(
      state, "resource " + row.text + " of backend " + row.also,
      "its baseline is forgotten and the next observation becomes it, so that what changed in between is not known",
      row.why);
}

Status mend_drift(SqliteStore::State& state, const Wrong& row) {
  Connection& db = *state.db;
  DRIFTD_CHECK(list_anew(
      db, "id = (SELECT r.backend FROM drift d JOIN resource r ON r.id = d.resource WHERE d.rowid = ?)", row.id));
  DRIFTD_CHECK(
      db.statement("UPDATE resource SET revision = revision + 1, digest_low = 0, digest_high = 0, "
                   "rules_generation = 0, crc = NULL, has_open = EXISTS (SELECT 1 FROM drift d WHERE d.resource = "
                   "resource.id AND d.open = 1 AND d.rowid <> ?1) WHERE " DRIFTD_WHOLE(
                       DRIFTD_CRC_RESOURCE) " AND id = (SELECT resource FROM drift WHERE rowid = ?1)")
          .bind(row.id)
          .run());
  DRIFTD_CHECK(db.statement("UPDATE resource SET crc = " DRIFTD_CRC_RESOURCE " WHERE crc IS NULL").run());
  DRIFTD_CHECK(db.statement("DELETE FROM drift WHERE rowid = ?").bind(row.id).run());
  return write_corrupt_event(state, "drift " + row.text,
                             "it is removed with its decision; if the difference still stands it is opened again",
                             row.why);
}

Status mend_declaration(SqliteStore::State& state, const Wrong& row) {
  Connection& db = *state.db;
  DRIFTD_CHECK(list_anew(
      db, "id = (SELECT b.id FROM declaration d JOIN backend b ON b.uid = d.source WHERE d.rowid = ?)", row.id));
  DRIFTD_CHECK(db.statement("DELETE FROM declaration WHERE rowid = ?").bind(row.id).run());
  return write_corrupt_event(state, "declaration " + row.text, "it is removed until its source is listed again",
                             row.why);
}

/// Sends every event that the store still has to this sink again, under its old id. At worst it gets duplicates.
Status rewind(Connection& db, std::int64_t sink) {
  DRIFTD_CHECK(db.statement("DELETE FROM delivery WHERE sink = ?").bind(sink).run());
  return db
      .statement(
          "UPDATE sink SET closed = 0, low_water = 0, notes = '{}', acked = 0, dropped = 0, drop_reasons = '{}', "
          "emitted = "
          "(SELECT count(*) FROM route r WHERE r.sink = ?1), crc = NULL WHERE id = ?1")
      .bind(sink)
      .run();
}

/// If a waiting delivery is damaged, its sink is not certain, so each sink gets everything again. All of them are reset
/// before the first event reports it, because the event goes to them.
Status mend_sinks(SqliteStore::State& state) {
  Connection& db = *state.db;
  DRIFTD_TRY(auto sinks, wrong_rows(db, "SELECT id, name, '' FROM sink WHERE NOT " DRIFTD_WHOLE(DRIFTD_CRC_SINK)));
  DRIFTD_CHECK(db.statement("DELETE FROM delivery WHERE crc IS NOT " DRIFTD_CRC_DELIVERY).run());
  if (db.changes() != 0) {
    DRIFTD_TRY(sinks,
               wrong_rows(db, "SELECT id, name, '' FROM sink WHERE closed = 0 OR NOT " DRIFTD_WHOLE(DRIFTD_CRC_SINK)));
  }
  for (const auto& row : sinks) DRIFTD_CHECK(rewind(db, row.id));
  for (const auto& row : sinks) {
    DRIFTD_CHECK(write_corrupt_event(state, "a delivery mark, perhaps of sink " + row.text,
                                     "the sink gets again all events that the store still has, under the same ids"));
  }
  return {};
}

Status report_routes(SqliteStore::State& state, const RebuiltRoutes& routes) {
  if (routes.wrong != 0) {
    return write_corrupt_event(state, std::to_string(routes.wrong) + " routes",
                               "they are rebuilt from the events, no event is lost by it");
  }
  if (routes.restored == 0) return {};
  return write_corrupt_event(state, std::to_string(routes.restored) + " routes",
                             "they are rebuilt from the events, and sinks that had not got these events get them",
                             "are missing");
}

/// What an event was routed to and where it was acknowledged is not certain for a sink that still misses deliveries, so
/// it gets everything again.
Status mend_totals(SqliteStore::State& state) {
  DRIFTD_TRY(const auto short_of, balance_totals(*state.db));
  for (const auto& one : short_of) DRIFTD_CHECK(rewind(*state.db, one.sink));
  for (const auto& one : short_of) {
    DRIFTD_CHECK(write_corrupt_event(state, std::to_string(one.missing) + " deliveries of sink " + one.name,
                                     "the sink gets again all events that the store still has, under the same ids",
                                     "are missing"));
  }
  return {};
}

/// The totals of the sinks say what is missing, so they are read before a mark is taken back; the marks are taken back
/// before the first event reports anything, because it goes to the sinks.
Status mend_deliveries(SqliteStore::State& state) {
  DRIFTD_TRY(const auto routes, rebuild_routes(*state.db));
  DRIFTD_CHECK(mend_sinks(state));
  DRIFTD_CHECK(mend_totals(state));
  return report_routes(state, routes);
}

/// Who subscribed must do so again: what is left of the row could send events to a wrong place.
Status mend_subscription(SqliteStore::State& state, const Wrong& row) {
  DRIFTD_CHECK(state.db->statement("DELETE FROM subscription WHERE id = ?").bind(row.id).run());
  return write_corrupt_event(state, "the subscription of " + row.text,
                             "it is removed, and its callback gets nothing until the subscriber creates it again");
}

using Mend = Status (*)(SqliteStore::State&, const Wrong&);

Status mend_each(SqliteStore::State& state, std::string_view sql, Mend one) {
  DRIFTD_TRY(const auto rows, wrong_rows(*state.db, sql));
  for (const auto& row : rows) DRIFTD_CHECK(one(state, row));
  return {};
}

#define DRIFTD_DRIFTS "SELECT rowid, id, '' FROM drift WHERE "
#define DRIFTD_RESOURCES                                                                                              \
  "SELECT id, kind || '/' || name, coalesce((SELECT b.name FROM backend b WHERE b.id = resource.backend), '?') FROM " \
  "resource WHERE "
#define DRIFTD_DECLARATIONS "SELECT rowid, target || '/' || kind || '/' || name, '' FROM declaration WHERE "
constexpr std::string_view kWrongDrifts = DRIFTD_DRIFTS "crc IS NOT " DRIFTD_CRC_DRIFT;
constexpr std::string_view kWrongResources = DRIFTD_RESOURCES "crc IS NOT " DRIFTD_CRC_RESOURCE;
constexpr std::string_view kWrongDeclarations = DRIFTD_DECLARATIONS "crc IS NOT " DRIFTD_CRC_DECLARATION;
constexpr std::string_view kWrongSubscriptions =
    "SELECT id, subscriber, '' FROM subscription WHERE crc IS NOT " DRIFTD_CRC_SUBSCRIPTION;

Status mend_unreadable(SqliteStore::State& state, std::string_view sql, std::int64_t rowid, Mend one) {
  Wrong row;
  {
    auto query = state.db->statement(sql);
    DRIFTD_TRY(const bool found, query.bind(rowid).next());
    if (!found) return {};
    row = {rowid, query.text(1), query.text(2), kUnreadable};
  }
  DRIFTD_CHECK(one(state, row));
  return sign(*state.db);
}

/// Rows that nothing else can restore.
constexpr std::string_view kGround[] = {
    "SELECT id, 'backend ' || name, '' FROM backend WHERE NOT " DRIFTD_WHOLE(DRIFTD_CRC_BACKEND),
    "SELECT backend, 'that kind ' || kind || ' has its baseline', '' FROM established WHERE crc IS "
    "NOT " DRIFTD_CRC_ESTABLISHED,
    "SELECT 0, 'meta ' || key, '' FROM meta WHERE key <> 'restored' AND crc IS NOT " DRIFTD_CRC_META};

/// Returns `ok`, or the first problem.
Result<std::string> integrity_of(Connection& db) {
  auto check = db.statement("PRAGMA integrity_check(1)");
  DRIFTD_TRY(const bool found, check.next());
  return found ? check.text(0) : std::string("no answer of integrity_check");
}

}  // namespace

Status check_irreplaceable_rows(Connection& db, const std::filesystem::path& file) {
  for (const auto& sql : kGround) {
    DRIFTD_TRY(const auto rows, wrong_rows(db, sql));
    if (!rows.empty()) return fail(damaged(file, "the row of " + rows.front().text + " does not match its checksum"));
  }
  return {};
}

Status check_indexes(Connection& db, const std::filesystem::path& file) {
  const auto answer = integrity_of(db);
  if (!answer) return fail(damaged(file, answer.error().message));
  const std::string& found = *answer;
  if (found == "ok") return {};
  const auto wrong = count_wrong(db);
  if (!wrong) return fail(damaged(file, found));  // its pages cannot be read to the end
  if (*wrong != 0)
    return fail(damaged(file, found + ", and " + std::to_string(*wrong) + " rows do not match their checksum"));
  const Status made = db.execute("REINDEX");
  if (!made) return fail(damaged(file, found + "; " + made.error().message));
  DRIFTD_TRY(const auto now, integrity_of(db));
  if (now != "ok") return fail(damaged(file, now));
  log::room("store").error(
      "an index of the store did not agree with its table and was rebuilt ({}); no row was lost; check the disk",
      found);
  return {};
}

Result<std::int64_t> count_wrong(Connection& db) {
  std::int64_t out = 0;
  for (const auto& sql : kGround) {
    DRIFTD_TRY(const auto rows, wrong_rows(db, sql));
    out += static_cast<std::int64_t>(rows.size());
  }
  for (const auto& sql :
       {kWrongDrifts, kWrongResources, kWrongDeclarations,
        std::string_view("SELECT id, name, '' FROM sink WHERE NOT " DRIFTD_WHOLE(DRIFTD_CRC_SINK)),
        std::string_view("SELECT sink, '', '' FROM route WHERE crc IS NOT " DRIFTD_CRC_ROUTE), kWrongSubscriptions,
        std::string_view("SELECT sink, '', '' FROM delivery WHERE crc IS NOT " DRIFTD_CRC_DELIVERY)}) {
    DRIFTD_TRY(const auto rows, wrong_rows(db, sql));
    out += static_cast<std::int64_t>(rows.size());
  }
  return out;
}

Status mend_unreadable(SqliteStore::State& state, Holder of, std::int64_t rowid) {
  switch (of) {
    case Holder::resource:
      return mend_unreadable(state, DRIFTD_RESOURCES "id = ?", rowid, mend_resource);
    case Holder::drift:
      return mend_unreadable(state, DRIFTD_DRIFTS "rowid = ?", rowid, mend_drift);
    case Holder::declaration:
      return mend_unreadable(state, DRIFTD_DECLARATIONS "rowid = ?", rowid, mend_declaration);
  }
  return {};
}

Status mend(SqliteStore::State& state) {
  DRIFTD_CHECK(check_irreplaceable_rows(*state.db, state.settings.data_dir / "store.db"));
  DRIFTD_CHECK(mend_deliveries(state));  // first: the events of all others go to the sinks
  DRIFTD_CHECK(mend_each(state, kWrongDrifts, mend_drift));
  DRIFTD_CHECK(mend_each(state, kWrongResources, mend_resource));
  DRIFTD_CHECK(mend_each(state, kWrongDeclarations, mend_declaration));
  DRIFTD_CHECK(mend_each(state, kWrongSubscriptions, mend_subscription));
  return sign(*state.db);
}

}  // namespace driftd::store
