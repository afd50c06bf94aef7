// SPDX-License-Identifier: Apache-2.0
// A start reads the state and not the history. What is wrong with the state is found before it is used, what is wrong
// with the history at the start after store::verify() has found it.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>

#include "proto/codec.hpp"
#include "store/backup.hpp"
#include "store/start_check.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Returns the bytes that this process has read by system calls, from disks or their cache.
std::int64_t bytes_read() {
  std::ifstream in("/proc/self/io");
  std::string name;
  std::int64_t bytes = 0;
  in >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

core::Drift drift_of(const std::string& id, const std::string& resource) {
  core::Drift drift;
  drift.id = "d-" + id;
  drift.backend_uid = backend_row().uid;
  drift.resource = {"config", resource};
  drift.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
  drift.digest = core::digest_of(drift.changes, drift.against);
  return drift;
}

/// Every store counts as large: at the start only its state is checked.
class StartCheckTest : public StoreTest {
 protected:
  void SetUp() override {
    bench.settings.checked_at_start = 0;
    StoreTest::SetUp();
    bench.get(bench->open_sink("ops"));
    auto page = page_of({resource_write("plain"), resource_write("drifting")});
    page.writes[1].next.open = {drift_of("open", "drifting")};
    page.writes[1].ended = {drift_of("ended", "drifting")};
    page.established = {"config"};
    bench.get(bench->commit(page));
  }
  /// Adds events that the sink has, each with a drift that ended.
  void live_through(int count) {
    std::int64_t last = 0;
    for (int done = 0; done < count;) {
      auto row = bench.get(bench->load(backend_row().uid, {{"config", "plain"}})).front();
      auto page = page_of({core::ResourceWrite{std::move(row), {}}});
      for (int i = 0; i < 500 && done < count; ++i, ++done) {
        page.events.push_back(event_draft("plain"));
        page.writes[0].ended.push_back(drift_of(std::to_string(++drifts_), "plain"));
      }
      for (const auto& event : bench.get(bench->commit(page)).events) last = event.stamp.seq;
    }
    bench.get(bench->settle({"ops", last, {}, {}, {}, {}}));
  }
  std::int64_t bytes_of_start() {
    bench.close();
    const auto before = bytes_read();
    const auto opened = bench.open();
    EXPECT_TRUE(opened) << opened.error().message;
    return bytes_read() - before;
  }
  void change(const std::string& sql) {
    bench.close();
    tamper(file(), sql);
  }
  std::vector<std::string> corrupt() {
    std::vector<std::string> out;
    for (const auto& event : bench.get(bench->events(0, 100'000))) {
      if (event.what == "corrupt") out.push_back(proto::to_json(event).value());
    }
    return out;
  }
  std::string suspect() const { return dir.file("data/store.suspect"); }

  int drifts_ = 0;
};

TEST_F(StartCheckTest, ReadsNoMoreWithAHundredTimesTheHistory) {
  live_through(200);
  const auto little = bytes_of_start();
  live_through(20'000);
  const auto much = bytes_of_start();
  EXPECT_GT(std::filesystem::file_size(file()), 8U << 20);
  EXPECT_LE(much, 2 * little) << "bytes";
}

TEST_F(StartCheckTest, ReadsEverythingOfASmallStore) {
  live_through(20'000);
  bench.settings.checked_at_start = 1 << 30;
  EXPECT_GE(bytes_of_start(), static_cast<std::int64_t>(std::filesystem::file_size(file())));
}

TEST_F(StartCheckTest, WrongRowOfTheStateIsMendedBeforeItIsUsed) {
  const std::pair<const char*, const char*> rows[] = {
      {R"(UPDATE resource SET baseline = '{"a":5}' WHERE name = 'plain')", "resource config/plain"},
      {"UPDATE drift SET status = 'ignored' WHERE id = 'd-open'", "drift d-open"},
      {"UPDATE sink SET low_water = low_water + 1", "perhaps of sink ops"}};
  live_through(600);
  std::size_t mended = 0;
  for (const auto& [sql, name] : rows) {
    change(sql);
    ASSERT_TRUE(bench.open()) << sql;
    ASSERT_EQ(corrupt().size(), ++mended) << sql;
    EXPECT_THAT(corrupt().back(), HasSubstr(name));
  }
  EXPECT_FALSE(std::filesystem::exists(suspect()));
}

TEST_F(StartCheckTest, OpenDriftThatLooksEndedIsFound) {
  live_through(600);
  change("UPDATE drift SET open = 2 WHERE id = 'd-open'");
  ASSERT_TRUE(bench.open());
  EXPECT_THAT(corrupt(), ElementsAre(HasSubstr("drift d-open")));
}

TEST_F(StartCheckTest, WrongRouteOfAWaitingEventLosesNothing) {
  live_through(600);
  const auto seqs = emit(20);
  for (const auto& where : {" SET seq = seq + 1000", " SET seq = seq - 300", " SET sink = sink + 7"}) {
    change("UPDATE OR REPLACE route" + std::string(where) + " WHERE sink = 1 AND seq = " + std::to_string(seqs[7]));
    ASSERT_TRUE(bench.open());
    std::vector<std::int64_t> routed;
    const auto cursor = bench.get(bench->open_sink("ops"));
    for (const auto& event : bench.get(bench->fetch("ops", cursor.low_water, 1'000))) {
      if (!event.agent_event) routed.push_back(event.stamp.seq);
    }
    EXPECT_EQ(routed, seqs) << where;
  }
}

TEST_F(StartCheckTest, DamageOfAnIndexOfTheStateIsFound) {
  live_through(600);
  bench.close();
  std::string bytes = read_file(file());
  const auto at = bytes.find("configplain");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 8] ^= 0x01;
  std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
  const auto opened = bench.open();
  if (!opened) {
    EXPECT_EQ(opened.error().code, Code::corrupt);
    return;
  }
  EXPECT_EQ(bench.get(bench->index(backend_row().uid)).size(), 2U);
  EXPECT_EQ(bench.get(bench->load(backend_row().uid, {{"config", "plain"}})).front().baseline, R"({"a":1})");
}

TEST_F(StartCheckTest, WrongHistoryIsFoundByVerifyAndMendedByTheStartAfterIt) {
  live_through(600);
  const std::pair<const char*, const char*> rows[] = {
      {"UPDATE drift SET reason = 'of a broken disk' WHERE id = 'd-ended'", "drift d-ended"},
      {"UPDATE route SET crc = crc + 1 WHERE seq = 7", "routes"},
      {"UPDATE event SET backend = 'other' WHERE seq = 8", "event row 8"}};
  std::size_t mended = 0;
  for (const auto& [sql, name] : rows) {
    change(sql);
    ASSERT_TRUE(bench.open()) << sql;
    const auto found = store::verify(file());
    ASSERT_FALSE(found) << sql << ": the start has not read it";
    bench.close();
    ASSERT_TRUE(store::mark_suspect(dir.file("data"), found.error().message));
    ASSERT_TRUE(bench.open()) << sql;
    ASSERT_EQ(corrupt().size(), ++mended) << sql;
    EXPECT_THAT(corrupt().back(), HasSubstr(name));
    EXPECT_FALSE(std::filesystem::exists(suspect()));
    const auto again = store::verify(file());
    EXPECT_TRUE(again) << "it would be found again and again: " << again.error().message;
  }
}

TEST_F(StartCheckTest, NewestEventThatCannotBeReadIsRefusedWithAWayOut) {
  live_through(2'000);
  const std::string newest = bench.get(bench->last_events(1)).front().payload;
  bench.close();
  std::string bytes = read_file(file());
  const auto at = bytes.find(newest);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at / 4096 * 4096, 100, std::string(100, 'x'));
  std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::corrupt);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr(file() + " is damaged"), HasSubstr("driftd restore")));
}

TEST_F(StartCheckTest, BrokenPagesOfTheHistoryAreRefusedByTheStartAfterTheyWereFound) {
  live_through(20'000);
  bench.close();
  {
    std::fstream db(file(), std::ios::in | std::ios::out | std::ios::binary);
    db.seekp(-4096 * 40, std::ios::end);
    db << std::string(4096 * 20, 'x');
  }
  ASSERT_TRUE(bench.open());
  const auto found = store::verify(file());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::corrupt);
  bench.close();
  ASSERT_TRUE(store::mark_suspect(dir.file("data"), found.error().message));
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("is damaged"), HasSubstr("Restore")));
  EXPECT_TRUE(std::filesystem::exists(suspect())) << "until somebody restores a store, each start checks it";
}

}  // namespace
}  // namespace driftd::test
