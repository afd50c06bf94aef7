// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/strand.hpp>

#include "base/log.hpp"
#include "store/migrations.hpp"
#include "store/state.hpp"

namespace driftd::store {
namespace {

/// The key is made before the database: a crash in between leaves a key without a store, which is taken over.
Result<InstallationKey> find_key(const Settings& settings, bool is_new) {
  const auto file = settings.data_dir / "installation.key";
  auto key = read_key(file);
  if (key || key.error().code != Code::not_found) return key;
  if (is_new) return create_key(file);
  return fail(Code::not_found,
              "data_dir " + settings.data_dir.string() +
                  " has a store but no installation.key: its digests "
                  "cannot be compared without it. Restore installation.key from the backup; or move store.db* "
                  "away: the agent then starts empty and takes what it finds as the new baseline");
}

Status check_key(Connection& db, const Settings& settings, const InstallationKey& key) {
  const std::string ids = key.worker.id + " " + key.store.id;
  auto query = db.statement("SELECT value FROM meta WHERE key = 'key_ids'");
  DRIFTD_TRY(const bool found, query.next());
  if (!found) return db.statement("INSERT INTO meta VALUES ('key_ids', ?)").bind(ids).run();
  if (query.text(0) == ids) return {};
  return fail(Code::conflict, settings.data_dir.string() + "/installation.key belongs to another store (key ids " +
                                  ids + ", the store was written with " + query.text(0) +
                                  "); restore the one that belongs to it");
}

Status set_up(Connection& db) {
  DRIFTD_CHECK(db.statement("PRAGMA journal_mode = WAL").run());
  DRIFTD_CHECK(
      db.execute("PRAGMA synchronous = FULL; PRAGMA cache_size = -2048; PRAGMA journal_size_limit = 67108864; "
                 "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON"));
  return {};
}

Result<bool> is_new_store(Connection& db, const std::filesystem::path& file) {
  const auto tables = db.integer("SELECT count(*) FROM sqlite_schema");
  if (tables) return *tables == 0;
  if (tables.error().code == Code::corrupt) return fail(damaged(file, tables.error().message));
  return fail(tables.error());
}

}  // namespace

SqliteStore::SqliteStore(std::shared_ptr<State> state) : state_(std::move(state)) {}
SqliteStore::~SqliteStore() = default;
const InstallationKey& SqliteStore::key() const { return state_->key; }

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(Settings settings, asio::any_io_executor store_thread,
                                                       asio::any_io_executor io_pool, const Clock& clock) {
  const auto file = settings.data_dir / "store.db";
  DRIFTD_CHECK(prepare_directory(settings.data_dir));
  DRIFTD_TRY(auto lock, DirectoryLock::take(settings.data_dir, clock.wall()));
  DRIFTD_CHECK(prepare_file(file));
  DRIFTD_TRY(auto db, Connection::open(file.string(), Connection::Mode::read_write));
  DRIFTD_TRY(const bool is_new, is_new_store(*db, file));
  DRIFTD_TRY(auto key, find_key(settings, is_new));
  DRIFTD_CHECK(set_up(*db));
  DRIFTD_CHECK(migrate(*db, file, migrations()));
  DRIFTD_CHECK(check_key(*db, settings, key));
  DRIFTD_TRY(const auto hlc, db->integer("SELECT value FROM meta WHERE key = 'hlc'"));
  DRIFTD_CHECK(sync(settings.data_dir));
  auto state = std::make_shared<State>(std::move(settings), asio::make_strand(std::move(store_thread)),
                                       std::move(io_pool), clock, file.string());
  state->lock.emplace(std::move(lock));
  state->key = std::move(key);
  state->db = std::move(db);
  state->hlc = state->stored_hlc = static_cast<std::uint64_t>(hlc);
  return std::make_unique<SqliteStore>(std::move(state));
}

}  // namespace driftd::store
