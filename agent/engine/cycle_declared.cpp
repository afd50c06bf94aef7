// SPDX-License-Identifier: Apache-2.0
// Declarations in a cycle: those that this source makes of other backends, and those that others make of this one.
#include <algorithm>
#include <iterator>

#include "engine/context.hpp"
#include "engine/cycle.hpp"
#include "engine/ledger.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::engine {

KindReport* Cycle::foreign(const std::string& backend, const std::string& kind) {
  return foreign_.at(backend, kind, context_->sources->registered(backend));
}

void Cycle::add_declaration(core::Observation record, CommitExtras& extras) {
  Kind* const of = foreign(record.backend, record.id.kind);
  if (of == nullptr) return;
  Kind& kind = *of;
  if (!record.tombstone) ++kind.received;
  if (record.id.kind == core::kRegistration) {
    page_reports_.push_back({std::move(record), of});  // moved: a page of reports may be large
    return;
  }
  if (!ledger_.declarations().has_room(record)) return leave_out_declaration(kind);
  auto write = ledger_.declarations().update(record, ledger_.row().uid, run_);
  if (write) extras.declarations.push_back(std::move(*write));
}

/// Declarations that are stored stay until a complete list does not name them.
void Cycle::leave_out_declaration(Kind& kind) {
  ++declarations_left_out_;
  if (kind.left_out++ == 0) add_once(kind.reasons, DeclarationSet::no_room());
}

/// Call it when a page is committed. The reports of a page that was not committed come again with that page.
void Cycle::pass_on_reports() {
  for (auto& report : page_reports_) report_registration(std::move(report.record), *report.kind);
  page_reports_.clear();
}

/// Passes a report on another backend's registration to that backend. Faults are added to `kind`.
void Cycle::report_registration(core::Observation record, Kind& kind) {
  const core::ProviderInfo* info = ledger_.info();
  if (info == nullptr) return;
  const auto text = info->schema_texts.find(record.id.kind);
  if (text == info->schema_texts.end()) {
    add_once(kind.reasons, "provider " + info->id + " declares no kind 'registration': its records are not read");
    return;
  }
  RegistrationReport report;
  report.source = ledger_.spec().name;
  report.schema = ledger_.schema(record.id.kind);
  report.schema_text = {ledger_.shared_info(), &text->second};
  const std::string backend = record.backend;
  report.record = std::move(record);
  const ReportOutcome outcome = context_->sources->receive_report(std::move(report));
  constexpr std::size_t kMaxFaults = 16;  // for each backend
  if (!outcome.fault.empty()) add_once(kind.reasons, outcome.fault, kMaxFaults);
  (outcome.fault.empty() || outcome.no_room ? reported_backends_ : rejected_backends_).insert(backend);
}

void Cycle::complete_declared(const core::Mark& mark, CommitExtras& extras) {
  Kind* const of = foreign(mark.backend, mark.kind);
  if (of == nullptr) return;
  Kind& kind = *of;
  if (mark.count != kind.received) {
    add_once(kind.reasons, "corrupt: COMPLETE says " + std::to_string(mark.count) + " resources, " +
                               std::to_string(kind.received) + " arrived");
    return;
  }
  kind.complete = true;
  if (mark.kind == core::kRegistration) {
    if (mark.count > 0) return;
    page_reports_.push_back({retraction(mark.backend), of});
    return;
  }
  auto missing = ledger_.declarations().missing(mark.backend, mark.kind, ledger_.row().uid, run_);
  std::move(missing.begin(), missing.end(), std::back_inserter(extras.declarations));
  const std::string fault = context_->sources->declaration_error(mark.backend, mark.kind);
  if (mark.count > 0 && !fault.empty()) add_once(kind.reasons, fault);
}

core::Observation Cycle::retraction(const std::string& backend) const {
  core::Observation gone;
  gone.backend = backend;
  gone.id = {std::string(core::kRegistration), backend};
  gone.tombstone = true;
  gone.observed_ns = began_.wall;
  return gone;
}

void Cycle::retract_unmentioned() {
  if (foreign_.left_out() > 0) return;
  const std::string registration(core::kRegistration);
  Kind unused;
  for (const auto& backend : context_->sources->reported_by(ledger_.spec().name)) {
    const bool others_only = rejected_backends_.contains(backend) && !reported_backends_.contains(backend);
    if (others_only || !foreign_.named({backend, registration})) report_registration(retraction(backend), unused);
  }
}

/// Withdraws declarations that the run did not mention at all. Only after a complete run of every kind, in which
/// nothing was left out.
Task<Status> Cycle::withdraw_unmentioned() {
  if (foreign_.left_out() > 0) co_return Status{};
  const auto whole = [](const auto& item) { return item.second.complete; };
  if (!std::all_of(kinds_.begin(), kinds_.end(), whole)) co_return Status{};
  CommitExtras extras;
  extras.declarations = ledger_.declarations().unmentioned(foreign_.all(), ledger_.row().uid);
  if (extras.declarations.empty()) co_return Status{};
  const auto status = co_await ledger_.commit_extras(std::move(extras));
  co_return status;
}

/// Reads declared resources that the complete list lacks. They are judged if the read confirms that they are missing.
Task<Status> Cycle::confirm_declared_absent(std::string kind) {
  if (!ledger_.established(kind)) co_return Status{};
  const auto status = co_await confirm(ledger_.declared_absent(kind, run_), &kinds_[kind]);
  co_return status;
}

}  // namespace driftd::engine
