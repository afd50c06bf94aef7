// SPDX-License-Identifier: Apache-2.0
#include "operator/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <vector>

namespace driftd::op {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

double seconds(controller::Duration time) { return std::chrono::duration<double>(time).count(); }

template <class T>
double number(T value) {
  return static_cast<double>(value);
}

MetricFamily family(const std::string& name, const char* help, MetricType type) {
  return {"driftd_operator_" + name, help, type, {}};
}

/// Adds a series; without a label if `label` is empty.
void add(MetricFamily& to, double value, const std::string& label = {}, const std::string& text = {}) {
  ClientMetric metric;
  if (!label.empty()) metric.label.push_back({label, text});
  if (to.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  to.metric.push_back(std::move(metric));
}

/// A value of one struct of metrics, and what it is called.
template <class Metrics>
struct Value {
  const char *name, *help;
  MetricType type;
  double (*of)(const Metrics&);
};

using Of = controller::ControllerMetrics;
constexpr MetricType kCounter = MetricType::Counter, kGauge = MetricType::Gauge;
constexpr Value<Of> kController[] = {
    {"controller_reconciliations_total", "attempts that ended", kCounter,
     [](const Of& m) { return number(m.reconciliations_total); }},
    {"controller_reconciliations_successful_total", "of those: done", kCounter,
     [](const Of& m) { return number(m.reconciliations_successful); }},
    {"controller_reconciliations_failed_total", "of those: failed", kCounter,
     [](const Of& m) { return number(m.reconciliations_failed); }},
    {"controller_reconciliations_requeued_total", "of those: to be tried again", kCounter,
     [](const Of& m) { return number(m.reconciliations_requeued); }},
    {"controller_average_reconciliation_duration_seconds", "since the start", kGauge,
     [](const Of& m) { return seconds(m.average_reconciliation_duration); }},
    {"controller_pending_reconciliations", "due, or waiting for the next attempt", kGauge,
     [](const Of& m) { return number(m.pending_reconciliations); }},
    {"controller_failed_keys", "resources that are given up until they change", kGauge,
     [](const Of& m) { return number(m.failed_keys); }},
    {"controller_running", "calls now", kGauge, [](const Of& m) { return number(m.running); }},
    {"controller_overdue", "calls beyond their deadline", kGauge, [](const Of& m) { return number(m.overdue); }},
    {"controller_oldest_waiting_seconds", "of the key that is due longest", kGauge,
     [](const Of& m) { return seconds(m.oldest_waiting); }},
    {"controller_longest_running_seconds", "of the call that runs longest", kGauge,
     [](const Of& m) { return seconds(m.longest_running); }},
    {"controller_retries_total", "attempts after the first", kCounter, [](const Of& m) { return number(m.retries); }},
    {"controller_timeouts_total", "attempts that ran out of time", kCounter,
     [](const Of& m) { return number(m.timeouts); }},
    {"controller_exceptions_total", "attempts that threw", kCounter, [](const Of& m) { return number(m.exceptions); }}};

using Seen = controller::WatcherMetrics;
constexpr Value<Seen> kWatcher[] = {
    {"watcher_is_watching", "1: the kind is followed", kGauge, [](const Seen& m) { return m.is_watching ? 1.0 : 0.0; }},
    {"watcher_cached_resources", "resources that are known", kGauge,
     [](const Seen& m) { return number(m.cached_resources); }},
    {"watcher_watch_interval_seconds", "between two lists of a source without watch", kGauge,
     [](const Seen& m) { return seconds(m.watch_interval); }},
    {"watcher_events_published_total", "CloudEvents", kCounter,
     [](const Seen& m) { return number(m.events_published); }},
    {"watcher_change_handlers", "handlers of changes", kGauge, [](const Seen& m) { return number(m.change_handlers); }},
    {"watcher_changes_total", "changes that were seen", kCounter, [](const Seen& m) { return number(m.changes); }},
    {"watcher_handler_failures_total", "handlers that failed", kCounter,
     [](const Seen& m) { return number(m.handler_failures); }}};

using Runs = controller::SchedulerMetrics;
constexpr Value<Runs> kScheduler[] = {
    {"scheduler_running", "1: it runs", kGauge, [](const Runs& m) { return m.running ? 1.0 : 0.0; }},
    {"scheduler_interval_seconds", "between two resyncs", kGauge,
     [](const Runs& m) { return seconds(m.scheduler_interval); }},
    {"scheduler_processed_this_cycle", "resources of the last resync", kGauge,
     [](const Runs& m) { return number(m.processed_this_cycle); }},
    {"scheduler_cycles_total", "resyncs", kCounter, [](const Runs& m) { return number(m.cycles); }},
    {"scheduler_failures_total", "jobs that failed", kCounter, [](const Runs& m) { return number(m.failures); }}};

}  // namespace

std::string render(const OperatorMetrics& metrics) {
  std::vector<MetricFamily> out;
  out.push_back(family("leader", "1: this process holds the lease", kGauge));
  add(out.back(), metrics.leads ? 1 : 0);
  if (metrics.has_agent) {
    out.push_back(family("agent_connected", "1: the registry of driftd's agent is followed", kGauge));
    add(out.back(), metrics.agent_connected ? 1 : 0);
  }
  out.push_back(family("unreadable", "types of the API server that cannot be followed", kGauge));
  for (const auto& [type, why] : metrics.faults) add(out.back(), 1, "type", type);
  for (const auto& value : kController) {
    out.push_back(family(value.name, value.help, value.type));
    for (const auto& [kind, of] : metrics.controllers) add(out.back(), value.of(of), "kind", kind);
  }
  for (const auto& value : kWatcher) {
    out.push_back(family(value.name, value.help, value.type));
    add(out.back(), value.of(metrics.watcher), "kind", "PrismBackend");
  }
  for (const auto& value : kScheduler) {
    out.push_back(family(value.name, value.help, value.type));
    add(out.back(), value.of(metrics.scheduler));
  }
  out.push_back(family("scheduler_instances_by_phase", "PrismBackends by phase", kGauge));
  for (const auto& [phase, count] : metrics.scheduler.instances_by_phase)
    add(out.back(), number(count), "phase", phase);
  return prometheus::TextSerializer().Serialize(out);
}

}  // namespace driftd::op
