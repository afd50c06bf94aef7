// SPDX-License-Identifier: Apache-2.0
#include "admin/metrics.hpp"

#include <prometheus/text_serializer.h>
#include <algorithm>
#include <mutex>
#include <utility>

#include "admin/view_gauges.hpp"

namespace driftd::admin {
namespace {

const prometheus::Histogram::BucketBoundaries kRefreshBuckets = {0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60};
const prometheus::Histogram::BucketBoundaries kAgeBuckets = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3600};

}  // namespace

struct PrometheusMetrics::Series {
  explicit Series(std::string prefix) : families(std::move(prefix)) {}

  std::mutex mutex;
  MetricFamilies families;
  Counters refreshes{families.counter("backend_refresh_total", "Cycles of a backend that ended.")};
  Counters failures{families.counter("backend_refresh_failures_total", "Cycles of a backend that failed.")};
  Gauges last_seconds{families.gauge("backend_state_refresh_duration_seconds", "Duration of the last cycle.")};
  Histograms seconds{families.histogram("backend_refresh_seconds", "Durations of cycles.")};
  Counters drifts{families.counter("backend_drift_detected_total", "Drifts that were opened, by class.")};
  Counters events{families.counter("backend_event_published_total", "Events committed to the outbox.")};
  Counters drafts{families.counter("backend_event_drafted_total", "Events that judging gave to the store.")};
  Counters ended{families.counter("backend_event_drafts_ended_total",
                                  "Events that judging gave to the store, and whose commit ended.")};
  Counters withdrawals{families.counter("backend_event_withdrawn_total",
                                        "Events whose commit failed; what they were about is judged again.")};
  Counters received{families.counter("backend_records_total", "Records received from the provider.")};
  Counters unchanged{
      families.counter("backend_records_unchanged_total", "Records that were known by their digest and not parsed.")};
  Counters suppressions{
      families.counter("backend_changes_suppressed_total", "Changes that did not become an event, by reason.")};
  Counters attempts{families.counter("sink_attempts_total", "Attempts to deliver an event, by outcome.")};
  Histograms ages{
      families.histogram("sink_delivery_age_seconds", "Age of an event since its commit when it was delivered.")};
  Counters programs{families.counter("backend_secret_program_runs_total",
                                     "Runs of the programs that give a backend its secrets, by outcome.")};
  Gauges depth{families.gauge("queue_depth", "Entries in a queue.")};
  Gauges bound{families.gauge("queue_bound", "Maximum number of entries in a queue.")};

  BackendGauges backends{families};
  SinkGauges sinks{families};
  AgentGauges agent{families};
};

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

void PrometheusMetrics::event_drafted(const std::string& backend, std::uint64_t count) {
  const std::lock_guard lock(series_->mutex);
  series_->drafts.at({{"backend", backend}}).Increment(static_cast<double>(count));
}

void PrometheusMetrics::drafts_ended(const std::string& backend, std::uint64_t count) {
  const std::lock_guard lock(series_->mutex);
  series_->ended.at({{"backend", backend}}).Increment(static_cast<double>(count));
}

void PrometheusMetrics::event_withdrawn(const std::string& backend, std::uint64_t count) {
  const std::lock_guard lock(series_->mutex);
  series_->withdrawals.at({{"backend", backend}}).Increment(static_cast<double>(count));
}

PrometheusMetrics::Judged PrometheusMetrics::judged() const {
  const std::lock_guard lock(series_->mutex);
  const auto sum = [](const Counters& counters) {
    std::int64_t out = 0;
    for (const auto& [labels, series] : counters.all()) out += static_cast<std::int64_t>(series->Value());
    return out;
  };
  Judged out{sum(series_->drafts), sum(series_->events), sum(series_->withdrawals), 0, {}};
  out.in_commit = out.drafted - sum(series_->ended);
  for (const auto& [labels, series] : series_->suppressions.all()) {
    out.suppressed[labels.at("reason")] += static_cast<std::int64_t>(series->Value());
  }
  return out;
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
  for (auto* set : {&s.refreshes, &s.failures, &s.drifts, &s.events, &s.drafts, &s.ended, &s.withdrawals, &s.received,
                    &s.unchanged, &s.suppressions, &s.programs}) {
    set->forget("backend", backend);
  }
  s.last_seconds.forget("backend", backend);
  s.seconds.forget("backend", backend);
}

std::string PrometheusMetrics::render(const core::AgentView& view, const std::vector<core::SinkTotals>& sink_totals) {
  const std::lock_guard lock(series_->mutex);
  series_->backends.set(view);
  series_->sinks.set(view, sink_totals);
  series_->agent.set(view);
  auto families = series_->families.collect();
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace driftd::admin
