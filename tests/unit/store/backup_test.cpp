// SPDX-License-Identifier: Apache-2.0
// `driftd backup` and `driftd restore` on real files, beside an open store.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "proto/codec.hpp"
#include "store/backup.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
  for (const char* rest : {"copy.db-wal", "copy.db-shm", "copy.db.new", "copy.db.key"})
    EXPECT_FALSE(fs::exists(dir.file(rest)));
  emit(1);  // the store changes after the copy
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

TEST_F(BackupTest, FolderInPlaceOfAFileIsNamedWithTheFileInIt) {
  const auto found = store::verify(dir.file("data"));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::invalid);
  EXPECT_EQ(found.error().message,
            dir.file("data") + " is a folder; expected the file of a store or of a backup, such as " + file());
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
    if (restored) continue;  // the flipped bit was in free space
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
  const auto wrong =
      store::restore(dir.file("new"), dir.file("copy.db"), dir.file("other/installation.key"), bench.clock.wall());
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("belongs to another store"));
  EXPECT_FALSE(fs::exists(dir.file("new/store.db")));
}

TEST_F(BackupTest, WhatRootRestoresBelongsToTheOwnerOfDataDir) {
  if (::geteuid() != 0) GTEST_SKIP() << "LOUD: needs root, to give files to somebody else";
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

TEST_F(BackupTest, NothingIsWrittenIntoDataDirUnderWhateverName) {
  emit(3);
  fs::create_directory(dir.file("data/deeper"));
  fs::create_directory_symlink(dir.file("data"), dir.file("link"));
  fs::create_symlink(dir.file("data/store.db"), dir.file("soft.db"));
  fs::create_hard_link(dir.file("data/store.db"), dir.file("hard.db"));
  const auto listing = [this] {
    std::set<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(dir.file(""))) out.insert(entry.path().string());
    return out;
  };
  const auto before = listing();
  for (const char* name :
       {"data/store.db", "data", "data/", "data/copy.db", "data/installation.key", "data/lock", "data/store.mark",
        "data/store.db-wal", "data/deeper", "data/deeper/x.db", "link", "link/store.db", "link/x.db",
        "link/../data/x.db", "data/deeper/../store.db", "soft.db", "hard.db"}) {
    const auto made = back_up(name, true);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, Code::invalid) << name;
    EXPECT_THAT(made.error().message, AllOf(HasSubstr("data_dir"), HasSubstr("name a file elsewhere"))) << name;
    EXPECT_EQ(listing(), before) << name;
  }
  EXPECT_EQ(emit(1).size(), 1U) << "the store goes on";
}

TEST_F(BackupTest, StoreOfAnotherAgentIsNotReplaced) {
  Bench other(dir.file("other"));
  ASSERT_TRUE(other.open());
  const auto made = back_up("other/store.db");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::conflict);
  EXPECT_THAT(made.error().message, HasSubstr("the store of a data_dir"));
}

TEST_F(BackupTest, FailedCopyLeavesNothing) {
  fs::create_directory(dir.file("empty"));
  EXPECT_FALSE(store::back_up(dir.file("empty"), dir.file("x"), false, bench.clock.wall()));
  EXPECT_FALSE(store::back_up(dir.file("nowhere"), dir.file("x"), false, bench.clock.wall()));
  dir.write("damaged/store.db", std::string(9'000, 'x'));
  EXPECT_FALSE(store::back_up(dir.file("damaged"), dir.file("x"), false, bench.clock.wall()));
  fs::remove(dir.file("data/installation.key"));
  EXPECT_FALSE(back_up("x", true)) << "no key to copy";
  for (const char* rest : {"x", "x.new", "x.new-journal", "x.new-wal", "x.new-shm", "x.key", "x.key.new"})
    EXPECT_FALSE(fs::exists(dir.file(rest))) << rest;
}

TEST_F(BackupTest, WhatAKilledRunLeftIsTakenOver) {
  emit(4);
  for (const char* rest : {"copy.db.new", "copy.db.new-journal", "copy.db.key.new"})
    dir.write(rest, "of a run that was killed");
  ASSERT_TRUE(back_up("copy.db", true));
  bench.close();
  for (const char* rest : {"data/store.db.restoring", "data/store.db.restoring-journal"})
    dir.write(rest, "of a run that was killed");
  ASSERT_TRUE(restore("copy.db"));
  for (const char* rest : {"copy.db.new", "copy.db.new-journal", "copy.db.key.new", "data/store.db.restoring",
                           "data/store.db.restoring-journal"}) {
    EXPECT_FALSE(fs::exists(dir.file(rest))) << rest;
  }
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(bench.get(bench->events(0, 10)).size(), 4U);
}

/// Limits the size of files to `bytes`, which acts like a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : former_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &whole_);
    const rlimit small{bytes, whole_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &whole_);
    std::signal(SIGXFSZ, former_);
  }

 private:
  void (*former_)(int);
  rlimit whole_{};
};

TEST_F(BackupTest, FullDiskLeavesNothingAndChangesNothing) {
  emit(50);
  ASSERT_TRUE(back_up("copy.db"));
  {
    const FullDisk full(20'000);
    EXPECT_FALSE(back_up("more.db"));
  }
  bench.close();
  const std::string before = read_file(file());
  {
    const FullDisk full(20'000);
    EXPECT_FALSE(restore("copy.db"));
  }
  for (const char* rest : {"more.db", "more.db.new", "more.db.new-journal", "data/store.db.restoring",
                           "data/store.db.restoring-journal"}) {
    EXPECT_FALSE(fs::exists(dir.file(rest))) << rest;
  }
  EXPECT_EQ(read_file(file()), before);
}

TEST_F(BackupTest, WhatIsNoWholeBackupIsRefusedWithoutAdviceToGiveTheStoreUp) {
  emit(20);
  ASSERT_TRUE(back_up("copy.db"));
  bench.close();
  const std::string whole = read_file(dir.file("copy.db"));
  dir.write("empty.db", "");
  dir.write("letter.db", "dear me, " + std::string(9'000, 'x'));
  dir.write("cut.db", whole.substr(0, whole.size() / 2));
  for (const char* name : {"empty.db", "letter.db", "cut.db"}) {
    for (const char* data_dir : {"data", "new"}) {
      const auto restored = store::restore(dir.file(data_dir), dir.file(name), {}, bench.clock.wall());
      ASSERT_FALSE(restored) << name;
      EXPECT_THAT(restored.error().message,
                  AllOf(HasSubstr("this file is not a whole backup"), HasSubstr("nothing was changed"),
                        HasSubstr("take another one"), Not(HasSubstr("move ")), Not(HasSubstr("baseline"))))
          << name;
    }
  }
  EXPECT_FALSE(fs::exists(dir.file("new")));
}

TEST_F(BackupTest, RestoreDoesNotReadWhatItWrites) {
  ASSERT_TRUE(back_up("copy.db"));
  bench.close();
  fs::copy(dir.file("copy.db"), dir.file("data/store.db.restoring"));
  fs::create_symlink(dir.file("data/store.db"), dir.file("soft.db"));
  fs::create_hard_link(dir.file("data/store.db"), dir.file("hard.db"));
  for (const char* name : {"data/store.db", "data/store.db.restoring", "soft.db", "hard.db"}) {
    const auto restored = restore(name);
    ASSERT_FALSE(restored) << name;
    EXPECT_EQ(restored.error().code, Code::invalid) << name;
  }
  EXPECT_TRUE(fs::exists(dir.file("data/store.db.restoring")));
  ASSERT_TRUE(restore("copy.db"));
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
