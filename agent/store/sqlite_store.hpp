// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "core/ports/reader.hpp"
#include "core/ports/store.hpp"
#include "store/keys.hpp"

namespace driftd::store {

struct Settings {
  std::filesystem::path data_dir;
  std::string agent = "driftd", cluster;      ///< names in the store's own events
  std::chrono::seconds history{30 * 86'400};  ///< ended drifts, resources and backends that are gone
  std::chrono::seconds audit{30 * 86'400};    ///< audit lines, quarantined rows
  /// An installation.key that is there without a store was put there for this one: a store that lives for one pass.
  bool keyed = false;
  std::optional<GivenKey> given{};  ///< then no key is read from data_dir or made there
  /// A reader's transaction ends after so long: an open one keeps the WAL from being checkpointed. A pass that is alone
  /// with its store (`driftd once`) may read for longer.
  std::chrono::milliseconds longest_read{1'000};
  /// Sinks of the store's own events (`gap`, `corrupt`) [store thread]; empty function: every open sink.
  std::function<std::vector<std::string>(const core::AgentEvent&)> route;
  std::function<void(std::string_view)> at_step;  ///< of a rotation of the key: a test ends the process there
};

/// What a step of SqliteStore::shrink() did.
struct Shrunk {
  std::int64_t bytes = 0;               ///< of store.db that are in use, behind it
  std::int64_t events = 0, drifts = 0;  ///< that were deleted
  Nanos until = 0;                      ///< when the youngest of those events was recorded
  bool more = false;                    ///< it takes too much still, and not all was looked at
};

/// State, outbox and history in `data_dir/store.db` (SQLite, WAL, synchronous=FULL). Owns data_dir under its lock. All
/// writing goes through one connection on the store thread; readers use read-only ones on the io pool. Methods may be
/// called from any executor and resume there. A call that meets a row with a wrong checksum has the wrong rows mended
/// and ends the process (74): what callers remember of them is not true any more. Destroy it when no call is in flight.
class SqliteStore final : public core::Store, public core::Outbox, public core::Reader {
 public:
  struct State;

  /// Blocks: locks, checks, copies, migrates. `conflict`: locked (names the holder) or written by a newer driftd;
  /// `corrupt`: damaged; `not_found`: of store.db and installation.key one is missing or empty; `denied`: files that
  /// others may read. Logs what it took over. `clock` outlives the store.
  static Result<std::unique_ptr<SqliteStore>> open(Settings settings, asio::any_io_executor store_thread,
                                                   asio::any_io_executor io_pool, const Clock& clock);
  explicit SqliteStore(std::shared_ptr<State> state);
  ~SqliteStore() override;

  const InstallationKey& key() const;
  /// Writes the `incarnation` and `key_rotated` events that open() found due, once, also when the agent was killed in
  /// between. For when the sinks are open.
  Task<Status> announce();
  /// Ends the process when store.db, its log or the lock was removed or replaced; each commit looks too.
  Task<Status> look();

  Task<Result<std::vector<core::BackendRow>>> backends() override;
  Task<Result<std::vector<core::IndexEntry>>> index(std::string backend_uid) override;
  /// One row for each id, in order; revision 0 where the store has none.
  Task<Result<std::vector<core::StoredResource>>> load(std::string backend_uid,
                                                       std::vector<core::ResourceId> ids) override;
  Task<Result<std::vector<std::pair<std::string, std::uint32_t>>>> schema_revisions(std::string backend_uid) override;
  Task<Result<std::vector<core::ResourceId>>> forget_gone(std::string backend_uid, std::int64_t limit) override;
  Task<Result<std::vector<core::DeclaredEntry>>> declared_by(std::string source_uid) override;
  Task<Result<std::vector<core::DeclaredEntry>>> declared_of(std::string target) override;
  Task<Result<std::vector<core::Declaration>>> declarations(std::string target,
                                                            std::vector<core::ResourceId> ids) override;
  Task<Result<core::CommitResult>> commit(core::PageCommit page) override;
  Task<Result<Owner>> owner_of(std::string drift_id) override;
  Task<Status> audit(core::AuditEntry entry) override;

  Task<Result<core::SinkCursor>> open_sink(std::string sink) override;
  Task<Status> close_sink(std::string sink, bool drop_pending) override;
  Task<Result<std::vector<std::string>>> sinks() override;
  Task<Result<std::vector<core::StoredEvent>>> fetch(std::string sink, std::int64_t after, int limit) override;
  Task<Result<std::vector<core::StoredEvent>>> fetch_exact(std::string sink, std::vector<std::int64_t> seqs) override;
  Task<Status> settle(core::SinkSettlement settlement) override;
  Task<Result<core::StoredEvent>> append(core::EventDraft draft) override;
  /// Also forgets history and audit lines past their settings, each at most 1,000 a call.
  Task<Result<bool>> prune(Nanos delivered_before, Nanos undelivered_before) override;
  /// Where the store takes more than that: deletes, the oldest first and at most 1,000 of each in a call, events that
  /// no sink waits for, ended drifts and, where nothing else is left, dead letters, which a `gap` event tells.
  Task<Result<Shrunk>> shrink(std::int64_t max_bytes);
  /// Exact up to 10,000 pending events of one sink; above, the count of the sink with most and its average size.
  Task<Result<Backlog>> backlog() override;

  Task<Result<bool>> each_resource(core::DriftFilter filter, RowHandler<core::ResourceRow> take) override;
  Task<Result<bool>> each_drift(core::DriftFilter filter, RowHandler<core::DriftRow> take) override;
  Task<Result<std::vector<core::ResourceRow>>> resources(std::string backend, std::string kind, int limit) override;
  Task<Result<std::vector<core::DriftRow>>> drifts(core::DriftFilter filter) override;
  Task<Result<std::vector<core::StoredEvent>>> events(std::int64_t after_seq, int limit) override;
  Task<Result<std::vector<core::StoredEvent>>> last_events(int limit) override;
  Task<Result<std::vector<core::DeadLetter>>> dead_letters(std::string sink, int limit) override;
  Task<Result<std::vector<core::SinkTotals>>> sink_totals() override;
  Task<Result<std::vector<core::AuditRow>>> audit(int limit) override;
  Task<Result<core::AuditProof>> verify_audit() override;
  Task<Result<std::int64_t>> count(Count what) override;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace driftd::store
