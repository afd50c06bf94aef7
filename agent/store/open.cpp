// SPDX-License-Identifier: Apache-2.0
#include <openssl/rand.h>
#include <boost/asio/strand.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/step_times.hpp"
#include "store/audit.hpp"
#include "store/cursors.hpp"
#include "store/events.hpp"
#include "store/incarnation.hpp"
#include "store/log_again.hpp"
#include "store/mend.hpp"
#include "store/migrations.hpp"
#include "store/rotate.hpp"
#include "store/routes.hpp"
#include "store/start_check.hpp"
#include "store/state.hpp"

namespace driftd::store {
namespace {

std::filesystem::path key_file(const Settings& settings) { return settings.data_dir / "installation.key"; }
/// The key of a store that is being created. It gets its final name when everything else exists.
std::filesystem::path first_key_file(const Settings& settings) { return settings.data_dir / "installation.key.first"; }

std::string key_name(const Settings& settings) {
  return settings.given ? settings.given->from : key_file(settings).string();
}

/// The file that only an installation has that has run before: the key or, if the key is kept elsewhere, the store's
/// mark.
std::filesystem::path sign_of_life(const Settings& settings) {
  return settings.given ? settings.data_dir / "store.mark" : key_file(settings);
}

/// Detects a lost store: an installation with a key has run before, so a missing or empty store was lost. A new one
/// would accept everything that changed meanwhile as its baseline, without a word to anybody.
Error lost_store(const Settings& settings, const std::string& found) {
  const std::string dir = settings.data_dir.string();
  return {Code::not_found,
          "data_dir " + dir + " has " + (settings.given ? "a store.mark" : "an installation.key") + ", but " + found +
              ": the store was lost, with the baselines, the drifts that wait and the events that were not delivered. "
              "Restore it (`driftd restore FILE`); or, to start over with what is found now as the baseline, move " +
              (settings.given ? "" : "installation.key and ") + "store.mark away from there and start again"};
}

Status refuse_lost_store(const Settings& settings, const std::filesystem::path& file) {
  std::error_code error;
  if (settings.keyed || !std::filesystem::exists(sign_of_life(settings), error)) return {};
  if (!std::filesystem::exists(file, error)) return fail(lost_store(settings, "store.db is not there"));
  if (std::filesystem::file_size(file, error) == 0) return fail(lost_store(settings, "store.db is empty"));
  return {};
}

/// Warns of a key in data_dir, which a backup of it would contain although the configured key is kept elsewhere.
void warn_of_key_beside(const Settings& settings) {
  for (const auto& file : {key_file(settings), first_key_file(settings)}) {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) continue;
    const auto beside = read_key(file);
    const bool same = beside && ids_of(*beside) == ids_of(settings.given->key);
    log::room("store").warn(
        "{} is not used, the key comes from {}. {}", file.string(), settings.given->from,
        same ? "It is the same key: remove it, a backup of data_dir still holds it"
             : "It is another key: keep it elsewhere while there are backups of its time, and remove it there");
  }
}

Result<InstallationKey> take_given_key(const Settings& settings, bool is_new) {
  std::error_code error;
  if (is_new && !settings.keyed && std::filesystem::exists(sign_of_life(settings), error)) {
    return fail(lost_store(settings, "store.db has no tables"));
  }
  warn_of_key_beside(settings);
  return settings.given->key;
}

/// Checks the key before anything of the store is written, including its journal and version. check_key() does the
/// rest.
Status refuse_other_key(Connection& db, const Settings& settings, const InstallationKey& key) {
  auto query = db.statement("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'key_ids'");
  const auto found = query.next();
  if (!found || !*found) return {};  // a store without the table is older; a damaged one is reported later
  const std::string ids = ids_of(key), stored = ids_named(query.text(0));
  if (stored.empty() || stored == ids || ids.starts_with(stored + " ")) return {};
  Error error{Code::conflict, key_fault(key_name(settings), ids, "the store", stored)};
  const auto beside = settings.given ? read_key(key_file(settings)) : Result<InstallationKey>(key);
  if (settings.given && beside && ids_of(*beside) == stored) {
    error.message +=
        ": it lies in data_dir, move " + key_file(settings).string() + " to where 'installation_key' looks";
  }
  return fail(std::move(error));
}

/// A first start creates the key under another name and renames it last, so that a key without a store always means a
/// lost store, and an interrupted start is simply repeated.
Result<InstallationKey> find_key(const Settings& settings, bool is_new) {
  if (settings.given) return take_given_key(settings, is_new);
  auto key = read_key(key_file(settings));
  if (key && is_new && !settings.keyed) return fail(lost_store(settings, "store.db has no tables"));
  if (key || key.error().code != Code::not_found) return key;
  auto first = read_key(first_key_file(settings));
  if (first || first.error().code != Code::not_found) return first;
  if (is_new) return create_key(first_key_file(settings));
  return fail(Code::not_found,
              "data_dir " + settings.data_dir.string() +
                  " has a store but no installation.key: its digests "
                  "cannot be compared without it. Restore installation.key from the backup, or name its place "
                  "(`agent.installation_key`); or move store.db* and "
                  "store.mark away: the agent then starts empty and takes what it finds as the new baseline");
}

Status name_key(const Settings& settings) {
  if (settings.given) return {};
  if (::rename(first_key_file(settings).c_str(), key_file(settings).c_str()) != 0 && errno != ENOENT) {
    return fail(Code::internal, "cannot rename " + first_key_file(settings).string() + ": " + std::strerror(errno));
  }
  return sync(settings.data_dir);
}

Status set_up(Connection& db) {
  DRIFTD_CHECK(db.statement("PRAGMA journal_mode = WAL").run());
  DRIFTD_CHECK(
      db.execute("PRAGMA synchronous = FULL; PRAGMA cache_size = -1024; PRAGMA journal_size_limit = 67108864; "
                 "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON"));
  db.keep_log();
  return {};
}

Result<bool> is_new_store(Connection& db, const std::filesystem::path& file) {
  const auto tables = db.integer("SELECT count(*) FROM sqlite_schema");
  if (tables) return *tables == 0;
  if (tables.error().code == Code::corrupt) return fail(damaged(file, tables.error().message));
  return fail(tables.error());
}

std::string random_text() {
  unsigned char bytes[8];
  return RAND_bytes(bytes, sizeof bytes) == 1 ? to_hex({reinterpret_cast<const char*>(bytes), sizeof bytes})
                                              : std::string();
}

/// Puts the events whose checksum is wrong in quarantine. Otherwise that happens when they are read.
Status quarantine_wrong(SqliteStore::State& state) {
  std::vector<std::int64_t> bad;
  {
    auto query = state.db->statement("SELECT " DRIFTD_EVENT_COLUMNS " FROM event e ORDER BY e.seq");
    while (true) {
      DRIFTD_TRY(const bool more, query.next());
      if (!more) break;
      EventPage page;
      if (!read_event(query, page)) bad.push_back(page.bad.front());
    }
  }
  if (bad.empty()) return {};
  return run_now(state, [&state, &bad] { return quarantine(state, bad); });
}

/// Reads the content of all rows and mends wrong ones, after their structure was checked and before anything is judged
/// by them.
Status mend_wrong(SqliteStore::State& state) {
  if (is_suspect(state.settings.data_dir)) DRIFTD_CHECK(quarantine_wrong(state));
  DRIFTD_TRY(const auto wrong, count_wrong(*state.db));
  DRIFTD_TRY(const auto unaccounted, count_unaccounted(*state.db));
  if (wrong == 0 && unaccounted == 0) return {};
  if (wrong != 0) log::room("store").error("{} rows of the store do not match their checksum", wrong);
  if (unaccounted != 0) log::room("store").error("routes or deliveries of the store are missing");
  return run_now(state, [&state] { return mend(state); });
}

/// Checks structure and indexes of the store, or of its state alone. Returns true if all of it was checked.
Result<bool> check_before_use(Connection& db, const Settings& settings, const std::filesystem::path& file) {
  DRIFTD_TRY(bool whole, must_check_whole(settings));
  if (!whole) {
    DRIFTD_TRY(const bool sound, is_state_sound(db));
    whole = !sound;
  }
  if (whole) DRIFTD_CHECK(check_indexes(db, file));
  DRIFTD_CHECK(check_irreplaceable_rows(db, file));
  return whole;
}

/// Logs at each start what the store contains, so that an empty store is noticed. What waits is taken from the totals:
/// counting it would take longer the longer a sink was away.
Status log_taken_over(Connection& db, bool is_new, const Mark& mark) {
  if (is_new) {
    log::room("store").info("new store: the first complete refresh of each kind is its baseline");
    return {};
  }
  DRIFTD_TRY(const auto backends, db.integer("SELECT count(*) FROM backend WHERE deleted_ns IS NULL"));
  DRIFTD_TRY(const auto resources, db.integer("SELECT count(*) FROM resource WHERE present = 1"));
  DRIFTD_TRY(const auto drifts, db.integer("SELECT count(*) FROM drift WHERE open = 1"));
  DRIFTD_TRY(const auto pending,
             db.integer("SELECT coalesce(sum(emitted - acked - dropped), 0) - (SELECT count(*) FROM delivery WHERE "
                        "dead = 1) FROM sink WHERE closed = 0"));
  log::room("store").info(
      "the store was taken over: {} backends, {} resources, {} drifts open, {} deliveries pending; newest event {}, "
      "incarnation {}",
      backends, resources, drifts, pending, mark.seq, mark.incarnation);
  return {};
}

/// The key has layers that the store lacks: a rotation was interrupted, a backup from before it was restored, or a key
/// was put in place from outside.
Status catch_up(SqliteStore::State& state, bool is_behind) {
  if (is_behind)
    DRIFTD_CHECK(finish_rotation(
        state, core::AuditEntry{.actor = "driftd", .reason = "the key had layers that the store did not"}));
  DRIFTD_CHECK(drop_undecryptable_cursors(state));
  if (const Status swept = sweep(state); !swept) {
    log::room("store").warn(
        "store.db still holds in unused pages what was written over, digests under a former key or cursors as they "
        "came: {}. The next "
        "start tries again",
        swept.error().message);
  }
  return {};
}

}  // namespace

SqliteStore::State::~State() {
  readers.close();
  if (!db) return;
  auto checkpoint = db->statement("PRAGMA wal_checkpoint(TRUNCATE)").run();
  if (checkpoint && mark) checkpoint = mark->sync();
  if (!checkpoint) log::room("store").warn("the store was not brought into one file: {}", checkpoint.error().message);
}

SqliteStore::SqliteStore(std::shared_ptr<State> state) : state_(std::move(state)) {}
SqliteStore::~SqliteStore() = default;
const InstallationKey& SqliteStore::key() const { return state_->key; }
bool SqliteStore::checked_whole() const { return state_->checked_whole; }

Result<StatePtr> open_state(Settings settings, asio::any_io_executor store_thread, asio::any_io_executor io_pool,
                            const Clock& clock) {
  const auto file = settings.data_dir / "store.db";
  StepTimes times;
  DRIFTD_CHECK(prepare_directory(settings.data_dir));
  DRIFTD_TRY(auto lock, DirectoryLock::take(settings.data_dir, clock.wall()));
  DRIFTD_CHECK(refuse_lost_store(settings, file));
  DRIFTD_CHECK(prepare_file(file));
  DRIFTD_CHECK(write_log_again(settings.data_dir / "store.db-wal"));
  times.end("write-ahead log");
  DRIFTD_TRY(auto db, Connection::open(file.string(), Connection::Mode::read_write));
  DRIFTD_TRY(const bool is_new, is_new_store(*db, file));
  DRIFTD_TRY(auto key, find_key(settings, is_new));
  DRIFTD_CHECK(refuse_other_key(*db, settings, key));
  DRIFTD_CHECK(set_up(*db));
  DRIFTD_CHECK(migrate(*db, file, migrations()));
  times.end("open");
  DRIFTD_TRY(const bool whole, check_before_use(*db, settings, file));
  times.end(whole ? "check of the whole" : "check of the state");
  DRIFTD_TRY(const bool is_behind, check_key(*db, key_name(settings), key));
  log_chain(*db, "opened");
  DRIFTD_CHECK(sync(settings.data_dir));
  auto state = std::make_shared<SqliteStore::State>(std::move(settings), asio::make_strand(std::move(store_thread)),
                                                    std::move(io_pool), clock, file.string());
  state->lock.emplace(std::move(lock));
  state->key = std::move(key);
  state->db = std::move(db);
  state->salt = random_text();
  state->anchored = clock.mono();  // the log has just said how the chain ends
  DRIFTD_CHECK(take_incarnation(*state, file));
  times.end("mark");
  state->checked_whole = whole;
  if (whole) DRIFTD_CHECK(mend_wrong(*state));
  if (whole) DRIFTD_CHECK(unmark_suspect(state->settings.data_dir));
  times.end("checksums");
  DRIFTD_CHECK(name_key(state->settings));
  DRIFTD_CHECK(catch_up(*state, is_behind));
  DRIFTD_CHECK(log_taken_over(*state->db, is_new, state->reached));
  times.end("summary");
  log::room("store").debug("opened in {}", times.render());
  return state;
}

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(Settings settings, asio::any_io_executor store_thread,
                                                       asio::any_io_executor io_pool, const Clock& clock) {
  DRIFTD_TRY(auto state, open_state(std::move(settings), std::move(store_thread), std::move(io_pool), clock));
  for (const char* name : {"store.db", "store.db-wal", "lock"}) state->files.add(state->settings.data_dir / name);
  state->in_use = true;
  return std::make_unique<SqliteStore>(std::move(state));
}

}  // namespace driftd::store
