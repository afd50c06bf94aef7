// SPDX-License-Identifier: Apache-2.0
#include "operator/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <vector>

namespace driftd::op {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

double seconds(controller::Duration time) { return std::chrono::duration<double>(time).count(); }

/// Collects families of one label each.
class Families {
 public:
  explicit Families(std::string kind) : kind_(std::move(kind)) {}

  void gauge(const char* name, const char* help, double value) {
    add(name, help, MetricType::Gauge, value, "kind", kind_);
  }
  void counter(const char* name, const char* help, double value) {
    add(name, help, MetricType::Counter, value, "kind", kind_);
  }
  void gauge(const char* name, const char* help, double value, const char* label, const std::string& text) {
    add(name, help, MetricType::Gauge, value, label, text);
  }
  std::string render() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  void add(const char* name, const char* help, MetricType type, double value, const char* label,
           const std::string& text) {
    const std::string full = std::string("driftd_operator_") + name;
    if (families_.empty() || families_.back().name != full) families_.push_back({full, help, type, {}});
    ClientMetric metric;
    if (label != nullptr) metric.label.push_back({label, text});
    if (type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    families_.back().metric.push_back(std::move(metric));
  }

  const std::string kind_;
  std::vector<prometheus::MetricFamily> families_;
};

void add_watcher(Families& out, const controller::WatcherMetrics& from) {
  out.gauge("watcher_is_watching", "1: the kind is followed", from.is_watching ? 1 : 0);
  out.gauge("watcher_cached_resources", "resources that are known", static_cast<double>(from.cached_resources));
  out.gauge("watcher_watch_interval_seconds", "between two lists of a source without watch",
            seconds(from.watch_interval));
  out.counter("watcher_events_published_total", "CloudEvents", static_cast<double>(from.events_published));
  out.gauge("watcher_change_handlers", "who is told of changes", static_cast<double>(from.change_handlers));
  out.counter("watcher_changes_total", "changes that were seen", static_cast<double>(from.changes));
  out.counter("watcher_publish_failures_total", "events that are lost", static_cast<double>(from.publish_failures));
  out.counter("watcher_handler_failures_total", "handlers that failed", static_cast<double>(from.handler_failures));
}

void add_controller(Families& out, const controller::ControllerMetrics& from) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  out.counter("controller_reconciliations_total", "attempts that ended", number(from.reconciliations_total));
  out.counter("controller_reconciliations_successful_total", "of those: done", number(from.reconciliations_successful));
  out.counter("controller_reconciliations_failed_total", "of those: failed", number(from.reconciliations_failed));
  out.counter("controller_reconciliations_requeued_total", "of those: to be tried again",
              number(from.reconciliations_requeued));
  out.gauge("controller_average_reconciliation_duration_seconds", "since the start",
            seconds(from.average_reconciliation_duration));
  out.gauge("controller_pending_reconciliations", "due, or waiting for the next attempt",
            number(from.pending_reconciliations));
  out.gauge("controller_failed_keys", "resources that are given up until they change", number(from.failed_keys));
  out.gauge("controller_running", "calls now", number(from.running));
  out.gauge("controller_overdue", "calls beyond their deadline", number(from.overdue));
  out.gauge("controller_oldest_waiting_seconds", "of the key that is due longest", seconds(from.oldest_waiting));
  out.gauge("controller_longest_running_seconds", "of the call that runs longest", seconds(from.longest_running));
  out.counter("controller_retries_total", "attempts after the first", number(from.retries));
  out.counter("controller_timeouts_total", "attempts that ran out of time", number(from.timeouts));
  out.counter("controller_exceptions_total", "attempts that threw", number(from.exceptions));
}

void add_scheduler(Families& out, const controller::SchedulerMetrics& from) {
  out.gauge("scheduler_running", "1: it runs", from.running ? 1 : 0);
  out.gauge("scheduler_interval_seconds", "between two resyncs", seconds(from.scheduler_interval));
  out.gauge("scheduler_processed_this_cycle", "resources of the last resync",
            static_cast<double>(from.processed_this_cycle));
  out.counter("scheduler_cycles_total", "resyncs", static_cast<double>(from.cycles));
  out.counter("scheduler_failures_total", "jobs that failed", static_cast<double>(from.failures));
  for (const auto& [phase, count] : from.instances_by_phase) {
    out.gauge("scheduler_instances_by_phase", "resources by phase", static_cast<double>(count), "phase", phase);
  }
}

}  // namespace

std::string render(const OperatorMetrics& metrics, const std::string& kind) {
  Families out(kind);
  out.gauge("leader", "1: this process holds the lease", metrics.leads ? 1 : 0, nullptr, {});
  if (metrics.has_agent) {
    out.gauge("agent_connected", "1: the registry of driftd's agent is followed", metrics.agent_connected ? 1 : 0,
              nullptr, {});
  }
  for (const auto& [type, why] : metrics.faults) {
    out.gauge("unreadable", "types of the API server that cannot be followed", 1, "type", type);
  }
  add_watcher(out, metrics.watcher);
  add_controller(out, metrics.controller);
  add_scheduler(out, metrics.scheduler);
  return out.render();
}

}  // namespace driftd::op
