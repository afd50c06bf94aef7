// SPDX-License-Identifier: Apache-2.0
// Words: what sources declare of other backends, and what they say of their registration (ADR 0006).
#include <algorithm>
#include <utility>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "core/scope.hpp"
#include "engine/engine.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMostPlace = 253;  // bytes
constexpr std::chrono::seconds kAskDeadline{10};
constexpr std::size_t kOfEach = 512;  // bytes that a word takes beside what it says

Task<void> take_said(std::shared_ptr<Runner> runner) {
  const Status taken = co_await runner->take_said();
  if (!taken) log::room("engine").warn("{}: {}", runner->ledger().spec().name, taken.error().message);
}

Task<void> settle_claims(std::shared_ptr<Runner> runner) {
  const Status settled = co_await runner->settle_claims();
  if (!settled) log::room("engine").warn("{}: {}", runner->ledger().spec().name, settled.error().message);
}

}  // namespace

bool is_about(const core::Diagnostic& d, const std::string& name_space) {
  return d.kind != core::kRegistration || d.path.empty() || name_space.empty() || d.path == name_space;
}

std::string place_fault(const std::string& name_space) {
  if (name_space.size() <= kMostPlace) return {};
  return "invalid: its `defined_in` has " + std::to_string(name_space.size()) + " bytes, at most " +
         std::to_string(kMostPlace) + " are the name of a place: nothing of it is taken";
}

core::Speaker Word::who() const { return {source, core::defined_in(record.metadata)}; }

std::size_t Word::bytes() const {
  std::size_t out = kOfEach + record.body.size() + 2 * record.backend.size() + record.external_name.size();
  for (const auto& [key, value] : record.metadata) out += key.size() + value.size();
  for (const auto& unread : record.unread) out += unread.path.size() + unread.reason.size();
  return out;
}

void Engine::declared(const std::string& backend) {
  if (Runner* runner = find(backend); runner != nullptr) runner->declared();
}

std::string Engine::undeclarable(const std::string& backend, const std::string& kind) const {
  const auto found = runners_.find(backend);
  if (found == runners_.end())
    return "no backend '" + backend + "' is configured: what is declared of it is held against nothing";
  const core::ProviderInfo* info = found->second->ledger().info();
  const bool known = info == nullptr || std::find(info->kinds.begin(), info->kinds.end(), kind) != info->kinds.end();
  if (known) return {};
  return "provider " + info->id + " of backend " + backend + " has no kind '" + kind +
         "': what is declared is held against nothing";
}

/// Who spoke for a backend of the config before this process does so again, whoever starts first; if it is there, and
/// is to be believed.
Task<Status> Engine::remember_speakers() {
  for (auto& [name, runner] : runners_) {
    for (const auto& source : runner->claims().sources()) {
      if (runners_.contains(source) || !runner->claims().keep(source, {})) continue;
      DRIFTD_CO_CHECK(co_await runner->settle_claims());
    }
    const auto& notes = runner->ledger().row().notes;
    const auto note = notes.find(kSpokenBy), in = notes.find(kSpokenIn);
    if (note == notes.end() || discovered_.contains(name)) continue;
    const auto is_it = [&](const auto& item) { return item.second->ledger().row().uid == note->second; };
    const auto speaker = std::find_if(runners_.begin(), runners_.end(), is_it);
    const bool there = speaker != runners_.end();
    const core::Speaker who{there ? speaker->first : std::string(), in == notes.end() ? std::string() : in->second};
    const auto& named = runner->ledger().spec().spoken_by;
    const auto of_it = [&](const core::Speaker& one) { return one.source == who.source; };
    // The store did not always note where: then the first of those who are believed goes on.
    const bool anywhere = in == notes.end() && std::any_of(named.begin(), named.end(), of_it);
    if (there && (anywhere || runner->believes(who) || runner->claims().accepts(who))) {
      speakers_[name] = who;
    } else {
      DRIFTD_CO_CHECK(co_await forget_speaker(*runner, there ? "the configuration lets nobody speak of it who did"
                                                             : "the source that spoke of it left the configuration"));
    }
  }
  co_return Status{};
}

Task<Status> Engine::forget_speaker(Runner& runner, std::string why) {
  Extras extras;
  extras.row = runner.ledger().row();
  extras.row->notes.erase(kSpokenBy);
  extras.row->notes.erase(kSpokenIn);
  DRIFTD_CO_CHECK(co_await runner.ledger().commit_extras(std::move(extras)));
  std::vector<core::ResourceId> ids(1, core::ResourceId{std::string(core::kRegistration), runner.ledger().spec().name});
  const auto status = co_await retire(runner.ledger(), std::move(ids), std::move(why));
  co_return status;
}

/// Notes who speaks of a backend that does not believe it, and has a person asked. Why it does not count; empty:
/// somebody accepted it.
std::string Engine::contest(Runner& target, const core::Speaker& who) {
  const std::string name = target.ledger().spec().name;
  if (target.claims().add(who)) asio::co_spawn(context_->core, settle_claims(runners_.at(name)), fatal);
  if (target.claims().speaks(who)) claimed_[who.source][name].insert(who);  // of no other does keep() ask
  if (target.claims().accepts(who)) return {};
  const bool found = discovered_.contains(name);
  return "denied: " + render(who) + " speaks of backend " + name + ", which " +
         (found ? "was found elsewhere: nothing of it is taken; "
                : "does not name it in `spoken_by`: nothing of it is taken; name it, or ") +
         "decide the drift of claim/" + name;
}

void Engine::listed(const std::string& source) {
  unheard_.listed(source);
  auto claimed = std::exchange(claimed_[source], {});
  for (const auto& [name, runner] : runners_) {
    if (runner->claims().keep(source, claimed[name])) asio::co_spawn(context_->core, settle_claims(runner), fatal);
  }
}

void Engine::claims_decided(const std::string& backend) {
  const auto target = runners_.find(backend);
  if (target == runners_.end()) return;
  for (const auto& name : target->second->claims().sources()) {
    if (Runner* source = find(name); source != nullptr) source->declared();  // a full cycle, in which it speaks again
  }
}

/// Makes the word's source the speaker where there is none. Why it does not count; empty: it does. Only who is believed
/// may speak, of those the first.
std::string Engine::claim(const Word& word) {
  const std::string& target = word.record.backend;
  if (word.record.id.id != target)
    return "a registration is of its own backend: " + target + ", not " + word.record.id.id;
  if (target == word.source) return "a source speaks of other backends, not of its own registration";
  const core::Speaker who = word.who();
  Runner& runner = *runners_.at(target);
  if (!runner.believes(who)) {
    const bool placed = !discovered_.contains(target) || !runner.found_in().empty() || who.name_space.empty();
    if (!placed) return "where backend " + target + " is found is not known yet: a discovery says it";
    if (std::string why = contest(runner, who); !why.empty()) return why;
  }
  core::Speaker& speaker = speakers_.emplace(target, who).first->second;
  if (speaker.source == who.source && speaker.name_space.empty()) speaker = who;  // of a store that did not note where
  if (speaker == who) return {};
  turned_away_[target].insert(word.source);
  return "source " + render(speaker) + " speaks for backend " + target + " already; the first one counts";
}

/// A word is taken back by who gave it.
bool Engine::takes_back(const Word& word) {
  const core::Speaker who = word.who();
  const auto speaker = speakers_.find(word.record.backend);
  if (speaker == speakers_.end())
    return discovered_.contains(word.record.backend) && runners_.at(word.record.backend)->believes(who);
  return speaker->second.source == who.source && (who.name_space.empty() || who == speaker->second);
}

Hearing Engine::hear(Word word) {
  if (std::string fault = place_fault(word.who().name_space); !fault.empty()) return {std::move(fault)};
  const std::string target = word.record.backend;
  const auto found = runners_.find(target);
  if (found == runners_.end()) {  // it may be registered by the next discovery
    if (!find(word.source)->ledger().spec().discover) return {};
    return {unheard_.take(std::move(word))};
  }
  if (word.record.tombstone && !takes_back(word)) return {};
  std::string why = word.record.tombstone ? std::string() : claim(word);
  if (!why.empty()) return {std::move(why)};
  const std::size_t schema = word.schema_text ? word.schema_text->size() : 0;  // each backend notes it in its row
  if (!word.record.tombstone) why = said_bytes_.take(target, word.who(), word.bytes() + schema);
  if (!why.empty()) return {std::move(why), true};
  const std::shared_ptr<Runner> runner = found->second;
  const std::string speaker = find(word.source)->ledger().row().uid;
  if (runner->hear(std::move(word), speaker)) {
    asio::co_spawn(context_->core, take_said(runner), fatal);
  }
  return {};
}

std::vector<std::string> Engine::speaks_for(const std::string& source) const {
  std::vector<std::string> out;
  for (const auto& [backend, speaker] : speakers_) {
    if (speaker.source == source && !discovered_.contains(backend)) out.push_back(backend);
  }
  return out;
}

Task<Result<core::ReadOutcome>> Engine::ask_speaker(std::string backend) {
  const auto speaker = speakers_.find(backend);
  const auto found = speaker == speakers_.end() ? runners_.end() : runners_.find(speaker->second.source);
  if (found == runners_.end()) co_return fail(Code::not_found, "no source speaks for backend " + backend);
  const core::Speaker who = speaker->second;
  const std::shared_ptr<Runner> source = found->second;
  const core::ResourceId id{std::string(core::kRegistration), backend};
  core::ReadOutcome gone;  // who is believed no more is heard no more, whatever they still have to say
  gone.not_found.push_back(id);
  if (!is_believed(backend, who)) co_return gone;
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(auto answer, co_await source->session().read(std::move(ids), kAskDeadline));
  if (!is_believed(backend, who)) co_return gone;
  if (who.name_space.empty()) co_return answer;
  // What is said elsewhere in the source proves neither that it is there nor that nobody knows.
  const auto others =
      std::erase_if(answer.found, [&](const auto& one) { return core::defined_in(one.metadata) != who.name_space; });
  const bool unsure = std::any_of(answer.diagnostics.begin(), answer.diagnostics.end(),
                                  [&](const auto& d) { return is_about(d, who.name_space); });
  const bool elsewhere = others > 0 || std::any_of(answer.diagnostics.begin(), answer.diagnostics.end(),
                                                   [&](const auto& d) { return !is_about(d, who.name_space); });
  if (elsewhere && answer.found.empty() && answer.not_found.empty() && !unsure) answer.not_found.push_back(id);
  co_return answer;
}

bool Engine::is_believed(const std::string& backend, const core::Speaker& who) const {
  const auto target = runners_.find(backend);
  return target != runners_.end() && (target->second->believes(who) || target->second->claims().accepts(who));
}

void Engine::let_go(const std::string& backend) {
  said_bytes_.forget(backend);
  if (speakers_.erase(backend) == 0) return;
  const auto refused = turned_away_.extract(backend);
  // it may speak now: with a full cycle
  for (const auto& name : refused ? refused.mapped() : std::set<std::string>{}) {
    if (Runner* source = find(name); source != nullptr) source->declared();
  }
}

std::string Engine::doubt(const std::string& backend) const {
  const auto speaker = speakers_.find(backend);
  const auto found = speaker == speakers_.end() ? runners_.end() : runners_.find(speaker->second.source);
  const auto target = runners_.find(backend);
  if (found == runners_.end() || target == runners_.end()) return {};
  const std::string why = found->second->doubt_of(backend, speaker->second.name_space, target->second->heard());
  return why.empty() ? why : "source " + speaker->second.source + ": " + why;
}

}  // namespace driftd::engine
