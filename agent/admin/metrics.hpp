// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/control.hpp"
#include "core/ports/metrics.hpp"
#include "core/ports/reader.hpp"

namespace driftd::admin {

/// The agent's metrics in the Prometheus text format: counters that the rooms update, and gauges taken from a view of
/// the agent at each scrape. Names start with `<prefix>_`. [any thread]
class PrometheusMetrics final : public core::Metrics {
 public:
  /// `prefix` is metrics.prefix without the underscore.
  explicit PrometheusMetrics(const std::string& prefix);
  ~PrometheusMetrics() override;
  PrometheusMetrics(const PrometheusMetrics&) = delete;
  PrometheusMetrics& operator=(const PrometheusMetrics&) = delete;

  /// The rooms call these (core/ports/metrics.hpp says what each means). They only count and take one mutex.
  void observe_refresh(const std::string& backend, Seconds took, bool ok) override;
  void drift_detected(const std::string& backend, core::ChangeClass cls) override;
  void event_drafted(const std::string& backend, std::uint64_t count) override;
  void drafts_ended(const std::string& backend, std::uint64_t count) override;
  void event_withdrawn(const std::string& backend, std::uint64_t count) override;
  void event_published(const std::string& backend, const std::string& what) override;
  void records(const std::string& backend, std::uint64_t received, std::uint64_t unchanged) override;
  void suppressed(const std::string& backend, const std::string& reason, std::uint64_t count) override;
  /// `age`: time since the event's commit. It is observed only for the outcome `delivered`.
  void observe_delivery(const std::string& sink, const std::string& outcome, Seconds age) override;
  void queue(const std::string& name, std::uint64_t depth, std::uint64_t bound) override;
  /// Removes the backend's counters and durations; its gauges go with the next view.
  void forget(const std::string& backend) override;
  /// Counts a finished run of a program of `${exec:…}`.
  void secret_program(const std::string& backend, bool ok);

  /// What judging found since the agent started, of the backends that are registered now. `drafted` is what became
  /// events; each is then `published`, `withdrawn` (the commit failed, it is judged again), or among those `in_commit`.
  struct Judged {
    std::int64_t drafted = 0, published = 0, withdrawn = 0, in_commit = 0;
    std::map<std::string, std::int64_t> suppressed;  ///< changes that became no event, by reason
  };
  Judged judged() const;

  /// Returns the text exposition (version 0.0.4) of all metrics, with the gauges of `view` and `sink_totals`.
  std::string render(const core::AgentView& view, const std::vector<core::SinkTotals>& sink_totals);

 private:
  struct Series;                    ///< in metrics.cpp: this header does not need the Prometheus library
  std::unique_ptr<Series> series_;  ///< the families and the mutex that guards them
};

}  // namespace driftd::admin
