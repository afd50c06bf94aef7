// SPDX-License-Identifier: Apache-2.0
// A key that is kept outside of data_dir: nothing of it is written there, and no other key opens the store.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "store/backup.hpp"
#include "store/files.hpp"
#include "store/rotate.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFrom = "${credential:driftd.key} (driftd.yaml:3)";

class GivenKeyTest : public ::testing::Test {
 protected:
  void give(const store::InstallationKey& key) { bench.settings.given = store::GivenKey{key, kFrom}; }
  void open() {
    const auto opened = bench.open();
    ASSERT_TRUE(opened) << opened.error().message;
  }
  std::string data(const std::string& name) const { return dir.file("data/" + name); }
  std::string sealed(int n) const {
    return core::seal("{\"p\":{\"$hmac\":\"" + key.worker.id + ":1:" + to_hex(sha256(std::to_string(n))) + "\"}}",
                      bench.settings.given->key.store)
        .value();
  }
  /// Commits one resource with a digest.
  void fill() {
    bench.get(bench->commit(registration()));
    bench.get(bench->commit(page_of({resource_write("r", sealed(1))})));
  }
  std::string baseline() {
    return bench.get(bench->load(backend_row().uid, {{"config", "r"}}))[0].baseline.value_or("none");
  }
  /// Returns all files of data_dir except the lock, by name.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(dir.file("data"))) {
      const std::string name = entry.path().filename().string();
      if (name != "lock") out[name] = read_file(entry.path().string());
    }
    return out;
  }
  void expect_no_key(const store::InstallationKey& of) const {
    for (const auto& [name, bytes] : files()) {
      EXPECT_FALSE(name.starts_with("installation.key")) << name;
      std::istringstream words(store::render(of));
      for (std::string word; words >> word;) {
        if (word.size() != 64) continue;
        EXPECT_EQ(bytes.find(word), std::string::npos) << name;
      }
      for (const auto& link : {of.worker.key, of.store.key}) {
        EXPECT_EQ(bytes.find(std::string(reinterpret_cast<const char*>(link.data()), link.size())), std::string::npos)
            << name;
      }
    }
  }

  TempDir dir;
  Bench bench{dir.file("data")};
  const store::InstallationKey key = store::make_key().value();
};

TEST_F(GivenKeyTest, NothingOfItIsInDataDir) {
  give(key);
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(store::ids_of(bench->key()), store::ids_of(key));
  fill();
  expect_no_key(key);
  bench.close();
  expect_no_key(key);
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(baseline(), sealed(1));
}

TEST_F(GivenKeyTest, AKeyThatIsMovedOutOfDataDirIsTheSameKey) {
  ASSERT_NO_FATAL_FAILURE(open());
  const std::string ids = store::ids_of(bench->key());
  bench.close();
  fs::rename(data("installation.key"), dir.file("moved.key"));
  give(*store::read_key(dir.file("moved.key")));
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(store::ids_of(bench->key()), ids);
  expect_no_key(bench->key());
  bench.close();
  bench.settings.given.reset();
  const auto back = bench.open();
  ASSERT_FALSE(back) << "the setting was taken out again, and no second key is made";
  EXPECT_THAT(back.error().message, HasSubstr("agent.installation_key"));
  EXPECT_FALSE(fs::exists(data("installation.key")));
}

TEST_F(GivenKeyTest, AnotherKeyIsRefusedAndNothingIsWritten) {
  give(key);
  ASSERT_NO_FATAL_FAILURE(open());
  fill();
  bench.close();
  // as a backup tool leaves it; a successful start would write the log first
  tamper(data("store.db"), "PRAGMA journal_mode = DELETE");
  const auto before = files();
  give(store::make_key().value());
  const auto refused = bench.open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr(kFrom), HasSubstr("belongs to another store"),
                                             HasSubstr(store::ids_of(key)), Not(HasSubstr("move "))));
  EXPECT_EQ(files(), before);
}

TEST_F(GivenKeyTest, ANewKeyForAStoreWhoseKeyLiesInDataDirIsToldWhereThatIs) {
  ASSERT_NO_FATAL_FAILURE(open());
  bench.close();
  const auto before = files();
  give(key);
  const auto refused = bench.open();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("belongs to another store"), HasSubstr("move " + data("installation.key"))));
  EXPECT_EQ(files(), before);
}

TEST_F(GivenKeyTest, OneThatKnowsMoreFinishesTheRotationAndTheFormerIsRefused) {
  give(key);
  ASSERT_NO_FATAL_FAILURE(open());
  fill();
  const std::string former = sealed(1);
  bench.close();
  give(store::rotated(key, kNoon).value());
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(baseline(), sealed(1));
  EXPECT_NE(baseline(), former);
  expect_no_key(bench->key());
  const auto audit = bench.get(bench->audit(10));
  ASSERT_EQ(audit.size(), 1U);
  EXPECT_EQ(audit[0].verb, "rotated key");
  bench.close();
  const auto before = files();
  give(key);
  const auto refused = bench.open();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("is from before a rotation"), HasSubstr(kFrom)));
  EXPECT_EQ(files(), before);
}

TEST_F(GivenKeyTest, AStoreThatWasLostIsNoFirstStart) {
  give(key);
  ASSERT_NO_FATAL_FAILURE(open());
  bench.close();
  const std::pair<const char*, std::function<void()>> losses[] = {
      {"not there", [&] { fs::remove(data("store.db")); }},
      {"is empty", [&] { std::ofstream(data("store.db"), std::ios::trunc); }},
      {"no tables", [&] {
         fs::remove(data("store.db"));
         tamper(data("store.db"), "PRAGMA user_version = 3");
         fs::permissions(data("store.db"), fs::perms(0600));
       }}};
  for (const auto& [found, lose] : losses) {
    lose();
    const auto refused = bench.open();
    ASSERT_FALSE(refused) << found;
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr(found), HasSubstr("the store was lost"), HasSubstr("has a store.mark"),
                      HasSubstr("move store.mark away"), Not(HasSubstr("installation.key"))));
  }
  fs::remove(data("store.db"));
  fs::rename(data("store.mark"), dir.file("store.mark"));
  EXPECT_TRUE(bench.open()) << "the way out that the text names";
}

TEST_F(GivenKeyTest, AKeyInDataDirBesideItIsNeitherUsedNorNamedNorTaken) {
  ASSERT_NO_FATAL_FAILURE(open());
  const auto own = bench->key();
  bench.close();
  const std::string text = read_file(data("installation.key"));
  fs::rename(data("installation.key"), data("installation.key.first"));
  give(own);
  ASSERT_NO_FATAL_FAILURE(open());
  bench.close();
  EXPECT_FALSE(fs::exists(data("installation.key"))) << "one of a first start that was cut gets no name";
  EXPECT_EQ(read_file(data("installation.key.first")), text);
}

TEST_F(GivenKeyTest, RestorePutsNoKeyIntoDataDirAndLooksAtTheOneThatIsGiven) {
  give(key);
  ASSERT_NO_FATAL_FAILURE(open());
  fill();
  const auto made = store::back_up(dir.file("data"), dir.file("b.db"), false, kNoon);
  ASSERT_TRUE(made) << made.error().message;
  bench.close();
  const auto before = files();
  const auto other = store::restore_without_key(dir.file("data"), dir.file("b.db"),
                                                store::GivenKey{store::make_key().value(), kFrom}, kNoon);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, AllOf(HasSubstr("belongs to another store"), HasSubstr(kFrom)));
  EXPECT_EQ(files(), before);
  for (const auto& given : {std::optional<store::GivenKey>(), std::optional<store::GivenKey>({key, kFrom}),
                            std::optional<store::GivenKey>({store::rotated(key, kNoon).value(), kFrom})}) {
    const auto restored =
        store::restore_without_key(dir.file("data"), dir.file("b.db"), given, bench.clock.now += kSecond);
    ASSERT_TRUE(restored) << restored.error().message;
    expect_no_key(key);
  }
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(baseline(), sealed(1));
}

TEST_F(GivenKeyTest, AFileThatIsThereIsNotWrittenOver) {
  const std::string file = dir.file("a.key");
  ASSERT_TRUE(store::write_new_private(file, "one"));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0600));
  const auto again = store::write_new_private(file, "two");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::conflict);
  EXPECT_EQ(read_file(file), "one");
  fs::create_symlink(dir.file("nowhere"), dir.file("link.key"));
  EXPECT_FALSE(store::write_new_private(dir.file("link.key"), "two")) << "a link is something of that name too";
  EXPECT_FALSE(fs::exists(dir.file("nowhere")));
}

}  // namespace
}  // namespace driftd::test
