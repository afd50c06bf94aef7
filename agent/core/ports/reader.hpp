// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/ports/store.hpp"

namespace driftd::core {

struct DriftFilter {
  std::string backend, kind, id;      ///< names or globs; empty: all
  std::optional<DriftStatus> status;  ///< absent: the open ones (pending, rejected, ignored)
  bool all = false;                   ///< history too
  int limit = 1000;
  std::string drift{};  ///< how the drift's own id begins; empty: any
};
struct DriftRow {
  Drift drift;
  std::string backend;  ///< its name
};
struct ResourceRow {
  std::string backend;
  StoredResource resource;
};
struct DeadLetter {
  std::string sink;
  StoredEvent event;
  int attempts = 0;
  std::string error;
};
struct SinkTotals {  ///< emitted = acked + pending + dead + dropped, exact when quiet
  std::string sink;
  std::int64_t emitted = 0, acked = 0, pending = 0, dead = 0, dropped = 0;
};

/// Reads beside the line: read-only connections, transactions ≤1 s, on the io pool. Values are as stored (digests);
/// whoever shows them makes them presentable (redact.hpp).
class Reader {
 public:
  virtual ~Reader() = default;
  /// Takes one row of a list after the other, on the io pool and in no transaction; false: no more of them.
  template <class Row>
  using RowHandler = std::function<bool(Row)>;
  /// Lists whose rows may be large: read in slices, so that one of them stands in memory at a time. True: rows are left
  /// within the limit, for `take` wanted no more or 512 MiB were read. Of a resource's open drifts only the ids.
  virtual Task<Result<bool>> each_resource(DriftFilter filter, RowHandler<ResourceRow> take) = 0;
  virtual Task<Result<bool>> each_drift(DriftFilter filter, RowHandler<DriftRow> take) = 0;
  virtual Task<Result<std::vector<ResourceRow>>> resources(std::string backend, std::string kind, int limit) = 0;
  virtual Task<Result<std::vector<DriftRow>>> drifts(DriftFilter filter) = 0;
  /// These four end behind the row that makes 4 MiB of text full, whatever their limit.
  virtual Task<Result<std::vector<StoredEvent>>> events(std::int64_t after_seq, int limit) = 0;
  /// The last `limit` events, oldest first; the newest of them where they are too large.
  virtual Task<Result<std::vector<StoredEvent>>> last_events(int limit) = 0;
  virtual Task<Result<std::vector<DeadLetter>>> dead_letters(std::string sink, int limit) = 0;
  virtual Task<Result<std::vector<AuditRow>>> audit(int limit) = 0;
  virtual Task<Result<std::vector<SinkTotals>>> sink_totals() = 0;
  /// Walks along the whole chain of audit lines.
  virtual Task<Result<AuditProof>> verify_audit() = 0;
  /// How many rows a list would have without its limit.
  struct Count {
    enum class Of { resources, drifts, events, dead_letters, audit };
    Of of = Of::drifts;
    DriftFilter filter{};    ///< resources and drifts; a dead letter's sink is its `backend`
    std::int64_t after = 0;  ///< events after this number
  };
  virtual Task<Result<std::int64_t>> count(Count what) = 0;
};

}  // namespace driftd::core
