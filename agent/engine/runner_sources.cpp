// SPDX-License-Identifier: Apache-2.0
// A backend as a source of others, and as one that sources speak of.
#include <algorithm>

#include "core/scope.hpp"
#include "engine/runner.hpp"

namespace driftd::engine {

/// What the provider knows of other backends goes into the registry: when a refresh found something new, and as often
/// as the provider says. What its records said of a backend that is not registered yet was kept.
Task<void> Runner::discover(bool changed) {
  // whoever ends such a backend waits for its cycle, in the registry
  if (!ledger_.spec().discovered_by.empty()) co_return;
  const auto now = context_->clock.mono();
  const bool offers = ledger_.info() != nullptr && ledger_.info()->offers("driftd.discover");
  if (ledger_.info() == nullptr || (!changed && now < next_discovery_)) co_return;
  if (!offers || !ledger_.spec().discover) {  // what an earlier plugin or configuration found goes
    core::DiscoverOutcome none;
    none.complete = true;
    (void)co_await context_->sources->take_discovered(ledger_.spec().name, std::move(none));
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
  discovery_ = co_await context_->sources->take_discovered(ledger_.spec().name, std::move(*outcome));
}

bool Runner::hear(Word word, const std::string& speaker_uid) {
  word.record.backend.clear();
  speaker_ = speaker_uid;
  if (!word.record.tombstone) speaker_in_ = core::defined_in(word.record.metadata);
  heard_ = context_->clock.mono();
  const bool asked = said_.has_value();
  said_ = word.record;
  if (session_->hear(std::move(word.record), std::move(word.schema), word.schema_text)) {
    full_next_ = true;  // a kind more: the next cycle lists it whole, which makes its baseline
    hint();
  }
  return !asked;
}

Task<Status> Runner::take_said() {
  const auto self = shared_from_this();
  const Turn::Held held = co_await turn_.enter();
  core::RecordPage page;
  page.records.push_back(std::move(*said_));
  said_.reset();
  const bool known = ledger_.info() != nullptr && session_->current(ledger_.info());
  const bool judged = known && ledger_.established(std::string(core::kRegistration));
  const Moment any;  // whenever the source read it, there is no newer word
  DRIFTD_CO_CHECK(co_await judge_page(std::move(page), any, Moment::of(context_->clock), judged));
  const auto status = co_await settle_speaker();
  co_return status;
}

/// Under the Turn. The row remembers who speaks for this backend, so that a restart does not ask who is first; a source
/// that took its word back and was right speaks no more.
Task<Status> Runner::settle_speaker() {
  if (!ledger_.spec().discovered_by.empty()) co_return Status{};
  const std::string& name = ledger_.spec().name;
  const Index::Entry* known = ledger_.index().find({std::string(core::kRegistration), name});
  const bool over = session_->taken_back() && (known == nullptr || !known->present);
  if (over) speaker_.clear();
  const auto& notes = ledger_.row().notes;
  const auto note = notes.find(kSpokenBy), in = notes.find(kSpokenIn);
  const std::string known_in = in == notes.end() ? std::string() : in->second;
  const bool moved = !speaker_.empty() && (note == notes.end() || note->second != speaker_ || known_in != speaker_in_);
  if (moved || (over && note != notes.end())) {
    Extras extras;
    extras.row = ledger_.row();
    extras.row->notes.erase(kSpokenBy);
    extras.row->notes.erase(kSpokenIn);
    if (!over) extras.row->notes[kSpokenBy] = speaker_;
    if (!over && !speaker_in_.empty()) extras.row->notes[kSpokenIn] = speaker_in_;
    DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  }
  if (over && session_->taken_back()) context_->sources->let_go(name);  // it may have spoken again meanwhile
  co_return Status{};
}

std::string Runner::doubt_of(const std::string& backend, const std::string& place, Moment::Mono heard) const {
  if (!last_error_.empty()) return last_error_;
  const std::string kind(core::kRegistration), line = declared_line(backend, kind),
                                               of_place = declared_line(place_line(place), kind);
  if (coverage_.empty()) return {};
  const SpokenLines::Line* named = spoken_.find(line);
  const SpokenLines::Line* here = place.empty() ? nullptr : spoken_.find(of_place);
  // Its namespace is not read: whatever it says or does not.
  if (named == nullptr && here != nullptr && !here->reason.empty()) return here->reason;
  if (named != nullptr && named->complete) return {};
  if (named == nullptr && spoken_.left_out)
    return "says more of other backends than there is room for: of this one nothing was taken";
  if (named == nullptr && session_->inner_listed()) return heard > listed_ ? "" : "does not name it any more";
  const SpokenLines::Line* seen = named != nullptr ? named : spoken_.find(kind);
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
  const Turn::Held held = co_await turn_.enter();
  core::BackendSnapshot before;
  before.name = ledger_.row().name;
  before.type = ledger_.row().type;
  before.endpoint = ledger_.spec().endpoint;
  before.config_json = ledger_.row().registration;
  const auto fields = changed_fields(before.config_json, spec.registration_json);
  const std::string cause = "discovered by " + spec.discovered_by;
  Extras extras;
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
