// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <iterator>
#include <random>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "core/ports/session.hpp"
#include "engine/backend_rows.hpp"
#include "engine/context.hpp"
#include "engine/decision_binding.hpp"
#include "engine/runner.hpp"
#include "engine/sources/registration_session.hpp"
#include "engine/unregistration.hpp"
#include "engine/unusable_session.hpp"

namespace driftd::engine {
namespace {

std::string new_uid() {
  std::random_device random;
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(random() & 0xff));
  return to_hex(bytes);
}

constexpr int kRounds = 8;  // of settle(); sources that declare each other's resources settle in far fewer rounds

Task<void> refresh_into(std::shared_ptr<Runner> runner, bool full, Engine::BackendRefresh& out, int& left,
                        asio::steady_timer& done) {
  out.report = co_await runner->refresh(full);
  if (--left == 0) done.cancel();
}

Task<void> stop_one(std::shared_ptr<Runner> runner, int& left, asio::steady_timer& done) {
  co_await runner->stop();
  if (--left == 0) done.cancel();
}

/// Without the keys of the workers.
core::SessionSpec session_spec(const core::BackendSpec& spec) {
  core::SessionSpec out;
  out.backend = spec.name;
  out.provider = spec.provider;
  out.settings_json = spec.settings_json;
  out.secrets = spec.secrets;
  out.redact = spec.redact;
  out.isolation = spec.isolation;
  out.budgets = spec.budgets;
  out.wait_for_plugin = true;
  return out;
}

}  // namespace

std::string canonical_type(const std::string& provider) {
  static const std::map<std::string, std::string> kAliases = {
      {"postgresql", "postgres"}, {"pg", "postgres"}, {"kubernetes", "k8s"}, {"tfstate", "terraform"}};
  // A file: its name serves as the type until the provider was described.
  if (provider.find('/') != std::string::npos) {
    const std::string name = provider.substr(provider.rfind('/') + 1);
    return name.substr(0, name.rfind(".so"));
  }
  const auto found = kAliases.find(provider);
  return found == kAliases.end() ? provider : found->second;
}

Engine::Engine(std::shared_ptr<Context> context, core::SessionFactory& factory, core::RedactionKey worker_key,
               std::uint64_t digest_seed)
    : context_(std::move(context)),
      factory_(factory),
      worker_key_(std::move(worker_key)),
      digest_seed_(digest_seed),
      registry_mutex_(context_->core) {
  context_->sources = this;
  context_->keys = std::make_shared<const core::RedactionKeys>(core::RedactionKeys{worker_key_, context_->store_key});
}

Task<Status> Engine::start(std::vector<core::BackendSpec> specs, bool loops) {
  loops_ = loops;
  DRIFTD_CO_CHECK(co_await load_switch());
  DRIFTD_CO_TRY(auto rows, co_await rows_by_age(context_->store));
  for (auto& spec : specs) {
    DRIFTD_CO_CHECK(co_await register_backend(std::move(spec), rows));
  }
  std::vector<core::BackendRow> found;
  for (auto& row : rows) {
    // A manual backend that is not among `specs` (`driftd once` has none) stays registered, but does not run.
    if (row.deleted_ns || row.notes.contains(kDefinitionNote)) continue;
    Runner* source = discoverer_of(row);
    if (source != nullptr) {
      found.push_back(std::move(row));
    } else {
      const Unregistration why;
      DRIFTD_CO_CHECK(co_await unregister_backend(context_, std::move(row), why));
    }
  }
  for (auto& row : found) {
    DRIFTD_CO_CHECK(co_await restore_discovered(std::move(row)));
  }
  DRIFTD_CO_CHECK(co_await restore_registrars());
  if (!loops) co_return Status{};
  for (auto& [name, runner] : runners_) runner->start();
  co_return Status{};
}

/// Returns null for a discovered backend, which is registered but not read.
Result<std::shared_ptr<core::Session>> Engine::open_session(const core::BackendSpec& spec) {
  if (!spec.discovered_by.empty()) return std::shared_ptr<core::Session>();
  if (!spec.fault.empty()) return std::make_shared<UnusableSession>(spec.fault);
  core::SessionSpec opened = session_spec(spec);
  opened.worker_key = worker_key_;
  opened.digest_seed = digest_seed_;
  return factory_.open(std::move(opened));
}

Task<Status> Engine::commit_registration(std::shared_ptr<Runner> runner, std::optional<core::BackendRow> before,
                                         std::vector<core::AuditEntry> audit) {
  const core::BackendRow& row = runner->ledger().row();
  const core::BackendSpec& spec = runner->ledger().spec();
  const bool created = !before || before->deleted_ns;
  const bool edited = !created && (before->registration != row.registration || before->name != row.name);
  if (!created && !edited && before->notes == row.notes) co_return Status{};
  CommitExtras extras;
  extras.row = row;
  extras.audit = std::move(audit);
  if (created || edited) {
    std::optional<core::BackendSnapshot> old_state;
    std::vector<std::string> fields;
    if (edited) old_state = snapshot_of(*before);
    if (edited) fields = changed_fields(*before, row);
    core::BackendEvent event = core::registration_event(edited ? core::ChangeType::updated : core::ChangeType::created,
                                                        runner->ledger().event_context(registration_cause(spec)),
                                                        std::move(old_state), fields, context_->clock.wall());
    extras.events.push_back(runner->ledger().draft(std::move(event)));
  }
  const auto status = co_await runner->ledger().commit_extras(std::move(extras));
  co_return status;
}

Task<Status> Engine::register_backend(core::BackendSpec spec, std::vector<core::BackendRow>& rows,
                                      std::vector<core::AuditEntry> audit) {
  const std::optional<core::BackendRow> known = extract_row(rows, spec, context_->clock.wall());
  core::BackendRow row;
  if (known) row = *known;
  if (!known) row.uid = new_uid();
  // Another kind of system has other identities, or none.
  if (row.provider != spec.provider) row.system_identity.clear();
  row.deleted_ns.reset();
  row.name = spec.name;
  row.type = spec.type.empty() ? canonical_type(spec.provider) : spec.type;
  row.provider = spec.provider;
  row.registration = spec.registration_json;
  set_discoverer(row, spec);
  note_definition(row, spec);
  DRIFTD_CO_TRY(auto own, open_session(spec));
  RegistrationSession::SourceRead read_source = [this, name = spec.name] { return ask_registrar(name); };
  auto session = std::make_shared<RegistrationSession>(spec.name, std::move(own), std::move(read_source),
                                                       spec.discovered_by, spec.provider);
  auto runner = std::make_shared<Runner>(context_, spec, row, std::move(session));
  Status ready = co_await commit_registration(runner, known, std::move(audit));
  if (ready) ready = co_await runner->load();
  if (ready) {
    std::vector<core::ResourceId> left = runner->ledger().out_of_scope();
    ready = co_await retire(*context_, runner->ledger(), std::move(left),
                            "out of scope since include or exclude were edited");
  }
  if (!ready) {
    co_await runner->stop();
    co_return fail(ready.error());
  }
  runner->set_stretch(interval_factor_);
  runner->hold(holds_cycles_);
  runners_[spec.name] = std::move(runner);
  co_return Status{};
}

Task<void> Engine::stop() {
  stopping_ = true;
  { const AsyncMutex::Guard last = co_await registry_mutex_.lock(); }  // whoever locks it later sees stopping_
  int left = static_cast<int>(runners_.size());
  asio::steady_timer done(context_->core, asio::steady_timer::time_point::max());
  for (auto& [name, runner] : runners_) asio::co_spawn(context_->core, stop_one(runner, left, done), fatal);
  while (left > 0) co_await done.async_wait(asio::as_tuple(asio::use_awaitable));
}

Runner* Engine::find(const std::string& name) {
  const auto found = runners_.find(name);
  return found == runners_.end() ? nullptr : found->second.get();
}

Error Engine::unknown_backend(const std::string& name) const {
  std::string known;
  for (const auto& [other, runner] : runners_) known += (known.empty() ? "" : ", ") + other;
  return {Code::not_found, "no backend '" + name + "'; configured: " + (known.empty() ? "none" : known)};
}

Result<std::shared_ptr<Runner>> Engine::runner_of(const core::Store::Owner& owner) const {
  for (const auto& [name, runner] : runners_) {
    if (runner->ledger().row().uid == owner.backend_uid) return runner;
  }
  return fail(Code::not_found, "the backend of drift " + owner.drift_id + " is not registered any more");
}

Task<Result<core::Drift>> Engine::decide(std::string drift_id, core::Decision decision) {
  auto owner = co_await context_->store.owner_of(drift_id);
  const bool may_be_approved = decision.verb == core::Decision::Verb::undo && !owner &&
                               (owner.error().code == Code::conflict || owner.error().code == Code::not_found);
  if (may_be_approved) {
    auto ended = co_await context_->store.ended_drift(drift_id);
    if (!ended) co_return fail(owner.error());
    DRIFTD_CO_TRY(const auto former_runner, runner_of(ended->owner));
    auto undone = co_await former_runner->undo_approval(std::move(*ended), std::move(decision));
    co_return undone;
  }
  if (!owner) co_return fail(owner.error());
  DRIFTD_CO_TRY(const auto runner, runner_of(*owner));
  auto decided = co_await runner->decide(std::move(owner->resource), owner->drift_id, std::move(decision));
  co_return decided;
}

Task<Result<core::Drift>> Engine::claim(std::string drift_id, core::Claim claim) {
  DRIFTD_CO_TRY(auto owner, co_await context_->store.owner_of(drift_id));
  DRIFTD_CO_TRY(const auto runner, runner_of(owner));
  auto claimed = co_await runner->claim(std::move(owner.resource), owner.drift_id, std::move(claim));
  co_return claimed;
}

std::string Engine::binding(const core::Drift& drift) const { return decision_binding(context_->store_key, drift); }

Task<Result<std::vector<Engine::BackendRefresh>>> Engine::refresh(std::string backend, bool full) {
  std::vector<std::shared_ptr<Runner>> chosen;
  for (auto& [name, runner] : runners_) {
    if (backend.empty() || name == backend) chosen.push_back(runner);
  }
  if (chosen.empty() && !backend.empty()) co_return fail(unknown_backend(backend));
  std::vector<BackendRefresh> out(chosen.size());
  int left = static_cast<int>(chosen.size());
  asio::steady_timer done(context_->core, asio::steady_timer::time_point::max());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    out[i].backend = chosen[i]->ledger().spec().name;
    asio::co_spawn(context_->core, refresh_into(chosen[i], full, out[i], left, done), fatal);
  }
  while (left > 0) co_await done.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return out;
}

Task<Result<std::vector<Engine::BackendRefresh>>> Engine::settle() {
  std::vector<BackendRefresh> out;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::string> moved;
    for (const auto& [name, runner] : runners_) {
      if (runner->unsettled()) moved.push_back(name);
    }
    if (moved.empty()) break;
    for (const auto& name : moved) {
      DRIFTD_CO_TRY(auto one, co_await refresh(name, true));
      std::move(one.begin(), one.end(), std::back_inserter(out));
    }
  }
  co_return out;
}

Task<Result<std::vector<core::Step>>> Engine::explain(std::string backend, core::ResourceId id, std::string path) {
  Runner* runner = find(backend);
  if (runner == nullptr) co_return fail(unknown_backend(backend));
  auto steps = co_await runner->explain(std::move(id), std::move(path));
  co_return steps;
}

Task<Result<core::DiscoverOutcome>> Engine::discover(std::string backend) {
  const auto found = runners_.find(backend);
  if (found == runners_.end()) co_return fail(unknown_backend(backend));
  const std::shared_ptr<Runner> runner = found->second;  // it may be unregistered meanwhile
  const core::ProviderInfo* info = runner->ledger().info();
  if (info != nullptr && !info->offers("driftd.discover")) {
    co_return fail(Code::unsupported, "provider " + info->id + " of backend " + backend +
                                          " does not offer driftd.discover/1: it knows of no other backends");
  }
  auto outcome = co_await runner->session().discover();
  co_return outcome;
}

Result<std::vector<std::string>> Engine::resume(const std::string& name) {
  std::vector<std::string> freed;
  std::string running;
  for (auto& [backend, runner] : runners_) {
    const core::BackendView seen = runner->view();
    const bool meant = name == backend || name == seen.type || name == seen.provider || name == seen.worker.file ||
                       name == runner->ledger().spec().provider;
    if (!meant) continue;
    if (runner->session().resume()) {
      freed.push_back(backend);
      runner->hint();
    } else {
      running += (running.empty() ? "" : ", ") + backend + " is " + seen.worker.state;
    }
  }
  if (!freed.empty()) return freed;
  if (!running.empty()) return fail(Code::conflict, "nothing of '" + name + "' is parked: " + running);
  Error unknown = unknown_backend(name);
  unknown.message += ", and none of them uses a plugin of that name";
  return fail(std::move(unknown));
}

core::RegisteredBackend Engine::registered_backend(const std::string& name) const {
  core::RegisteredBackend out;
  const auto found = runners_.find(name);
  if (found == runners_.end()) return out;
  const Ledger& ledger = found->second->ledger();
  const core::BackendSpec& spec = ledger.spec();
  out.snapshot = ledger.event_context({}).backend;
  out.snapshot.config_json = spec.registration_json;
  out.source = source_of(spec);
  out.defined_at = spec.discovered_by.empty() ? spec.defined_at : spec.discovered_by;
  out.etag = etag_of(ledger.row());
  return out;
}

std::vector<core::RegisteredBackend> Engine::registrations() const {
  std::vector<core::RegisteredBackend> out;
  for (const auto& [name, runner] : runners_) out.push_back(registered_backend(name));
  return out;
}

void Engine::set_defined_at(const std::string& name, const std::string& place) {
  Runner* runner = find(name);
  if (runner == nullptr || runner->ledger().spec().defined_at == place) return;
  core::BackendSpec spec = runner->ledger().spec();
  spec.defined_at = place;
  runner->ledger().reload(std::move(spec));
}

std::vector<core::BackendView> Engine::view() {
  std::vector<core::BackendView> out;
  for (auto& [name, runner] : runners_) out.push_back(runner->view());
  return out;
}

bool Engine::ready(std::string& why) {
  if (was_ready_) return true;
  for (auto& [name, runner] : runners_) {
    if (runner->cycles() > 0) continue;
    why = "backend " + name + " has not finished its first cycle";
    return false;
  }
  was_ready_ = true;
  return true;
}

void Engine::set_backpressure(int interval_factor, bool holds_cycles) {
  interval_factor_ = interval_factor;
  holds_cycles_ = holds_cycles;
  for (auto& [name, runner] : runners_) {
    runner->set_stretch(interval_factor);
    runner->hold(holds_cycles);
  }
}

}  // namespace driftd::engine
