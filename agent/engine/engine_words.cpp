// SPDX-License-Identifier: Apache-2.0
// Words: what sources declare of other backends, and what they say of their registration (ADR 0006).
#include <algorithm>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "engine/engine.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMostUnheard = 10'000;
constexpr std::chrono::seconds kAskDeadline{10};

Task<void> take_said(std::shared_ptr<Runner> runner) {
  const Status taken = co_await runner->take_said();
  if (!taken) log::room("engine").warn("{}: {}", runner->ledger().spec().name, taken.error().message);
}

}  // namespace

void Engine::declared(const std::string& backend) {
  if (Runner* runner = find(backend); runner != nullptr) runner->declared();
}

std::string Engine::undeclarable(const std::string& backend, const std::string& kind) const {
  const auto found = runners_.find(backend);
  if (found == runners_.end()) return "no backend '" + backend + "' is configured: what is declared of it is held against nothing";
  const core::ProviderInfo* info = found->second->ledger().info();
  const bool known = info == nullptr || std::find(info->kinds.begin(), info->kinds.end(), kind) != info->kinds.end();
  if (known) return {};
  return "provider " + info->id + " of backend " + backend + " has no kind '" + kind + "': what is declared is held against nothing";
}

/// Who spoke for a backend of the config before this process does so again, whoever starts first.
Task<Status> Engine::remember_speakers() {
  for (auto& [name, runner] : runners_) {
    const auto note = runner->ledger().row().notes.find(kSpokenBy);
    if (note == runner->ledger().row().notes.end() || discovered_.contains(name)) continue;
    const auto is_it = [&](const auto& item) { return item.second->ledger().row().uid == note->second; };
    const auto speaker = std::find_if(runners_.begin(), runners_.end(), is_it);
    if (speaker != runners_.end()) {
      speakers_[name] = speaker->first;
      continue;
    }
    Extras extras;
    extras.row = runner->ledger().row();
    extras.row->notes.erase(kSpokenBy);
    DRIFTD_CO_CHECK(co_await runner->ledger().commit_extras(std::move(extras)));
    const core::ResourceId id{std::string(core::kRegistration), name};
    std::vector<core::ResourceId> ids(1, id);
    DRIFTD_CO_TRY(auto open, co_await context_->store.load(runner->ledger().row().uid, std::move(ids)));
    DRIFTD_CO_CHECK(co_await retire(runner->ledger(), std::move(open), "the source that spoke of it left the configuration"));
  }
  co_return Status{};
}

/// Makes the word's source the speaker where there is none. Why it does not count; empty: it does. A discovered backend's
/// finder speaks for it, else who spoke first.
std::string Engine::claim(const Word& word) {
  const std::string& target = word.record.backend;
  if (word.record.id.id != target) return "a registration is of its own backend: " + target + ", not " + word.record.id.id;
  if (target == word.source) return "a source speaks of other backends, not of its own registration";
  const auto found = discovered_.find(target);
  Runner* source = find(word.source);
  if (found != discovered_.end() && source != nullptr && source->ledger().row().uid != found->second.source_uid) {
    return "backend " + target + " was discovered by another source, which speaks for it";
  }
  const auto speaker = speakers_.emplace(target, word.source).first;
  if (speaker->second == word.source) return {};
  turned_away_[target].insert(word.source);
  return "source " + speaker->second + " speaks for backend " + target + " already; the first one counts";
}

std::string Engine::hear(Word word) {
  const std::string target = word.record.backend;
  const auto found = runners_.find(target);
  if (found == runners_.end()) {  // it may be registered by the next discovery
    if (!find(word.source)->ledger().spec().discover) return {};
    auto& waiting = unheard_[target];
    if (unheard_.size() > kMostUnheard && waiting.empty()) {
      unheard_.erase(target);
      return "speaks of too many backends that it does not discover";
    }
    std::erase_if(waiting, [&](const Word& other) { return other.source == word.source; });
    if (!word.record.tombstone) waiting.push_back(std::move(word));
    if (waiting.empty()) unheard_.erase(target);
    return {};
  }
  const bool nobody = !speakers_.contains(target) && !discovered_.contains(target);
  if (nobody && word.record.tombstone) return {};
  if (std::string why = claim(word); !why.empty()) return why;
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
    if (speaker == source && !discovered_.contains(backend)) out.push_back(backend);
  }
  return out;
}

Task<Result<core::ReadOutcome>> Engine::ask_speaker(std::string backend) {
  const auto speaker = speakers_.find(backend);
  const auto found = speaker == speakers_.end() ? runners_.end() : runners_.find(speaker->second);
  if (found == runners_.end()) co_return fail(Code::not_found, "no source speaks for backend " + backend);
  const std::shared_ptr<Runner> source = found->second;
  const core::ResourceId id{std::string(core::kRegistration), backend};
  std::vector<core::ResourceId> ids(1, id);
  auto answer = co_await source->session().read(std::move(ids), kAskDeadline);
  co_return answer;
}

void Engine::let_go(const std::string& backend) {
  if (speakers_.erase(backend) == 0) return;
  const auto refused = turned_away_.extract(backend);
  for (const auto& name : refused ? refused.mapped() : std::set<std::string>{}) {  // it may speak now: with a full cycle
    if (Runner* source = find(name); source != nullptr) source->declared();
  }
}

std::string Engine::doubt(const std::string& backend) const {
  const auto speaker = speakers_.find(backend);
  const auto found = speaker == speakers_.end() ? runners_.end() : runners_.find(speaker->second);
  const auto target = runners_.find(backend);
  if (found == runners_.end() || target == runners_.end()) return {};
  const std::string why = found->second->doubt_of(backend, target->second->heard());
  return why.empty() ? why : "source " + speaker->second + ": " + why;
}

}  // namespace driftd::engine
