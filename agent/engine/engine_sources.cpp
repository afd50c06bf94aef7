// SPDX-License-Identifier: Apache-2.0
// Sources: backends that a provider knows of (driftd.discover/1) come and go in the registry, and what it says of their
// registration is theirs.
#include <algorithm>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "engine/engine.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMostBackends = 1'000;
constexpr int kMissesToGo = 2;  // COMPLETE discoveries without it (semantics 1)
const std::string kNote = "discovered_by";  // uid of the source

core::Value object_of(const std::map<std::string, std::string>& texts) {
  core::Value::Object out;
  for (const auto& [name, text] : texts) out.emplace(name, text);
  return out;
}

core::Value list_of(const std::vector<std::string>& texts) {
  core::Value::Array out;
  for (const auto& text : texts) out.emplace_back(text);
  return out;
}

/// What an UPDATED event compares. `spoken`: the source also says it field by field (kind `registration`), so endpoints and
/// config are judged there, each with its own class.
std::string registration(const core::Discovered& found, bool spoken) {
  core::Value::Object out{{"name", found.name},
                          {"type", canonical_type(found.type)},
                          {"origin", found.origin},
                          {"capabilities", list_of(found.capabilities)},
                          {"credentials", object_of(found.credentials)},
                          {"labels", object_of(found.labels)}};
  if (!spoken) {
    out.emplace("endpoints", list_of(found.endpoints));
    const auto config = core::parse(found.config);
    if (config) out.emplace("config", *config);
  }
  return core::render(out);
}

Task<void> take_said(std::shared_ptr<Runner> runner, core::RecordPage page) {
  const Status taken = co_await runner->take_said(std::move(page));
  if (!taken) log::room("engine").warn("{}: {}", runner->ledger().spec().name, taken.error().message);
}

}  // namespace

void Engine::set_finder(core::BackendRow& row, const core::BackendSpec& spec) {
  row.notes.erase(kNote);
  if (!spec.discovered_by.empty()) row.notes[kNote] = find(spec.discovered_by)->ledger().row().uid;
}

Runner* Engine::finder_of(const core::BackendRow& row) {
  const std::string* uid = discovered_by(row);
  for (auto& [name, runner] : runners_) {
    if (uid != nullptr && runner->ledger().row().uid == *uid) return runner.get();
  }
  return nullptr;
}

/// A backend that a source of the config discovered before this process; the next discoveries say whether it is there.
Task<Status> Engine::bring_back(core::BackendRow row) {
  const core::BackendSpec& source = finder_of(row)->ledger().spec();
  core::BackendSpec spec;
  spec.name = row.name;
  spec.type = row.type;
  spec.provider = row.provider;
  spec.registration_json = row.registration;
  spec.settings_json = "{}";
  spec.rules = source.rules;
  spec.interval = source.interval;
  spec.discovered_by = source.name;
  if (const auto value = core::parse(row.registration); value && value->find("labels") != nullptr) {
    for (const auto& [name, text] : *value->find("labels")->object()) spec.labels[name] = *text.string();
  }
  discovered_[spec.name] = {*discovered_by(row), 0};
  std::vector<core::BackendRow> rows(1, row);
  const auto status = co_await bring_up(std::move(spec), rows);
  co_return status;
}

const std::string* Engine::discovered_by(const core::BackendRow& row) {
  const auto note = row.notes.find(kNote);
  return note == row.notes.end() ? nullptr : &note->second;
}

Task<core::Coverage> Engine::take_discovered(std::string source, core::DiscoverOutcome outcome) {
  const Turn::Held held = co_await registry_.enter();
  core::Coverage line;
  line.kind = "discovered";
  line.established = true;
  line.complete = outcome.complete;
  for (const auto& d : outcome.diagnostics) add_once(line.reasons, std::string(render(d.code)) + ": " + d.text);
  Runner* speaker = find(source);
  if (speaker == nullptr || stopping_) co_return line;
  const std::string uid = speaker->ledger().row().uid;
  std::set<std::string> named;
  if (outcome.backends.size() > kMostBackends) {
    add_once(line.reasons, "discovers " + std::to_string(outcome.backends.size()) + " backends, at most " +
                               std::to_string(kMostBackends) + " of one source are registered: narrow its selector");
    outcome.backends.resize(kMostBackends);
    outcome.complete = line.complete = false;
  }
  for (const auto& found : outcome.backends) {
    ++line.resources;
    named.insert(found.name);
    const Status taken = co_await take_one(source, uid, found);
    if (!taken) add_once(line.reasons, found.name + ": " + taken.error().message);
  }
  if (!outcome.complete) {
    if (line.reasons.empty()) line.reasons.emplace_back("not listed whole: the provider did not say so");
    co_return line;
  }
  const Status gone = co_await count_misses(uid, named);
  if (!gone) add_once(line.reasons, gone.error().message);
  co_return line;
}

Task<Status> Engine::take_one(std::string source, std::string uid, core::Discovered found) {
  if (const std::string fault = core::name_fault(found.name); !fault.empty()) {
    co_return fail(Code::invalid, "a backend cannot be named so: " + fault);
  }
  const auto known = discovered_.find(found.name);
  if (known == discovered_.end() && find(found.name) != nullptr) co_return Status{};  // the config names it: we only speak
  if (known != discovered_.end() && known->second.source_uid != uid) {
    co_return fail(Code::conflict, "another source registered a backend of this name; the first one counts");
  }
  const core::ProviderInfo* info = find(source)->ledger().info();
  const bool spoken = info != nullptr && info->schemas.contains(SpokenSession::kKind);
  core::BackendSpec spec;
  spec.name = found.name;
  spec.provider = info != nullptr ? info->id : source;
  spec.type = canonical_type(found.type);
  spec.endpoint = found.endpoints.empty() ? std::string() : found.endpoints.front();
  spec.registration_json = registration(found, spoken);
  spec.settings_json = "{}";
  spec.labels = found.labels;
  spec.metadata = found.metadata;
  spec.capabilities = found.capabilities;
  spec.rules = find(source)->ledger().spec().rules;
  spec.interval = find(source)->ledger().spec().interval;
  spec.discovered_by = source;
  if (known != discovered_.end()) {
    known->second.misses = 0;
    const auto status = co_await runners_.at(found.name)->reregister(std::move(spec));
    co_return status;
  }
  DRIFTD_CO_TRY(auto rows, co_await rows_by_age());
  DRIFTD_CO_CHECK(co_await bring_up(std::move(spec), rows));
  discovered_[found.name] = {uid, 0};
  if (loops_) runners_.at(found.name)->start();
  const auto waiting = unheard_.extract(found.name);
  for (auto& word : waiting ? waiting.mapped() : std::vector<Word>{}) (void)hear(std::move(word));
  co_return Status{};
}

Task<Status> Engine::count_misses(std::string uid, std::set<std::string> named) {
  std::vector<std::string> gone;
  for (auto& [name, entry] : discovered_) {
    if (entry.source_uid != uid || named.contains(name)) continue;
    if (++entry.misses >= kMissesToGo) gone.push_back(name);
  }
  for (const auto& name : gone) {
    const auto runner = runners_.at(name);
    co_await runner->stop();
    const core::BackendRow row = runner->ledger().row();
    runners_.erase(name);
    discovered_.erase(name);
    DRIFTD_CO_CHECK(co_await bring_down(row));
  }
  co_return Status{};
}

std::string Engine::hear(Word word) {
  const std::string target = word.record.backend;
  const auto found = runners_.find(target);
  if (found == runners_.end()) {  // it may be registered by the next discovery
    constexpr std::size_t kMost = 10'000;
    if (unheard_.size() >= kMost && !unheard_.contains(target)) return "speaks of too many backends that it does not discover";
    auto& waiting = unheard_[target];
    std::erase_if(waiting, [&](const Word& other) { return other.record.id == word.record.id; });
    waiting.push_back(std::move(word));
    return {};
  }
  const auto speaker = speakers_.emplace(target, word.source).first;
  if (speaker->second != word.source) {
    return "source " + speaker->second + " speaks for backend " + target + " already; the first one counts";
  }
  const std::shared_ptr<Runner> runner = found->second;
  core::RecordPage page;
  page.records.push_back(word.record);
  page.records.front().backend.clear();
  runner->hear(std::move(word.record), std::move(word.schema), word.schema_text);
  asio::co_spawn(context_->core, take_said(runner, std::move(page)), fatal);
  return {};
}

}  // namespace driftd::engine
