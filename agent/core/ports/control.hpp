// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/judge/diff.hpp"
#include "core/judge/judge.hpp"
#include "core/ports/session.hpp"
#include "core/resource.hpp"

namespace driftd::core {

/// Coverage of one kind: what share can be judged, and why not more.
struct Coverage {
  std::string kind;
  bool established = false, complete = false;  ///< complete: the last run listed it whole
  std::int64_t resources = 0, unknown = 0;     ///< unknown: resources with at least one unknown attribute
  std::vector<std::string> reasons;            ///< each names the right, the error, or the settings path
};
/// In one word: `seen` (listed whole, nothing unknown), `partial` (listed whole, some of it unknown), `denied` or
/// `unsupported` (as the first reason says), `stale` (it was seen once, not now), `unseen` (never yet).
std::string_view coverage_state(const Coverage& coverage);

struct BackendView {
  std::string uid, name, type, provider, endpoint;
  std::map<std::string, std::string> labels;
  std::vector<std::string> patterns;
  std::string state;    ///< starting | ok | late | backoff | denied | failed | held (system identity) | no plugin |
                        ///< discovered
  HealthReport health;  ///< after hysteresis
  std::string health_reason;
  WorkerStatus worker;
  std::vector<Coverage> coverage;
  std::int64_t resources = 0, open_drifts = 0;
  std::uint64_t cycles = 0, failures = 0;
  Nanos last_complete_ns = 0, next_ns = 0;
  std::string last_error;
  std::int64_t interval_ms = 0, achievable_ms = 0;
};

struct SinkView {
  std::string name, type, state;  ///< state: the sink's own line
  std::int64_t low_water = 0, in_flight = 0, retrying = 0, dead = 0, delivered = 0;
  std::string last_error;
  std::int64_t waiting = 0;    ///< events in memory that are not settled; more may be in the store
  double stalled_seconds = 0;  ///< events wait and none was settled for so long; 0: none waits
  /// the lane slept though it had work, or did again and again what changed nothing: a defect
  std::uint64_t missed_wakeups = 0;
};

/// A setting whose new value is not in use before a restart.
struct PendingRestart {
  std::string what, where;  ///< `backends.orders.interval`, `driftd.yaml:14`; where: empty for what was removed
};

struct AgentView {
  std::string name, cluster, version;
  Nanos started_ns = 0;
  bool ready = false;
  std::string not_ready_reason;
  std::vector<BackendView> backends;
  std::vector<SinkView> sinks;
  std::int64_t backlog_events = 0, backlog_bytes = 0;
  std::int64_t store_bytes = 0, store_max_bytes = 0;  ///< in use in store.db, and above which history goes
  std::vector<PendingRestart> needs_restart;          ///< as the last reload found it
};

/// What people and programs may ask of a running agent; API and CLI are skins over it. Core thread.
class Control {
 public:
  virtual ~Control() = default;
  virtual AgentView view() = 0;
  /// `drift_id` may be a unique prefix. `decision.digest` is a binding of the drift as the person saw it, or the first
  /// 8 or more characters of one.
  virtual Task<Result<Drift>> decide(std::string drift_id, Decision decision) = 0;
  /// What a decision about this drift as it stands now must name: 64 hex characters. It is keyed, so that nobody can
  /// prepare two values whose bindings begin alike.
  virtual std::string binding(const Drift& drift) = 0;
  /// Appends to the audit log; what cannot be written must not be done.
  virtual Task<Status> audit(AuditEntry entry) = 0;
  /// Runs a cycle now and waits for its end; empty: all backends. Returns the number of complete kinds per backend.
  struct BackendRefresh {
    std::string backend;
    Status status;
    std::vector<Coverage> coverage;
  };
  virtual Task<Result<std::vector<BackendRefresh>>> refresh(std::string backend, bool full) = 0;
  virtual Task<Result<std::vector<Step>>> explain(std::string backend, ResourceId id, std::string path) = 0;
  /// The backends that a backend's provider knows of (driftd.discover/1).
  virtual Task<Result<DiscoverOutcome>> discover(std::string backend) = 0;
  virtual Task<Result<std::string>> schema(std::string provider, std::string what) = 0;
  /// Reloads policies, ignores, expectations, routes from the config file: whole or not at all. What else changed
  /// waits.
  struct ReloadReport {
    std::vector<std::string> applied;  ///< `rules of backend orders`, `routes`, `sinks.ops (added)`
    std::vector<PendingRestart> needs_restart;
  };
  virtual Task<Result<ReloadReport>> reload() = 0;
  /// Sends stored events again to one sink; returns how many.
  struct Replay {
    std::string sink;
    std::int64_t from_seq = 0;
    std::string from_id;
    Nanos from_ns = 0;
    std::string key;
    int rate = 0;
  };
  virtual Task<Result<std::int64_t>> replay(Replay request) = 0;
  /// Frees parked workers: of a backend, or all of a plugin (id, type or file). Returns the backends that were parked;
  /// `not_found`: no such backend or plugin, `conflict`: nothing of it is parked.
  virtual Task<Result<std::vector<std::string>>> resume(std::string name) = 0;
  virtual Task<Result<std::int64_t>> dead_letter(std::string sink, std::string verb,
                                                 std::vector<std::int64_t> seqs) = 0;
};

}  // namespace driftd::core
