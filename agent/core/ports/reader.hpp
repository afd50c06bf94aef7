// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/ports/store.hpp"

namespace driftd::core {

/// Which rows a list has.
struct DriftFilter {
  std::string backend, kind, id;      ///< names or globs; empty matches all
  std::optional<DriftStatus> status;  ///< absent: open drifts (pending, rejected, ignored)
  bool all = false;                   ///< also drifts that ended
  int limit = 1000;
  std::string drift{};  ///< prefix of the drift's id; empty matches any
};
struct DriftRow {
  Drift drift;
  std::string backend;  ///< name of the backend
};
struct ResourceRow {
  std::string backend;
  StoredResource resource;
};
/// An event that a sink will not get, because the receiver refused it for good.
struct DeadLetter {
  std::string sink;
  StoredEvent event;
  int attempts = 0;
  std::string error;
};
struct SinkTotals {  ///< emitted = acked + pending + dead + dropped; exact when no event is on its way
  std::string sink;
  std::int64_t emitted = 0, acked = 0, pending = 0, dead = 0, dropped = 0;
  std::map<std::string, std::int64_t> dropped_by{};  ///< by reason: `retention`, `dead_letter` …; the sum is `dropped`
};

/// A slice of the log of committed events, and where the log was when it was read.
struct LogSlice {
  std::vector<StoredEvent> events;  ///< in order of seq. A missing number is an event that left the store
  std::int64_t newest = 0;          ///< the last number that was given; 0 if none was
  std::int64_t oldest = 0;          ///< of the events in the store; newest + 1 if there are none
  std::uint64_t incarnation = 0;    ///< of the store now
};

/// Reads the store without delaying the writer: read-only connections on the io pool, transactions of at most 1 s.
/// Values are as stored (digests); whoever shows them calls presentable() (redact.hpp).
class Reader {
 public:
  virtual ~Reader() = default;
  /// Called with one row of a list after the other, on the io pool and outside of a transaction. Returns false to stop.
  template <class Row>
  using RowHandler = std::function<bool(Row)>;
  /// Lists whose rows may be large. They are read in slices, so that only one row is in memory at a time. Returns true
  /// if rows are left within the limit, because `take` returned false or 512 MiB were read. Of a resource's open drifts
  /// only the ids are read.
  virtual Task<Result<bool>> each_resource(DriftFilter filter, RowHandler<ResourceRow> take) = 0;
  virtual Task<Result<bool>> each_drift(DriftFilter filter, RowHandler<DriftRow> take) = 0;
  virtual Task<Result<std::vector<ResourceRow>>> resources(std::string backend, std::string kind, int limit) = 0;
  virtual Task<Result<std::vector<DriftRow>>> drifts(DriftFilter filter) = 0;
  /// The next six lists end with the row that reaches 4 MiB of text, whatever their limit.
  virtual Task<Result<std::vector<StoredEvent>>> events(std::int64_t after_seq, int limit) = 0;
  /// Returns events(after_seq, limit) with the position of the log, both as of one moment.
  virtual Task<Result<LogSlice>> log(std::int64_t after_seq, int limit) = 0;
  /// Returns the number of the first event of an incarnation above this one; one above the newest if there is none.
  virtual Task<Result<std::int64_t>> first_above_incarnation(std::uint64_t incarnation) = 0;
  /// Returns the last `limit` events, oldest first. If they are too large together, the oldest are left out.
  virtual Task<Result<std::vector<StoredEvent>>> last_events(int limit) = 0;
  virtual Task<Result<std::vector<DeadLetter>>> dead_letters(std::string sink, int limit) = 0;
  virtual Task<Result<std::vector<AuditRow>>> audit(int limit) = 0;
  /// Lists operations, the newest first.
  virtual Task<Result<std::vector<Enforcement>>> enforcements(EnforcementFilter filter) = 0;
  virtual Task<Result<std::vector<SinkTotals>>> sink_totals() = 0;
  /// Returns the first lines behind line `id`.
  virtual Task<Result<std::vector<AuditRow>>> audit_after(std::int64_t id, int limit) = 0;
  /// Checks the whole hash chain of the audit log, and compares it with `anchor` if one is given.
  virtual Task<Result<AuditProof>> verify_audit(std::optional<AuditLink> anchor) = 0;
  /// Asks how many rows a list would have without its limit.
  struct Count {
    enum class Of { resources, drifts, events, dead_letters, audit };
    Of of = Of::drifts;
    DriftFilter filter{};    ///< of resources and drifts; for dead letters `backend` is the sink
    std::int64_t after = 0;  ///< only events with a higher number
  };
  virtual Task<Result<std::int64_t>> count(Count what) = 0;
};

}  // namespace driftd::core
