// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/ports/links.hpp"
#include "core/ports/notifications.hpp"
#include "core/ports/reader.hpp"
#include "core/ports/store.hpp"
#include "core/ports/subscriptions.hpp"
#include "store/keys.hpp"

namespace driftd::core {
class ChangeLogStore;
}

namespace driftd::store {

struct Settings {
  std::filesystem::path data_dir;
  std::string agent = "driftd", cluster;      ///< agent and cluster in the store's own events
  std::chrono::seconds history{30 * 86'400};  ///< retention of ended drifts, deleted resources and quarantined rows
  std::chrono::seconds audit{30 * 86'400};    ///< retention of audit lines
  /// Accepts an installation.key without a store, for a temporary store with a copied key. Otherwise it means that the
  /// store was lost.
  bool keyed = false;
  std::optional<GivenKey> given{};  ///< set: no key is read from data_dir or created there
  /// Maximum length of a reader's transaction: an open one prevents the WAL from being checkpointed. A pass that has
  /// the store for itself (`driftd once`) may read for longer.
  std::chrono::milliseconds longest_read{1'000};
  /// A larger store.db (bytes) is not checked whole before it is used, but only its state (start_check.hpp).
  std::int64_t checked_at_start = 16 << 20;
  /// Returns the sinks of the store's own events (`gap`, `corrupt`) [store thread]. Empty function: every open sink.
  std::function<std::vector<std::string>(const core::AgentEvent&)> route;
  std::function<bool(const std::string& provider)> logs_changes{};  ///< has a change log; empty: none has
  std::function<void(std::string_view)> at_step;  ///< called in a key rotation; a test ends the process there
};

/// The result of one step of SqliteStore::shrink().
struct Shrunk {
  std::int64_t bytes = 0;               ///< bytes of store.db in use after the step
  std::int64_t events = 0, drifts = 0;  ///< numbers of deleted ones
  Nanos until = 0;                      ///< recorded time of the youngest deleted event
  bool more = false;                    ///< the store is still too large, and not everything was examined
};

/// State, outbox and history in `data_dir/store.db` (SQLite, WAL, synchronous=FULL). Owns data_dir under its lock. All
/// writes go through one connection on the store thread; reads use read-only connections on the io pool. Methods may be
/// called from any executor and resume there. A call that meets a row with a wrong checksum has the wrong rows mended
/// and ends the process (74), because what callers remember of them is no longer true. Destroy it when no call is in
/// flight.
class SqliteStore final : public core::Store,
                          public core::Outbox,
                          public core::Reader,
                          public core::Subscriptions,
                          public core::NotificationStore,
                          public core::LinkStore {
 public:
  struct State;

  /// Opens the store: locks, checks, copies, migrates. Blocks. Returns `conflict` if it is locked (names the holder) or
  /// was written by a newer driftd, `corrupt` if it is damaged, `not_found` if one of store.db and installation.key is
  /// missing or empty, and `denied` if others may read its files. Logs what it found. `clock` must outlive the store.
  static Result<std::unique_ptr<SqliteStore>> open(Settings settings, asio::any_io_executor store_thread,
                                                   asio::any_io_executor io_pool, const Clock& clock);
  explicit SqliteStore(std::shared_ptr<State> state);
  ~SqliteStore() override;

  const InstallationKey& key() const;
  /// Returns true if open() read and checked all of the store, and not only its state (start_check.hpp).
  bool checked_whole() const;
  /// Writes the `incarnation` and `key_rotated` events that open() found due, once, even if the agent was killed in
  /// between, and audit lines about requests that ended with the last process. To be called when the sinks are open.
  Task<Status> announce();
  /// Writes an `audit_anchor` event about the last audit line if there are 1,000 lines, or any for five minutes, that
  /// no such event covers. Who keeps these events can prove that the end of the log was removed.
  Task<Status> announce_audit();
  /// Writes an audit line for each backend whose rules (JSON, by name) are not those of the last call, with the former
  /// and the new ones. `from`: the file that they were read from.
  Task<Status> audit_rules(std::map<std::string, std::string> rules, std::string from);
  std::unique_ptr<core::ChangeLogStore> change_log();  ///< its calls end before the store does
  /// Ends the process if store.db, its log or the lock was removed or replaced. Each commit checks this too.
  Task<Status> look();

  Task<Result<std::vector<core::BackendRow>>> backends() override;
  Task<Result<std::vector<core::IndexEntry>>> index(std::string backend_uid) override;
  /// Returns one row for each id, in order; one of revision 0 if the store has none.
  Task<Result<std::vector<core::StoredResource>>> load(std::string backend_uid,
                                                       std::vector<core::ResourceId> ids) override;
  Task<Result<std::vector<std::pair<std::string, std::uint32_t>>>> schema_revisions(std::string backend_uid) override;
  Task<Result<std::vector<core::ResourceId>>> forget_gone(std::string backend_uid, std::int64_t limit) override;
  Task<Result<bool>> forget_kind(std::string backend_uid, std::string kind, std::int64_t limit) override;
  Task<Result<std::vector<core::DeclaredEntry>>> declared_by(std::string source_uid) override;
  Task<Result<std::vector<core::DeclaredEntry>>> declared_of(std::string target) override;
  Task<Result<std::vector<core::Declaration>>> declarations(std::string target,
                                                            std::vector<core::ResourceId> ids) override;
  Task<Result<core::CommitResult>> commit(core::PageCommit page) override;
  Task<Result<Owner>> owner_of(std::string drift_id) override;
  Task<Result<EndedDrift>> ended_drift(std::string drift_id) override;
  Task<Result<std::map<std::string, std::string>>> notification_states() override;
  Task<Status> write_notifications(Write write) override;
  Task<Result<std::vector<core::Silence>>> silences(Nanos now) override;
  Task<Status> write_silence(core::Silence silence, core::AuditEntry line) override;
  Task<Status> add_links(std::vector<core::DecisionLink> links) override;
  Task<Result<std::optional<core::DecisionLink>>> find_link(std::string hash) override;
  Task<Status> audit(core::AuditEntry entry) override;
  Task<Result<core::EnforcementRecord>> enforcement_record(std::string backend_uid, Nanos since) override;

  Task<Result<core::SinkCursor>> open_sink(std::string sink) override;
  Task<Status> close_sink(std::string sink, bool drop_pending) override;
  Task<Result<std::vector<std::string>>> sinks() override;
  Task<Result<std::vector<core::StoredEvent>>> fetch(std::string sink, std::int64_t after, int limit) override;
  Task<Result<std::vector<core::StoredEvent>>> fetch_exact(std::string sink, std::vector<std::int64_t> seqs) override;
  Task<Status> settle(core::SinkSettlement settlement) override;
  Task<Result<core::StoredEvent>> append(core::EventDraft draft) override;
  /// Also deletes history and audit lines past their retention, up to 1,000 of each in one call.
  Task<Result<bool>> prune(Nanos delivered_before, Nanos undelivered_before) override;
  /// If the store takes more than `max_bytes`: deletes, oldest first and up to 1,000 of each in one call, events that
  /// no sink waits for, ended drifts and, if nothing else is left, dead letters, which a `gap` event reports.
  Task<Result<Shrunk>> shrink(std::int64_t max_bytes);
  /// Exact up to 10,000 pending events of one sink. Above that, an estimate from the sink with the most events and
  /// their average size.
  Task<Result<Backlog>> backlog() override;

  Task<Result<bool>> each_resource(core::DriftFilter filter, RowHandler<core::ResourceRow> take) override;
  Task<Result<bool>> each_drift(core::DriftFilter filter, RowHandler<core::DriftRow> take) override;
  Task<Result<std::vector<core::ResourceRow>>> resources(std::string backend, std::string kind, int limit) override;
  Task<Result<std::vector<core::DriftRow>>> drifts(core::DriftFilter filter) override;
  Task<Result<std::vector<core::StoredEvent>>> events(std::int64_t after_seq, int limit) override;
  Task<Result<core::LogSlice>> log(std::int64_t after_seq, int limit) override;
  Task<Result<std::int64_t>> first_above_incarnation(std::uint64_t incarnation) override;
  Task<Result<std::vector<core::StoredEvent>>> last_events(int limit) override;
  Task<Result<std::vector<core::DeadLetter>>> dead_letters(std::string sink, int limit) override;
  Task<Result<std::vector<core::Enforcement>>> enforcements(core::EnforcementFilter filter) override;
  Task<Result<std::vector<core::SinkTotals>>> sink_totals() override;
  Task<Result<std::vector<core::AuditRow>>> audit(int limit) override;
  Task<Result<std::vector<core::AuditRow>>> audit_after(std::int64_t id, int limit) override;
  Task<Result<core::AuditProof>> verify_audit(std::optional<core::AuditLink> anchor) override;
  Task<Result<std::int64_t>> count(Count what) override;

  Task<Result<std::vector<core::Subscription>>> subscriptions() override;
  Task<Status> put_subscription(core::Subscription subscription, core::AuditEntry line) override;
  Task<Status> delete_subscription(std::string subscriber, core::AuditEntry line) override;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace driftd::store
