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

/// A pool of idle read-only connections. [any thread]
class ReaderPool {
 public:
  ReaderPool(std::string file, std::chrono::milliseconds longest) : file_(std::move(file)), longest_(longest) {}
  Result<std::unique_ptr<Connection>> borrow();
  void give_back(std::unique_ptr<Connection> connection);
  void close();
  std::chrono::milliseconds longest_read() const { return longest_; }

 private:
  std::string file_;
  std::chrono::milliseconds longest_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

using Work = std::function<Status()>;  ///< runs on the store thread in a transaction; an error undoes it alone

/// Work that waits for the next transaction.
struct Job {
  Work work;
  std::function<void(Status)> complete;  ///< posts to the caller's executor
  Status outcome;
  bool durable = true;  ///< must be on the disk when `complete` is called
};

/// Shared by each job and each read, so that a store may be destroyed while they still run.
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
  std::unique_ptr<Connection> db;                     ///< store strand only
  WatchedFiles files;                                 ///< store strand only
  std::optional<MarkFile> mark;                       ///< store strand only
  Mark reached;                                       ///< what was committed; store strand only
  bool mark_kept = true;                              ///< the last write of the mark succeeded
  bool log_stuck = false;                             ///< the last checkpoint failed, and that was logged
  std::uint64_t hlc = 0, stored_hlc = 0;              ///< last clock value given, and stored; store strand only
  std::chrono::steady_clock::time_point synced_at{};  ///< end of the last commit that waited for the disk
  bool syncs = true;                                  ///< COMMIT waits for the disk; store strand only
  std::int64_t newest_seq = 0;                        ///< newest inserted event; store strand only
  std::string salt;  ///< salt of the ids that this opening of the store gives; new each time
  /// Where shrink() continues [shrink.cpp], which alone uses it. The agent awaits each call before the next.
  struct Shrink {
    std::int64_t looked_to = 0, forgot = 0;  ///< of this pass: where the next slice begins; number of deleted rows
    bool spares_dead = true;                 ///< this pass keeps dead letters
  } shrink;
  /// Where retention continues, and the clock that it trusts; store strand only [retention.cpp].
  struct Retention {
    std::int64_t next_seq = 0;  ///< where the next slice begins
    Nanos clock_offset = 0;     ///< of the wall clock to the monotonic clock, as it was when it was trusted
    Nanos waits_until = 0;      ///< it deletes nothing until this time of the monotonic clock; 0: it does not wait
  } retention;
  std::chrono::steady_clock::time_point anchored{};  ///< the last `audit_anchor` event, or the start; store strand
  std::vector<std::string> mended;                   ///< rows that the open transaction repaired; store strand only
  /// Set once engine and sink runners hold state of the store in memory: rows are then not repaired behind their back,
  /// the process ends instead.
  bool in_use = false;
  bool checked_whole = false;  ///< open() read and checked all of it; written before anything else uses the store

  std::mutex mutex;  ///< guards the two members below
  std::vector<Job> waiting;
  bool scheduled = false;
};

/// Bytes of a page of a reader's list: a page ends after the row that reaches them.
inline constexpr std::size_t kPageBytes = 4u << 20;

using StatePtr = std::shared_ptr<SqliteStore::State>;

/// Opens the state of a store that is not in use yet, for SqliteStore::open(). [open.cpp]
Result<StatePtr> open_state(Settings settings, asio::any_io_executor store_thread, asio::any_io_executor io_pool,
                            const Clock& clock);

/// Runs `work` in the next transaction and returns its status once that is durable, or, if `durable` is false, once a
/// kill of the process cannot undo it any more. An error undoes this work only.
/// Callers name `work` before they pass it, because g++ 12 destroys temporary closures of a co_await expression twice.
/// [group.cpp]
Task<Status> in_group(StatePtr state, Work work, bool durable = true);

/// Does the same at once, for open(), before anything else uses the store. [group.cpp]
Status run_now(SqliteStore::State& state, Work work);

/// Sets, at the start, the clock that retention trusts. A clock that is ahead cannot be told from time in which the
/// agent did not run; but after more than 30 days since `last_commit` (0: none) retention waits, as for a clock that
/// jumps. A wait that the last process began continues to its end. [retention.cpp]
Status believe_clock(SqliteStore::State& state, Nanos last_commit);

/// Runs `read` (Connection& → Result<T>) on the store thread between two transactions, so that it sees all committed
/// data.
template <class Read>
Task<std::invoke_result_t<Read, Connection&>> on_store(StatePtr state, Read read) {
  auto executor = state->strand;
  auto work = [state = std::move(state), read = std::move(read)]() mutable { return read(*state->db); };
  auto result = co_await run_on(std::move(executor), std::move(work));
  co_return result;
}

/// Begins a read transaction on `connection`, of Settings::longest_read at most. Its destructor ends it and returns the
/// connection to the pool. [reader_pool.cpp]
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
