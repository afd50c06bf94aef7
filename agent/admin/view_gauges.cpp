// SPDX-License-Identifier: Apache-2.0
#include "admin/view_gauges.hpp"

#include <optional>
#include <string>
#include <utility>

namespace driftd::admin {
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

void BackendGauges::set(const core::AgentView& view) {
  for (auto* set : {&up_, &open_, &resources_, &unknown_, &coverage_, &complete_, &restarts_, &rss_, &crashes_,
                    &parked_, &misuses_, &denied_, &budget_hits_}) {
    set->clear();
  }
  for (const auto& backend : view.backends) {
    const Labels labels = {{"backend", backend.name}};
    up_.at(labels).Set(backend.health.state == core::HealthReport::State::up ? 1 : 0);
    open_.at(labels).Set(static_cast<double>(backend.open_drifts));
    resources_.at(labels).Set(static_cast<double>(backend.resources));
    complete_.at(labels).Set(static_cast<double>(backend.last_complete_ns) / 1e9);
    restarts_.at(labels).Set(static_cast<double>(backend.worker.restarts));
    rss_.at(labels).Set(static_cast<double>(backend.worker.rss_bytes));
    set_worker(backend);
    for (const auto& kind : backend.coverage) {
      unknown_.at({{"backend", backend.name}, {"kind", kind.kind}}).Set(static_cast<double>(kind.unknown));
      coverage_.at({{"backend", backend.name}, {"kind", kind.kind}, {"state", std::string(core::coverage_state(kind))}})
          .Set(1);
    }
  }
}

void BackendGauges::set_worker(const core::BackendView& backend) {
  const core::WorkerStatus& worker = backend.worker;
  const Labels labels = {{"backend", backend.name}, {"plugin", backend.provider}};
  const auto with = [&](const char* name, const std::string& value) {
    Labels out = labels;
    out.emplace(name, value);
    return out;
  };
  crashes_.at(labels).Set(static_cast<double>(worker.crashes));
  parked_.at(labels).Set(worker.state == "parked" ? 1 : 0);
  denied_.at(labels).Set(static_cast<double>(worker.denied_secrets));
  for (const auto& [rule, count] : worker.misuses) misuses_.at(with("rule", rule)).Set(static_cast<double>(count));
  for (const auto& [name, count] : worker.budget_hits)
    budget_hits_.at(with("budget", name)).Set(static_cast<double>(count));
}

void SinkGauges::set(const core::AgentView& view, const std::vector<core::SinkTotals>& all_totals) {
  for (auto* set : {&events_, &dropped_, &in_flight_, &waiting_, &retrying_, &stalled_, &missed_}) set->clear();
  for (const auto& sink : view.sinks) {
    in_flight_.at({{"sink", sink.name}}).Set(static_cast<double>(sink.in_flight));
    waiting_.at({{"sink", sink.name}}).Set(static_cast<double>(sink.waiting));
    retrying_.at({{"sink", sink.name}}).Set(static_cast<double>(sink.retrying));
    stalled_.at({{"sink", sink.name}}).Set(sink.stalled_seconds);
    missed_.at({{"sink", sink.name}}).Set(static_cast<double>(sink.missed_wakeups));
  }
  for (const auto& totals : all_totals) {
    const std::pair<const char*, std::int64_t> states[] = {{"emitted", totals.emitted},
                                                           {"acked", totals.acked},
                                                           {"pending", totals.pending},
                                                           {"dead", totals.dead},
                                                           {"dropped", totals.dropped}};
    for (const auto& [state, count] : states) {
      events_.at({{"sink", totals.sink}, {"state", state}}).Set(static_cast<double>(count));
    }
    for (const auto& [reason, count] : totals.dropped_by) {
      dropped_.at({{"sink", totals.sink}, {"reason", reason}}).Set(static_cast<double>(count));
    }
  }
}

void AgentGauges::set_enforcement(const core::EnforcementView& view) {
  enforced_.clear();  // the view has the whole count; a series of a backend that is gone must not stay
  held_.clear();
  for (const auto& backend : view.backends) {
    for (const auto& [state, count] : backend.ended)
      enforced_.at({{"backend", backend.name}, {"result", state}}).Increment(static_cast<double>(count));
    std::map<std::string_view, int> reasons;
    for (const auto& [drift, hold] : backend.held) ++reasons[core::render(hold.reason)];
    for (const auto& [reason, count] : reasons)
      held_.at({{"backend", backend.name}, {"reason", std::string(reason)}}).Set(count);
  }
}

void AgentGauges::set_change_log(const core::ChangeLogView& view) {
  if (!view.on) return;
  const std::pair<const char*, std::int64_t> states[] = {
      {"sent", view.sent}, {"waiting", view.waiting}, {"refused", view.refused}, {"dropped", view.dropped}};
  for (const auto& [state, count] : states) log_entries_.at({{"state", state}}).Set(static_cast<double>(count));
  log_failures_.at({}).Set(static_cast<double>(view.failures));
  log_oldest_.at({}).Set(static_cast<double>(view.oldest_ns) / 1e9);
}

void AgentGauges::set(const core::AgentView& view) {
  backlog_.at({}).Set(static_cast<double>(view.backlog_events));
  backlog_bytes_.at({}).Set(static_cast<double>(view.backlog_bytes));
  store_bytes_.at({}).Set(static_cast<double>(view.store_bytes));
  store_max_bytes_.at({}).Set(static_cast<double>(view.store_max_bytes));
  ready_.at({}).Set(view.ready ? 1 : 0);
  enforce_off_.at({}).Set(view.enforcement.off.empty() ? 0 : 1);
  set_enforcement(view.enforcement);
  set_change_log(view.change_log);
  jail_.clear();
  if (const auto jailed = all_workers_jailed(view)) jail_.at({}).Set(*jailed ? 1 : 0);
  info_.at({{"version", view.version}, {"cluster", view.cluster}}).Set(1);
}

}  // namespace driftd::admin
