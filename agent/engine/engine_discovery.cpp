// SPDX-License-Identifier: Apache-2.0
// Discovery: backends that a provider knows (driftd.discover/1) are registered and unregistered.
#include <algorithm>
#include <iterator>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "core/scope.hpp"
#include "engine/backend_rows.hpp"
#include "engine/context.hpp"
#include "engine/engine.hpp"
#include "engine/runner.hpp"
#include "engine/unregistration.hpp"

namespace driftd::engine {
namespace {

// Maximum of backends that one source may register. If it has namespaces, the limits are for each namespace and for all
// of them, so that no namespace uses up the room of another.
constexpr std::size_t kMaxBackends = 1'000, kMaxOfPlace = 250, kMaxOfPlaces = 4'096;
constexpr int kMissesToUnregister = 2;  // complete discoveries that do not name it (semantics 1)
const std::string kDiscovered = "discovered";

core::Value to_object(const std::map<std::string, std::string>& texts) {
  core::Value::Object out;
  for (const auto& [name, text] : texts) out.emplace(name, text);
  return out;
}

core::Value to_list(const std::vector<std::string>& texts) {
  core::Value::Array out;
  for (const auto& text : texts) out.emplace_back(text);
  return out;
}

/// Returns the registration that an UPDATED event compares. If the source also reports it as a resource (`reported`,
/// kind `registration`), endpoints and config are judged there, each with its own class, and are left out here.
std::string registration(const core::Discovered& found, bool reported) {
  core::Value::Object out{{"name", found.name},
                          {"type", canonical_type(found.type)},
                          {"origin", found.origin},
                          {"capabilities", to_list(found.capabilities)},
                          {"credentials", to_object(found.credentials)},
                          {"labels", to_object(found.labels)}};
  if (!reported) {
    out.emplace("endpoints", to_list(found.endpoints));
    const auto config = core::parse(found.config);
    if (config) out.emplace("config", *config);
  }
  return core::render(out);
}

/// The discovered backends of a source in one namespace, or all of them if it has no namespaces.
struct Place {
  std::size_t known = 0;
  /// Some of them are in the open question, so every other missing one belongs to it until it is decided.
  bool asked = false;
  bool held = false;
  std::vector<std::string> missing, missed_once;
  std::size_t gone() const { return missing.size() + missed_once.size(); }
};
using Places = std::map<std::string, Place>;

/// Marks the namespaces in which too many backends are gone at once, and returns the backends that are held. A backend
/// that was missed only once counts like one that would be unregistered now: otherwise a discovery in the middle of a
/// mass deletion would split it into two small ones. Each namespace is counted by itself, so that none delays the
/// deletions of another. All namespaces are held if everything is gone, or if too many are gone even without the
/// namespace that lost most.
std::vector<std::string> mark_held(Places& places) {
  std::size_t known = 0, gone = 0;
  bool some_go = false;
  const Place* most = nullptr;
  for (const auto& [name, place] : places) {
    known += place.known;
    gone += place.gone();
    some_go = some_go || !place.missing.empty();
    if (most == nullptr || place.gone() > most->gone()) most = &place;
  }
  const bool all = some_go && ((gone == known && core::mass_deletion(known, gone)) ||
                               core::mass_deletion(known - most->known, gone - most->gone()));
  std::vector<std::string> out;
  for (auto& [name, place] : places) {
    place.held = all || place.asked || (!place.missing.empty() && core::mass_deletion(place.known, place.gone()));
    if (!place.held) continue;
    out.insert(out.end(), place.missing.begin(), place.missing.end());
    out.insert(out.end(), place.missed_once.begin(), place.missed_once.end());
  }
  return out;
}

/// Renders `12 of 14 of namespace tenant, 11 of 11 of namespace prod`, with at most three namespaces.
std::string describe_held(const Places& places) {
  std::string out;
  std::size_t shown = 0;
  for (const auto& [name, place] : places) {
    if (!place.held || place.gone() == 0 || ++shown > 3) continue;
    out += (out.empty() ? "" : ", ") + std::to_string(place.gone()) + " of " + std::to_string(place.known) +
           (name.empty() ? "" : " of namespace " + name);
  }
  return shown <= 3 ? out : out + " and those of " + std::to_string(shown - 3) + " more namespaces";
}

}  // namespace

void Engine::set_discoverer(core::BackendRow& row, const core::BackendSpec& spec) {
  const auto discoverer = row.notes.extract(kDiscovererNote), in = row.notes.extract(kFoundIn);
  // The config names the backend now. Its discoverer becomes the registrar if it is trusted.
  if (spec.discovered_by.empty()) {
    if (discoverer) row.notes[kRegistrarNote] = discoverer.mapped();
    if (discoverer && in) row.notes[kRegistrarPlaceNote] = in.mapped();
    row.notes.erase(kFoundAt);
    return;
  }
  row.notes.erase(kRegistrarNote);
  row.notes.erase(kRegistrarPlaceNote);
  note_found(row, spec);
  row.notes[kDiscovererNote] = find(spec.discovered_by)->ledger().row().uid;
}

Runner* Engine::discoverer_of(const core::BackendRow& row) {
  const std::string* uid = discovered_by(row);
  for (auto& [name, runner] : runners_) {
    if (uid != nullptr && runner->ledger().row().uid == *uid && runner->ledger().spec().discover) return runner.get();
  }
  return nullptr;
}

/// Registers a backend that an earlier process discovered. The next discoveries show whether it still exists.
Task<Status> Engine::restore_discovered(core::BackendRow row) {
  const core::BackendSpec& source = discoverer_of(row)->ledger().spec();
  core::BackendSpec spec;
  spec.name = row.name;
  spec.type = row.type;
  spec.provider = row.provider;
  spec.registration_json = row.registration;
  spec.settings_json = "{}";
  spec.rules = source.rules;
  spec.interval = source.interval;
  spec.discovered_by = source.name;
  const auto in = row.notes.find(kFoundIn), at = row.notes.find(kFoundAt);
  if (in != row.notes.end()) spec.metadata[std::string(core::kDefinedIn)] = in->second;
  if (at != row.notes.end()) spec.endpoint = at->second;
  restore_from_registration(row.registration, spec);
  discovered_[spec.name] = {*discovered_by(row), 0, {}};
  std::vector<core::BackendRow> rows(1, row);
  const auto status = co_await register_backend(std::move(spec), rows);
  co_return status;
}

Task<core::Coverage> Engine::apply_discovery(std::string source, core::DiscoverOutcome outcome) {
  core::Coverage line;
  line.kind = kDiscovered;
  line.established = true;
  line.complete = outcome.complete;
  for (const auto& d : outcome.diagnostics) add_once(line.reasons, std::string(render(d.code)) + ": " + d.text);
  Runner* source_runner = find(source);
  if (source_runner == nullptr) co_return line;
  const std::string uid = source_runner->ledger().row().uid;
  const auto mine = [&](const auto& entry) { return entry.second.source_uid == uid; };
  const bool nothing = outcome.backends.empty() && std::none_of(discovered_.begin(), discovered_.end(), mine);
  // Fast path: nothing is or was discovered, so the registry need not be locked. This holds for most backends.
  if (outcome.complete && nothing && !source_runner->ledger().has_open_question(kDiscovered)) co_return line;
  const AsyncMutex::Guard held = co_await registry_mutex_.lock();
  if (stopping_) co_return line;
  std::set<std::string> named;
  note_places(source, outcome.backends);
  Newcomers newcomers{.uid = uid};
  count(newcomers);
  for (const auto& found : outcome.backends) {
    ++line.resources;
    // A row of an older store may lack the namespace. It counts as found until a discovery finds exactly one.
    const bool placed =
        !discovered_.contains(found.name) || !runners_.at(found.name)->registration().found_in().empty();
    if (!placed || !belongs_to_other_source(source, found)) named.insert(found.name);
    const Status taken = co_await register_discovered(source, found, newcomers);
    if (taken) continue;
    const bool of_all = taken.error().code == Code::budget;  // reported once, not for each backend
    add_once(line.reasons, of_all ? taken.error().message : found.name + ": " + taken.error().message);
  }
  if (!outcome.complete) {
    if (line.reasons.empty()) line.reasons.emplace_back("not listed whole: the provider did not say so");
    co_return line;
  }
  if (!source_runner->listed_registrations()) listed(source);  // otherwise each complete refresh calls it
  add_unreadable(uid, outcome.diagnostics, named);
  const Status gone = co_await count_misses(source, uid, named);
  if (!gone) add_once(line.reasons, gone.error().message);
  co_return line;
}

void Engine::add_unreadable(const std::string& uid, const std::vector<core::Diagnostic>& diagnostics,
                            std::set<std::string>& named) const {
  std::set<std::string> places;
  for (const auto& d : diagnostics) {
    if (d.kind == core::kRegistration && d.id.empty() && !d.path.empty()) places.insert(d.path);
    const auto known = runners_.find(d.id);
    if (known != runners_.end() && is_about(d, known->second->registration().found_in())) named.insert(d.id);
  }
  for (const auto& [name, entry] : discovered_) {
    if (entry.source_uid == uid && places.contains(runners_.at(name)->registration().found_in())) named.insert(name);
  }
}

void Engine::count(Newcomers& newcomers) const {
  for (const auto& [name, entry] : discovered_) {
    if (entry.source_uid != newcomers.uid) continue;
    ++newcomers.known;
    ++newcomers.known_in[runners_.at(name)->registration().found_in()];
  }
}

std::string Engine::no_room(const Newcomers& newcomers, const std::string& place) {
  const std::size_t all = newcomers.known;
  const auto of_place = newcomers.known_in.find(place);
  const std::size_t here = of_place == newcomers.known_in.end() ? 0 : of_place->second;
  const auto most = [](std::size_t count) { return "at most " + std::to_string(count) + " backends of one "; };
  if (place.empty())
    return all < kMaxBackends ? std::string() : most(kMaxBackends) + "source are registered: narrow its selector";
  if (here >= kMaxOfPlace) {
    return "namespace " + place + ": " + most(kMaxOfPlace) +
           "namespace are registered; those stay, what is more of it is not taken";
  }
  return all < kMaxOfPlaces ? std::string() : most(kMaxOfPlaces) + "source are registered: narrow its selector";
}

bool Engine::belongs_to_other_source(const std::string& source, const core::Discovered& found) const {
  return discovered_.contains(found.name) &&
         !runners_.at(found.name)->registration().trusts({source, core::defined_in(found.metadata)});
}

void Engine::note_places(const std::string& source, const std::vector<core::Discovered>& found) {
  std::map<std::string, std::set<std::string>> places;
  for (const auto& one : found) places[one.name].insert(core::defined_in(one.metadata));
  for (const auto& [name, in] : places) {
    const auto known = discovered_.contains(name) ? runners_.find(name) : runners_.end();
    if (known != runners_.end() && in.size() == 1 && place_fault(*in.begin()).empty() &&
        known->second->ledger().spec().discovered_by == source) {
      known->second->registration().set_found_in(*in.begin());
    }
  }
}

Task<Status> Engine::register_discovered(std::string source, core::Discovered found, Newcomers& newcomers) {
  if (const std::string fault = core::invalid_name_reason(found.name); !fault.empty()) {
    co_return fail(Code::invalid, "invalid backend name: " + fault);
  }
  if (std::string fault = place_fault(core::defined_in(found.metadata)); !fault.empty()) {
    co_return fail(Code::invalid, std::move(fault));
  }
  const auto known = discovered_.find(found.name);
  // The config names this backend, so the source can only report on it.
  if (known == discovered_.end() && find(found.name) != nullptr) co_return Status{};
  const core::Registrar who{source, core::defined_in(found.metadata)};
  if (belongs_to_other_source(source, found)) {  // the backend stays as its first discoverer reported it
    const std::string why = raise_claim(*runners_.at(found.name), who);
    if (!why.empty()) co_return fail(Code::conflict, why);
    co_return Status{};
  }
  if (known == discovered_.end()) {
    if (std::string why = no_room(newcomers, who.name_space); !why.empty())
      co_return fail(Code::budget, std::move(why));
  }
  // The object that defines the endpoint cannot be read now, so the last known endpoint stays.
  const bool unread = found.endpoints.empty() && found.metadata.contains("endpoint_unread");
  if (unread && known != discovered_.end()) {
    const std::string& last = runners_.at(found.name)->ledger().spec().endpoint;
    if (!last.empty()) found.endpoints = {last};
  }
  const Ledger& discoverer = find(source)->ledger();
  const core::ProviderInfo* info = discoverer.info();
  const bool reported = find(source)->reports_registrations();
  core::BackendSpec spec;
  spec.name = found.name;
  spec.provider = info != nullptr ? info->id : source;
  spec.type = canonical_type(found.type);
  spec.endpoint = found.endpoints.empty() ? std::string() : found.endpoints.front();
  spec.registration_json = registration(found, reported);
  spec.settings_json = "{}";
  spec.labels = found.labels;
  spec.metadata = found.metadata;
  spec.capabilities = found.capabilities;
  spec.rules = discoverer.spec().rules;
  spec.interval = discoverer.spec().interval;
  spec.discovered_by = source;
  // A backend whose unregistration failed is stopped already. It is registered again, from its row.
  if (known != discovered_.end() && !runners_.at(found.name)->is_stopping()) {
    known->second.misses = 0;
    const auto status = co_await runners_.at(found.name)->reregister(std::move(spec));
    co_return status;
  }
  if (!newcomers.rows) {
    DRIFTD_CO_TRY(newcomers.rows, co_await rows_by_age(context_->store));
  }
  DRIFTD_CO_CHECK(co_await register_backend(std::move(spec), *newcomers.rows));
  if (discovered_.insert_or_assign(found.name, DiscoveredBackend{newcomers.uid, 0, {}}).second) {
    ++newcomers.known;
    ++newcomers.known_in[who.name_space];
  }
  if (loops_) runners_.at(found.name)->start();
  for (auto& report : pending_reports_.extract(found.name)) (void)take_report(std::move(report));
  co_return Status{};
}

/// Returns the names in the open drift of scope/discovered.
Task<Result<std::set<std::string>>> Engine::names_in_question(std::string source) {
  Ledger& ledger = find(source)->ledger();
  std::set<std::string> out;
  if (!ledger.has_open_question(kDiscovered)) co_return out;
  std::vector<core::ResourceId> ids(1, core::ResourceId{"scope", kDiscovered});
  DRIFTD_CO_TRY(const auto rows, co_await context_->store.load(ledger.row().uid, std::move(ids)));
  const auto observed = core::parse(rows.front().observed.value_or("{}"));
  const core::Value* gone = observed ? observed->find("gone") : nullptr;
  const core::Value* names = gone != nullptr ? gone->find("names") : nullptr;
  if (names == nullptr || names->array() == nullptr) co_return out;
  for (const auto& name : *names->array()) {
    if (name.string() != nullptr) out.insert(*name.string());
  }
  co_return out;
}

Task<Status> Engine::count_misses(std::string source, std::string uid, std::set<std::string> named) {
  const auto now = context_->clock.mono();
  const auto interval = find(source)->ledger().spec().interval;
  Ledger& ledger = find(source)->ledger();
  DRIFTD_CO_TRY(const auto asked, co_await names_in_question(source));
  std::vector<std::string> gone;
  Places places;
  for (auto& [name, entry] : discovered_) {
    if (entry.source_uid != uid) continue;
    Place& place = places[runners_.at(name)->registration().found_in()];
    ++place.known;
    place.asked = place.asked || asked.contains(name);
    if (named.contains(name)) continue;
    if (entry.misses == 0 || now - entry.missed_at >= interval) {  // discoveries within one interval count once
      entry.missed_at = now;
      ++entry.misses;
    }
    if (ledger.accepted_by({kDiscovered, name}) != nullptr) {
      gone.push_back(name);
    } else if (entry.misses >= kMissesToUnregister) {
      place.missing.push_back(name);
    } else {
      place.missed_once.push_back(name);
    }
  }
  std::vector<std::string> held = mark_held(places);
  for (const auto& [name, place] : places) {
    if (!place.held) gone.insert(gone.end(), place.missing.begin(), place.missing.end());
  }
  Status out;
  if (!held.empty())
    out = fail(Code::conflict,
               describe_held(places) + " gone at once: held until someone decides the drift of scope/discovered");
  for (const auto& name : gone) {
    const Status down = co_await remove_discovered(name);
    if (!down) out = down;  // the next discovery tries again
  }
  DRIFTD_CO_TRY([[maybe_unused]] const std::size_t transitions,
                co_await ledger.update_scope_drift(kDiscovered, std::move(held), core::GoneNames::all));
  CommitExtras done;
  const auto missing = [&](const std::string& name) { return discovered_.contains(name) && !named.contains(name); };
  done.row = ledger.without_finished_deletions(kDiscovered, missing);
  if (done.row) DRIFTD_CO_CHECK(co_await ledger.commit_extras(std::move(done)));
  co_return out;
}

Task<Status> Engine::remove_discovered(std::string name) {
  const auto runner = runners_.at(name);
  co_await runner->stop();
  const Unregistration why;
  Status down = co_await unregister_backend(context_, runner->ledger().row(), why);
  // A conflict means that a decision was committed meanwhile. The runner has stopped, so one retry is enough.
  if (!down && down.error().code == Code::conflict)
    down = co_await unregister_backend(context_, runner->ledger().row(), why);
  if (!down) co_return fail(down.error());
  runners_.erase(name);
  discovered_.erase(name);
  registrars_.erase(name);
  reported_bytes_.forget(name);
  co_return Status{};
}

}  // namespace driftd::engine
