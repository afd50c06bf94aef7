// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "store/migrations.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777U;
}

TEST_F(StoreTest, DirectoryAndFilesAreForTheAgentAlone) {
  EXPECT_EQ(mode_of(dir.file("data")), 0700U);
  for (const auto& entry : std::filesystem::directory_iterator(dir.file("data"))) {
    EXPECT_EQ(mode_of(entry.path()), 0600U) << entry.path();
  }
}

/// Root could write there, and then that user's agent would not start again.
TEST_F(StoreTest, DirectoryOfAnotherOwnerIsRefusedWithHimAndTheWayOut) {
  std::string theirs = "/";  // belongs to root
  if (::geteuid() == 0) {
    theirs = dir.file("theirs");
    std::filesystem::create_directory(theirs);
    ASSERT_EQ(::chown(theirs.c_str(), 54321, 54321), 0);
  }
  Bench bench_there(theirs);
  const auto opened = bench_there.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::denied);
  const std::string owner = ::geteuid() == 0 ? "uid 54321" : "root";
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("data_dir " + theirs + " belongs to " + owner), HasSubstr("chown -R ")));
  EXPECT_FALSE(std::filesystem::exists(theirs + "/lock"));
}

TEST_F(StoreTest, SecondAgentIsToldWhoHoldsTheLock) {
  Bench second(dir.file("data"));
  const auto opened = second.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::conflict);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("in use by pid " + std::to_string(::getpid()) + " since 2025-10-09"),
                    HasSubstr(dir.file("data"))));
}

TEST_F(StoreTest, LockIsFreeAfterTheHolderIsGone) {
  bench.close();
  Bench second(dir.file("data"));
  EXPECT_TRUE(second.open());
}

TEST_F(StoreTest, InstallationKeySurvivesARestart) {
  const auto before = bench->key();
  restart();
  EXPECT_EQ(bench->key().worker.key, before.worker.key);
  EXPECT_EQ(bench->key().store.key, before.store.key);
  EXPECT_EQ(bench->key().worker.id, before.worker.id);
  EXPECT_EQ(bench->key().digest_seed, before.digest_seed);
  EXPECT_NE(before.worker.key, before.store.key);
  EXPECT_EQ(before.store.id.size(), 8U);
}

TEST_F(StoreTest, MissingKeyBesideAStoreIsRefused) {
  bench.close();
  std::filesystem::remove(dir.file("data/installation.key"));
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::not_found);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("no installation.key"), HasSubstr("Restore installation.key")));
  EXPECT_FALSE(std::filesystem::exists(dir.file("data/installation.key")));
}

TEST_F(StoreTest, KeyThatOthersMayReadIsRefused) {
  bench.close();
  std::filesystem::permissions(dir.file("data/installation.key"), std::filesystem::perms(0644));
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::denied);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("mode 0644, expected 0600"), HasSubstr("chmod 0600")));
}

TEST_F(StoreTest, KeyOfAnotherStoreIsRefused) {
  bench.close();
  Bench other(dir.file("other"));
  ASSERT_TRUE(other.open());
  std::filesystem::copy_file(dir.file("other/installation.key"), dir.file("data/installation.key"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::conflict);
  EXPECT_THAT(opened.error().message, HasSubstr("belongs to another store"));
}

TEST_F(StoreTest, DamagedKeyFileIsRefusedWithoutPrintingIt) {
  const std::string secret = to_hex({reinterpret_cast<const char*>(bench->key().store.key.data()), 32});
  bench.close();
  const std::string path = dir.file("data/installation.key");
  std::string text = read_file(path);
  ASSERT_NE(text.find(secret), std::string::npos);
  std::ofstream(path) << text.substr(0, text.find("seed"));
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::corrupt);
  EXPECT_EQ(opened.error().message.find(secret), std::string::npos);
}

int newest() { return store::migrations().back().number; }

TEST_F(StoreTest, NewerStoreIsRefusedWithBothVersionsAndTheFix) {
  bench.close();
  tamper(file(), "PRAGMA user_version = 77");
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::conflict);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("schema version 77"), HasSubstr("up to " + std::to_string(newest())),
                    HasSubstr("install the newer")));
}

TEST_F(StoreTest, ForeignDatabaseIsRefused) {
  bench.close();
  tamper(file(), "PRAGMA application_id = 5");
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("not a driftd store"));
}

TEST_F(StoreTest, DamagedDatabaseIsRefusedWithAWayOut) {
  for (int i = 0; i < 50; ++i) emit(20);
  bench.close();
  {
    std::fstream db(file(), std::ios::in | std::ios::out | std::ios::binary);
    db.seekp(4096 * 10);
    db << std::string(4096 * 20, 'x');
  }
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::corrupt);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("is damaged"), HasSubstr("Restore")));
}

TEST_F(StoreTest, TextFileInPlaceOfTheDatabaseIsRefused) {
  bench.close();
  for (const char* name : {"data/store.db-wal", "data/store.db-shm"}) std::filesystem::remove(dir.file(name));
  std::ofstream(file()) << std::string(8192, 'n');
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::corrupt);
}

class MigrationTest : public StoreTest {
 protected:
  Status migrate_with(std::vector<store::Migration> more) {
    std::vector<store::Migration> steps(store::migrations().begin(), store::migrations().end());
    steps.insert(steps.end(), more.begin(), more.end());
    auto db = store::Connection::open(file(), store::Connection::Mode::read_write);
    if (!db) return fail(db.error());
    return store::migrate(**db, file(), steps);
  }
  std::int64_t read(const std::string& path, const std::string& sql) {
    auto db = store::Connection::open(path, store::Connection::Mode::read_only);
    if (!db) return -1;
    const auto value = (*db)->integer(sql);
    return value ? *value : -1;
  }
};

TEST_F(MigrationTest, StoreInUseIsCopiedBeforeAStep) {
  const auto seqs = emit(3);
  bench.close();
  ASSERT_TRUE(migrate_with({{newest() + 1, "ALTER TABLE backend ADD COLUMN color TEXT; DELETE FROM event;"}}));
  EXPECT_EQ(read(file(), "PRAGMA user_version"), newest() + 1);
  EXPECT_EQ(read(file(), "SELECT count(*) FROM event"), 0);
  const std::string copy = file() + ".before-v" + std::to_string(newest() + 1);
  EXPECT_EQ(read(copy, "PRAGMA user_version"), newest());
  EXPECT_EQ(read(copy, "SELECT max(seq) FROM event"), seqs.back());
  EXPECT_EQ(mode_of(copy), 0600U);
}

TEST_F(MigrationTest, FailedStepChangesNothing) {
  emit(3);
  bench.close();
  const auto migrated = migrate_with({{newest() + 1, "DELETE FROM event; INSERT INTO no_such_table VALUES (1);"}});
  ASSERT_FALSE(migrated);
  EXPECT_THAT(migrated.error().message,
              AllOf(HasSubstr("migration " + std::to_string(newest() + 1)), HasSubstr("no_such_table")));
  EXPECT_EQ(read(file(), "PRAGMA user_version"), newest());
  EXPECT_EQ(read(file(), "SELECT count(*) FROM event"), 3);
  EXPECT_TRUE(bench.open());
}

TEST_F(MigrationTest, DowngradeNamesTheCopyThatWouldFit) {
  bench.close();
  ASSERT_TRUE(migrate_with({{newest() + 1, "CREATE TABLE later (x);"}}));
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("store.db.before-v" + std::to_string(newest() + 1)));
}

TEST_F(MigrationTest, StoreOfTheFirstVersionGoesOnUnderThisOne) {
  const auto seqs = emit(3);
  bench.close();
  std::string former =
      "DROP TABLE operation; DROP TABLE enforcement_stop; DROP TABLE notification; DROP TABLE silence; DROP TABLE "
      "decision_link; "
      "ALTER TABLE drift DROP COLUMN approvals_needed; "
      "ALTER TABLE drift DROP COLUMN approvals; ALTER TABLE drift DROP COLUMN former; "
      "ALTER TABLE sink DROP COLUMN drop_reasons; ALTER TABLE delivery DROP COLUMN refusals; DROP TABLE subscription; "
      "DROP INDEX resource_gone; DROP TABLE declaration; ALTER TABLE event DROP COLUMN "
      "incarnation; ALTER TABLE "
      "quarantine DROP COLUMN incarnation; "
      "ALTER TABLE event DROP COLUMN routed; ALTER TABLE quarantine DROP COLUMN routed; "
      "DELETE FROM meta WHERE key IN ('incarnation', 'commits', 'place'); "
      "DROP TABLE audit_open; DROP TABLE audited_rules; DROP TABLE audit_chain; DROP TABLE audit; CREATE TABLE audit "
      "(id INTEGER PRIMARY KEY, "
      "at_ns INTEGER NOT NULL, actor TEXT NOT NULL, verb TEXT NOT NULL, subject TEXT NOT NULL, reason TEXT NOT NULL); "
      "INSERT INTO audit VALUES (7, 1, 'kim', 'approved', 'd-1', 'fine'); PRAGMA user_version = 1";
  for (const char* table : {"meta", "backend", "established", "resource", "drift", "sink", "delivery", "route"}) {
    former += "; ALTER TABLE " + std::string(table) + " DROP COLUMN crc";
  }
  tamper(file(), former);
  ASSERT_TRUE(bench.open());
  core::AuditEntry line;
  line.actor = "ann";
  ASSERT_TRUE(bench.wait(bench->audit(line)));
  const core::AuditProof proof = bench.get(bench->verify_audit({}));
  EXPECT_TRUE(proof.whole) << proof.broken;
  EXPECT_EQ(proof.unchained, 1);
  EXPECT_EQ(bench.get(bench->audit(10)).front().actor, "kim") << "what was written before stays";
  bench.close();
  EXPECT_EQ(read(file(), "PRAGMA user_version"), newest());
  EXPECT_EQ(read(file(), "SELECT max(seq) FROM event"), seqs.back());
  EXPECT_EQ(read(file(), "SELECT count(*) FROM declaration"), 0);
  EXPECT_EQ(read(file() + ".before-v2", "PRAGMA user_version"), 1);
}

/// Reasons and refusals came with version 8, together with the checksums that cover them.
TEST_F(MigrationTest, AStoreOfVersion7KeepsItsMarksAndWhatItDroppedWithoutAReason) {
  const auto seqs = emit(3);
  bench.get(bench->open_sink("ops"));
  ASSERT_TRUE(bench.wait(bench->settle(
      {"ops", seqs[1], {{seqs[0], 3, 0, false, "HTTP 503"}, {seqs[1], 9, 0, true, "HTTP 400"}}, {}, {}})));
  ASSERT_TRUE(bench.wait(bench->settle({"ops", seqs[1], {}, {}, {}, {seqs[1]}})));
  bench.close();
  auto db = store::Connection::open(file(), store::Connection::Mode::read_write);
  ASSERT_TRUE(db);
  for (const char* sql :
       {"DROP TABLE operation", "DROP TABLE enforcement_stop", "DROP TABLE notification", "DROP TABLE silence",
        "DROP TABLE decision_link", "ALTER TABLE drift DROP COLUMN approvals_needed",
        "ALTER TABLE drift DROP COLUMN approvals", "ALTER TABLE drift DROP COLUMN former",
        "ALTER TABLE sink DROP COLUMN drop_reasons", "ALTER TABLE delivery DROP COLUMN refusals",
        "ALTER TABLE audit DROP COLUMN request", "ALTER TABLE audit_chain DROP COLUMN bytes",
        "DELETE FROM audit_chain WHERE position = 'announced'", "DROP TABLE audit_open", "DROP TABLE audited_rules",
        "UPDATE sink SET crc = driftd_crc(name, closed, low_water, notes, emitted, acked, dropped)",
        "UPDATE delivery SET crc = driftd_crc(sink, seq, dead, attempts, next_ns, error)", "PRAGMA user_version = 7"}) {
    ASSERT_TRUE((*db)->execute(sql)) << sql;
  }
  db->reset();
  ASSERT_TRUE(bench.open());
  EXPECT_THAT(book("ops").dropped_by, testing::ElementsAre(testing::Pair("unrecorded", 1)));
  EXPECT_EQ(book("ops").dropped, 1);
  const auto cursor = bench.get(bench->open_sink("ops"));
  EXPECT_EQ(cursor.low_water, seqs[1]) << "a mark whose checksum is wrong would go back to 0";
  ASSERT_EQ(cursor.exceptions.size(), 1U);
  EXPECT_EQ(cursor.exceptions[0].attempts, 3);
}

/// Approvals came with version 11, with a checksum that covers them; a wrong one would end the process.
TEST_F(MigrationTest, AStoreOfVersion8KeepsItsDrifts) {
  core::ResourceWrite write = resource_write("one");
  core::Drift drift;
  drift.id = "d-0123456789abcdef";
  drift.resource = write.next.id;
  drift.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
  drift.digest = core::digest_of(drift.changes, drift.against);
  write.next.open = {drift};
  bench.get(bench->commit(page_of({write}, {})));
  bench.close();
  auto db = store::Connection::open(file(), store::Connection::Mode::read_write);
  ASSERT_TRUE(db);
  for (const char* sql :
       {"DROP TABLE operation", "DROP TABLE enforcement_stop", "ALTER TABLE audit DROP COLUMN request",
        "ALTER TABLE audit_chain DROP COLUMN bytes", "DELETE FROM audit_chain WHERE position = 'announced'",
        "DROP TABLE audit_open", "DROP TABLE audited_rules", "DROP TABLE notification", "DROP TABLE silence",
        "DROP TABLE decision_link", "ALTER TABLE drift DROP COLUMN approvals_needed",
        "ALTER TABLE drift DROP COLUMN approvals", "ALTER TABLE drift DROP COLUMN former",
        "UPDATE drift SET crc = driftd_crc(id, open, resource, position, backend, kind, name, class, against, action, "
        "operation, status, digest, opened_ns, updated_ns, stale_since_ns, actor, reason, decided_ns, expires_ns, "
        "claimed_by, claim_until_ns, ended_ns, changes)",
        "PRAGMA user_version = 8"}) {
    ASSERT_TRUE((*db)->execute(sql)) << sql;
  }
  db->reset();
  ASSERT_TRUE(bench.open());
  const auto owner = bench.get(bench->owner_of(drift.id));
  ASSERT_EQ(owner.resource.open.size(), 1u);
  EXPECT_EQ(owner.resource.open[0].approvals_needed, 1);
  EXPECT_TRUE(owner.resource.open[0].approvals.empty());
}

}  // namespace
}  // namespace driftd::test
