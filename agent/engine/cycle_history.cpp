// SPDX-License-Identifier: Apache-2.0
#include "engine/cycle_history.hpp"

#include "base/log.hpp"
#include "core/scope.hpp"
#include "engine/cycle_report.hpp"

namespace driftd::engine {

CycleHistory::CycleHistory(std::string backend)
    : reasons_log_([name = std::move(backend)](bool warning, const std::string& line) {
        log::room("engine").log(warning ? spdlog::level::warn : spdlog::level::info, "{}: {}", name, line);
      }) {}

void CycleHistory::record(const CycleReport& report, Moment::Mono start, Moment end) {
  ++cycles_;
  if (!report.status) ++failures_;
  last_error_ = report.status ? std::string() : report.status.error().message;
  last_code_ = report.status ? Code::ok : report.status.error().code;
  if (report.complete() || (report.status && report.unchanged)) last_complete_ns_ = end.wall;
  if (!report.coverage.empty() && !report.unchanged) {
    if (report.status) reasons_log_.log_changes(coverage_, report.coverage, end.mono);
    coverage_ = report.coverage;
    registration_lines_ = report.registrations;
    listed_ = start;
  } else if (!report.status && report.coverage.empty()) {
    invalidate_coverage(report.status.error());
  }
}

/// Marks all coverage as incomplete after a cycle that failed before it listed anything.
void CycleHistory::invalidate_coverage(const Error& why) {
  if (why.code == Code::cancelled) return;
  const std::string reason = std::string(render(why.code)) + ": " + why.message;
  for (auto& line : coverage_) {
    line.complete = false;
    line.reasons.assign(1, reason);
  }
  for (auto& [name, line] : registration_lines_.lines) line = {false, reason};
}

std::string CycleHistory::report_staleness(const std::string& backend, const std::string& place,
                                           Moment::Mono reported_at, bool lists_registrations) const {
  if (!last_error_.empty()) return last_error_;
  const std::string kind(core::kRegistration);
  const std::string line = declared_line(backend, kind);
  const std::string of_place = declared_line(place_line(place), kind);
  if (coverage_.empty()) return {};
  const RegistrationLines::Line* named = registration_lines_.find(line);
  const RegistrationLines::Line* here = place.empty() ? nullptr : registration_lines_.find(of_place);
  // Its namespace cannot be read, so a missing report proves nothing.
  if (named == nullptr && here != nullptr && !here->reason.empty()) return here->reason;
  if (named != nullptr && named->complete) return {};
  if (named == nullptr && registration_lines_.left_out)
    return "sends more about other backends than there is room for: its reports on this one are left out";
  if (named == nullptr && lists_registrations) return reported_at > listed_ ? "" : "does not name it any more";
  const RegistrationLines::Line* seen = named != nullptr ? named : registration_lines_.find(kind);
  return seen == nullptr || seen->reason.empty() ? "did not list its registration whole" : seen->reason;
}

void CycleHistory::describe(core::BackendView& out) const {
  out.cycles = cycles_;
  out.failures = failures_;
  out.last_complete_ns = last_complete_ns_;
  out.last_error = last_error_;
}

}  // namespace driftd::engine
