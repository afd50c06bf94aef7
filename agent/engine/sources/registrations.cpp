// SPDX-License-Identifier: Apache-2.0
// Declarations and registration reports that sources send for other backends (ADR 0006).
#include <algorithm>
#include <utility>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "core/ports/session.hpp"
#include "core/scope.hpp"
#include "engine/context.hpp"
#include "engine/engine.hpp"
#include "engine/runner.hpp"
#include "engine/unregistration.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMaxPlaceName = 253;  // bytes
constexpr std::chrono::seconds kSourceReadDeadline{10};
constexpr std::size_t kReportOverhead = 512;  // bytes of a report beside its contents

Task<void> judge_report(std::shared_ptr<Runner> runner) {
  const Status taken = co_await runner->judge_report();
  if (!taken) log::room("engine").warn("{}: {}", runner->ledger().spec().name, taken.error().message);
}

Task<void> update_claim_drift(std::shared_ptr<Runner> runner) {
  const Status settled = co_await runner->update_claim_drift();
  if (!settled) log::room("engine").warn("{}: {}", runner->ledger().spec().name, settled.error().message);
}

}  // namespace

bool is_about(const core::Diagnostic& d, const std::string& name_space) {
  return d.kind != core::kRegistration || d.path.empty() || name_space.empty() || d.path == name_space;
}

std::string place_fault(const std::string& name_space) {
  if (name_space.size() <= kMaxPlaceName) return {};
  return "invalid: its `defined_in` has " + std::to_string(name_space.size()) +
         " bytes; the name of a namespace has at most " + std::to_string(kMaxPlaceName) + ": this record is rejected";
}

core::Registrar RegistrationReport::who() const { return {source, core::defined_in(record.metadata)}; }

std::size_t RegistrationReport::bytes() const {
  std::size_t out = kReportOverhead + record.body.size() + 2 * record.backend.size() + record.external_name.size();
  for (const auto& [key, value] : record.metadata) out += key.size() + value.size();
  for (const auto& unread : record.unread) out += unread.path.size() + unread.reason.size();
  return out;
}

void Engine::declared(const std::string& backend) {
  if (Runner* runner = find(backend); runner != nullptr) runner->declared();
}

std::string Engine::declaration_error(const std::string& backend, const std::string& kind) const {
  const auto found = runners_.find(backend);
  if (found == runners_.end())
    return "backend '" + backend +
           "' is not configured, so its declarations are not checked; add the backend or remove the rule";
  const core::ProviderInfo* info = found->second->ledger().info();
  const bool known = info == nullptr || std::find(info->kinds.begin(), info->kinds.end(), kind) != info->kinds.end();
  if (known) return {};
  return "provider " + info->id + " of backend " + backend + " has no kind '" + kind +
         "': declarations of this kind are not checked";
}

/// Restores the registrar of a backend from its row, whichever source starts first. Drops one that is no longer there
/// or not trusted, and claims of sources that are no longer there.
Task<Status> Engine::restore_registrar(std::shared_ptr<Runner> runner) {
  const std::string name = runner->ledger().spec().name;
  BackendRegistration& registration = runner->registration();
  for (const auto& source : registration.claims().sources()) {
    if (runners_.contains(source) || !registration.claims().drop_unlisted(source, {})) continue;
    DRIFTD_CO_CHECK(co_await runner->update_claim_drift());
  }
  const auto& notes = runner->ledger().row().notes;
  const auto note = notes.find(kRegistrarNote), in = notes.find(kRegistrarPlaceNote);
  if (note == notes.end() || discovered_.contains(name)) co_return Status{};
  const auto is_it = [&](const auto& item) { return item.second->ledger().row().uid == note->second; };
  const auto registrar = std::find_if(runners_.begin(), runners_.end(), is_it);
  const bool there = registrar != runners_.end();
  const core::Registrar who{there ? registrar->first : std::string(), in == notes.end() ? std::string() : in->second};
  const auto& named = runner->ledger().spec().spoken_by;
  const auto of_it = [&](const core::Registrar& one) { return one.source == who.source; };
  // An older store has no namespace. Then the first trusted registrar of that source stays.
  const bool anywhere = in == notes.end() && std::any_of(named.begin(), named.end(), of_it);
  if (there && (anywhere || registration.trusts(who) || registration.claims().accepts(who))) {
    registrars_[name] = who;
    co_return Status{};
  }
  release_registrar(name);
  const auto status = co_await runner->drop_registrar(there ? "the configuration lets nobody speak of it who did"
                                                            : "the source that spoke of it left the configuration");
  co_return status;
}

Task<Status> Engine::restore_registrars() {
  std::vector<std::shared_ptr<Runner>> all;
  for (const auto& [name, runner] : runners_) all.push_back(runner);
  for (auto& runner : all) DRIFTD_CO_CHECK(co_await restore_registrar(std::move(runner)));
  co_return Status{};
}

/// Records a claim on a backend that does not trust `who`, and opens the question about it. Returns why the report is
/// rejected. Empty if somebody accepted the claim.
std::string Engine::raise_claim(Runner& target, const core::Registrar& who) {
  const std::string name = target.ledger().spec().name;
  Claims& claims = target.registration().claims();
  if (claims.add(who)) asio::co_spawn(context_->core, update_claim_drift(runners_.at(name)), fatal);
  if (claims.is_claimant(who))
    current_claims_[who.source][name].insert(who);  // only claimants are compared by drop_unlisted()
  if (claims.accepts(who)) return {};
  const bool found = discovered_.contains(name);
  return "denied: " + render(who) + " reports on backend " + name + ", which " +
         (found ? "was found elsewhere: the report is rejected; "
                : "does not name it in `spoken_by`: the report is rejected; name it there, or ") +
         "decide the drift of claim/" + name;
}

void Engine::listed(const std::string& source) {
  pending_reports_.listed(source);
  auto claimed = std::exchange(current_claims_[source], {});
  for (const auto& [name, runner] : runners_) {
    if (runner->registration().claims().drop_unlisted(source, claimed[name]))
      asio::co_spawn(context_->core, update_claim_drift(runner), fatal);
  }
}

void Engine::claims_decided(const std::string& backend) {
  const auto target = runners_.find(backend);
  if (target == runners_.end()) return;
  for (const auto& name : target->second->registration().claims().sources()) {
    if (Runner* source = find(name); source != nullptr) source->declared();  // a full cycle, in which it reports again
  }
}

/// Makes the report's source the registrar if there is none and it is trusted: the first one wins. Returns why the
/// report is rejected; empty if it is accepted.
std::string Engine::assign_registrar(const RegistrationReport& report) {
  const std::string& target = report.record.backend;
  if (report.record.id.id != target)
    return "a registration's id must equal its backend: expected " + target + ", found " + report.record.id.id;
  if (target == report.source) return "a source cannot report its own registration, only those of other backends";
  const core::Registrar who = report.who();
  Runner& runner = *runners_.at(target);
  const BackendRegistration& registration = runner.registration();
  if (!registration.trusts(who)) {
    const bool placed = !discovered_.contains(target) || !registration.found_in().empty() || who.name_space.empty();
    if (!placed)
      return "the namespace in which backend " + target + " was found is not known yet: the next discovery finds it";
    if (std::string why = raise_claim(runner, who); !why.empty()) return why;
  }
  core::Registrar& registrar = registrars_.emplace(target, who).first->second;
  if (registrar.source == who.source && registrar.name_space.empty())
    registrar = who;  // its row, of an older store, has no namespace
  if (registrar == who) return {};
  rejected_sources_[target].insert(report.source);
  return "source " + render(registrar) + " already reports on backend " + target + "; the first source counts";
}

/// Returns true if the sender of this tombstone is the registrar, or may retract without one.
bool Engine::may_retract(const RegistrationReport& report) {
  const core::Registrar who = report.who();
  const auto registrar = registrars_.find(report.record.backend);
  if (registrar == registrars_.end())
    return discovered_.contains(report.record.backend) &&
           runners_.at(report.record.backend)->registration().trusts(who);
  return registrar->second.source == who.source && (who.name_space.empty() || who == registrar->second);
}

/// The source discovers in a moment what its report says of a backend that it discovered, or that is not known yet.
ReportOutcome Engine::receive_report(RegistrationReport report) {
  const std::string source = report.source, target = report.record.backend;
  const bool matters = runners_.contains(target) ? discovered_.contains(target) : !report.record.tombstone;
  ReportOutcome out = take_report(std::move(report));
  if (matters) find(source)->ask_discovery();
  return out;
}

ReportOutcome Engine::take_report(RegistrationReport report) {
  if (std::string fault = place_fault(report.who().name_space); !fault.empty()) return {std::move(fault)};
  const std::string target = report.record.backend;
  const auto found = runners_.find(target);
  if (found == runners_.end()) {  // the next discovery may register it
    if (!find(report.source)->ledger().spec().discover) return {};
    return {pending_reports_.try_add(std::move(report))};
  }
  if (report.record.tombstone && !may_retract(report)) return {};
  std::string why = report.record.tombstone ? std::string() : assign_registrar(report);
  if (!why.empty()) return {std::move(why)};
  const std::size_t schema = report.schema_text ? report.schema_text->size() : 0;  // each backend stores it in its row
  if (!report.record.tombstone) why = reported_bytes_.try_add(target, report.who(), report.bytes() + schema);
  if (!why.empty()) return {std::move(why), true};
  const std::shared_ptr<Runner> runner = found->second;
  const std::string registrar = find(report.source)->ledger().row().uid;
  if (runner->receive_report(std::move(report), registrar)) {
    asio::co_spawn(context_->core, judge_report(runner), fatal);
  }
  return {};
}

std::vector<std::string> Engine::reported_by(const std::string& source) const {
  std::vector<std::string> out;
  for (const auto& [backend, registrar] : registrars_) {
    if (registrar.source == source && !discovered_.contains(backend)) out.push_back(backend);
  }
  return out;
}

Task<Result<core::ReadOutcome>> Engine::ask_registrar(std::string backend) {
  const auto registrar = registrars_.find(backend);
  const auto found = registrar == registrars_.end() ? runners_.end() : runners_.find(registrar->second.source);
  if (found == runners_.end()) co_return fail(Code::not_found, "no source reports on backend " + backend);
  const core::Registrar who = registrar->second;
  const std::shared_ptr<Runner> source = found->second;
  const core::ResourceId id{std::string(core::kRegistration), backend};
  core::ReadOutcome gone;  // a source that is not trusted any more is not asked: for it the registration is gone
  gone.not_found.push_back(id);
  if (!is_trusted(backend, who)) co_return gone;
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(auto answer, co_await source->session().read(std::move(ids), kSourceReadDeadline));
  if (!is_trusted(backend, who)) co_return gone;
  if (who.name_space.empty()) co_return answer;
  // A registration in another namespace of the source proves neither that this one exists nor that it is gone.
  const auto others =
      std::erase_if(answer.found, [&](const auto& one) { return core::defined_in(one.metadata) != who.name_space; });
  const bool unsure = std::any_of(answer.diagnostics.begin(), answer.diagnostics.end(),
                                  [&](const auto& d) { return is_about(d, who.name_space); });
  const bool elsewhere = others > 0 || std::any_of(answer.diagnostics.begin(), answer.diagnostics.end(),
                                                   [&](const auto& d) { return !is_about(d, who.name_space); });
  if (elsewhere && answer.found.empty() && answer.not_found.empty() && !unsure) answer.not_found.push_back(id);
  co_return answer;
}

bool Engine::is_trusted(const std::string& backend, const core::Registrar& who) const {
  const auto target = runners_.find(backend);
  if (target == runners_.end()) return false;
  BackendRegistration& registration = target->second->registration();
  return registration.trusts(who) || registration.claims().accepts(who);
}

void Engine::release_registrar(const std::string& backend) {
  reported_bytes_.forget(backend);
  if (registrars_.erase(backend) == 0) return;
  const auto refused = rejected_sources_.extract(backend);
  // A full cycle, in which it may become the registrar.
  for (const auto& name : refused ? refused.mapped() : std::set<std::string>{}) {
    if (Runner* source = find(name); source != nullptr) source->declared();
  }
}

std::string Engine::staleness_reason(const std::string& backend) const {
  const auto registrar = registrars_.find(backend);
  const auto found = registrar == registrars_.end() ? runners_.end() : runners_.find(registrar->second.source);
  const auto target = runners_.find(backend);
  if (found == runners_.end() || target == runners_.end()) return {};
  const std::string why = found->second->report_staleness(backend, registrar->second.name_space,
                                                          target->second->registration().reported_at());
  return why.empty() ? why : "source " + registrar->second.source + ": " + why;
}

}  // namespace driftd::engine
