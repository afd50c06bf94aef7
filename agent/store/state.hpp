// SPDX-License-Identifier: Apache-2.0
// The parts of SqliteStore that its files share; no other room includes this.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "store/files.hpp"
#include "store/mark.hpp"
#include "store/sqlite.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::store {

/// Read-only connections that no one uses now. [any thread]
class ReaderPool {
 public:
  ReaderPool(std::string file, std::chrono::milliseconds longest) : file_(std::move(file)), longest_(longest) {}
  Result<std::unique_ptr<Connection>> borrow();
  void give_back(std::unique_ptr<Connection> connection);
  /// Closes those that no one uses.
  void close();
  std::chrono::milliseconds longest_read() const { return longest_; }

 private:
  std::string file_;
  std::chrono::milliseconds longest_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

using Work = std::function<Status()>;  ///< runs on the store thread inside a SAVEPOINT

/// What waits for the next transaction.
struct Job {
  Work work;
  std::function<void(Status)> complete;  ///< posts to the caller's executor
  Status outcome;
};

/// Kept alive by each job and each read, so that a store may go while they still run.
struct SqliteStore::State : std::enable_shared_from_this<SqliteStore::State> {
  State(Settings s, asio::any_io_executor store_strand, asio::any_io_executor io, const Clock& c, std::string file)
      : settings(std::move(s)),
        strand(std::move(store_strand)),
        io_pool(std::move(io)),
        clock(c),
        readers(std::move(file), settings.longest_read) {}
  /// Brings the write-ahead log into store.db, so that this file alone is the whole store. [open.cpp]
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Settings settings;
  const asio::any_io_executor strand;  ///< over the store thread
  const asio::any_io_executor io_pool;
  const Clock& clock;
  ReaderPool readers;
  std::optional<DirectoryLock> lock;
  InstallationKey key;
  std::unique_ptr<Connection> db;  ///< store strand only
  WatchedFiles files;              ///< store strand only
  std::optional<MarkFile> mark;    ///< store strand only
  Mark reached;                    ///< what is durable; store strand only
  bool mark_kept = true;           ///< the last write of the mark went well
  bool log_stuck = false;          ///< the last checkpoint failed, and it was told
  std::uint64_t hlc = 0;           ///< last one given; store strand only
  std::uint64_t stored_hlc = 0;
  std::int64_t newest_seq = 0;  ///< of the events inserted; store strand only
  std::string salt;             ///< of the ids that this opening of the store gives: another one each time
  std::int64_t pruned_to = 0;   ///< where the next slice of retention looks; store strand only
  /// Where shrink() continues [shrink.cpp]. Only shrink() reads and writes it, and the agent awaits each call before
  /// the next.
  struct Shrink {
    std::int64_t looked_to = 0, forgot = 0;  ///< of this pass: where the next slice begins, rows that went
    bool spares_dead = true;                 ///< dead letters stay in this pass
  } shrink;
  Nanos pruned_by = 0;  ///< the wall clock above the one that is never set, as retention believes it; store strand only
  Nanos doubted_until = 0;          ///< of the clock that is never set: retention waits; 0: it does not
  std::vector<std::string> mended;  ///< rows that the open transaction took back; store strand only
  /// Engine and lanes hold in memory what the store said: rows are not taken back under them, the process ends with it.
  bool in_use = false;

  std::mutex mutex;  ///< of the two below
  std::vector<Job> waiting;
  bool scheduled = false;
};

/// Text of a page of a reader's list: it ends behind the row that makes this full.
inline constexpr std::size_t kPageBytes = 4u << 20;

using StatePtr = std::shared_ptr<SqliteStore::State>;

/// SqliteStore::open() without the public face: not in use yet. [open.cpp]
Result<StatePtr> open_state(Settings settings, asio::any_io_executor store_thread, asio::any_io_executor io_pool,
                            const Clock& clock);

/// Runs `work` in the next transaction, in its own SAVEPOINT, and returns its status once that is on the disk. An error
/// undoes the work and no other. Callers name `work` before they pass it: g++ 12 destroys temporary closures of a
/// co_await expression twice. [group.cpp]
Task<Status> in_group(StatePtr state, Work work);

/// The same at once, for open(), before anybody else is there. [group.cpp]
Status run_now(SqliteStore::State& state, Work work);

/// At the start: what retention measures the clock by. Nothing tells a clock that is ahead from time that nobody was
/// there, but of more than 30 days since `last_commit` (0: none) it waits, as of a clock that jumps; a doubt of the
/// process before goes on to its end. [retention.cpp]
Status believe_clock(SqliteStore::State& state, Nanos last_commit);

/// Runs `read` (Connection& → Result<T>) on the store thread between two transactions: it sees all that was committed.
template <class Read>
Task<std::invoke_result_t<Read, Connection&>> on_store(StatePtr state, Read read) {
  auto executor = state->strand;
  auto work = [state = std::move(state), read = std::move(read)]() mutable { return read(*state->db); };
  auto result = co_await run_on(std::move(executor), std::move(work));
  co_return result;
}

/// Begins a read transaction of at most Settings::longest_read on `connection`; ends it and hands the connection back.
/// [reader_pool.cpp]
class ReadTransaction {
 public:
  ReadTransaction(ReaderPool& pool, std::unique_ptr<Connection> connection);
  ~ReadTransaction();
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;
  Connection& db() { return *connection_; }

 private:
  ReaderPool& pool_;
  std::unique_ptr<Connection> connection_;
  std::chrono::steady_clock::time_point until_;
};

/// Runs `read` (Connection& → Result<T>) on the io pool in a read transaction.
template <class Read>
Task<std::invoke_result_t<Read, Connection&>> read_on_io_pool(StatePtr state, Read read) {
  auto executor = state->io_pool;
  auto work = [state = std::move(state), read = std::move(read)]() mutable -> std::invoke_result_t<Read, Connection&> {
    DRIFTD_TRY(auto connection, state->readers.borrow());
    ReadTransaction transaction(state->readers, std::move(connection));
    return read(transaction.db());
  };
  auto result = co_await run_on(std::move(executor), std::move(work));
  co_return result;
}

}  // namespace driftd::store
