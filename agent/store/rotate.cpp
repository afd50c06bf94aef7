// SPDX-License-Identifier: Apache-2.0
#include "store/rotate.hpp"

#include <sqlite3.h>
#include <algorithm>
#include <boost/asio/system_executor.hpp>
#include <cstdlib>
#include <sstream>

#include "base/log.hpp"
#include "store/audit.hpp"
#include "store/checksums.hpp"
#include "store/cursors.hpp"
#include "store/fields.hpp"
#include "store/mend.hpp"

namespace driftd::store {
namespace {

void step(const SqliteStore::State& state, std::string_view name) {
  if (state.settings.at_step) state.settings.at_step(name);
}

/// `worker store layer@event …`: each layer with the newest event at the time when it was added.
std::string named_in_store(const InstallationKey& key) {
  std::string out = key.worker.id + " " + key.store.id;
  for (std::size_t i = 0; i < key.store.layers.size(); ++i) {
    out += " " + key.store.layers[i].id + "@" + std::to_string(key.rotations[i].newest_event);
  }
  return out;
}

Status set_meta(Connection& db, std::string_view key, const std::string& value) {
  return db.statement("INSERT OR REPLACE INTO meta (key, value, crc) VALUES (?1, ?2, driftd_crc(?1, ?2))")
      .bind(key, value)
      .run();
}

/// Fills in the newest events of the layers that the store names.
void take_events(const std::string& named, InstallationKey& key) {
  std::istringstream words(named);
  std::size_t layer = 0;
  for (std::string word; words >> word;) {
    const auto at = word.find('@');
    if (at == std::string::npos || layer == key.rotations.size()) continue;
    key.rotations[layer++].newest_event = std::strtoll(word.c_str() + at + 1, nullptr, 10);
  }
}

constexpr std::size_t kRowsPerLook = 256;  ///< rows in one search for digests that need a slow layer

/// Computes what the rows from number `i` on need, if a slice begins there.
Status slow_slice(const SlowLayer& slow, std::string_view sql, const std::vector<std::int64_t>& ids, std::size_t i) {
  if (i % kRowsPerLook != 0) return {};
  return slow.make(sql, ids[i], ids[std::min(i + kRowsPerLook, ids.size()) - 1]);
}

/// Returns the ids in the order of the query.
Result<std::vector<std::int64_t>> ids_in(Connection& db, std::string_view sql) {
  std::vector<std::int64_t> out;
  auto query = db.statement(sql);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    out.push_back(query.integer(0));
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool may_hold_digests(const std::optional<std::string>& text) {
  return text && text->find("$hmac") != std::string::npos;
}

Status rewrap_text(std::optional<std::string>& text, const core::RedactionKeys& keys) {
  if (!may_hold_digests(text)) return {};
  DRIFTD_TRY(text, core::rewrap(*text, keys));
  return {};
}

/// Returns true if `done` means that the row itself cannot be read. Other errors, such as a lack of memory, may be
/// temporary.
bool is_of_the_row(const Status& done) {
  return !done && (done.error().code == Code::invalid || done.error().code == Code::corrupt ||
                   done.error().code == Code::budget);
}

Status rewrap_resource(Connection& db, const core::RedactionKeys& keys, std::int64_t id) {
  std::optional<std::string> baseline, observed;
  {
    auto query = db.statement("SELECT baseline, observed FROM resource WHERE id = ?");
    DRIFTD_TRY([[maybe_unused]] const bool found, query.bind(id).next());
    baseline = query.maybe_text(0);
    observed = query.maybe_text(1);
  }
  DRIFTD_CHECK(rewrap_text(baseline, keys));
  DRIFTD_CHECK(rewrap_text(observed, keys));
  return db.statement("UPDATE resource SET baseline = ?, observed = ? WHERE id = ?").bind(baseline, observed, id).run();
}

Status rewrap_drift(Connection& db, const core::RedactionKeys& keys, std::int64_t row) {
  std::vector<core::Change> changes;
  core::Against against = core::Against::baseline;
  {
    auto query = db.statement("SELECT changes, against FROM drift WHERE rowid = ?");
    DRIFTD_TRY([[maybe_unused]] const bool found, query.bind(row).next());
    DRIFTD_TRY(changes, parse_changes(query.text(0)));
    DRIFTD_TRY(against, core::parse_against(query.text(1)));
  }
  for (auto& change : changes) {
    DRIFTD_CHECK(rewrap_text(change.old_value, keys));
    DRIFTD_CHECK(rewrap_text(change.new_value, keys));
  }
  // The former baseline has digests under the old key, too. Without it the approval cannot be undone; see docs/cli.md.
  DRIFTD_CHECK(db.statement("UPDATE drift SET changes = ?, digest = ?, former = '' WHERE rowid = ?")
                   .bind(to_text(changes), core::digest_of(changes, against), row)
                   .run());
  return db.statement("UPDATE drift SET crc = " DRIFTD_CRC_DRIFT " WHERE rowid = ?").bind(row).run();
}

Status rewrap_declaration(Connection& db, const core::RedactionKeys& keys, std::int64_t row) {
  std::optional<std::string> body;
  {
    auto query = db.statement("SELECT body FROM declaration WHERE rowid = ?");
    DRIFTD_TRY([[maybe_unused]] const bool found, query.bind(row).next());
    body = query.maybe_text(0);
  }
  DRIFTD_CHECK(rewrap_text(body, keys));
  return db.statement("UPDATE declaration SET body = ? WHERE rowid = ?").bind(body, row).run();
}

/// A table that holds digests.
struct Table {
  Holder of;
  std::string_view rows;   ///< ids of the rows with digests
  std::string_view texts;  ///< texts of the rows with ids from ?1 to ?2
  Status (*rewrap)(Connection&, const core::RedactionKeys&, std::int64_t);
};

/// Mends and reports a row that cannot be read, as one with a wrong checksum. It must not prevent a rotation, or a
/// start from finishing one.
Status rewrap_rows(SqliteStore::State& state, const Table& table) {
  Connection& db = *state.db;
  const auto keys = state.key.steps();
  const SlowLayer slow(db, keys);
  DRIFTD_TRY(const auto rows, ids_in(db, table.rows));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    DRIFTD_CHECK(slow_slice(slow, table.texts, rows, i));
    const Status done = table.rewrap(db, keys, rows[i]);
    if (is_of_the_row(done)) {
      DRIFTD_CHECK(mend_unreadable(state, table.of, rows[i]));
    } else {
      DRIFTD_CHECK(done);
    }
  }
  return {};
}

/// Converts the state rows with their bodies. All records are judged again: their digests were made under the former
/// seed, and somebody who knows it could test guesses on them.
Status rewrap_resources(SqliteStore::State& state) {
  DRIFTD_CHECK(rewrap_rows(
      state, {Holder::resource, "SELECT id FROM resource WHERE instr(baseline, '$hmac') OR instr(observed, '$hmac')",
              "SELECT baseline FROM resource WHERE id BETWEEN ?1 AND ?2 UNION ALL SELECT observed FROM resource WHERE "
              "id BETWEEN ?1 AND ?2",
              rewrap_resource}));
  DRIFTD_CHECK(state.db->execute("UPDATE resource SET digest_low = 0, digest_high = 0, rules_generation = 0"));
  return state.db->execute("UPDATE resource SET crc = " DRIFTD_CRC_RESOURCE);
}

/// Converts open and ended drifts.
Status rewrap_drifts(SqliteStore::State& state) {
  return rewrap_rows(state, {Holder::drift, "SELECT rowid FROM drift WHERE instr(changes || former, '$hmac')",
                             "SELECT changes FROM drift WHERE rowid BETWEEN ?1 AND ?2", rewrap_drift});
}

Status rewrap_declarations(SqliteStore::State& state) {
  DRIFTD_CHECK(rewrap_rows(state, {Holder::declaration, "SELECT rowid FROM declaration WHERE instr(body, '$hmac')",
                                   "SELECT body FROM declaration WHERE rowid BETWEEN ?1 AND ?2", rewrap_declaration}));
  DRIFTD_CHECK(state.db->execute("UPDATE declaration SET digest_low = 0, digest_high = 0"));
  return state.db->execute("UPDATE declaration SET crc = " DRIFTD_CRC_DECLARATION);
}

std::map<std::string, std::string> rotation_event(const InstallationKey& key, const core::AuditEntry& line) {
  const std::size_t layers = key.store.layers.size();
  return {{"message", "the installation key was rotated by " + line.actor + ": each stored digest has now " +
                          std::to_string(layers) + (layers == 1 ? " layer" : " layers") +
                          " of it around, no value was taken for another"},
          {"layers", std::to_string(layers)},
          {"key", key.store.newest_id()},
          {"actor", line.actor}};
}

/// Reports the cost of a slow layer in the log and to the caller.
Status report_slow_work(SqliteStore::State& state, const ReportSlowWork& report) {
  DRIFTD_TRY(const SlowWork work, SlowLayer(*state.db, state.key.steps()).work());
  if (work.digests == 0) return {};
  log::room("store").info("a slow layer comes around {} stored digests; that takes about {} s", work.digests,
                          work.time.count() / 1000 + 1);
  if (report) report(work);
  return {};
}

Status rewrap_store(SqliteStore::State& state, const core::AuditEntry& line) {
  Connection& db = *state.db;
  DRIFTD_CHECK(rewrap_resources(state));
  step(state, "resources");
  DRIFTD_CHECK(rewrap_drifts(state));
  step(state, "drifts");
  DRIFTD_CHECK(rewrap_declarations(state));
  step(state, "declarations");
  DRIFTD_CHECK(drop_cursors(db));  // the former key can open them
  DRIFTD_CHECK(set_meta(db, "key_ids", named_in_store(state.key)));
  DRIFTD_CHECK(set_meta(db, "untold_rotation", to_text(rotation_event(state.key, line))));
  DRIFTD_CHECK(leave_unswept(db));
  DRIFTD_CHECK(write_audit(state, line));
  step(state, "named");
  return {};
}

/// To SQLite it is not an error if a reader prevents the log from being emptied; the first column of the result says
/// so.
Status empty_log(Connection& db) {
  auto checkpoint = db.statement("PRAGMA wal_checkpoint(TRUNCATE)");
  DRIFTD_TRY(const bool answered, checkpoint.next());
  if (answered && checkpoint.integer(0) == 0) return {};
  return fail(Code::unavailable, "another process reads the store and keeps its log");
}

Status overwrite_former_pages(Connection& db) {
  DRIFTD_CHECK(db.statement("PRAGMA secure_delete = ON").run());
  DRIFTD_CHECK(db.execute("VACUUM"));
  DRIFTD_CHECK(empty_log(db));
  DRIFTD_CHECK(db.execute("DELETE FROM meta WHERE key = 'unswept'"));
  return db.statement("PRAGMA secure_delete = OFF").run();
}

/// Returns copies under a former key that earlier versions and restores left.
std::vector<std::filesystem::path> former_files(const std::filesystem::path& data_dir) {
  std::vector<std::filesystem::path> out;
  std::error_code error;
  for (std::filesystem::directory_iterator at(data_dir, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.find(".before-") != std::string::npos || name == "store.db.restoring") out.push_back(at->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// The file of the key while a rotation is under way.
struct KeyFile {
  std::filesystem::path path;

  /// The last step of the transaction: everything that could fail for lack of space or because of a row is done.
  Status write(SqliteStore::State& state) const {
    const int flushed = sqlite3_db_cacheflush(state.db->handle());
    if (flushed != SQLITE_OK)
      return fail(Code::internal,
                  std::string("cannot write the rewritten store to its log: ") + sqlite3_errstr(flushed));
    DRIFTD_CHECK(write_private(path, render(state.key)));
    step(state, "written");
    return {};
  }
  /// Undoes the key file after a failed transaction: the store still uses `former`.
  Error put_back(const InstallationKey& former, const Error& error) const {
    const auto now = read_key(path);
    const bool is_former = now && ids_of(*now) == ids_of(former);
    const Status back = is_former ? Status() : write_private(path, render(former));
    if (back)
      return {error.code,
              "the installation key was not rotated, the key and the store are as they were: " + error.message};
    return {error.code, path.string() +
                            " has its next layer, and the store could not be rewritten yet: " + error.message +
                            ". Nothing is lost; the next start, or `driftd key rotate`, finishes it (the former key "
                            "could not be put back: " +
                            back.error().message + ")"};
  }
};

}  // namespace

Result<bool> check_key(Connection& db, const std::string& key_name, InstallationKey& key) {
  const std::string ids = ids_of(key);
  std::string named;
  {
    auto query = db.statement("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'key_ids'");
    DRIFTD_TRY(const bool found, query.next());
    if (found) named = query.text(0);
  }
  if (named.empty()) {
    for (auto& rotation : key.rotations) rotation.newest_event = 0;  // all events of this store come after them
    DRIFTD_CHECK(set_meta(db, "key_ids", named_in_store(key)));
    return false;
  }
  take_events(named, key);
  const std::string stored = ids_named(named);
  if (stored == ids) return false;
  if (ids.starts_with(stored + " ")) return true;
  return fail(Code::conflict, key_fault(key_name, ids, "the store", stored));
}

Status finish_rotation(SqliteStore::State& state, core::AuditEntry line, const Work& last,
                       const ReportSlowWork& report) {
  InstallationKey& key = state.key;
  for (auto& rotation : key.rotations) {
    if (rotation.newest_event == Rotation::kNotInForce) rotation.newest_event = state.newest_seq;
  }
  line.verb = "rotated key";
  line.subject = "installation key";
  line.at_ns = state.clock.wall();
  line.reason = (line.reason.empty() ? "" : line.reason + "; ") + "now " + ids_of(key);
  DRIFTD_CHECK(report_slow_work(state, report));
  DRIFTD_CHECK(state.db->statement("PRAGMA secure_delete = ON").run());
  const auto rewrite = [&state, &line, &last]() -> Status {
    DRIFTD_CHECK(rewrap_store(state, line));
    return last ? last() : Status();
  };
  DRIFTD_CHECK(run_now(state, rewrite));
  step(state, "rewrapped");
  log::room("store").info("the installation key was rotated, the store is under {}", ids_of(key));
  return {};
}

Status leave_unswept(Connection& db) { return set_meta(db, "unswept", "1"); }

Status sweep(SqliteStore::State& state) {
  DRIFTD_TRY(const auto due, state.db->integer("SELECT count(*) FROM meta WHERE key = 'unswept'"));
  if (due == 0) return {};
  DRIFTD_CHECK(overwrite_former_pages(*state.db));
  step(state, "swept");
  return {};
}

Result<Rotated> rotate(Settings settings, core::AuditEntry line, const Clock& clock, core::LayerKind kind,
                       const ReportSlowWork& report) {
  const auto data_dir = settings.data_dir;
  const asio::any_io_executor here = asio::system_executor();  // nothing is posted to it
  std::error_code error;
  if (!std::filesystem::exists(data_dir / "store.db", error)) {
    return fail(Code::not_found, "there is no store in " + data_dir.string() +
                                     ": nothing is under a key yet, the first start makes one");
  }
  DRIFTD_TRY(const auto state, open_state(std::move(settings), here, here, clock));
  const InstallationKey former = state->key;
  DRIFTD_TRY(state->key, rotated(former, clock.wall(), kind));
  step(*state, "made");
  const KeyFile file{data_dir / "installation.key"};
  const Status done = finish_rotation(
      *state, std::move(line), [&] { return file.write(*state); }, report);
  if (!done) return fail(file.put_back(former, done.error()));
  Rotated out{ids_of(state->key), state->key.store.layers.size(), former_files(data_dir), {}};
  if (const Status swept = sweep(*state); !swept) out.unswept = swept.error().message;
  return out;
}

}  // namespace driftd::store
