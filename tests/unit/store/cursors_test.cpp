// SPDX-License-Identifier: Apache-2.0
// A provider's cursor contains hashes of what it listed: somebody who has only the store finds nothing to test guesses
// on, and a cursor of another row or key is not accepted.
#include <gmock/gmock.h>
#include <filesystem>

#include "base/digest.hpp"
#include "store/checksums.hpp"
#include "store/rotate.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;

class CursorsTest : public StoreTest {
 protected:
  const std::string digest_ = to_hex(sha256("all that was listed"));
  const std::string other_uid_ = "b000000000000002";

  void SetUp() override {
    StoreTest::SetUp();
    bench.get(bench->commit(registration(backend_row(other_uid_, "billing"))));
  }
  void commit(const std::string& cursor, const std::string& watch, const std::string& uid = backend_row().uid) {
    core::PageCommit page;
    page.backend_uid = uid;
    page.cursor = cursor;
    page.watch_cursor = watch;
    bench.get(bench->commit(std::move(page)));
  }
  core::BackendRow row(const std::string& uid = backend_row().uid) {
    for (auto& one : bench.get(bench->backends())) {
      if (one.uid == uid) return one;
    }
    return {};
  }
  /// Writes a cursor as somebody who can compute a row's checksum, or an older version, would.
  void rewrite(const std::string& set, const std::string& where = "1") {
    bench.close();
    const auto db = store::Connection::open(file(), store::Connection::Mode::read_write);
    ASSERT_TRUE(db);
    for (const auto& sql : {std::string("PRAGMA secure_delete = OFF"), "UPDATE backend SET " + set + " WHERE " + where,
                            std::string("UPDATE backend SET crc = " DRIFTD_CRC_BACKEND)}) {
      const Status done = (*db)->execute(sql);
      ASSERT_TRUE(done) << done.error().message;
    }
  }
  std::string all_bytes() const {
    std::string out;
    for (const auto& entry : fs::directory_iterator(dir.file("data"))) {
      if (entry.path().filename().string().starts_with("store")) out += read_file(entry.path().string());
    }
    return out;
  }
  static std::string large(const std::string& word) {
    std::string out;
    while (out.size() < 60'000) out += word + " ";
    return out;
  }
};

TEST_F(CursorsTest, AreGivenBackAsTheyCame) {
  std::string any = large("position") + std::string("\0\xff\n", 3);
  for (const auto& [cursor, watch] :
       {std::pair<std::string, std::string>{"c-1", "w-1"}, {any, "w-2"}, {"", any}, {"c-2", ""}}) {
    commit(cursor, watch);
    EXPECT_EQ(row().cursor, cursor);
    EXPECT_EQ(row().watch_cursor, watch);
    restart();
    EXPECT_EQ(row().cursor, cursor);
    EXPECT_EQ(row().watch_cursor, watch);
    EXPECT_EQ(row(other_uid_).cursor, "");
  }
}

TEST_F(CursorsTest, NewBackendMayBringThem) {
  auto brought = backend_row("b000000000000003", "carts");
  brought.cursor = "c-" + digest_;
  brought.watch_cursor = "w-" + digest_;
  bench.get(bench->commit(registration(brought)));
  EXPECT_EQ(row(brought.uid).cursor, brought.cursor);
  EXPECT_EQ(row(brought.uid).watch_cursor, brought.watch_cursor);
  EXPECT_EQ(all_bytes().find(digest_), std::string::npos);
}

TEST_F(CursorsTest, FilesHoldNothingOfThem) {
  for (int n = 0; n < 20; ++n) commit(large(digest_) + std::to_string(n), "w-" + digest_);
  EXPECT_EQ(all_bytes().find(digest_), std::string::npos) << "in the log";
  bench.close();
  EXPECT_EQ(all_bytes().find(digest_), std::string::npos);
}

TEST_F(CursorsTest, TheSameOneIsNeverStoredAsTheSame) {
  const auto stored = [&] {
    const auto db = store::Connection::open(file(), store::Connection::Mode::read_only);
    auto query = (*db)->statement("SELECT cursor || ' ' || watch_cursor FROM backend WHERE uid = 'b000000000000001'");
    return query.next() ? query.text(0) : std::string();
  };
  commit("c-1", "c-1");
  const std::string first = stored();
  commit("c-1", "c-1");
  EXPECT_NE(first, stored()) << "who sees two copies of the store must not see that nothing changed";
  EXPECT_NE(first.substr(0, first.find(' ')), first.substr(first.find(' ') + 1));
}

TEST_F(CursorsTest, WhatIsNotOfThisRowIsNoCursor) {
  commit("c-1", "w-1");
  commit("c-2", "w-2", other_uid_);
  rewrite("cursor = (SELECT b.cursor FROM backend b WHERE b.uid = 'b000000000000002')", "uid = 'b000000000000001'");
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(row().cursor, "") << "of another backend: its provider would say `unchanged` of what it did not list";
  EXPECT_EQ(row().watch_cursor, "w-1");
  EXPECT_EQ(row(other_uid_).cursor, "c-2");
  rewrite("cursor = watch_cursor");
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(row().cursor, "") << "of the watch";
  EXPECT_EQ(row(other_uid_).cursor, "");
  EXPECT_EQ(row(other_uid_).watch_cursor, "w-2");
}

TEST_F(CursorsTest, DamageAnywhereIsNoCursor) {
  for (const auto& damage :
       {"substr(cursor, 2)", "substr(cursor, 1, length(cursor) - 4)", "'x' || cursor", "cursor || 'AAAA'", "'AQ=='",
        "'%%%%'", "'AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='",
        "substr(cursor, 1, 29) || iif(substr(cursor, 30, 1) = '/', '+', '/') || substr(cursor, 31)"}) {
    commit("c-1 and something behind it", "w-1");
    rewrite("cursor = " + std::string(damage));
    ASSERT_TRUE(bench.open()) << damage;
    EXPECT_EQ(row().cursor, "") << damage;
    EXPECT_EQ(row().watch_cursor, "w-1") << damage;
  }
}

TEST_F(CursorsTest, ThoseOfAVersionOfBeforeAreDroppedAndNoPageKeepsThem) {
  rewrite("cursor = '" + large(digest_) + "', watch_cursor = '" + digest_ + "'");
  ASSERT_NE(all_bytes().find(digest_), std::string::npos);
  const Status opened = bench.open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(row().cursor + row().watch_cursor, "") << "the next refresh lists everything";
  EXPECT_EQ(all_bytes().find(digest_), std::string::npos);
  for (const auto& event : bench.get(bench->events(0, 1'000))) EXPECT_NE(event.what, "corrupt") << "nothing is wrong";
  commit("c-1", "w-1");
  restart();
  EXPECT_EQ(row().cursor, "c-1");
}

TEST_F(CursorsTest, RotationDropsThem) {
  commit("c-1", "w-1");
  bench.close();
  store::Settings settings;
  settings.data_dir = dir.file("data");
  ASSERT_TRUE(store::rotate(settings, {}, bench.clock));
  const auto db = store::Connection::open(file(), store::Connection::Mode::read_only);
  EXPECT_EQ((*db)->integer("SELECT count(*) FROM backend WHERE cursor <> '' OR watch_cursor <> ''"), 0)
      << "the former key opens them";
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(row().cursor + row().watch_cursor, "");
  commit("c-2", "w-2");
  restart();
  EXPECT_EQ(row().cursor + row().watch_cursor, "c-2w-2");
}

}  // namespace
}  // namespace driftd::test
