// SPDX-License-Identifier: Apache-2.0
// Prints how many rows the store commits and loads in a second on this disk. The bounds are a tenth of what a laptop
// reaches: they detect a missing index or a missing group commit, not a slow machine.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <iostream>

#include "support/patience.hpp"
#include "unit/store/bench.hpp"

namespace {

std::atomic<int> syncs{0};  // calls of fsync() and fdatasync() by this process

}  // namespace

// SQLite calls these instead of those of the C library.
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

namespace driftd::test {
namespace {

constexpr int kPage = 512;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

/// Prints and returns rows per second.
double report(const std::string& what, double rows, double seconds) {
  std::cout << what << ": " << static_cast<std::int64_t>(rows / seconds) << " rows/s ("
            << static_cast<std::int64_t>(rows) << " in " << static_cast<std::int64_t>(seconds * 1e6) << " µs)\n";
  return rows / seconds;
}

using ThroughputTest = StoreTest;

std::vector<core::ResourceWrite> page_writes(int page, std::int64_t revision) {
  std::vector<core::ResourceWrite> writes;
  const std::string body = "{\"text\":\"" + std::string(500, 'x') + "\"}";
  for (int i = 0; i < kPage; ++i)
    writes.push_back(resource_write(std::to_string(page) + "-" + std::to_string(i), body, revision));
  return writes;
}

TEST_F(ThroughputTest, PagesOf512AreCommittedAndLoaded) {
  constexpr int kPages = 20;
  const Stopwatch inserting;
  for (int page = 0; page < kPages; ++page) bench.get(bench->commit(page_of(page_writes(page, 0))));
  EXPECT_GT(report("new resources, page by page", kPages * kPage, inserting.seconds()), 1000 / kPatience);

  std::vector<core::EventDraft> drafts;
  for (int i = 0; i < kPage; ++i) drafts.push_back(event_draft(std::to_string(i)));
  const Stopwatch updating;
  for (int page = 0; page < kPages; ++page) bench.get(bench->commit(page_of(page_writes(page, 1), drafts)));
  EXPECT_GT(report("changed resources with an event each, page by page", kPages * kPage, updating.seconds()),
            1000 / kPatience);

  std::vector<core::ResourceId> ids;
  for (const auto& write : page_writes(7, 0)) ids.push_back(write.next.id);
  const Stopwatch loading;
  for (int round = 0; round < kPages; ++round) bench.get(bench->load(backend_row().uid, ids));
  EXPECT_GT(report("loaded resources, 512 a call", kPages * kPage, loading.seconds()), 5000 / kPatience);

  const Stopwatch indexing;
  EXPECT_EQ(bench.get(bench->index(backend_row().uid)).size(), static_cast<std::size_t>(kPages) * kPage);
  report("index entries", kPages * kPage, indexing.seconds());

  const Stopwatch fetching;
  std::int64_t after = 0;
  for (int round = 0; round < kPages; ++round) after = bench.get(bench->fetch("ops", after, kPage)).back().stamp.seq;
  EXPECT_GT(report("fetched events, checksum checked", kPages * kPage, fetching.seconds()), 5000 / kPatience);
}

/// Returns the seconds of one append of 4 KiB with its fsync, the cost that no commit can avoid.
double seconds_per_fsync(const std::string& file, int rounds) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  EXPECT_GE(fd, 0);
  const std::string block(4096, 'x');
  const Stopwatch watch;
  for (int i = 0; i < rounds; ++i) {
    EXPECT_EQ(::write(fd, block.data(), block.size()), static_cast<ssize_t>(block.size()));
    EXPECT_EQ(::fsync(fd), 0);
  }
  const double seconds = watch.seconds();
  ::close(fd);
  return seconds / rounds;
}

TEST_F(ThroughputTest, ConcurrentCommitsShareTheirFsync) {
  constexpr int kCommits = 256;
  const double fsync = seconds_per_fsync(dir.file("probe"), 50);
  std::cout << "bare 4 KiB write + fsync: " << static_cast<std::int64_t>(fsync * 1e6) << " µs\n";
  int before = syncs;
  const Stopwatch one_by_one;
  for (int i = 0; i < kCommits; ++i) bench.get(bench->commit(page_of({}, {event_draft("a")})));
  const double alone = report("commits of one event, one by one", kCommits, one_by_one.seconds());
  EXPECT_GE(syncs - before, kCommits) << "a commit is on the disk before it is answered";
  double grouped = 0;
  for (int run = 0; run < 3; ++run) {  // the best of three, for one stall of the disk takes longer than all commits
    std::vector<Task<Result<core::CommitResult>>> tasks;
    for (int i = 0; i < kCommits; ++i) tasks.push_back(bench->commit(page_of({}, {event_draft("a")})));
    before = syncs;
    const Stopwatch together;
    for (const auto& outcome : bench.wait_all(std::move(tasks))) EXPECT_TRUE(outcome);
    std::cout << "syncs of 256 commits at once: " << syncs - before << "\n";
    EXPECT_LE(syncs - before, kCommits / 8);
    grouped = std::max(grouped, report("commits of one event, 256 at once", kCommits, together.seconds()));
  }
  EXPECT_GT(grouped, alone);
}

}  // namespace
}  // namespace driftd::test
