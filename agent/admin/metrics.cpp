// SPDX-License-Identifier: Apache-2.0
#include "admin/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

namespace driftd::admin {
namespace {

using Labels = std::map<std::string, std::string>;

const prometheus::Histogram::BucketBoundaries kRefreshBuckets = {0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60};
const prometheus::Histogram::BucketBoundaries kAgeBuckets = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3600};

/// The series of one metric family by their labels, so that they can be removed.
template <class T>
class SeriesSet {
 public:
  explicit SeriesSet(prometheus::Family<T>& family) : family_(family) {}
  template <class... Args>
  T& at(const Labels& labels, const Args&... args) {
    T*& slot = series_[labels];
    if (slot == nullptr) slot = &family_.Add(labels, args...);
    return *slot;
  }
  void forget(const std::string& key, const std::string& value) {
    std::erase_if(series_, [&](const auto& entry) {
      const auto label = entry.first.find(key);
      const bool gone = label != entry.first.end() && label->second == value;
      if (gone) family_.Remove(entry.second);
      return gone;
    });
  }
  void clear() {
    for (const auto& [labels, series] : series_) family_.Remove(series);
    series_.clear();
  }

 private:
  prometheus::Family<T>& family_;
  std::map<Labels, T*> series_;
};

}  // namespace

struct PrometheusMetrics::Series {
  explicit Series(std::string name_prefix) : prefix(std::move(name_prefix) + "_") {}

  prometheus::Family<prometheus::Counter>& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(prefix + name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Gauge>& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(prefix + name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Histogram>& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(prefix + name).Help(help).Register(registry);
  }
  void set_backends(const core::AgentView& view);
  void set_worker(const core::BackendView& backend);
  void set_sinks(const core::AgentView& view, const std::vector<core::SinkTotals>& sink_totals);

  std::mutex mutex;
  std::string prefix;
  prometheus::Registry registry;
  using Counters = SeriesSet<prometheus::Counter>;
  using Gauges = SeriesSet<prometheus::Gauge>;
  using Histograms = SeriesSet<prometheus::Histogram>;

  Counters refreshes{counter("backend_refresh_total", "Cycles of a backend that ended.")};
  Counters failures{counter("backend_refresh_failures_total", "Cycles of a backend that failed.")};
  Gauges last_seconds{gauge("backend_state_refresh_duration_seconds", "Duration of the last cycle.")};
  Histograms seconds{histogram("backend_refresh_seconds", "Durations of cycles.")};
  Counters drifts{counter("backend_drift_detected_total", "Drifts that were opened, by class.")};
  Counters events{counter("backend_event_published_total", "Events committed to the outbox.")};
  Counters received{counter("backend_records_total", "Records received from the provider.")};
  Counters unchanged{
      counter("backend_records_unchanged_total", "Records that were known by their digest and not parsed.")};
  Counters suppressions{
      counter("backend_changes_suppressed_total", "Changes that did not become an event, by reason.")};
  Counters attempts{counter("sink_attempts_total", "Attempts to deliver an event, by outcome.")};
  Histograms ages{histogram("sink_delivery_age_seconds", "Age of an event since its commit when it was delivered.")};
  Counters programs{counter("backend_secret_program_runs_total",
                            "Runs of the programs that give a backend its secrets, by outcome.")};
  Gauges depth{gauge("queue_depth", "Entries in a queue.")};
  Gauges bound{gauge("queue_bound", "Maximum number of entries in a queue.")};

  Gauges up{gauge("backend_up", "1: the backend answers; 0: it is degraded, down or unknown.")};
  Gauges open{gauge("backend_open_drifts", "Open drifts.")};
  Gauges resources{gauge("backend_resources", "Known resources.")};
  Gauges unknown{gauge("backend_unknown_resources", "Resources with an attribute that cannot be judged, by kind.")};
  Gauges coverage{gauge("backend_coverage", "1: how a kind can be judged now, by its label state.")};
  Gauges complete{gauge("backend_last_complete_timestamp_seconds", "When all kinds were last listed completely.")};
  Gauges restarts{gauge("backend_worker_restarts", "Restarts of the backend's worker.")};
  Gauges rss{gauge("backend_worker_resident_bytes", "Resident memory of the backend's worker.")};
  Gauges crashes{gauge("backend_worker_crashes", "Crashes of the backend's worker in the last ten minutes.")};
  Gauges parked{gauge("backend_worker_parked", "1: the worker crashed too often and is not started at the moment.")};
  Gauges misuses{gauge("backend_plugin_misuses", "Rules of the ABI that the plugin broke, by function.")};
  Gauges denied{gauge("backend_plugin_secrets_denied", "Secrets that the plugin asked for and that are not its own.")};
  Gauges budget_hits{gauge("backend_plugin_budget_hits", "How often the plugin exceeded a budget, by budget.")};
  Gauges sink_events{gauge("sink_events", "Events of a sink by state: emitted = acked + pending + dead + dropped.")};
  Gauges in_flight{gauge("sink_in_flight", "Deliveries under way.")};
  Gauges waiting{gauge("sink_waiting", "Events of a sink in memory that are not settled; more may be in the store.")};
  Gauges retrying{gauge("sink_retrying", "Events of a sink that failed and wait for their next attempt.")};
  Gauges stalled{
      gauge("sink_stalled_seconds", "How long events have waited without one being delivered; 0: none waits.")};
  Gauges missed{gauge("sink_missed_wakeups",
                      "How often a sink's runner slept although it had work, or repeated work that changed nothing: a "
                      "defect of driftd.")};
  Gauges backlog{gauge("backlog_events", "Events not yet settled by every sink.")};
  Gauges backlog_bytes{gauge("backlog_bytes", "Bytes of events not yet settled by every sink.")};
  Gauges store_bytes{gauge("store_bytes", "Bytes of store.db that are in use.")};
  Gauges store_max_bytes{
      gauge("store_max_bytes", "Maximum of store_bytes; above it history is deleted early (retention.max_bytes).")};
  Gauges ready{gauge("agent_ready", "1: the agent is ready.")};
  Gauges jail{
      gauge("agent_jail", "1: all workers are jailed by landlock and seccomp; 0: one lacks a part of the jail.")};
  Gauges info{gauge("agent_info", "Always 1; the version is a label.")};
};

void PrometheusMetrics::Series::set_backends(const core::AgentView& view) {
  for (auto* set : {&up, &open, &resources, &unknown, &coverage, &complete, &restarts, &rss, &crashes, &parked,
                    &misuses, &denied, &budget_hits}) {
    set->clear();
  }
  for (const auto& backend : view.backends) {
    const Labels labels = {{"backend", backend.name}};
    up.at(labels).Set(backend.health.state == core::HealthReport::State::up ? 1 : 0);
    open.at(labels).Set(static_cast<double>(backend.open_drifts));
    resources.at(labels).Set(static_cast<double>(backend.resources));
    complete.at(labels).Set(static_cast<double>(backend.last_complete_ns) / 1e9);
    restarts.at(labels).Set(static_cast<double>(backend.worker.restarts));
    rss.at(labels).Set(static_cast<double>(backend.worker.rss_bytes));
    set_worker(backend);
    for (const auto& kind : backend.coverage) {
      unknown.at({{"backend", backend.name}, {"kind", kind.kind}}).Set(static_cast<double>(kind.unknown));
      coverage.at({{"backend", backend.name}, {"kind", kind.kind}, {"state", std::string(core::coverage_state(kind))}})
          .Set(1);
    }
  }
}

void PrometheusMetrics::Series::set_worker(const core::BackendView& backend) {
  const core::WorkerStatus& worker = backend.worker;
  const Labels labels = {{"backend", backend.name}, {"plugin", backend.provider}};
  const auto with = [&](const char* name, const std::string& value) {
    Labels out = labels;
    out.emplace(name, value);
    return out;
  };
  crashes.at(labels).Set(static_cast<double>(worker.crashes));
  parked.at(labels).Set(worker.state == "parked" ? 1 : 0);
  denied.at(labels).Set(static_cast<double>(worker.denied_secrets));
  for (const auto& [rule, count] : worker.misuses) misuses.at(with("rule", rule)).Set(static_cast<double>(count));
  for (const auto& [name, count] : worker.budget_hits)
    budget_hits.at(with("budget", name)).Set(static_cast<double>(count));
}

void PrometheusMetrics::Series::set_sinks(const core::AgentView& view,
                                          const std::vector<core::SinkTotals>& sink_totals) {
  in_flight.clear();
  sink_events.clear();
  waiting.clear();
  retrying.clear();
  stalled.clear();
  missed.clear();
  for (const auto& sink : view.sinks) {
    in_flight.at({{"sink", sink.name}}).Set(static_cast<double>(sink.in_flight));
    waiting.at({{"sink", sink.name}}).Set(static_cast<double>(sink.waiting));
    retrying.at({{"sink", sink.name}}).Set(static_cast<double>(sink.retrying));
    stalled.at({{"sink", sink.name}}).Set(sink.stalled_seconds);
    missed.at({{"sink", sink.name}}).Set(static_cast<double>(sink.missed_wakeups));
  }
  for (const auto& totals : sink_totals) {
    const std::pair<const char*, std::int64_t> states[] = {{"emitted", totals.emitted},
                                                           {"acked", totals.acked},
                                                           {"pending", totals.pending},
                                                           {"dead", totals.dead},
                                                           {"dropped", totals.dropped}};
    for (const auto& [state, count] : states) {
      sink_events.at({{"sink", totals.sink}, {"state", state}}).Set(static_cast<double>(count));
    }
  }
}

PrometheusMetrics::PrometheusMetrics(const std::string& prefix) : series_(std::make_unique<Series>(prefix)) {}
PrometheusMetrics::~PrometheusMetrics() = default;

void PrometheusMetrics::observe_refresh(const std::string& backend, Seconds took, bool ok) {
  const std::lock_guard lock(series_->mutex);
  const Labels labels = {{"backend", backend}};
  series_->refreshes.at(labels).Increment();
  series_->failures.at(labels).Increment(ok ? 0 : 1);
  series_->last_seconds.at(labels).Set(took.count());
  series_->seconds.at(labels, kRefreshBuckets).Observe(took.count());
}

void PrometheusMetrics::drift_detected(const std::string& backend, core::ChangeClass cls) {
  const std::lock_guard lock(series_->mutex);
  series_->drifts.at({{"backend", backend}, {"type", std::string(core::render(cls))}}).Increment();
}

void PrometheusMetrics::event_published(const std::string& backend, const std::string& what) {
  const std::lock_guard lock(series_->mutex);
  series_->events.at({{"backend", backend}, {"event", what}}).Increment();
}

void PrometheusMetrics::records(const std::string& backend, std::uint64_t received, std::uint64_t unchanged) {
  const std::lock_guard lock(series_->mutex);
  series_->received.at({{"backend", backend}}).Increment(static_cast<double>(received));
  series_->unchanged.at({{"backend", backend}}).Increment(static_cast<double>(unchanged));
}

void PrometheusMetrics::suppressed(const std::string& backend, const std::string& reason, std::uint64_t count) {
  const std::lock_guard lock(series_->mutex);
  series_->suppressions.at({{"backend", backend}, {"reason", reason}}).Increment(static_cast<double>(count));
}

void PrometheusMetrics::observe_delivery(const std::string& sink, const std::string& outcome, Seconds age) {
  const std::lock_guard lock(series_->mutex);
  series_->attempts.at({{"sink", sink}, {"outcome", outcome}}).Increment();
  if (outcome == "delivered") series_->ages.at({{"sink", sink}}, kAgeBuckets).Observe(age.count());
}

void PrometheusMetrics::queue(const std::string& name, std::uint64_t depth, std::uint64_t bound) {
  const std::lock_guard lock(series_->mutex);
  series_->depth.at({{"queue", name}}).Set(static_cast<double>(depth));
  series_->bound.at({{"queue", name}}).Set(static_cast<double>(bound));
}

void PrometheusMetrics::secret_program(const std::string& backend, bool ok) {
  const std::lock_guard lock(series_->mutex);
  series_->programs.at({{"backend", backend}, {"outcome", ok ? "ok" : "failed"}}).Increment();
}

void PrometheusMetrics::forget(const std::string& backend) {
  const std::lock_guard lock(series_->mutex);
  auto& s = *series_;
  for (auto* set :
       {&s.refreshes, &s.failures, &s.drifts, &s.events, &s.received, &s.unchanged, &s.suppressions, &s.programs}) {
    set->forget("backend", backend);
  }
  s.last_seconds.forget("backend", backend);
  s.seconds.forget("backend", backend);
}

namespace {

/// Returns whether all running workers are jailed by landlock and seccomp. Empty if none runs.
std::optional<bool> all_workers_jailed(const core::AgentView& view) {
  std::optional<bool> out;
  for (const auto& backend : view.backends) {
    const std::string& jail = backend.worker.jail;
    const bool lacks = jail.find("no landlock") != std::string::npos || jail.find("no seccomp") != std::string::npos;
    if (!jail.empty()) out = out.value_or(true) && !lacks;
  }
  return out;
}

}  // namespace

std::string PrometheusMetrics::render(const core::AgentView& view, const std::vector<core::SinkTotals>& sink_totals) {
  const std::lock_guard lock(series_->mutex);
  series_->set_backends(view);
  series_->set_sinks(view, sink_totals);
  series_->backlog.at({}).Set(static_cast<double>(view.backlog_events));
  series_->backlog_bytes.at({}).Set(static_cast<double>(view.backlog_bytes));
  series_->store_bytes.at({}).Set(static_cast<double>(view.store_bytes));
  series_->store_max_bytes.at({}).Set(static_cast<double>(view.store_max_bytes));
  series_->ready.at({}).Set(view.ready ? 1 : 0);
  if (const auto jailed = all_workers_jailed(view)) series_->jail.at({}).Set(*jailed ? 1 : 0);
  series_->info.at({{"version", view.version}, {"cluster", view.cluster}}).Set(1);
  auto families = series_->registry.Collect();
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace driftd::admin
