// SPDX-License-Identifier: Apache-2.0
// `driftd backup` and `driftd restore` on real files, beside an open store.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "proto/codec.hpp"
#include "store/backup.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class BackupTest : public StoreTest {
 protected:
  std::string data(const std::string& name = {}) const { return dir.file("data/" + name); }
  Result<store::Backup> back_up(const std::string& name, bool with_key = false) {
    return store::back_up(data(), dir.file(name), with_key, bench.clock.wall());
  }
  Result<store::Restored> restore(const std::string& name, const std::string& key = {}) {
    return store::restore(data(), dir.file(name), key, bench.clock.wall());
  }
  void flip(const std::string& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char flipped = static_cast<char>(file.get() ^ 0x10);
    file.seekp(at);
    file.put(flipped);
  }
};

TEST_F(BackupTest, LiveStoreIsCopiedWholeIntoOnePrivateFile) {
  emit(30);
  bench.get(bench->commit(page_of({resource_write("a")})));
  const auto made = back_up("copy.db");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->content.events, 30);
  EXPECT_EQ(made->content.backends, 1);
  EXPECT_EQ(made->content.resources, 1);
  EXPECT_EQ(made->content.newest_event, 30);
  EXPECT_TRUE(made->key_file.empty());
  struct stat info {};
  ASSERT_EQ(::stat(dir.file("copy.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  for (const char* rest : {"copy.db-wal", "copy.db-shm", "copy.db.new", "copy.db.key"}) EXPECT_FALSE(fs::exists(dir.file(rest)));
  emit(1);  // the store goes on
}

TEST_F(BackupTest, WriterIsNotHeldUpByACopy) {
  emit(5);
  ASSERT_TRUE(back_up("copy.db"));
  EXPECT_EQ(emit(3).size(), 3U);
  ASSERT_TRUE(back_up("copy.db")) << "an older backup is replaced";
  EXPECT_EQ(store::verify(dir.file("copy.db"))->events, 8);
}

TEST_F(BackupTest, FolderGetsAFileWithTheTimeInItsName) {
  fs::create_directory(dir.file("backups"));
  const auto made = back_up("backups");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->file, dir.file("backups/driftd-20251009T085320Z.db"));
}

TEST_F(BackupTest, FileThatIsNoBackupIsNotReplaced) {
  dir.write("letter.txt", "dear me");
  const auto made = back_up("letter.txt");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::conflict);
  EXPECT_EQ(read_file(dir.file("letter.txt")), "dear me");
}

TEST_F(BackupTest, RestoredStoreIsTheBackupInANewIncarnationAndTheFormerIsKept) {
  bench.get(bench->open_sink("ops"));
  const auto before = bench.get(bench->commit(page_of({}, {event_draft("a")}))).events[0];
  ASSERT_TRUE(back_up("copy.db"));
  emit(20);
  bench.close();
  const auto restored = restore("copy.db");
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(store::verify(restored->kept)->events, 21);
  ASSERT_TRUE(bench.open());
  bench.get(bench->announce());
  const auto events = bench.get(bench->events(0, 1000));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].stamp.id, before.stamp.id);
  EXPECT_GT(events[1].stamp.incarnation, before.stamp.incarnation);
  EXPECT_THAT(proto::to_json(events[1]).value(),
              AllOf(HasSubstr("\"reason\":\"restored\""), HasSubstr("copy.db"), HasSubstr("\"lost_events\":\"20\"")));
}

TEST_F(BackupTest, RestoreIsRefusedWhileAnAgentRuns) {
  ASSERT_TRUE(back_up("copy.db"));
  const auto restored = restore("copy.db");
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Code::conflict);
  EXPECT_THAT(restored.error().message, HasSubstr("in use by pid"));
}

TEST_F(BackupTest, DamagedBackupChangesNothing) {
  emit(200);
  ASSERT_TRUE(back_up("copy.db"));
  const auto size = static_cast<std::streamoff>(fs::file_size(dir.file("copy.db")));
  bench.close();
  const std::string whole = read_file(dir.file("copy.db"));
  int refused = 0;
  for (int round = 0; round < 20; ++round) {
    std::ofstream(dir.file("copy.db"), std::ios::binary | std::ios::trunc) << whole;
    flip(dir.file("copy.db"), size * round / 20 + 1500);
    const std::string store = read_file(file());
    const auto restored = restore("copy.db");
    if (restored) continue;  // a bit of free space
    ++refused;
    EXPECT_TRUE(read_file(file()) == store) << "the store was touched";
    break;
  }
  EXPECT_EQ(refused, 1);
}

TEST_F(BackupTest, CutBackupIsRefused) {
  emit(50);
  ASSERT_TRUE(back_up("copy.db"));
  bench.close();
  for (const std::uintmax_t size : {0U, 10U, 4096U, 8192U}) {
    fs::resize_file(dir.file("copy.db"), size);
    EXPECT_FALSE(restore("copy.db")) << size;
    ASSERT_TRUE(bench.open());
    ASSERT_TRUE(back_up("other.db"));
    bench.close();
    fs::copy(dir.file("other.db"), dir.file("copy.db"), fs::copy_options::overwrite_existing);
  }
}

TEST_F(BackupTest, KeyBesideTheBackupIsUsedOnAnEmptyMachine) {
  emit(3);
  ASSERT_TRUE(back_up("copy.db", true));
  const auto key = bench->key().store.key;
  const auto restored = store::restore(dir.file("new"), dir.file("copy.db"), {}, bench.clock.wall());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_TRUE(restored->kept.empty());
  Bench elsewhere(dir.file("new"));
  ASSERT_TRUE(elsewhere.open());
  EXPECT_EQ(elsewhere->key().store.key, key);
  EXPECT_EQ(elsewhere.get(elsewhere->events(0, 10)).size(), 3U);
}

TEST_F(BackupTest, KeyOfAnotherStoreAndNoKeyAreRefusedWithTheWayOut) {
  ASSERT_TRUE(back_up("copy.db"));
  const auto none = store::restore(dir.file("new"), dir.file("copy.db"), {}, bench.clock.wall());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, AllOf(HasSubstr("no installation.key"), HasSubstr("--key")));
  Bench other(dir.file("other"));
  ASSERT_TRUE(other.open());
  const auto wrong = store::restore(dir.file("new"), dir.file("copy.db"), dir.file("other/installation.key"), bench.clock.wall());
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("belongs to another store"));
  EXPECT_FALSE(fs::exists(dir.file("new/store.db")));
}

TEST_F(BackupTest, WhatRootRestoresBelongsToTheOwnerOfDataDir) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files to somebody else";
  constexpr uid_t kNobody = 65534;
  emit(2);
  ASSERT_TRUE(back_up("copy.db", true));
  fs::create_directory(dir.file("theirs"));
  ASSERT_EQ(::chown(dir.file("theirs").c_str(), kNobody, kNobody), 0);
  const auto restored = store::restore(dir.file("theirs"), dir.file("copy.db"), {}, bench.clock.wall());
  ASSERT_TRUE(restored) << restored.error().message;
  for (const auto& entry : fs::directory_iterator(dir.file("theirs"))) {
    struct stat info {};
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, kNobody) << entry.path();
  }
}

TEST_F(BackupTest, LostStoreIsWholeAgainAfterTheWayThatTheRefusalNames) {
  emit(4);
  ASSERT_TRUE(back_up("copy.db"));
  bench.close();
  fs::remove(file());
  ASSERT_FALSE(bench.open());
  ASSERT_TRUE(restore("copy.db"));
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(bench.get(bench->events(0, 10)).size(), 4U);
}

}  // namespace
}  // namespace driftd::test
