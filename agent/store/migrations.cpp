// SPDX-License-Identifier: Apache-2.0
#include "store/migrations.hpp"

#include "base/log.hpp"
#include "migration_001_initial.hpp"
#include "migration_002_declarations.hpp"
#include "migration_003_incarnation.hpp"
#include "migration_004_audit_chain.hpp"
#include "migration_005_checksums.hpp"
#include "migration_006_gone.hpp"
#include "migration_007_subscriptions.hpp"
#include "migration_008_drop_reasons.hpp"
#include "migration_009_audit.hpp"
#include "migration_010_enforce.hpp"
#include "migration_011_decisions.hpp"
#include "migration_012_change_log.hpp"
#include "migration_013_links.hpp"
#include "store/checksums.hpp"
#include "store/files.hpp"

namespace driftd::store {
namespace {

constexpr std::int64_t kApplicationId = 0x64726674;  // "drft": identifies the file for `file` and for the next start

// Checksums as versions 5 to 7 wrote them.
#define DRIFTD_CRC_SINK_OF_5 "driftd_crc(name, closed, low_water, notes, emitted, acked, dropped)"
#define DRIFTD_CRC_DRIFT_OF_5                                                                                         \
  "driftd_crc(id, open, resource, position, backend, kind, name, class, against, action, operation, status, digest, " \
  "opened_ns, updated_ns, stale_since_ns, actor, reason, decided_ns, expires_ns, claimed_by, claim_until_ns, "        \
  "ended_ns, changes)"
#define DRIFTD_CRC_DELIVERY_OF_5 "driftd_crc(sink, seq, dead, attempts, next_ns, error)"

/// Accepts existing rows as they are; from here on a change of them is detected.
Status sign_all(Connection& db) {
  for (const char* sql :
       {"UPDATE meta SET crc = " DRIFTD_CRC_META, "UPDATE backend SET crc = " DRIFTD_CRC_BACKEND,
        "UPDATE established SET crc = " DRIFTD_CRC_ESTABLISHED, "UPDATE resource SET crc = " DRIFTD_CRC_RESOURCE,
        "UPDATE drift SET crc = " DRIFTD_CRC_DRIFT_OF_5, "UPDATE declaration SET crc = " DRIFTD_CRC_DECLARATION,
        "UPDATE sink SET crc = " DRIFTD_CRC_SINK_OF_5, "UPDATE delivery SET crc = " DRIFTD_CRC_DELIVERY_OF_5,
        "UPDATE route SET crc = " DRIFTD_CRC_ROUTE}) {
    DRIFTD_CHECK(db.execute(sql));
  }
  return {};
}

/// Writes the checksums that have a new column in them. A row that was wrong stays wrong.
Status sign_again(Connection& db) {
  DRIFTD_CHECK(db.execute("UPDATE sink SET crc = " DRIFTD_CRC_SINK " WHERE crc IS " DRIFTD_CRC_SINK_OF_5));
  return db.execute("UPDATE delivery SET crc = " DRIFTD_CRC_DELIVERY " WHERE crc IS " DRIFTD_CRC_DELIVERY_OF_5);
}

Status sign_drifts_again(Connection& db) {
  return db.execute("UPDATE drift SET crc = " DRIFTD_CRC_DRIFT " WHERE crc IS " DRIFTD_CRC_DRIFT_OF_5);
}

constexpr Migration kMigrations[] = {{1, migration_001_initial},
                                     {2, migration_002_declarations},
                                     {3, migration_003_incarnation},
                                     {4, migration_004_audit_chain},
                                     {5, migration_005_checksums, sign_all},
                                     {6, migration_006_gone},
                                     {7, migration_007_subscriptions},
                                     {8, migration_008_drop_reasons, sign_again},
                                     {9, migration_009_audit},
                                     {10, migration_010_enforce},
                                     {11, migration_011_decisions, sign_drifts_again},
                                     {12, migration_012_change_log},
                                     {13, migration_013_links}};

std::filesystem::path copy_name(const std::filesystem::path& file, int version) {
  auto name = file;
  name += ".before-v" + std::to_string(version);
  return name;
}

Status check_whole(Connection& db, const std::filesystem::path& file) {
  auto check = db.statement("PRAGMA quick_check(1)");
  const auto row = check.next();
  if (!row) return fail(damaged(file, row.error().message));
  const std::string found = *row ? check.text(0) : "no answer of quick_check";
  if (found != "ok") return fail(damaged(file, found));
  return {};
}

Status copy_before(Connection& db, const std::filesystem::path& file, int version) {
  const auto copy = copy_name(file, version);
  auto fresh = copy;
  fresh += ".new";
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  DRIFTD_CHECK(prepare_file(fresh));
  DRIFTD_CHECK(db.statement("VACUUM INTO ?").bind(fresh.string()).run());
  DRIFTD_CHECK(sync(fresh));
  std::error_code error;
  std::filesystem::rename(fresh, copy, error);
  if (error) return fail(Code::internal, "cannot name the copy " + copy.string() + ": " + error.message());
  log::room("store").info("copied the store to {} before bringing it to version {}", copy.string(), version);
  return sync(file.parent_path());
}

Status apply(Connection& db, const Migration& step) {
  DRIFTD_CHECK(db.execute("BEGIN IMMEDIATE"));
  const std::string number = std::to_string(step.number);
  auto done = db.execute(step.sql);
  if (done && step.then != nullptr) done = step.then(db);
  if (done) done = db.execute("PRAGMA user_version = " + number);
  if (done) done = db.execute("COMMIT");
  if (done) return done;
  Error error = done.error();
  if (db.in_transaction()) {
    const auto undone = db.execute("ROLLBACK");
    if (!undone) error.message += "; and " + undone.error().message;
  }
  error.message = "migration " + number + " of the store failed, nothing was changed: " + error.message;
  return fail(error);
}

Status check_newest(const std::filesystem::path& file, std::int64_t version, std::span<const Migration> steps) {
  const int newest = steps.back().number;
  if (version > newest) {
    const auto copy = copy_name(file, newest + 1);
    const std::string fix =
        std::filesystem::exists(copy) ? "restore the copy " + copy.string() : "restore a backup of it";
    return fail(Code::conflict, "the store " + file.string() + " has schema version " + std::to_string(version) +
                                    ", this driftd knows versions up to " + std::to_string(newest) +
                                    ": install the newer driftd again, or " + fix + " (later events are lost)");
  }
  return {};
}

Status check_owner(Connection& db, const std::filesystem::path& file, std::int64_t version) {
  DRIFTD_TRY(const auto application, db.integer("PRAGMA application_id"));
  if (application == kApplicationId) return {};
  DRIFTD_TRY(const auto tables, db.integer("SELECT count(*) FROM sqlite_schema"));
  if (application != 0 || version != 0 || tables != 0) {
    return fail(Code::corrupt,
                file.string() + " is a SQLite file, but not a driftd store; set data_dir to another folder");
  }
  return db.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
}

}  // namespace

Error damaged(const std::filesystem::path& file, const std::string& found) {
  return {Code::corrupt, "the store " + file.string() + " is damaged: " + found +
                             ". Restore the newest copy (store.db.before-v*, or your backup: `driftd restore FILE`) "
                             "with its installation.key; or "
                             "move store.db, store.db-wal, store.db-shm, store.mark and installation.key away: the "
                             "agent then starts empty "
                             "and takes what it finds as the new baseline"};
}

Result<bool> is_ours(Connection& db) {
  DRIFTD_TRY(const auto application, db.integer("PRAGMA application_id"));
  return application == kApplicationId;
}

Status check_version(Connection& db, const std::filesystem::path& file, std::span<const Migration> steps) {
  const auto ours = is_ours(db);
  if (!ours) return fail(damaged(file, ours.error().message));
  DRIFTD_TRY(const auto version, db.integer("PRAGMA user_version"));
  if (!*ours || version == 0) return fail(Code::corrupt, file.string() + " is not a driftd store, or an empty one");
  return check_newest(file, version, steps);
}

std::span<const Migration> migrations() { return kMigrations; }

Status migrate(Connection& db, const std::filesystem::path& file, std::span<const Migration> steps) {
  DRIFTD_TRY(const auto version, db.integer("PRAGMA user_version"));
  DRIFTD_CHECK(check_owner(db, file, version));
  DRIFTD_CHECK(check_newest(file, version, steps));
  const int newest = steps.back().number;
  if (version > 0 && version < newest) {
    DRIFTD_CHECK(check_whole(db, file));
    DRIFTD_CHECK(copy_before(db, file, static_cast<int>(version) + 1));
  }
  for (const auto& step : steps) {
    if (step.number > version) DRIFTD_CHECK(apply(db, step));
  }
  return {};
}

}  // namespace driftd::store
