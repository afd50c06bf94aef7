// SPDX-License-Identifier: Apache-2.0
#include "engine/health_monitor.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "core/ports/session.hpp"
#include "engine/context.hpp"
#include "engine/cycle_history.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

constexpr std::chrono::milliseconds kMaxProbeInterval{10'000};
constexpr std::chrono::milliseconds kUnsureProbeInterval{1'000};  // while a changed state is not confirmed yet

using HealthState = core::HealthReport::State;

}  // namespace

HealthMonitor::HealthMonitor(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session,
                             const CycleHistory& history, IdentityHandler on_identity)
    : context_(std::move(context)),
      ledger_(ledger),
      session_(session),
      history_(history),
      on_identity_(std::move(on_identity)),
      timer_(context_->core),
      smoothing_(ledger.row().health) {}

Task<void> HealthMonitor::run() {
  while (!timer_.stopped()) {
    co_await probe();
    const bool sure = last_.state == smoothing_.state();
    const auto wait = std::min(sure ? kMaxProbeInterval : kUnsureProbeInterval, ledger_.spec().interval);
    co_await timer_.wait_until(context_->clock.mono() + wait);
  }
}

Task<void> HealthMonitor::probe() {
  const auto probed = co_await session_.health();
  if (timer_.stopped()) co_return;
  core::HealthReport report;
  const core::WorkerStatus worker = session_.status();
  const bool serves = worker.state == "running" || worker.state == "in-process";
  // The worker has not answered yet.
  if (!probed && worker.state == "starting" && worker.restarts == restarts_seen_) co_return;
  if (probed) {
    report = *probed;
    on_identity_(report.system_identity);
  } else {
    // A provider that died, hangs or restarts makes data older. It does not mean that the system is down.
    const bool provider_fault = !serves || worker.restarts != restarts_seen_;
    report.state = provider_fault ? HealthState::degraded : HealthState::down;
    report.reason = probed.error().message;
  }
  const Code last_cycle = history_.last_code();
  if (report.state == HealthState::up && last_cycle != Code::ok && last_cycle != Code::cancelled) {
    report.state = HealthState::degraded;
    report.reason = history_.last_error();
  }
  restarts_seen_ = worker.restarts;
  last_ = report;
  const auto notice = smoothing_.report(report.state, context_->clock.mono());
  if (notice) co_await publish(*notice, std::move(report));
}

Task<void> HealthMonitor::publish(HealthSmoothing::Notice notice, core::HealthReport report) {
  std::vector<core::EventDraft> events;
  report.state = notice.now;
  const std::string also = report.reason.empty() ? std::string() : "; " + report.reason;
  if (notice.flapping_began) report.reason = "flapping: 4 changes in 10 minutes" + also;
  if (notice.flapping_ended) report.reason = "no longer flapping" + also;
  // A backend that is first seen healthy has not changed.
  if (notice.before != HealthState::unknown || notice.now != HealthState::up) {
    core::BackendEvent event =
        core::health_event(ledger_.event_context("health probe"), notice.before, report, context_->clock.wall());
    events.push_back(ledger_.draft(std::move(event)));
  }
  const Status status = co_await ledger_.commit_health(notice.now, std::move(events));
  if (status) {
    smoothing_.published(notice);
  } else {  // the next probe tries again
    log::room("engine").error("{}: health event: {}", ledger_.spec().name, status.error().message);
  }
}

core::HealthReport HealthMonitor::report() const {
  core::HealthReport out = last_;
  out.state = smoothing_.state();
  return out;
}

}  // namespace driftd::engine
