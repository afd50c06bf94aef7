// SPDX-License-Identifier: Apache-2.0
// A process is killed while it commits. Afterwards every commit that it acknowledged is stored, and no commit is stored
// in part.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

constexpr int kPerPage = 5;

/// Returns a page that writes `round` into five resources, with one event for each.
core::PageCommit round_page(int round) {
  std::vector<core::ResourceWrite> writes;
  std::vector<core::EventDraft> events;
  for (int i = 0; i < kPerPage; ++i) {
    const std::string id = "r" + std::to_string(i);
    writes.push_back(resource_write(id, "{\"round\":" + std::to_string(round) + "}", round));
    events.push_back(event_draft(id));
  }
  auto page = page_of(std::move(writes), std::move(events));
  page.cursor = std::to_string(round);
  return page;
}

/// What the child reports to the parent after each commit.
struct Ack {
  std::int64_t round = 0;
  std::int64_t first_seq = 0;
  char first_id[40] = {};
};

/// Commits one round after the other and writes an Ack for each into the pipe `acks`.
[[noreturn]] void commit_forever(const std::string& data_dir, int acks) {
  Bench bench(data_dir);
  if (!bench.open()) ::_exit(1);
  auto rows = bench.get(bench->backends());
  if (rows.empty()) bench.get(bench->commit(registration()));
  const auto stored = bench.get(bench->load(backend_row().uid, {{"config", "r0"}})).front().revision;
  for (auto round = static_cast<int>(stored);; ++round) {
    const auto committed = bench.get(bench->commit(round_page(round)));
    Ack ack{round, committed.events.front().stamp.seq, {}};
    std::snprintf(ack.first_id, sizeof ack.first_id, "%s", committed.events.front().stamp.id.c_str());
    if (::write(acks, &ack, sizeof ack) != static_cast<ssize_t>(sizeof ack)) ::_exit(2);
  }
}

/// Runs a child until it has acknowledged `count` commits and for `more` time, then kills it. Returns all its acks.
std::vector<Ack> run_and_kill(const std::string& data_dir, int count, std::chrono::microseconds more) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    commit_forever(data_dir, ends[1]);
  }
  ::close(ends[1]);
  std::vector<Ack> acks;
  Ack ack;
  while (static_cast<int>(acks.size()) < count && ::read(ends[0], &ack, sizeof ack) == sizeof ack) acks.push_back(ack);
  const timespec moment{0, std::chrono::nanoseconds(more).count()};
  ::ppoll(nullptr, 0, &moment, nullptr);  // the kill falls anywhere in a commit
  ::kill(child, SIGKILL);
  while (::read(ends[0], &ack, sizeof ack) == sizeof ack) acks.push_back(ack);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
  return acks;
}

/// Expects that the store contains each acknowledged round, and no round in part. `acked` is by round.
void expect_whole(const std::string& data_dir, const std::map<std::int64_t, Ack>& acked) {
  Bench bench(data_dir);
  ASSERT_TRUE(bench.open());
  std::map<std::int64_t, std::string> ids;
  std::uint64_t sequence = 0;
  for (const auto& event : bench.get(bench->events(0, 1'000'000))) {
    EXPECT_EQ(event.stamp.sequence, ++sequence);
    ids[event.stamp.seq] = event.stamp.id;
  }
  std::set<std::string> distinct;
  for (const auto& [seq, id] : ids) distinct.insert(id);
  EXPECT_EQ(distinct.size(), ids.size());
  for (const auto& [round, ack] : acked) EXPECT_EQ(ids[ack.first_seq], ack.first_id) << "lost round " << round;
  const auto cursor = bench.get(bench->backends()).front().cursor;
  EXPECT_GE(std::stoll(cursor), acked.rbegin()->first);
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kPerPage) * (std::stoull(cursor) + 1));
  for (const auto& row : bench.get(bench->resources("", "", 100))) {
    EXPECT_EQ(row.resource.baseline, "{\"round\":" + cursor + "}");
    EXPECT_EQ(row.resource.revision, std::stoll(cursor) + 1);
  }
}

TEST(CrashTest, EveryAcknowledgedCommitIsThereAfterKillsAtRandomPoints) {
  TempDir dir;
  std::mt19937 random(std::random_device{}());
  std::map<std::int64_t, Ack> acked;
  for (int kill = 0; kill < 20; ++kill) {
    const auto more = std::chrono::microseconds(random() % 5'000);
    for (const auto& ack : run_and_kill(dir.file("data"), 1 + static_cast<int>(random() % 10), more))
      acked[ack.round] = ack;
    expect_whole(dir.file("data"), acked);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(acked.size(), 20U);
}

/// Runs `body` in a child. Returns its exit code, or 128 + signal.
int in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(CrashTest, DiskThatRefusesAWriteEndsTheProcessAndKeepsWhatWasAcknowledged) {
  TempDir dir;
  int acknowledged[2];
  ASSERT_EQ(::pipe(acknowledged), 0);
  const int code = in_child([&] {
    Bench bench(dir.file("data"));
    if (!bench.open()) ::_exit(1);
    bench.get(bench->commit(registration()));
    bench.get(bench->commit(round_page(0)));
    (void)!::write(acknowledged[1], ".", 1);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{64 << 10, 64 << 10};  // a write beyond this fails with EFBIG, which is an I/O error for SQLite
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(1);
    for (int round = 1; round < 1000; ++round) {
      const auto committed = bench.wait(bench->commit(round_page(round)));
      if (!committed) ::_exit(3);
      (void)!::write(acknowledged[1], ".", 1);
    }
  });
  EXPECT_EQ(code, 74) << "EX_IOERR";
  ::close(acknowledged[1]);
  char dots[1000];
  const ssize_t pages = ::read(acknowledged[0], dots, sizeof dots);
  ::close(acknowledged[0]);
  ASSERT_GE(pages, 1);
  Bench bench(dir.file("data"));
  ASSERT_TRUE(bench.open());
  EXPECT_GE(bench.get(bench->events(0, 1'000'000)).size(), static_cast<std::size_t>(pages * kPerPage));
  EXPECT_EQ(bench.get(bench->events(0, 1'000'000)).size() % kPerPage, 0U);
}

TEST(CrashTest, LockOfAKilledProcessIsFree) {
  TempDir dir;
  run_and_kill(dir.file("data"), 1, std::chrono::microseconds(0));
  Bench bench(dir.file("data"));
  EXPECT_TRUE(bench.open());
}

}  // namespace
}  // namespace driftd::test
