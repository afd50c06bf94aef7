// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/task.hpp"
#include "core/audit.hpp"
#include "core/enforce/operation.hpp"
#include "core/event/event.hpp"
#include "core/judge/judge.hpp"
#include "core/ports/delivery_state.hpp"

namespace driftd::core {

/// A backend's row: its registration and the state of its cycles.
struct BackendRow {
  std::string uid;  ///< random, 16 hex; survives a rename
  std::string name, type, provider;
  std::string registration;  ///< canonical JSON of the registration without secrets; a change of it is an UPDATED event
  std::string system_identity;  ///< the accepted cluster id, system_identifier or lineage
  std::string cursor, watch_cursor;
  std::map<std::string, bool> established;  ///< kind → whether it has its baseline
  HealthReport::State health = HealthReport::State::unknown;
  std::uint64_t sequence = 0;  ///< sequence of the backend's last event
  std::optional<Nanos> deleted_ns;
  std::map<std::string, std::string> notes;  ///< what cycles remember: `serial`, `last_complete_ns` …
};

/// One entry of the in-memory index by which unchanged records are recognised without parsing (≤48 bytes + identity).
struct IndexEntry {
  ResourceId id;
  Digest digest;
  std::uint64_t rules_generation = 0;
  std::int64_t revision = 0;
  bool present = true;    ///< the resource has an observed body
  bool has_open = false;  ///< the resource has open drifts
};

/// An event to be numbered and stored in a commit, with the sinks that get it.
struct EventDraft {
  std::variant<BackendEvent, AgentEvent> event;
  std::vector<std::string> sinks;
};

/// A row to write with its drifts. The write succeeds only if the stored revision is `next.revision` (0: no row).
struct ResourceWrite {
  StoredResource next;
  std::vector<Drift> ended;  ///< drifts that are no longer open, kept as history
};

/// What a source declares of one resource of another backend, without the body.
struct DeclaredEntry {
  std::string source_uid, target;  ///< target: the name of the backend that the declaration is about, registered or not
  ResourceId id;
  Digest digest;
};
struct DeclarationWrite {
  std::string target;
  Declaration declaration;  ///< replaces the same source's declaration of the same resource
  bool withdrawn = false;   ///< the source no longer declares it; only the ids are used
};

/// The unit of commit: a page with its cursor, in one SAVEPOINT.
struct PageCommit {
  std::string backend_uid;
  std::vector<ResourceWrite> writes;
  std::vector<EventDraft> events;
  std::vector<DeclarationWrite> declarations;
  std::optional<std::string> cursor, watch_cursor;
  std::vector<std::string> established;  ///< kinds that have their baseline from now on
  std::optional<BackendRow> backend;     ///< replaces the row's registration, identity and notes; a new row is inserted
  std::optional<HealthReport::State> health;
  std::vector<AuditEntry> audit;  ///< written together with the page
  std::vector<Enforcement> enforcements;
  std::vector<EnforcementStop> enforcement_stops;
  std::string link;  ///< hash of a link that is used up by this page; `denied` if it was used already. Empty: none
  Nanos link_used_ns = 0;
};
struct CommitResult {
  std::vector<std::int64_t> revisions;  ///< new revisions of `writes`, in order
  std::vector<StoredEvent> events;      ///< with their numbers, in order
};

/// The only writer of state. Called on the core thread; the work runs on the store thread in groups: all pages that
/// were queued during the previous fsync are one transaction. A commit that returned is durable. It returns `conflict`
/// and writes nothing of the page if a revision changed: the caller loads, judges and commits again. An fsync error
/// ends the process.
class Store {
 public:
  virtual ~Store() = default;
  virtual Task<Result<std::vector<BackendRow>>> backends() = 0;
  virtual Task<Result<std::vector<IndexEntry>>> index(std::string backend_uid) = 0;
  virtual Task<Result<std::vector<StoredResource>>> load(std::string backend_uid, std::vector<ResourceId> ids) = 0;
  /// Returns the pairs of kind and schema revision of a backend's stored resources, each once.
  virtual Task<Result<std::vector<std::pair<std::string, std::uint32_t>>>> schema_revisions(
      std::string backend_uid) = 0;
  /// Deletes resources that appeared and disappeared without ever being accepted, at most `limit` of a backend, the
  /// oldest first. Returns their ids.
  virtual Task<Result<std::vector<ResourceId>>> forget_gone(std::string backend_uid, std::int64_t limit) = 0;
  /// Deletes resources of one kind of a backend, at most `limit`, except those with open drifts. Once none is left, the
  /// kind has no baseline any more. Returns true if there may be more to delete.
  virtual Task<Result<bool>> forget_kind(std::string backend_uid, std::string kind, std::int64_t limit) = 0;
  /// Return what one source declares; what all sources declare of one backend; and, with bodies and ordered by the
  /// source's name, what all sources declare of these resources.
  virtual Task<Result<std::vector<DeclaredEntry>>> declared_by(std::string source_uid) = 0;
  virtual Task<Result<std::vector<DeclaredEntry>>> declared_of(std::string target) = 0;
  virtual Task<Result<std::vector<Declaration>>> declarations(std::string target, std::vector<ResourceId> ids) = 0;
  virtual Task<Result<CommitResult>> commit(PageCommit page) = 0;
  struct Owner {
    std::string backend_uid;
    StoredResource resource;
    std::string drift_id;
  };
  /// Finds the owner of an open drift. `drift_id` may be a unique prefix of at least 6 characters. Returns `not_found`
  /// if there is no such drift, `conflict` if it is closed or several drifts have the prefix.
  virtual Task<Result<Owner>> owner_of(std::string drift_id) = 0;
  /// A drift that ended, and the row of its resource as it is now; a new row if the resource was forgotten.
  struct EndedDrift {
    Owner owner;
    Drift drift;
  };
  /// Finds a drift that ended. `drift_id` is a whole id, or the beginning of that of one ended drift. Returns
  /// `not_found` if there is none, `conflict` if it is open or several have the prefix.
  virtual Task<Result<EndedDrift>> ended_drift(std::string drift_id) = 0;
  /// Returns the operations of a backend that are open, whose end is unknown, or that were planned since then, and its
  /// stops. An empty uid has those of all backends: the switch.
  virtual Task<Result<EnforcementRecord>> enforcement_record(std::string backend_uid, Nanos since) = 0;
  /// Appends one line to the audit log.
  virtual Task<Status> audit(AuditEntry entry) = 0;
};

struct SinkSettlement {
  std::string sink;
  std::int64_t low_water = 0;
  std::vector<DeliveryState> upsert;  ///< failing or dead
  std::vector<std::int64_t> settled;  ///< exceptions that were delivered
  std::optional<std::map<std::string, std::string>> notes;
  std::vector<std::int64_t> dropped;  ///< dead letters that a person gave up, also if low_water goes back
  std::vector<EventDraft> events;     ///< events about it (`dead_letter`, `gap`), written in the same transaction
  /// False: it only says what was delivered, and need not be on the disk when settle() returns (ADR 0023). A killed
  /// process loses nothing of it. After a power loss, what was saved within 100 ms may be delivered again.
  bool durable = true;
};

/// The relay's part of the store, with the threads and guarantees of Store.
class Outbox {
 public:
  /// An answer ends with the event whose payload reaches this number of bytes.
  static constexpr std::size_t kMaxAnswerBytes = 4u << 20;
  virtual ~Outbox() = default;
  /// Registers a sink and returns its cursor. A new sink starts with the next event.
  virtual Task<Result<SinkCursor>> open_sink(std::string sink) = 0;
  /// Removes a sink that the config no longer has. Returns `conflict` if it has pending events, unless `drop_pending`.
  virtual Task<Status> close_sink(std::string sink, bool drop_pending) = 0;
  virtual Task<Result<std::vector<std::string>>> sinks() = 0;
  /// Returns routed events with seq > `after`, in order, until `limit` or kMaxAnswerBytes is reached.
  virtual Task<Result<std::vector<StoredEvent>>> fetch(std::string sink, std::int64_t after, int limit) = 0;
  /// Returns these events in the given order, without those that left the store, until kMaxAnswerBytes is reached.
  virtual Task<Result<std::vector<StoredEvent>>> fetch_exact(std::string sink, std::vector<std::int64_t> seqs) = 0;
  /// Writes the settlement in one transaction.
  virtual Task<Status> settle(SinkSettlement settlement) = 0;
  /// Appends an agent event outside a page.
  virtual Task<Result<StoredEvent>> append(EventDraft draft) = 0;
  /// Deletes what retention allows, at most 1,000 rows. Returns true if there is more.
  virtual Task<Result<bool>> prune(Nanos delivered_before, Nanos undelivered_before) = 0;
  /// Bytes and number of events that some sink has not settled yet.
  struct Backlog {
    std::int64_t bytes = 0, events = 0;
  };
  virtual Task<Result<Backlog>> backlog() = 0;
};

}  // namespace driftd::core
