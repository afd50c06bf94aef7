// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/backend_registration.hpp"

#include <algorithm>
#include <utility>

#include "core/ports/session.hpp"
#include "core/registration_names.hpp"
#include "core/scope.hpp"
#include "engine/backend_rows.hpp"
#include "engine/context.hpp"
#include "engine/ledger.hpp"
#include "engine/sources/registration_session.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::engine {
namespace {

core::ResourceId claim_id(const core::BackendSpec& spec) { return {"claim", spec.name}; }

const std::string& registration_kind() {
  static const std::string kKind(core::kRegistration);
  return kKind;
}

}  // namespace

std::vector<std::string> changed_fields(const core::BackendRow& before, const core::BackendRow& after) {
  const auto old_value = core::registration_fields(before.type, before.registration);
  const auto new_value = core::registration_fields(after.type, after.registration);
  std::vector<std::string> out;
  if (!old_value || !new_value) return out;
  const core::Difference difference =
      core::diff(*old_value, *new_value, *core::KindSchema::unknown(std::string(core::kRegistration)), {});
  for (const auto& change : difference.changes) out.push_back(change.path);
  return out;
}

core::BackendSnapshot snapshot_of(const core::BackendRow& row) {
  core::BackendSpec known;
  restore_from_registration(row.registration, known);
  core::BackendSnapshot out;
  out.name = row.name;
  out.type = row.type;
  out.endpoint = known.endpoint;
  out.metadata = known.labels;
  out.config_json = core::event_config(row.type, row.registration);
  return out;
}

void note_found(core::BackendRow& row, const core::BackendSpec& spec) {
  for (const auto& [key, text] :
       {std::pair(kFoundIn, core::defined_in(spec.metadata)), std::pair(kFoundAt, spec.endpoint)}) {
    row.notes.erase(key);
    if (!text.empty()) row.notes[key] = text;
  }
}

BackendRegistration::BackendRegistration(std::shared_ptr<Context> context, Ledger& ledger, RegistrationSession& session)
    : context_(std::move(context)),
      ledger_(ledger),
      session_(session) {}

Task<Status> BackendRegistration::load() {
  const auto& notes = ledger_.row().notes;
  if (const auto in = notes.find(kRegistrarPlaceNote); in != notes.end()) registrar_place_ = in->second;
  if (const auto in = notes.find(kFoundIn); in != notes.end()) found_in_ = in->second;
  const Status claims = co_await load_claims();
  co_return claims;
}

Task<Status> BackendRegistration::load_claims() {
  const core::ResourceId id = claim_id(ledger_.spec());
  if (ledger_.index().find(id) == nullptr) co_return Status{};
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(const auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  claims_.load(rows.front());
  co_return Status{};
}

bool BackendRegistration::trusts(const core::Registrar& who) const {
  const core::BackendSpec& spec = ledger_.spec();
  // Only the discoverer, and only from the namespace in which it found the backend. A row of an older store gets that
  // namespace when a discovery finds the backend in exactly one.
  if (!spec.discovered_by.empty()) return spec.discovered_by == who.source && found_in_ == who.name_space;
  return std::any_of(spec.spoken_by.begin(), spec.spoken_by.end(), [&](const core::Registrar& named) {
    return named.source == who.source && (named.name_space.empty() || named.name_space == who.name_space);
  });
}

void BackendRegistration::set_found_in(const std::string& name_space) {
  if (found_in_.empty()) found_in_ = name_space;  // update() writes it to the row
}

BackendRegistration::Receipt BackendRegistration::receive(RegistrationReport report, const std::string& registrar_uid) {
  report.record.backend.clear();
  registrar_uid_ = registrar_uid;
  if (!report.record.tombstone) registrar_place_ = core::defined_in(report.record.metadata);
  reported_at_ = context_->clock.mono();
  Receipt out;
  out.first = !pending_report_.has_value();
  pending_report_ = report.record;
  out.new_kind = session_.receive_report(std::move(report.record), std::move(report.schema), report.schema_text);
  return out;
}

core::RecordPage BackendRegistration::take_report() {
  core::RecordPage page;
  page.records.push_back(std::move(*pending_report_));
  pending_report_.reset();
  return page;
}

bool BackendRegistration::can_judge() const {
  const core::ProviderInfo* info = ledger_.info();
  return info != nullptr && session_.current(info) && ledger_.established(registration_kind());
}

Task<Status> BackendRegistration::persist_registrar() {
  if (!ledger_.spec().discovered_by.empty()) co_return Status{};
  const std::string& name = ledger_.spec().name;
  const Index::Entry* known = ledger_.index().find({registration_kind(), name});
  const bool over = session_.is_retracted() && (known == nullptr || !known->present);
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
  if (over && session_.is_retracted()) context_->sources->release_registrar(name);  // it may have reported meanwhile
  co_return Status{};
}

Task<Status> BackendRegistration::write_claim_drift() {
  if (claims_.settled()) co_return Status{};
  const auto asked = claims_.names();
  std::vector<core::ResourceId> ids(1, claim_id(ledger_.spec()));
  DRIFTD_CO_TRY(auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  core::StoredResource& stored = rows.front();
  const bool never = asked.empty() && stored.revision == 0;  // the claim ended before it was stored
  core::Judgement judgement = core::judge_claims(ledger_.row().uid, stored, asked, context_->clock.wall());
  if (!never && (!judgement.transitions.empty() || judgement.next.baseline != stored.baseline)) {
    DRIFTD_CO_CHECK(
        co_await ledger_.commit(std::move(stored), std::move(judgement), "which sources may report its registration"));
  }
  claims_.settle(asked);
  co_return Status{};
}

Task<Status> BackendRegistration::update(core::BackendSpec spec, std::vector<core::AuditEntry> audit) {
  const core::BackendSpec former = ledger_.spec();
  core::BackendSnapshot before = ledger_.event_context({}).backend;
  CommitExtras extras;
  extras.row = ledger_.row();
  extras.row->registration = spec.registration_json;
  if (!spec.type.empty()) extras.row->type = spec.type;
  extras.row->provider = spec.provider;
  if (!spec.discovered_by.empty()) note_found(*extras.row, spec);
  note_definition(*extras.row, spec);
  note_rules_time(extras.row->notes, spec.rules.get(), context_->clock.wall());
  extras.audit = std::move(audit);
  const auto fields = changed_fields(ledger_.row(), *extras.row);
  const bool noted = extras.row->notes != ledger_.row().notes;
  const std::string cause = registration_cause(spec);
  ledger_.reload(std::move(spec));
  if (fields.empty() && !noted) co_return Status{};
  if (!fields.empty()) {
    extras.events.push_back(ledger_.draft(core::registration_event(
        core::ChangeType::updated, ledger_.event_context(cause), std::move(before), fields, context_->clock.wall())));
  }
  const auto status = co_await ledger_.commit_extras(std::move(extras));
  if (!status) ledger_.reload(former);
  co_return status;
}

void BackendRegistration::describe(std::vector<core::Coverage>& coverage) const {
  const std::string stale = context_->sources->staleness_reason(ledger_.spec().name);
  for (auto& line : coverage) {
    if (line.kind != core::kRegistration || stale.empty()) continue;
    line.complete = false;
    line.reasons.insert(line.reasons.begin(), stale);
  }
  add_unreported(coverage);
}

/// Adds the coverage line of a registration that an earlier process knew and on which its source has not reported
/// since.
void BackendRegistration::add_unreported(std::vector<core::Coverage>& coverage) const {
  const std::string& kind = registration_kind();
  const bool of_config = ledger_.spec().discovered_by.empty();
  const bool has_registrar = !of_config || ledger_.row().notes.contains(kRegistrarNote);
  if (reported_at_ != Moment::Mono{} || !ledger_.established(kind) || !has_registrar) return;
  std::erase_if(coverage, [&](const auto& line) { return line.kind == kind; });
  core::Coverage line;
  line.kind = kind;
  line.established = true;
  line.resources = ledger_.index().present(kind);
  const std::string stale = context_->sources->staleness_reason(ledger_.spec().name);
  line.reasons.push_back(stale.empty() ? "its source has not reported it since the agent started" : stale);
  coverage.push_back(std::move(line));
}

}  // namespace driftd::engine
