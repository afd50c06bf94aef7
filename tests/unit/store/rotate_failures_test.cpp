// SPDX-License-Identifier: Apache-2.0
// A rotation that is killed, fails or is refused: store and key always belong together.
#include <fstream>

#include "proto/codec.hpp"
#include "store/backup.hpp"
#include "store/checksums.hpp"
#include "unit/store/rotate_fixture.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(RotateTest, AKillAtAnyStepLeavesStoreAndKeyTogether) { kill_at_each_step(core::LayerKind::hmac); }

TEST_F(RotateTest, AKillAtAnyStepOfASlowLayerLeavesStoreAndKeyTogether) {
  rows_ = 3;
  kill_at_each_step(kSlow);
}

TEST_F(RotateTest, ARewriteThatFailsLeavesTheKeyAndTheStoreOfBefore) {
  fill();
  const auto before = bench->key();
  bench.close();
  tamper(file(),
         "CREATE TRIGGER full BEFORE UPDATE ON drift WHEN new.id = 'd-done3' BEGIN SELECT RAISE(ABORT, 'database or "
         "disk is full'); END");
  const std::string key_text = read_file(data("installation.key"));
  const auto done = rotate();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("disk is full"), HasSubstr("the key and the store are as they were")));
  expect_untouched(key_text, before);
}

/// A row whose checksum is right but whose text is invalid is repaired and reported like one with a wrong checksum, and
/// stops neither a rotation nor the start that must finish one.
TEST_F(RotateTest, RowsThatCannotBeReadHoldUpNeitherARotationNorAStart) {
  constexpr const char* kNone = "of another time, \"$hmac\"";
  fill();
  bench.close();
  fs::copy(data(), dir.file("kept"), fs::copy_options::recursive);
  const std::tuple<std::string, std::string, std::string> broken[] = {
      {"resource", "baseline = '%' WHERE name = 'r3'", "resource config/r3"},
      {"resource", "observed = '%' WHERE name = 'r4'", "resource config/r4"},
      {"drift", "changes = '%' WHERE id = 'd-open5'", "drift d-open5"},
      {"drift", "changes = '%' WHERE id = 'd-done6'", "drift d-done6"},
      {"drift", "changes = replace(changes, '\"$hmac', '{\"$hmac') WHERE id = 'd-open7'", "drift d-open7"},
      {"declaration", "body = '%'", "declaration orders/config/r0"}};
  for (const bool by_a_start : {false, true}) {
    fs::remove_all(data());
    fs::copy(dir.file("kept"), data(), fs::copy_options::recursive);
    for (auto [table, set, name] : broken) {
      if (const auto at = set.find('%'); at != std::string::npos) set.replace(at, 1, kNone);
      const auto db = store::Connection::open(file(), store::Connection::Mode::read_write);
      ASSERT_TRUE((*db)->execute("UPDATE " + table + " SET " + set));
      ASSERT_TRUE((*db)->execute("UPDATE resource SET crc = " DRIFTD_CRC_RESOURCE
                                 "; UPDATE drift SET crc = " DRIFTD_CRC_DRIFT
                                 "; UPDATE declaration SET crc = " DRIFTD_CRC_DECLARATION));
    }
    if (by_a_start) {
      ASSERT_TRUE(killed_at("written", core::LayerKind::hmac));
    } else {
      const auto done = rotate();
      ASSERT_TRUE(done) << done.error().message;
    }
    const Status opened = bench.open();
    ASSERT_TRUE(opened) << opened.error().message;
    std::string told;
    int count = 0;
    for (const auto& event : bench.get(bench->events(0, 1'000))) {
      if (event.what == "corrupt") told += proto::to_json(event).value(), ++count;
    }
    EXPECT_EQ(count, 6) << told;
    for (const auto& [table, set, name] : broken) EXPECT_THAT(told, HasSubstr(name + " of "));
    const auto load = [&](const std::string& id) {
      return bench.get(bench->load(backend_row().uid, {{"config", id}})).front();
    };
    for (const char* id : {"r3", "r4"}) {
      EXPECT_EQ(load(id).baseline, "{}") << id << ": the next observation is taken for it";
      EXPECT_THAT(load(id).was_unread, testing::ElementsAre("**"));
      EXPECT_EQ(load(id).open.size(), 1U) << "its drift is another row";
    }
    for (const char* id : {"r5", "r7"}) EXPECT_TRUE(load(id).open.empty()) << id << " is judged anew";
    for (const char* id : {"r5", "r8"}) EXPECT_EQ(load(id).baseline, sealed(bench->key(), std::stoi(id + 1))) << id;
    EXPECT_EQ(load("r8").open.front().changes[0].new_value, sealed_value(bench->key(), 1'008));
    EXPECT_TRUE(bench.get(bench->declarations("orders", {{"config", "r0"}})).empty())
        << "until its source says it again";
    bench.close();
    EXPECT_TRUE(store::verify(file())) << store::verify(file()).error().message;
  }
}

TEST_F(RotateTest, ACommitThatFailsAfterTheKeyWasWrittenPutsTheFormerOneBack) {
  fill();
  const auto before = bench->key();
  bench.close();
  tamper(file(),
         "CREATE TRIGGER full BEFORE UPDATE ON meta WHEN new.key = 'commits' AND EXISTS (SELECT 1 FROM meta WHERE key "
         "= 'unswept') "
         "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END");
  const std::string key_text = read_file(data("installation.key"));
  bool was_written = false;
  const auto done = rotate(
      [&](std::string_view at) { was_written |= at == "written" && read_file(data("installation.key")) != key_text; });
  ASSERT_FALSE(done);
  EXPECT_TRUE(was_written);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("disk is full"), HasSubstr("the key and the store are as they were")));
  expect_untouched(key_text, before);
  if (HasFatalFailure()) return;
  bench.close();
  tamper(file(), "DROP TRIGGER full");
  ASSERT_TRUE(rotate()) << "and the next one is as if there had been none";
}

TEST_F(RotateTest, AKeyThatCannotBeWrittenIsNotCalledWritten) {
  fill();
  const auto before = bench->key();
  bench.close();
  fs::create_directory(data("installation.key.new"));  // the key can neither be replaced nor restored
  const std::string key_text = read_file(data("installation.key"));
  const auto done = rotate();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("installation.key.new"), HasSubstr("the key and the store are as they were")));
  expect_untouched(key_text, before);
}

TEST_F(RotateTest, RunningAgentKeepsItsKey) {
  const std::string before = read_file(data("installation.key"));
  const auto done = rotate();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::conflict);
  EXPECT_THAT(done.error().message, HasSubstr("in use by pid"));
  EXPECT_EQ(read_file(data("installation.key")), before);
}

TEST_F(RotateTest, KeyThatCannotBeReadIsNotRenamedAwayForOneOfBefore) {
  fill();
  ASSERT_TRUE(store::back_up(data(), dir.file("with.db"), true, bench.clock.wall()));
  bench.close();
  ASSERT_TRUE(rotate());
  const std::string whole = read_file(data("installation.key")), cut = whole.substr(0, whole.size() / 2);
  for (const auto& [text, mode, code] : {std::tuple(whole, 0644, Code::denied), std::tuple(cut, 0600, Code::corrupt)}) {
    std::ofstream(data("installation.key"), std::ios::binary) << text;
    fs::permissions(data("installation.key"), static_cast<fs::perms>(mode));
    const auto refused = store::restore(data(), dir.file("with.db"), {}, bench.clock.wall());
    ASSERT_FALSE(refused) << text.size();
    EXPECT_EQ(refused.error().code, code);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("installation.key"), HasSubstr("--key")));
    EXPECT_EQ(read_file(data("installation.key")), text);
    EXPECT_FALSE(fs::exists(data("store.db.restoring")));
  }
  const auto restored = store::restore(data(), dir.file("with.db"), dir.file("with.db.key"), bench.clock.wall());
  EXPECT_TRUE(restored) << "who names a key has decided: " << restored.error().message;
}

TEST_F(RotateTest, DamagedRowIsNotSignedByARotation) {
  fill();
  bench.close();
  tamper(file(), "UPDATE resource SET baseline = replace(baseline, '\"open\":3', '\"open\":4') WHERE name = 'r3'");
  ASSERT_TRUE(rotate());
  ASSERT_TRUE(bench.open());
  const auto rows = bench.get(bench->load(backend_row().uid, {{"config", "r3"}}));
  EXPECT_EQ(rows[0].baseline, "{}") << "it was forgotten as damaged rows are";
  int told_of = 0;
  for (const auto& event : bench.get(bench->events(0, 1'000))) told_of += event.what == "corrupt";
  EXPECT_EQ(told_of, 1);
}

TEST_F(RotateTest, KeyOfANewerDriftdIsRefusedAndSaidToBeOne) {
  bench.close();
  ASSERT_TRUE(rotate_slow());
  const std::string text = read_file(data("installation.key"));
  ASSERT_TRUE(text.starts_with("driftd installation key v3\n")) << "a driftd of before slow layers must not take it";
  std::string version = text, kind = text, hidden = text;
  version.replace(version.find("v3"), 2, "v4");
  kind.replace(kind.find("\nslow "), 6, "\nsmart ");
  hidden.replace(hidden.find("v3"), 2, "v2");
  for (const auto& [file, code, words] :
       {std::tuple(version, Code::unsupported, "it is of version 4, this one knows 1 to 3"),
        std::tuple(kind, Code::unsupported, "a layer of a kind that this one does not know"),
        std::tuple(hidden, Code::corrupt, "is not an installation key of this version")}) {
    std::ofstream(data("installation.key"), std::ios::binary) << file;
    const auto opened = bench.open();
    ASSERT_FALSE(opened) << file.substr(0, 30);
    EXPECT_EQ(opened.error().code, code);
    EXPECT_THAT(opened.error().message, AllOf(HasSubstr("installation.key"), HasSubstr(words)));
    EXPECT_EQ(read_file(data("installation.key")), file);
  }
}

TEST_F(RotateTest, NothingIsMadeWhereThereIsNoStore) {
  store::Settings settings;
  settings.data_dir = dir.file("nowhere");
  const auto done = store::rotate(std::move(settings), {}, bench.clock);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::not_found);
  EXPECT_FALSE(fs::exists(dir.file("nowhere")));
}

}  // namespace
}  // namespace driftd::test
