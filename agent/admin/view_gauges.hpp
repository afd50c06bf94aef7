// SPDX-License-Identifier: Apache-2.0
// Metrics that are read from a view of the agent when they are asked for.
#pragma once

#include <vector>

#include "admin/metric_families.hpp"
#include "core/ports/control.hpp"
#include "core/ports/reader.hpp"

namespace driftd::admin {

/// Gauges of the backends and of their workers.
class BackendGauges {
 public:
  /// `families` must outlive it.
  explicit BackendGauges(MetricFamilies& families) : families_(families) {}
  /// Replaces all series by those of the view.
  void set(const core::AgentView& view);

 private:
  void set_worker(const core::BackendView& backend);  ///< the gauges of one backend's worker

  MetricFamilies& families_;
  Gauges up_{families_.gauge("backend_up", "1: the backend answers; 0: it is degraded, down or unknown.")};
  Gauges open_{families_.gauge("backend_open_drifts", "Open drifts.")};
  Gauges resources_{families_.gauge("backend_resources", "Known resources.")};
  Gauges unknown_{
      families_.gauge("backend_unknown_resources", "Resources with an attribute that cannot be judged, by kind.")};
  Gauges coverage_{families_.gauge("backend_coverage", "1: how a kind can be judged now, by its label state.")};
  Gauges complete_{
      families_.gauge("backend_last_complete_timestamp_seconds", "When all kinds were last listed completely.")};
  Gauges restarts_{families_.gauge("backend_worker_restarts", "Restarts of the backend's worker.")};
  Gauges rss_{families_.gauge("backend_worker_resident_bytes", "Resident memory of the backend's worker.")};
  Gauges crashes_{
      families_.gauge("backend_worker_crashes", "Crashes of the backend's worker in the last ten minutes.")};
  Gauges parked_{
      families_.gauge("backend_worker_parked", "1: the worker crashed too often and is not started at the moment.")};
  Gauges misuses_{families_.gauge("backend_plugin_misuses", "Rules of the ABI that the plugin broke, by function.")};
  Gauges denied_{
      families_.gauge("backend_plugin_secrets_denied", "Secrets that the plugin asked for and that are not its own.")};
  Gauges budget_hits_{
      families_.gauge("backend_plugin_budget_hits", "How often the plugin exceeded a budget, by budget.")};
};

/// Gauges of the sinks.
class SinkGauges {
 public:
  explicit SinkGauges(MetricFamilies& families) : families_(families) {}
  /// Replaces all series by those of the view and of the totals.
  void set(const core::AgentView& view, const std::vector<core::SinkTotals>& all_totals);

 private:
  MetricFamilies& families_;
  Gauges events_{
      families_.gauge("sink_events", "Events of a sink by state: emitted = acked + pending + dead + dropped.")};
  Gauges dropped_{families_.gauge("sink_dropped_events", "Events that a sink never gets, by reason.")};
  Gauges in_flight_{families_.gauge("sink_in_flight", "Deliveries under way.")};
  Gauges waiting_{
      families_.gauge("sink_waiting", "Events of a sink in memory that are not settled; more may be in the store.")};
  Gauges retrying_{families_.gauge("sink_retrying", "Events of a sink that failed and wait for their next attempt.")};
  Gauges stalled_{families_.gauge("sink_stalled_seconds",
                                  "How long events have waited without one being delivered; 0: none waits.")};
  Gauges missed_{
      families_.gauge("sink_missed_wakeups",
                      "How often a sink's runner slept although it had work, or repeated work that changed nothing: a "
                      "defect of driftd.")};
};

/// Gauges of the agent and its store.
class AgentGauges {
 public:
  explicit AgentGauges(MetricFamilies& families) : families_(families) {}
  void set(const core::AgentView& view);

 private:
  void set_enforcement(const core::EnforcementView& view);
  void set_change_log(const core::ChangeLogView& view);
  MetricFamilies& families_;
  Gauges backlog_{families_.gauge("backlog_events", "Events not yet settled by every sink.")};
  Gauges backlog_bytes_{families_.gauge("backlog_bytes", "Bytes of events not yet settled by every sink.")};
  Gauges store_bytes_{families_.gauge("store_bytes", "Bytes of store.db that are in use.")};
  Gauges store_max_bytes_{families_.gauge(
      "store_max_bytes", "Maximum of store_bytes; above it history is deleted early (retention.max_bytes).")};
  Gauges ready_{families_.gauge("agent_ready", "1: the agent is ready.")};
  Gauges enforce_off_{families_.gauge("enforce_off", "1: everything that driftd puts back is switched off.")};
  Counters enforced_{
      families_.counter("enforce_operations_total", "Operations that ended since the start, by how they ended.")};
  Gauges held_{families_.gauge("enforce_held", "Drifts that their policy would put back, by what holds them.")};
  Gauges log_entries_{families_.gauge(
      "change_log_entries", "Entries of the change log by state: sent (since the start), waiting, refused, dropped.")};
  Gauges log_failures_{families_.gauge("change_log_failures", "Calls of the receiver that failed since the start.")};
  Gauges log_oldest_{families_.gauge("change_log_oldest_timestamp_seconds",
                                     "When the oldest operation ended whose entry waits; 0: none waits.")};
  Gauges jail_{families_.gauge("agent_jail",
                               "1: all workers are jailed by landlock and seccomp; 0: one lacks a part of the jail.")};
  Gauges info_{families_.gauge("agent_info", "Always 1; the version is a label.")};
};

}  // namespace driftd::admin
