// SPDX-License-Identifier: Apache-2.0
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using GroupTest = StoreTest;

/// Transactions show in the WAL: each ends with one commit frame (file format, 4.1: size of the database after commit).
int commit_frames(const std::string& wal) {
  const std::string bytes = read_file(wal);
  int frames = 0;
  for (std::size_t at = 32; at + 24 + 4096 <= bytes.size(); at += 24 + 4096) {
    frames += bytes.substr(at + 4, 4) != std::string(4, '\0') ? 1 : 0;
  }
  return frames;
}

TEST_F(GroupTest, CommitsThatQueueDuringAnFsyncShareTheNextOne) {
  const int before = commit_frames(file() + "-wal");
  std::vector<Task<Result<core::CommitResult>>> tasks;
  for (int i = 0; i < 100; ++i) tasks.push_back(bench->commit(page_of({}, {event_draft("a")})));
  for (const auto& outcome : bench.wait_all(std::move(tasks))) EXPECT_TRUE(outcome);
  EXPECT_LT(commit_frames(file() + "-wal") - before, 50);
  EXPECT_EQ(bench.get(bench->events(0, 1000)).size(), 100U);
}

/// The first commit of a transaction has no savepoint: what it wrote before it failed must go all the same.
TEST_F(GroupTest, FailedCommitLeavesNothingWhereverItIsInItsTransaction) {
  const auto half = page_of({resource_write("half"), resource_write("moved", "{}", 7)}, {event_draft("half")});
  for (const std::size_t failing : {0U, 1U, 9U}) {
    std::vector<Task<Result<core::CommitResult>>> tasks;
    for (std::size_t i = 0; i < 10; ++i) {
      const std::string name = std::to_string(failing) + "-" + std::to_string(i);
      tasks.push_back(bench->commit(i == failing ? half : page_of({resource_write(name)}, {event_draft(name)})));
    }
    const auto outcomes = bench.wait_all(std::move(tasks));
    for (std::size_t i = 0; i < outcomes.size(); ++i) EXPECT_EQ(outcomes[i].has_value(), i != failing) << i;
  }
  const auto alone = bench.wait(bench->commit(half));
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, Code::conflict);
  restart();
  EXPECT_EQ(bench.get(bench->index(backend_row().uid)).size(), 27U);
  std::uint64_t sequence = 0;
  for (const auto& event : bench.get(bench->events(0, 1000))) EXPECT_EQ(event.stamp.sequence, ++sequence);
  EXPECT_EQ(sequence, 27U);
}

TEST_F(GroupTest, CommitIsOnTheDiskWhenItReturns) {
  const auto committed = bench.get(bench->commit(page_of({}, {event_draft("a")})));
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(file().c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_stmt* query = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(db, "SELECT id FROM event", -1, &query, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_step(query), SQLITE_ROW);
  EXPECT_STREQ(reinterpret_cast<const char*>(sqlite3_column_text(query, 0)), committed.events.front().stamp.id.c_str());
  sqlite3_finalize(query);
  sqlite3_close(db);
}

/// The store checkpoints by itself, after the answers, so that the log does not grow with every commit.
TEST_F(GroupTest, TheWriteAheadLogIsBroughtIntoTheStoreAgainAndAgain) {
  for (int i = 0; i < 400; ++i)
    bench.get(bench->commit(page_of({resource_write(std::to_string(i))}, {event_draft("a")})));
  const auto written = commit_frames(file() + "-wal");
  EXPECT_LT(std::filesystem::file_size(file() + "-wal"), 8u << 20) << written;
  EXPECT_GT(std::filesystem::file_size(file()), 200'000U) << "and what stood in it is in store.db";
}

/// Reads all events repeatedly; their number must never fall.
Task<Result<core::CommitResult>> read_on(store::SqliteStore* store) {
  std::size_t seen = 0;
  for (int i = 0; i < 50; ++i) {
    auto events = co_await store->events(0, 1000);
    if (!events) co_return fail(events.error());
    if (events->size() < seen) co_return fail(Code::internal, "a reader went back in time");
    seen = events->size();
  }
  co_return core::CommitResult{};
}

TEST_F(GroupTest, ReadersAndWriterWorkSideBySide) {
  std::vector<Task<Result<core::CommitResult>>> tasks;
  for (int i = 0; i < 50; ++i) {
    tasks.push_back(bench->commit(page_of({resource_write(std::to_string(i))}, {event_draft("a")})));
  }
  tasks.push_back(read_on(&*bench));
  tasks.push_back(read_on(&*bench));
  for (const auto& outcome : bench.wait_all(std::move(tasks))) EXPECT_TRUE(outcome) << outcome.error().message;
}

}  // namespace
}  // namespace driftd::test
