// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/extension.hpp"
#include "core/judge/judge.hpp"
#include "core/ports/change_log.hpp"
#include "core/ports/enforcing.hpp"
#include "core/ports/worker.hpp"
#include "core/resource.hpp"
#include "core/silence.hpp"

namespace driftd::core {

/// Coverage of one kind: how much of it can be judged, and why not more.
struct Coverage {
  std::string kind;
  bool established = false, complete = false;  ///< has a baseline; the last run listed it completely
  std::int64_t resources = 0, unknown = 0;     ///< unknown: resources with at least one unknown attribute
  std::vector<std::string> reasons;            ///< each names the missing permission, the error, or the settings path
};
/// Returns the coverage as one word: `seen` (listed completely, nothing unknown), `partial` (listed completely, some of
/// it unknown), `denied` or `unsupported` (as the first reason says), `stale` (listed earlier, but not now), `unseen`
/// (never listed).
std::string_view coverage_state(const Coverage& coverage);

/// What is shown of one backend.
struct BackendView {
  std::string uid, name, type, provider, endpoint;
  std::string source;      ///< file | discovered | manual (registered by gRPC)
  std::string defined_at;  ///< `driftd.yaml:14:5`, the backend that discovered it, or who registered it
  std::map<std::string, std::string> labels;
  std::vector<std::string> patterns;
  std::string state;    ///< starting | ok | late | backoff | denied | failed | held (system identity) | no plugin |
                        ///< discovered
  HealthReport health;  ///< smoothed
  std::string health_reason;
  WorkerStatus worker;
  std::vector<Coverage> coverage;
  std::int64_t resources = 0, open_drifts = 0;
  std::uint64_t cycles = 0, failures = 0;
  Nanos last_complete_ns = 0, next_ns = 0;
  std::string last_error;
  std::int64_t interval_ms = 0, achievable_ms = 0;
};

/// What is shown of one sink.
struct SinkView {
  std::string name, type, state;  ///< state: Sink::describe()
  std::int64_t low_water = 0, in_flight = 0, retrying = 0, dead = 0, delivered = 0;
  std::string last_error;      ///< of a disabled sink why it is disabled
  Nanos paused_until_ns = 0;   ///< the endpoint failed, and nothing is sent to it before this time; 0 if not paused
  std::int64_t waiting = 0;    ///< unsettled events in memory; more may be in the store
  double stalled_seconds = 0;  ///< how long events have waited without one being settled; 0 if none waits
  /// how often the sink's runner slept although it had work, or repeated work that changed nothing. Any number but 0 is
  /// a defect of driftd
  std::uint64_t missed_wakeups = 0;
};

/// A setting whose new value takes effect only after a restart.
struct PendingRestart {
  std::string what, where;  ///< `backends.orders.interval`, `driftd.yaml:14`; where is empty if the setting was removed
};

/// What is shown of the whole agent.
struct AgentView {
  std::string name, cluster, version;
  Nanos started_ns = 0;
  bool ready = false;
  std::string not_ready_reason;
  std::vector<BackendView> backends;
  std::vector<SinkView> sinks;
  std::int64_t backlog_events = 0, backlog_bytes = 0;
  std::int64_t store_bytes = 0, store_max_bytes = 0;  ///< used in store.db; above the maximum history is deleted
  EnforcementView enforcement;
  ChangeLogView change_log;
  std::vector<PendingRestart> needs_restart;  ///< as of the last reload
};

/// What people and programs may ask of a running agent. API and CLI only translate to it. Core thread.
class Control : public Enforcing {
 public:
  virtual AgentView view() = 0;
  /// Decides a drift. `drift_id` may be a unique prefix. `decision.digest` is the binding() of the drift as the person
  /// saw it, or its first 8 or more characters.
  virtual Task<Result<Drift>> decide(std::string drift_id, Decision decision) = 0;
  /// Claims or releases an open drift. `drift_id` may be a unique prefix.
  virtual Task<Result<Drift>> claim(std::string drift_id, Claim claim) = 0;
  /// The silences that have not expired; adding one; ending one now. The line is written with the change.
  virtual Task<Result<std::vector<Silence>>> silences() = 0;
  virtual Task<Result<Silence>> add_silence(Silence silence, AuditEntry line) = 0;
  virtual Task<Result<Silence>> expire_silence(std::string id, AuditEntry line) = 0;
  /// Returns what a decision about the drift's current values must name: 64 hex characters. It is keyed, so that nobody
  /// can prepare two values whose bindings begin alike.
  virtual std::string binding(const Drift& drift) = 0;
  /// Appends to the audit log. If it fails, the caller must not do what it wanted to log.
  virtual Task<Status> audit(AuditEntry entry) = 0;
  /// The outcome of one backend's cycle.
  struct BackendRefresh {
    std::string backend;
    Status status;
    std::vector<Coverage> coverage;
  };
  /// Runs a cycle now and waits for its end; an empty `backend` means all backends.
  virtual Task<Result<std::vector<BackendRefresh>>> refresh(std::string backend, bool full) = 0;
  /// Compares a stored resource with its baseline and what is expected of it, and returns how each attribute was
  /// judged: only `path` and what is below it, or all if it is empty.
  virtual Task<Result<std::vector<Step>>> explain(std::string backend, ResourceId id, std::string path) = 0;
  /// Asks a backend's provider for the backends that it knows of (driftd.discover/1).
  virtual Task<Result<DiscoverOutcome>> discover(std::string backend) = 0;
  /// Returns a JSON document of a provider: its settings schema (`what` is `settings`), or the schema of the kind
  /// `what`.
  virtual Task<Result<std::string>> schema(std::string provider, std::string what) = 0;
  /// What a reload of the config file changed.
  struct ReloadReport {
    std::vector<std::string> applied;  ///< `rules of backend orders`, `routes`, `sinks.ops (added)`
    std::vector<PendingRestart> needs_restart;
  };
  /// Reloads policies, ignore rules, expectations, routes and sinks from the config file: all of it, or nothing if it
  /// has an error. Other settings that changed are in `needs_restart`.
  virtual Task<Result<ReloadReport>> reload() = 0;
  /// Which stored events to send again to one sink. One of the three starts is given.
  struct Replay {
    std::string sink;
    std::int64_t from_seq = 0;  ///< 0: not given
    std::string from_id;        ///< an event's id
    Nanos from_ns = 0;          ///< 0: not given
    std::string key;            ///< only events of `backend/kind/id`, or of this StoredEvent::key; empty: all
    int rate = 0;               ///< events per second; 0: no limit of its own
  };
  /// Sends stored events again; returns how many.
  virtual Task<Result<std::int64_t>> replay(Replay request) = 0;
  /// Restarts parked workers: of a backend, of the plugin of a sink (`sink/NAME`), or all of a plugin (id, type or
  /// file). Returns the backends that were parked. Returns `not_found` if there is no such backend or plugin,
  /// `conflict` if none of its workers is parked.
  virtual Task<Result<std::vector<std::string>>> resume(std::string name) = 0;
  /// Sends dead letters of a sink again (`verb` is `replay`) or gives them up (`drop`): those with the numbers `seqs`,
  /// or all if it is empty. Returns how many.
  virtual Task<Result<std::int64_t>> dead_letter(std::string sink, std::string verb,
                                                 std::vector<std::int64_t> seqs) = 0;
};

}  // namespace driftd::core
