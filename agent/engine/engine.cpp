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

/// Returns the cause of a registration event.
std::string registration_cause(const core::BackendSpec& spec) {
  return spec.discovered_by.empty() ? "configuration" : "discovered by " + spec.discovered_by;
}

Task<void> reload_one(std::shared_ptr<Runner> runner, core::BackendSpec spec, int& left, asio::steady_timer& done) {
  co_await runner->reload(std::move(spec));
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
  DRIFTD_CO_TRY(auto rows, co_await rows_by_age(context_->store));
  for (auto& spec : specs) {
    DRIFTD_CO_CHECK(co_await register_backend(std::move(spec), rows));
  }
  std::vector<core::BackendRow> found;
  for (auto& row : rows) {
    if (row.deleted_ns) continue;
    Runner* source = discoverer_of(row);
    if (source != nullptr) {
      found.push_back(std::move(row));
    } else {
      DRIFTD_CO_CHECK(co_await unregister_backend(context_, std::move(row)));
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

Task<Status> Engine::register_backend(core::BackendSpec spec, std::vector<core::BackendRow>& rows) {
  const std::optional<core::BackendRow> known = extract_row(rows, spec, context_->clock.wall());
  core::BackendRow row;
  if (known) row = *known;
  if (!known) row.uid = new_uid();
  // Another kind of system has other identities, or none.
  if (row.provider != spec.provider) row.system_identity.clear();
  const bool created = !known || known->deleted_ns;
  row.deleted_ns.reset();
  const bool edited = !created && (row.registration != spec.registration_json || row.name != spec.name);
  core::BackendSnapshot before;
  before.name = row.name;
  before.type = row.type;
  before.config_json = row.registration;
  row.name = spec.name;
  row.type = spec.type.empty() ? canonical_type(spec.provider) : spec.type;
  row.provider = spec.provider;
  row.registration = spec.registration_json;
  set_discoverer(row, spec);
  std::shared_ptr<core::Session> own;
  if (spec.discovered_by.empty()) {
    core::SessionSpec opened = session_spec(spec);
    opened.worker_key = worker_key_;
    opened.digest_seed = digest_seed_;
    DRIFTD_CO_TRY(own, factory_.open(std::move(opened)));
  }
  RegistrationSession::SourceRead read_source = [this, name = spec.name] { return ask_registrar(name); };
  auto session = std::make_shared<RegistrationSession>(spec.name, std::move(own), std::move(read_source),
                                                       spec.discovered_by, spec.provider);
  auto runner = std::make_shared<Runner>(context_, spec, row, std::move(session));
  if (created || edited) {
    CommitExtras extras;
    extras.row = row;
    std::vector<std::string> fields;
    if (edited) fields = changed_fields(before.config_json, row.registration);
    std::optional<core::BackendSnapshot> old_state;
    if (edited) old_state = before;
    const auto type = edited ? core::ChangeType::updated : core::ChangeType::created;
    core::BackendEvent event = core::registration_event(type, runner->ledger().event_context(registration_cause(spec)),
                                                        old_state, fields, context_->clock.wall());
    extras.events.push_back(runner->ledger().draft(std::move(event)));
    DRIFTD_CO_CHECK(co_await runner->ledger().commit_extras(std::move(extras)));
  }
  DRIFTD_CO_CHECK(co_await runner->load());
  std::vector<core::ResourceId> left = runner->ledger().out_of_scope();
  if (!left.empty()) {
    DRIFTD_CO_CHECK(co_await retire(*context_, runner->ledger(), std::move(left),
                                    "out of scope since include or exclude were edited"));
  }
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

/// Reloads all backends side by side, so that a hanging cycle of one does not delay the new rules of others.
Task<void> Engine::reload(std::vector<core::BackendSpec> specs) {
  int left = 1;
  asio::steady_timer done(context_->core, asio::steady_timer::time_point::max());
  for (auto& spec : specs) {
    const auto found = runners_.find(spec.name);
    if (found == runners_.end()) continue;
    ++left;
    asio::co_spawn(context_->core, reload_one(found->second, std::move(spec), left, done), fatal);
  }
  --left;
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

Task<Result<core::Drift>> Engine::decide(std::string drift_id, core::Decision decision) {
  DRIFTD_CO_TRY(auto owner, co_await context_->store.owner_of(drift_id));
  for (auto& [name, runner] : runners_) {
    if (runner->ledger().row().uid != owner.backend_uid) continue;
    auto decided = co_await runner->decide(std::move(owner.resource), owner.drift_id, decision);
    co_return decided;
  }
  co_return fail(Code::not_found, "the backend of drift " + drift_id + " is not registered any more");
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

std::vector<core::BackendSnapshot> Engine::registrations() const {
  std::vector<core::BackendSnapshot> out;
  for (const auto& [name, runner] : runners_) out.push_back(runner->ledger().event_context({}).backend);
  return out;
}

std::vector<core::BackendView> Engine::view() {
  std::vector<core::BackendView> out;
  for (auto& [name, runner] : runners_) out.push_back(runner->view());
  return out;
}

bool Engine::ready(std::string& why) {
  for (auto& [name, runner] : runners_) {
    if (runner->cycles() > 0) continue;
    why = "backend " + name + " has not finished its first cycle";
    return false;
  }
  return true;
}

void Engine::set_backpressure(int interval_factor, bool holds_cycles) {
  for (auto& [name, runner] : runners_) {
    runner->set_stretch(interval_factor);
    runner->hold(holds_cycles);
  }
}

}  // namespace driftd::engine
