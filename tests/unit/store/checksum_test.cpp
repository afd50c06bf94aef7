// SPDX-License-Identifier: Apache-2.0
// A byte of the store that the disk changed is reported, and nothing is judged or delivered from it.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>
#include <map>

#include "proto/codec.hpp"
#include "store/backup.hpp"
#include "store/sqlite.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

core::Drift drift_of(const std::string& resource) {
  core::Drift drift;
  drift.id = "d-" + resource;
  drift.backend_uid = backend_row().uid;
  drift.resource = {"config", resource};
  drift.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
  drift.digest = core::digest_of(drift.changes, drift.against);
  return drift;
}

class ChecksumTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    bench.get(bench->open_sink("ops"));
    auto page = page_of({resource_write("plain"), resource_write("drifting")}, {event_draft("plain")});
    page.writes[1].next.open = {drift_of("drifting")};
    page.cursor = "c-1";
    page.watch_cursor = "w-1";
    page.established = {"config"};
    core::DeclarationWrite declared;
    declared.target = "kafka";
    declared.declaration.source_uid = backend_row().uid;
    declared.declaration.id = {"topic", "orders"};
    declared.declaration.body = "{}";
    page.declarations = {declared};
    bench.get(bench->commit(page));
    bench.get(bench->settle({"ops", 0, {{1, 2, 0, false, "HTTP 500"}}, {}, {}, {}}));
    bench.get(bench->put_subscription({"runner-1", {"kafka-*"}, {core::ChangeType::updated}, "runner:7070"}, {}));
  }
  void change(const std::string& sql) {
    bench.close();
    tamper(file(), sql);
  }
  core::StoredResource load(const std::string& id) {
    return bench.get(bench->load(backend_row().uid, {{"config", id}})).front();
  }
  /// Returns the texts of the `corrupt` events.
  std::vector<std::string> corrupt() {
    std::vector<std::string> out;
    for (const auto& event : bench.get(bench->events(0, 1000))) {
      if (event.what == "corrupt") out.push_back(proto::to_json(event).value());
    }
    return out;
  }
};

TEST_F(ChecksumTest, UntouchedStoreIsTakenAsItIs) {
  restart();
  EXPECT_TRUE(corrupt().empty());
  EXPECT_EQ(load("plain").baseline, R"({"a":1})");
  EXPECT_EQ(load("drifting").open.size(), 1U);
}

TEST_F(ChecksumTest, ChangedBaselineIsForgottenListedAnewAndNamed) {
  change(R"(UPDATE resource SET baseline = '{"a":5}' WHERE name = 'plain')");
  ASSERT_TRUE(bench.open());
  const auto row = load("plain");
  EXPECT_EQ(row.baseline, "{}");
  EXPECT_THAT(row.was_unread, ElementsAre("**"));
  EXPECT_EQ(row.digest, Digest{});
  const auto backend = bench.get(bench->backends()).front();
  EXPECT_EQ(backend.cursor + backend.watch_cursor, "") << "the provider must not say `unchanged` of it";
  EXPECT_THAT(corrupt(), ElementsAre(AllOf(HasSubstr("resource config/plain of backend orders"),
                                           HasSubstr("baseline is forgotten"))));
  restart();
  EXPECT_EQ(corrupt().size(), 1U) << "mended once";
}

TEST_F(ChecksumTest, ChangedDeliveryMarkLosesNothing) {
  emit(20);
  change("UPDATE sink SET low_water = low_water + 15");
  ASSERT_TRUE(bench.open());
  const auto cursor = bench.get(bench->open_sink("ops"));
  EXPECT_EQ(cursor.low_water, 0);
  EXPECT_EQ(bench.get(bench->fetch("ops", cursor.low_water, 1000)).size(), 22U) << "and the event that tells of it";
  const auto books = book("ops");
  EXPECT_EQ(books.emitted, books.acked + books.pending + books.dead + books.dropped);
  EXPECT_THAT(corrupt(), ElementsAre(AllOf(HasSubstr("perhaps of sink ops"), HasSubstr("gets again all"))));
}

TEST_F(ChecksumTest, ChangedRouteIsMadeAnewFromItsEvent) {
  const auto seqs = emit(20, {"ops", "desk"});
  for (const auto& where : {" SET seq = seq + 1000", " SET sink = sink + 7", " SET crc = crc + 1"}) {
    change("UPDATE route" + std::string(where) + " WHERE sink = 1 AND seq = " + std::to_string(seqs[7]));
    ASSERT_TRUE(bench.open());
    std::vector<std::int64_t> routed;
    for (const auto& event : bench.get(bench->fetch("ops", 1, 1000))) {
      if (!event.agent_event) routed.push_back(event.stamp.seq);
    }
    EXPECT_EQ(routed, seqs) << where;
    const auto books = book("ops");
    EXPECT_EQ(books.emitted, books.acked + books.pending + books.dead + books.dropped) << where;
  }
  EXPECT_EQ(corrupt().size(), 3U);
}

TEST_F(ChecksumTest, ChangedDriftGoesAndItsResourceIsJudgedAgain) {
  change("UPDATE drift SET status = 'ignored' WHERE id = 'd-drifting'");
  ASSERT_TRUE(bench.open());
  const auto row = load("drifting");
  EXPECT_TRUE(row.open.empty());
  EXPECT_EQ(row.baseline, R"({"a":1})");
  EXPECT_EQ(row.rules_generation, 0U);
  EXPECT_THAT(corrupt(), ElementsAre(HasSubstr("drift d-drifting")));
}

TEST_F(ChecksumTest, RowThatNothingElseGivesBackIsNamedAndRefused) {
  bench.close();
  const std::string whole = read_file(file());
  const std::pair<const char*, const char*> rows[] = {
      {"UPDATE backend SET sequence = sequence - 1", "backend orders"},
      {"UPDATE backend SET cursor = 'c-0'", "backend orders"},
      {"UPDATE established SET value = 0", "kind config"},
      {"UPDATE meta SET value = value + 7 WHERE key = 'agent_sequence'", "agent_sequence"}};
  for (const auto& [sql, name] : rows) {
    tamper(file(), sql);
    const auto opened = bench.open();
    ASSERT_FALSE(opened) << sql;
    EXPECT_EQ(opened.error().code, Code::corrupt);
    EXPECT_THAT(opened.error().message, AllOf(HasSubstr(name), HasSubstr("driftd restore")));
    for (const char* part : {"-wal", "-shm"}) std::filesystem::remove(file() + part);
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << whole;
  }
  EXPECT_TRUE(bench.open());
}

TEST_F(ChecksumTest, NoColumnOfAnyRowCanChangeUnseen) {
  bench.close();
  const std::string whole = read_file(file());
  const std::map<std::string, std::string> tables = {
      {"meta", "key = 'hlc'"}, {"backend", "1"},     {"established", "1"}, {"resource", "name = 'plain'"},
      {"drift", "1"},          {"declaration", "1"}, {"sink", "1"},        {"delivery", "1"},
      {"route", "1"},          {"subscription", "1"}};
  for (const auto& [table, where] : tables) {
    std::vector<std::string> columns;
    {
      auto db = store::Connection::open(file(), store::Connection::Mode::read_only);
      ASSERT_TRUE(db);
      auto query = (*db)->statement("SELECT name FROM pragma_table_info('" + table +
                                    "') WHERE name NOT IN ('crc', 'id') OR "
                                    "(name = 'id' AND type = 'TEXT')");
      while (*query.next()) columns.push_back(query.text(0));
    }
    ASSERT_GE(columns.size(), 2U) << table;
    for (const auto& column : columns) {
      tamper(file(), "UPDATE " + table + " SET " + column + " = CASE typeof(" + column + ") WHEN 'integer' THEN " +
                         column + " + 1 WHEN 'text' THEN " + column + " || 'x' ELSE 'x' END WHERE " + where);
      const auto opened = bench.open();
      if (opened) {
        EXPECT_EQ(corrupt().size(), 1U) << table << "." << column;
        bench.close();
      } else {
        EXPECT_EQ(opened.error().code, Code::corrupt) << table << "." << column << ": " << opened.error().message;
      }
      for (const char* part : {"-wal", "-shm"}) std::filesystem::remove(file() + part);
      std::ofstream(file(), std::ios::binary | std::ios::trunc) << whole;
    }
  }
}

/// The name is stored in the table, in its index, and in rows that refer to it. Whichever is damaged, no created or
/// deleted resource is reported.
TEST_F(ChecksumTest, BitInANameIsMendedOrRefusedWhereverItStands) {
  bench.close();
  const std::string whole = read_file(file());
  int hits = 0, lossless = 0;
  for (auto at = whole.find("configplain"); at != std::string::npos; at = whole.find("configplain", at + 1)) {
    ++hits;
    std::string flipped = whole;
    flipped[at + 8] ^= 0x01;
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << flipped;
    const auto opened = bench.open();
    if (!opened) {
      EXPECT_EQ(opened.error().code, Code::corrupt) << opened.error().message;
      continue;
    }
    EXPECT_EQ(load("plain").baseline, R"({"a":1})");
    EXPECT_EQ(bench.get(bench->index(backend_row().uid)).size(), 2U);
    ++lossless;
    bench.close();
  }
  EXPECT_GE(hits, 2);
  EXPECT_GE(lossless, 1) << "a damaged index costs nothing";
}

TEST_F(ChecksumTest, EveryWayToWriteARowSignsIt) {
  auto renamed = backend_row();
  renamed.name = "orders-2";
  renamed.system_identity = "other";
  bench.get(bench->commit(registration(renamed)));
  auto page = page_of({resource_write("plain", R"({"a":3})", 1)}, {event_draft("plain", {"new-sink", "ops"})});
  page.health = core::HealthReport::State::up;
  page.cursor = "c-2";
  bench.get(bench->commit(page));
  bench.get(bench->settle({"ops", 2, {}, {1}, {}, {}}));
  bench.get(bench->settle({"ops", 2, {}, {}, std::map<std::string, std::string>{{"k", "v"}}, {}}));
  bench.get(bench->close_sink("new-sink", true));
  bench.get(bench->prune(bench.clock.now + kSecond, bench.clock.now + kSecond));
  restart();
  EXPECT_TRUE(corrupt().empty());
  bench.close();
  EXPECT_TRUE(store::verify(file()));
}

TEST_F(ChecksumTest, BackupWithAWrongRowIsNone) {
  tamper(file(), R"(UPDATE resource SET baseline = '{"a":5}' WHERE name = 'plain')");
  const auto made = store::back_up(dir.file("data"), dir.file("copy.db"), false, bench.clock.wall());
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("checksum"));
  EXPECT_FALSE(std::filesystem::exists(dir.file("copy.db")));
}

}  // namespace
}  // namespace driftd::test
