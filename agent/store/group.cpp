// SPDX-License-Identifier: Apache-2.0
// Group commit: all work that was queued during the previous fsync goes into one transaction.
#include <algorithm>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include "base/end_process.hpp"
#include "base/log.hpp"
#include "store/checksums.hpp"
#include "store/incarnation.hpp"
#include "store/mend.hpp"

namespace driftd::store {
namespace {

constexpr std::size_t kGroup = 128;    // pages in one transaction: bounds the memory of the WAL's dirty pages
constexpr int kLogPages = 1'000;       // 4 MiB: at this size the write-ahead log is brought into store.db
constexpr int kInputOutputError = 74;  // sysexits.h, EX_IOERR
constexpr std::chrono::milliseconds kLongestUnsynced{100};

/// A repeated fsync may report success for pages that the kernel dropped (PostgreSQL's fsync finding of 2018). What is
/// on the disk is only known after a restart, so the process ends.
[[noreturn]] void stop_at_once(const Error& error) {
  log::room("store").critical(
      "the disk failed, the agent stops so that nothing is promised that is not on it: {}. Check "
      "the disk and its file system, then start the agent again",
      error.message);
  log::room("store").flush();
  end_process(kInputOutputError);
}

Status checked(Connection& db, Status status) {
  if (!status && db.io_failed()) stop_at_once(status.error());
  return status;
}

/// Decides whether the next COMMIT waits for the disk: if one of the group must be there, or if none has waited for
/// 100 ms. SQLite executes this PRAGMA when it compiles it, so it cannot be a cached statement.
Status choose_sync(SqliteStore::State& state, const std::vector<Job>& group) {
  const bool sync = std::chrono::steady_clock::now() - state.synced_at >= kLongestUnsynced ||
                    std::any_of(group.begin(), group.end(), [](const Job& job) { return job.durable; });
  if (sync == state.syncs) return {};
  Connection& db = *state.db;
  DRIFTD_CHECK(checked(db, db.execute(sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")));
  state.syncs = sync;
  return {};
}

Status begin(Connection& db) { return checked(db, db.statement("BEGIN IMMEDIATE").run()); }

/// Undoes a failed job. If `alone`, nothing else is in the transaction, and a new one takes its place.
Status undo_job(Connection& db, bool alone) {
  if (!alone) return checked(db, db.statement("ROLLBACK TO page").run());
  DRIFTD_CHECK(checked(db, db.statement("ROLLBACK").run()));
  return begin(db);
}

/// Runs a job in its SAVEPOINT. Returns an error if the transaction was rolled back: then nothing of the group is
/// stored. A job that is `alone` in the transaction so far needs none: SQLite would first copy each page that it
/// changes, into a file from 64 KiB on.
Status run_job(SqliteStore::State& state, Job& job, bool alone) {
  Connection& db = *state.db;
  const auto newest_seq = state.newest_seq;
  if (!alone) DRIFTD_CHECK(checked(db, db.statement("SAVEPOINT page").run()));
  job.outcome = checked(db, job.work());
  if (!job.outcome) {
    state.newest_seq = newest_seq;
    if (!db.in_transaction()) return job.outcome;
    DRIFTD_CHECK(undo_job(db, alone));
  }
  return alone ? Status{} : checked(db, db.statement("RELEASE page").run());
}

Status save_clock(SqliteStore::State& state) {
  DRIFTD_CHECK(state.db->statement("UPDATE meta SET value = ?1, crc = driftd_crc(key, ?1) WHERE key = 'commits'")
                   .bind(state.reached.commits + 1)
                   .run());
  if (state.hlc == state.stored_hlc) return {};
  return state.db->statement("UPDATE meta SET value = ?1, crc = driftd_crc(key, ?1) WHERE key = 'hlc'")
      .bind(state.hlc)
      .run();
}

/// Returns true if the process must end because rows were repaired while engine and sink runners hold their former
/// state: their next steps would rest on state that is gone.
bool must_begin_anew(const SqliteStore::State& state) { return state.in_use && !state.mended.empty(); }

/// A job that meets a row with a wrong checksum is undone and the wrong rows are mended. If the store is not in use
/// yet, the job is then repeated. If mending fails, it would fail at the next start too: the caller gets the error and
/// the agent goes on.
Status run_or_mend(SqliteStore::State& state, Job& job, bool alone) {
  DRIFTD_CHECK(run_job(state, job, alone));
  if (job.outcome || job.outcome.error().code != Code::corrupt || !state.db->in_transaction()) return {};
  Job mending{[&state] { return mend(state); }, {}, {}};
  DRIFTD_CHECK(run_job(state, mending, false));
  if (!mending.outcome) {
    state.mended.clear();
    log::room("store").error("{}", mending.outcome.error().message);
    return {};
  }
  if (must_begin_anew(state)) return {};
  return run_job(state, job, false);
}

/// Ends the process. No other part of it knows which rows were repaired, and the next open() gives everything to
/// everybody. This cannot repeat for ever: a kill does not undo what was mended, and a mended row is right.
void stop_if_mended(const SqliteStore::State& state) {
  if (!must_begin_anew(state)) return;
  constexpr std::size_t kNamed = 5;
  std::string rows;
  for (std::size_t i = 0; i < std::min(kNamed, state.mended.size()); ++i)
    rows += (i == 0 ? "" : "; ") + state.mended[i];
  if (state.mended.size() > kNamed) rows += "; and " + std::to_string(state.mended.size() - kNamed) + " more";
  log::room("store").critical(
      "rows of the store did not match their checksum and were mended ({}); the events `agent.corrupt` say what became "
      "of each. "
      "What the running agent held of them in memory is not true any more, so it ends now and starts again from the "
      "store: systemd "
      "and Kubernetes start it again, one that was started by hand is to be started by hand. Check the disk",
      rows);
  log::room("store").flush();
  end_process(kInputOutputError);
}

/// Ends the process without reporting success: what was written to a file without a name is lost with the process, and
/// without the lock's name another agent may start.
void stop_if_moved(const SqliteStore::State& state) {
  const std::string moved = state.files.moved();
  if (moved.empty()) return;
  log::room("store").critical(
      "{}: what the agent commits from here on would not be there after its end, or another agent could write it too, "
      "so "
      "it stops now. Files of data_dir are not to be touched under a running agent. Put the file back, or `driftd "
      "restore` "
      "a backup, then start the agent again",
      moved);
  log::room("store").flush();
  end_process(kInputOutputError);
}

/// Called after a commit. It is durable only if it waited for the disk, and if the files still have their names.
void note_commit(SqliteStore::State& state) {
  state.stored_hlc = state.hlc;
  ++state.reached.commits;
  state.reached.hlc = state.hlc;
  state.reached.seq = std::max(state.reached.seq, state.newest_seq);
  state.reached.at_ns = state.clock.wall();
  if (state.syncs) {
    state.synced_at = std::chrono::steady_clock::now();
    keep_mark(state);  // which must not be ahead of the disk
  }
  stop_if_moved(state);
}

Status run_group(SqliteStore::State& state, std::vector<Job>& group) {
  Connection& db = *state.db;
  state.mended.clear();
  DRIFTD_CHECK(choose_sync(state, group));
  DRIFTD_CHECK(begin(db));
  for (auto& job : group) {
    DRIFTD_CHECK(run_or_mend(state, job, &job == &group.front()));
    if (must_begin_anew(state)) break;
  }
  DRIFTD_CHECK(checked(db, sign(db)));
  DRIFTD_CHECK(checked(db, save_clock(state)));
  DRIFTD_CHECK(checked(db, db.statement("COMMIT").run()));
  note_commit(state);
  stop_if_mended(state);
  return {};
}

/// Handles a failed commit, such as of a full disk: nothing of the group is stored, and each caller gets the error.
void undo_group(SqliteStore::State& state, std::vector<Job>& group, const Error& error) {
  if (state.db->in_transaction()) {
    const auto undone = checked(*state.db, state.db->statement("ROLLBACK").run());
    if (!undone) stop_at_once(undone.error());
  }
  state.newest_seq = state.reached.seq;
  log::room("store").error("{} commits were not stored: {}", group.size(), error.message);
  for (auto& job : group) job.outcome = fail(error);
}

/// Checkpoints after the callers got their answers, so that they do not wait for it. SQLite's own checkpoint runs
/// inside COMMIT and ignores a failed fsync, after which the next checkpoint may drop the log of pages that are not on
/// the disk.
void bring_log_in(SqliteStore::State& state) {
  if (state.db->log_pages() < kLogPages) return;
  const auto done = checked(*state.db, state.db->statement("PRAGMA wal_checkpoint(PASSIVE)").run());
  if (!done && !state.log_stuck)
    log::room("store").error("the write-ahead log grows, for it cannot be brought into store.db: {}",
                             done.error().message);
  state.log_stuck = !done;
}

std::vector<Job> take(SqliteStore::State& state) {
  const std::lock_guard guard(state.mutex);
  std::vector<Job> group;
  const std::size_t count = std::min(kGroup, state.waiting.size());
  std::move(state.waiting.begin(), state.waiting.begin() + static_cast<std::ptrdiff_t>(count),
            std::back_inserter(group));
  state.waiting.erase(state.waiting.begin(), state.waiting.begin() + static_cast<std::ptrdiff_t>(count));
  if (group.empty()) state.scheduled = false;
  return group;
}

void drain(const StatePtr& state) {
  auto group = take(*state);
  if (group.empty()) return;
  const Status done = run_group(*state, group);
  if (!done) undo_group(*state, group, done.error());
  for (auto& job : group) job.complete(std::move(job.outcome));
  bring_log_in(*state);
  asio::post(state->strand, [state] { drain(state); });  // waiting reads run in between
}

void enqueue(const StatePtr& state, Job job) {
  const std::lock_guard guard(state->mutex);
  state->waiting.push_back(std::move(job));
  if (state->scheduled) return;
  state->scheduled = true;
  asio::post(state->strand, [state] { drain(state); });
}

struct Initiate {
  template <class Handler>
  void operator()(Handler handler, StatePtr state, Work work, bool durable) const {
    auto shared = std::make_shared<Handler>(std::move(handler));
    auto executor = asio::prefer(asio::get_associated_executor(*shared), asio::execution::outstanding_work.tracked);
    auto complete = [shared, executor](Status status) {
      asio::post(executor, [shared, status = std::move(status)]() mutable { (*shared)(std::move(status)); });
    };
    enqueue(state, Job{std::move(work), std::move(complete), {}, durable});
  }
};

}  // namespace

Status run_now(SqliteStore::State& state, Work work) {
  std::vector<Job> group;
  group.push_back({std::move(work), {}, {}});
  const Status done = run_group(state, group);
  if (!done) undo_group(state, group, done.error());
  return group.front().outcome;
}

Task<Status> SqliteStore::look() {
  auto read = [state = state_](Connection&) -> Status {
    stop_if_moved(*state);
    return {};
  };
  auto outcome = co_await on_store(state_, std::move(read));
  co_return outcome;
}

Task<Status> in_group(StatePtr state, Work work, bool durable) {
  auto outcome = co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(Status)>(
      Initiate{}, asio::use_awaitable, std::move(state), std::move(work), durable);
  co_return outcome;
}

}  // namespace driftd::store
