// SPDX-License-Identifier: Apache-2.0
// A backend as a source that reports on others, and as one on which sources report.
#include <algorithm>

#include "core/scope.hpp"
#include "engine/runner.hpp"

namespace driftd::engine {

/// Discovers other backends after a refresh that found something new, and as often as the provider asks. Reports on
/// backends that are not registered yet were kept until then.
Task<void> Runner::discover(bool changed) {
  // A discovered backend must not discover others. Unregistering it waits for this cycle while the registry is locked,
  // so locking the registry here would deadlock.
  if (!ledger_.spec().discovered_by.empty()) co_return;
  const auto now = context_->clock.mono();
  const bool offers = ledger_.info() != nullptr && ledger_.info()->offers("driftd.discover");
  if (ledger_.info() == nullptr || (!changed && now < next_discovery_)) co_return;
  if (!offers || !ledger_.spec().discover) {  // backends that an earlier plugin or configuration discovered are removed
    core::DiscoverOutcome none;
    none.complete = true;
    (void)co_await context_->sources->apply_discovery(ledger_.spec().name, std::move(none));
    discovery_.reset();
    co_return;
  }
  auto outcome = co_await session_->discover();
  if (!outcome) {
    core::Coverage failed;
    failed.kind = "discovered";
    failed.established = true;
    failed.resources = discovery_ ? discovery_->resources : 0;
    failed.reasons.push_back(std::string(render(outcome.error().code)) + ": " + outcome.error().message);
    discovery_ = std::move(failed);
    co_return;
  }
  next_discovery_ = now + outcome->next;
  discovery_ = co_await context_->sources->apply_discovery(ledger_.spec().name, std::move(*outcome));
}

bool Runner::receive_report(RegistrationReport report, const std::string& registrar_uid) {
  report.record.backend.clear();
  registrar_uid_ = registrar_uid;
  if (!report.record.tombstone) registrar_place_ = core::defined_in(report.record.metadata);
  reported_at_ = context_->clock.mono();
  const bool asked = pending_report_.has_value();
  pending_report_ = report.record;
  if (session_->receive_report(std::move(report.record), std::move(report.schema), report.schema_text)) {
    full_next_ = true;  // a new kind: the next cycle lists it, which makes its baseline
    hint();
  }
  return !asked;
}

Task<Status> Runner::judge_report() {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  core::RecordPage page;
  page.records.push_back(std::move(*pending_report_));
  pending_report_.reset();
  const bool known = ledger_.info() != nullptr && session_->current(ledger_.info());
  const bool judged = known && ledger_.established(std::string(core::kRegistration));
  const Moment any;  // whenever the source read it, this is its newest report
  DRIFTD_CO_CHECK(co_await judge_page(std::move(page), any, Moment::of(context_->clock), judged));
  const auto status = co_await persist_registrar();
  co_return status;
}

/// Call it with the cycle mutex locked. Stores the registrar in the row, so that after a restart it does not depend on
/// who reports first. Releases a registrar whose retraction was confirmed.
Task<Status> Runner::persist_registrar() {
  if (!ledger_.spec().discovered_by.empty()) co_return Status{};
  const std::string& name = ledger_.spec().name;
  const Index::Entry* known = ledger_.index().find({std::string(core::kRegistration), name});
  const bool over = session_->is_retracted() && (known == nullptr || !known->present);
  if (over) registrar_uid_.clear();
  const auto& notes = ledger_.row().notes;
  const auto note = notes.find(kRegistrarNote), in = notes.find(kRegistrarPlaceNote);
  const std::string known_in = in == notes.end() ? std::string() : in->second;
  const bool moved = !registrar_uid_.empty() &&
                     (note == notes.end() || note->second != registrar_uid_ || known_in != registrar_place_);
  if (moved || (over && note != notes.end())) {
    CommitExtras extras;
    extras.row = ledger_.row();
    extras.row->notes.erase(kRegistrarNote);
    extras.row->notes.erase(kRegistrarPlaceNote);
    if (!over) extras.row->notes[kRegistrarNote] = registrar_uid_;
    if (!over && !registrar_place_.empty()) extras.row->notes[kRegistrarPlaceNote] = registrar_place_;
    DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  }
  if (over && session_->is_retracted())
    context_->sources->release_registrar(name);  // it may have reported again meanwhile
  co_return Status{};
}

std::string Runner::report_staleness(const std::string& backend, const std::string& place,
                                     Moment::Mono reported_at) const {
  if (!last_error_.empty()) return last_error_;
  const std::string kind(core::kRegistration), line = declared_line(backend, kind),
                                               of_place = declared_line(place_line(place), kind);
  if (coverage_.empty()) return {};
  const RegistrationLines::Line* named = registration_lines_.find(line);
  const RegistrationLines::Line* here = place.empty() ? nullptr : registration_lines_.find(of_place);
  // Its namespace cannot be read, so a missing report proves nothing.
  if (named == nullptr && here != nullptr && !here->reason.empty()) return here->reason;
  if (named != nullptr && named->complete) return {};
  if (named == nullptr && registration_lines_.left_out)
    return "sends more about other backends than there is room for: its reports on this one are left out";
  if (named == nullptr && session_->inner_listed()) return reported_at > listed_ ? "" : "does not name it any more";
  const RegistrationLines::Line* seen = named != nullptr ? named : registration_lines_.find(kind);
  return seen == nullptr || seen->reason.empty() ? "did not list its registration whole" : seen->reason;
}

void note_found(core::BackendRow& row, const core::BackendSpec& spec) {
  for (const auto& [key, text] :
       {std::pair(kFoundIn, core::defined_in(spec.metadata)), std::pair(kFoundAt, spec.endpoint)}) {
    row.notes.erase(key);
    if (!text.empty()) row.notes[key] = text;
  }
}

Task<Status> Runner::reregister(core::BackendSpec spec) {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  core::BackendSnapshot before;
  before.name = ledger_.row().name;
  before.type = ledger_.row().type;
  before.endpoint = ledger_.spec().endpoint;
  before.config_json = ledger_.row().registration;
  const auto fields = changed_fields(before.config_json, spec.registration_json);
  const std::string cause = "discovered by " + spec.discovered_by;
  CommitExtras extras;
  extras.row = ledger_.row();
  extras.row->registration = spec.registration_json;
  extras.row->type = spec.type;
  extras.row->provider = spec.provider;
  note_found(*extras.row, spec);
  const bool noted = extras.row->notes != ledger_.row().notes;
  ledger_.reload(std::move(spec));
  if (fields.empty() && !noted) co_return Status{};
  if (!fields.empty()) {
    extras.events.push_back(ledger_.draft(core::registration_event(
        core::ChangeType::updated, ledger_.event_context(cause), std::move(before), fields, context_->clock.wall())));
  }
  const auto status = co_await ledger_.commit_extras(std::move(extras));
  co_return status;
}

}  // namespace driftd::engine
