// SPDX-License-Identifier: Apache-2.0
// How one backend looks to status, API and metrics.
#include "engine/backend_rows.hpp"
#include "engine/context.hpp"
#include "engine/runner.hpp"
#include "engine/sources/registration_session.hpp"

namespace driftd::engine {

std::string Runner::state() const {
  const std::string worker = session_->status().state;
  if (worker == "no plugin" || worker == "discovered") return worker;
  if (identity_.held()) return "held";
  if (cycles() == 0) return "starting";
  const Code last = history_.last_code();
  if (last == Code::denied || last == Code::unauthenticated) return "denied";
  if (last == Code::invalid || last == Code::unsupported) return "failed";
  if (plan_.schedule().backing_off()) return "backoff";
  return plan_.schedule().late() ? "late" : "ok";
}

core::BackendView Runner::view() {
  core::BackendView out;
  const core::BackendSpec& spec = ledger_.spec();
  out.uid = ledger_.row().uid;
  out.name = spec.name;
  out.type = ledger_.row().type;
  out.provider = ledger_.info() != nullptr ? ledger_.info()->id : spec.provider;
  out.endpoint = spec.endpoint;
  out.source = source_of(spec);
  out.defined_at = spec.discovered_by.empty() ? spec.defined_at : spec.discovered_by;
  out.labels = spec.labels;
  out.patterns = spec.patterns;
  out.state = state();
  out.health = health_.report();
  out.health_reason = out.health.reason;
  out.worker = session_->status();
  out.coverage = history_.coverage();
  for (auto& line : out.coverage) {
    if (!line.kind.starts_with("declared:")) line.resources = ledger_.index().present(line.kind);
  }
  if (discovery_.coverage()) out.coverage.push_back(*discovery_.coverage());
  registration_.describe(out.coverage);
  out.resources = ledger_.index().present();
  out.open_drifts = ledger_.index().open();
  history_.describe(out);
  const auto until_next = plan_.schedule().next() - context_->clock.mono();
  out.next_ns = context_->clock.wall() + std::chrono::duration_cast<std::chrono::nanoseconds>(until_next).count();
  out.interval_ms = spec.interval.count();
  out.achievable_ms = plan_.schedule().achievable().count();
  return out;
}

std::string Runner::report_staleness(const std::string& backend, const std::string& place,
                                     Moment::Mono reported_at) const {
  return history_.report_staleness(backend, place, reported_at, session_->inner_listed());
}

bool Runner::reports_registrations() const { return session_->inner_reports_registrations(); }

bool Runner::listed_registrations() const { return reports_registrations() && session_->inner_listed(); }

}  // namespace driftd::engine
