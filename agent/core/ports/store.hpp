// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/audit.hpp"
#include "core/event/event.hpp"
#include "core/judge/judge.hpp"

namespace driftd::core {

/// A backend's row: the registration and the marks of its cycles.
struct BackendRow {
  std::string uid;  ///< random, 16 hex; survives a rename
  std::string name, type, provider;
  std::string registration;     ///< canonical JSON of the registration without secrets; a change emits UPDATED
  std::string system_identity;  ///< cluster id, system_identifier, lineage as accepted
  std::string cursor, watch_cursor;
  std::map<std::string, bool> established;  ///< kind → has its baseline
  HealthReport::State health = HealthReport::State::unknown;
  std::uint64_t sequence = 0;  ///< of its last event
  std::optional<Nanos> deleted_ns;
  std::map<std::string, std::string> notes;  ///< what a cycle remembers: `serial`, `last_complete_ns` ...
};

/// One entry of the in-memory index that settles unchanged records without parsing (≤48 bytes + identity).
struct IndexEntry {
  ResourceId id;
  Digest digest;
  std::uint64_t rules_generation = 0;
  std::int64_t revision = 0;
  bool present = true;    ///< observed is there
  bool has_open = false;  ///< has open drifts
};

/// An event to be numbered and stored in a commit, with the sinks that get it.
struct EventDraft {
  std::variant<BackendEvent, AgentEvent> event;
  std::vector<std::string> sinks;
};

/// A row to write with its drifts. The write succeeds only while the stored revision is `next.revision` (0: absent).
struct ResourceWrite {
  StoredResource next;
  std::vector<Drift> ended;  ///< drifts that leave the open set, kept for history
};

/// What a source declares of one resource of another backend, without the body.
struct DeclaredEntry {
  std::string source_uid, target;  ///< target: the name of the backend that it speaks of, registered or not
  ResourceId id;
  Digest digest;
};
struct DeclarationWrite {
  std::string target;
  Declaration declaration;  ///< replaces what the same source said of the same resource
  bool withdrawn = false;   ///< the source does not declare it any more; only ids count
};

/// The unit of commit: a page with its cursor, one SAVEPOINT (delivery.md).
struct PageCommit {
  std::string backend_uid;
  std::vector<ResourceWrite> writes;
  std::vector<EventDraft> events;
  std::vector<DeclarationWrite> declarations;
  std::optional<std::string> cursor, watch_cursor;
  std::vector<std::string> established;  ///< kinds that now have their baseline
  std::optional<BackendRow> backend;     ///< replaces the row's registration, identity, notes; a new one whole
  std::optional<HealthReport::State> health;
  std::vector<AuditEntry> audit;  ///< written with the page or not at all
};
struct CommitResult {
  std::vector<std::int64_t> revisions;  ///< of `writes`, in order
  std::vector<StoredEvent> events;      ///< as numbered, in order
};

/// The one writer of state. Core thread calls; the work runs on the store thread, grouped: whatever queued during the
/// previous fsync goes into one transaction. A commit that returned is durable. `conflict`: a revision moved (nothing
/// of that page is written): load, judge again, commit again. An fsync error ends the process.
class Store {
 public:
  virtual ~Store() = default;
  virtual Task<Result<std::vector<BackendRow>>> backends() = 0;
  virtual Task<Result<std::vector<IndexEntry>>> index(std::string backend_uid) = 0;
  virtual Task<Result<std::vector<StoredResource>>> load(std::string backend_uid, std::vector<ResourceId> ids) = 0;
  /// Kind and schema revision of what is stored of a backend, each pair once.
  virtual Task<Result<std::vector<std::pair<std::string, std::uint32_t>>>> schema_revisions(
      std::string backend_uid) = 0;
  /// Deletes what came and went and nobody accepted, at most `limit` of a backend, the oldest first; returns what it
  /// was.
  virtual Task<Result<std::vector<ResourceId>>> forget_gone(std::string backend_uid, std::int64_t limit) = 0;
  /// What one source declares; what all sources declare of one backend; with bodies, of those ids, by source's name.
  virtual Task<Result<std::vector<DeclaredEntry>>> declared_by(std::string source_uid) = 0;
  virtual Task<Result<std::vector<DeclaredEntry>>> declared_of(std::string target) = 0;
  virtual Task<Result<std::vector<Declaration>>> declarations(std::string target, std::vector<ResourceId> ids) = 0;
  virtual Task<Result<CommitResult>> commit(PageCommit page) = 0;
  /// The resource that an open drift belongs to: backend uid and row. `drift_id` may be a prefix of at least 6
  /// characters that only one open drift has. not_found: no such drift; conflict: it is closed, or several begin so.
  struct Owner {
    std::string backend_uid;
    StoredResource resource;
    std::string drift_id;
  };
  virtual Task<Result<Owner>> owner_of(std::string drift_id) = 0;
  /// Appends one line to the audit log.
  virtual Task<Status> audit(AuditEntry entry) = 0;
};

/// State of one (event, sink) that is not simply behind or before the cursor.
struct DeliveryState {
  std::int64_t seq = 0;
  int attempts = 0;
  Nanos next_ns = 0;
  bool dead = false;
  std::string error;
};
struct SinkCursor {
  std::string sink;
  std::int64_t low_water = 0;  ///< every routed event up to this seq is settled, or has an exception
  std::vector<DeliveryState> exceptions;
  std::map<std::string, std::string> notes;  ///< e.g. JetStream: stream created time, last acked sequence and id
};
struct SinkSettlement {
  std::string sink;
  std::int64_t low_water = 0;
  std::vector<DeliveryState> upsert;  ///< failing or dead
  std::vector<std::int64_t> settled;  ///< exceptions that were delivered
  std::optional<std::map<std::string, std::string>> notes;
  std::vector<std::int64_t> dropped;  ///< dead letters that a person gave up; they stay dropped when the mark goes back
  std::vector<EventDraft> events;     ///< what tells of it (`dead_letter`, `gap`), appended with it: both or neither
};

/// What the relay sees of the store. Same threads and promises as Store.
class Outbox {
 public:
  /// Bytes of payloads with which an answer is full: it ends with the event that reaches them.
  static constexpr std::size_t kMaxAnswerBytes = 4u << 20;
  virtual ~Outbox() = default;
  /// Registers a sink (a new one starts now) and returns its cursor.
  virtual Task<Result<SinkCursor>> open_sink(std::string sink) = 0;
  /// Removes sinks that the config no longer has; `conflict` names pending events unless `drop_pending`.
  virtual Task<Status> close_sink(std::string sink, bool drop_pending) = 0;
  virtual Task<Result<std::vector<std::string>>> sinks() = 0;
  /// Routed events with seq > after, in order, until there are `limit` of them or they are full.
  virtual Task<Result<std::vector<StoredEvent>>> fetch(std::string sink, std::int64_t after, int limit) = 0;
  /// These, in the order in which they are asked for, without those that left the store, until they are full.
  virtual Task<Result<std::vector<StoredEvent>>> fetch_exact(std::string sink, std::vector<std::int64_t> seqs) = 0;
  /// Whole or not at all.
  virtual Task<Status> settle(SinkSettlement settlement) = 0;
  /// Appends an agent event outside a page.
  virtual Task<Result<StoredEvent>> append(EventDraft draft) = 0;
  /// Deletes what retention allows, at most 1,000 rows; true: there is more.
  virtual Task<Result<bool>> prune(Nanos delivered_before, Nanos undelivered_before) = 0;
  /// Bytes and count of events not yet settled by every sink.
  struct Backlog {
    std::int64_t bytes = 0, events = 0;
  };
  virtual Task<Result<Backlog>> backlog() = 0;
};

}  // namespace driftd::core
