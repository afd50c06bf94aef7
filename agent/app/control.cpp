// SPDX-License-Identifier: Apache-2.0
// The requests that people and programs can make to a running agent.
#include <algorithm>

#include "app/agent.hpp"
#include "app/rule_paths.hpp"
#include "app/sinks.hpp"
#include "base/digest.hpp"
#include "base/log.hpp"
#include "config/places.hpp"
#include "config/rules_text.hpp"
#include "engine/context.hpp"
#include "secrets/plain_references.hpp"

namespace driftd::app {
namespace {

tl::unexpected<Error> refused(const Error& why) {
  log::room("config").error("reload refused, the running configuration stays:\n{}", why.message);
  return fail(why);
}

}  // namespace

core::AgentView Agent::view() {
  core::AgentView out;
  out.name = config_.agent.name;
  out.cluster = config_.agent.cluster;
  out.version = DRIFTD_VERSION;
  out.started_ns = start_.at_ns;
  out.ready = engine_->ready(out.not_ready_reason);
  out.backends = engine_->view();
  out.sinks = relay_->views();
  out.backlog_events = fullness_.backlog.events;
  out.backlog_bytes = fullness_.backlog.bytes;
  out.store_bytes = fullness_.limit.bytes();
  out.store_max_bytes = config_.retention.max_bytes;
  out.enforcement = engine_->enforcement();
  out.change_log = change_log_view();
  out.needs_restart = needs_restart_;
  return out;
}

Task<Result<core::Value>> Agent::notifications() {
  delivery::ApprovalQueue queue(*store_, clock_);
  DRIFTD_CO_TRY(const auto waiting, co_await queue.list(std::string(), 1000));
  core::Value::Array out;
  for (const auto& one : waiting) {
    core::Value::Object note;
    note["id"] = core::Value(one.id);
    note["backend"] = core::Value(one.backend);
    note["resource"] = core::Value(one.resource);
    note["title"] = core::Value(one.title);
    note["message"] = core::Value(one.message);
    core::Drift named;  // a binding depends on these two only
    named.id = one.id;
    named.digest = one.digest;
    note["digest"] = core::Value(binding(named));
    note["ref"] = core::Value(one.id + "@" + binding(named).substr(0, 12));
    note["claimed_by"] = core::Value(one.claimed_by);
    note["claimed_until"] = core::Value(one.claim_until_ns ? render_time(*one.claim_until_ns) : "");
    note["approvals"] = core::Value(one.approvals);
    note["stale"] = core::Value(one.stale);
    core::Value::Array actions;
    for (const auto& action : one.actions) actions.emplace_back(action);
    note["actions"] = core::Value(std::move(actions));
    out.emplace_back(std::move(note));
  }
  co_return core::Value(std::move(out));
}

Task<Result<core::Drift>> Agent::decide(std::string drift_id, core::Decision decision) {
  auto decided = co_await engine_->decide(std::move(drift_id), std::move(decision));
  co_return decided;
}

Task<Result<core::Drift>> Agent::claim(std::string drift_id, core::Claim claim) {
  auto claimed = co_await engine_->claim(std::move(drift_id), std::move(claim));
  co_return claimed;
}

Task<Result<core::Enforcement>> Agent::enforce(std::string drift_id, std::string digest, bool dry_run,
                                               core::Asked asked) {
  auto done = co_await engine_->enforce(std::move(drift_id), std::move(digest), dry_run, std::move(asked));
  co_return done;
}

Task<Status> Agent::lift_stop(std::string drift_id, core::Asked asked) {
  const Status done = co_await engine_->lift_stop(std::move(drift_id), std::move(asked));
  co_return done;
}

Task<Status> Agent::switch_enforcement(bool on, core::Asked asked) {
  const Status done = co_await engine_->switch_enforcement(on, std::move(asked));
  co_return done;
}

core::EnforcementView Agent::enforcement() { return engine_->enforcement(); }

/// A file that cannot be looked for stops, too: whoever put it there must be able to rely on it.
std::string Agent::why_stopped_by_file() const {
  std::error_code code;
  const auto& file = config_.enforce.off_file;
  const auto found = std::filesystem::symlink_status(file, code);
  if (found.type() == std::filesystem::file_type::not_found) return {};
  if (std::filesystem::exists(found)) return "the file " + file.string() + " stops it; remove the file to go on";
  return "the file " + file.string() + " cannot be looked for: " + code.message();
}

Task<Result<std::vector<core::Control::BackendRefresh>>> Agent::refresh(std::string backend, bool full) {
  DRIFTD_CO_TRY(auto reports, co_await engine_->refresh(std::move(backend), full));
  std::vector<BackendRefresh> out;
  for (auto& report : reports) {
    out.push_back({report.backend, report.report.status, report.report.coverage});
  }
  co_return out;
}

Task<Result<std::vector<core::Step>>> Agent::explain(std::string backend, core::ResourceId id, std::string path) {
  auto steps = co_await engine_->explain(std::move(backend), std::move(id), std::move(path));
  co_return steps;
}

Task<Result<core::DiscoverOutcome>> Agent::discover(std::string backend) {
  auto outcome = co_await engine_->discover(std::move(backend));
  co_return outcome;
}

Task<Result<std::string>> Agent::schema(std::string provider, std::string what) {
  const auto found = co_await sessions_->scan();
  const core::ProviderInfo* info = secrets::find_plugin(found, provider);
  if (info == nullptr) info = secrets::find_sink_plugin(found, provider);
  if (info == nullptr) {
    co_return fail(Code::not_found,
                   "no plugin for provider '" + provider + "'; `driftd plugin ls` lists what is installed");
  }
  if (what.empty() || what == "settings") co_return info->settings_schema;
  const auto text = info->schema_texts.find(what);
  if (text != info->schema_texts.end()) co_return text->second;
  co_return fail(Code::not_found, "provider " + provider + " has no kind '" + what + "'");
}

Task<Result<core::Control::ReloadReport>> Agent::reload() {
  const AsyncMutex::Guard one_at_a_time = co_await reloading_.lock();
  DRIFTD_CO_TRY(auto next, co_await load_next());
  std::vector<std::string> rekeyed;
  Result<ReloadReport> reloaded;
  {
    const AsyncMutex::Guard held = co_await changing_.lock();
    reloaded = co_await apply_next(std::move(next), rekeyed);
  }
  // No other change of the registry waits for the file, for a secret's, or for a receiver. Whoever reloads may take the
  // former secrets from the receivers once this has returned: no request is under way any more that only they signed.
  for (const auto& name : rekeyed) co_await relay_->former_secrets_unused(name);
  co_return reloaded;
}

Status Agent::check_next(const config::Config& next, const std::vector<std::string>& rekeyed,
                         const ScannedPlugins& plugins) {
  for (const auto& spec : next.sinks) {  // are all new secrets keys?
    if (std::count(rekeyed.begin(), rekeyed.end(), spec.name) == 0) continue;
    const auto opened = open_sink(spec, plugins);
    if (opened) continue;
    return fail(Code::invalid,
                config::render(config::ConfigError{next.file, spec.at, opened.error().message, {}, {}, {}}));
  }
  for (const auto& spec : next.backends) {
    if (!config_.agent.jail_required || spec.isolation != core::SessionSpec::Isolation::in_process) continue;
    const auto at = config::find_position(next.places, "backends." + spec.name + ".isolation");
    const std::string why = "'jail' of 'agent' is required, and backend '" + spec.name +
                            "' has `isolation: in-process`, where there is none";
    return fail(Code::invalid, config::render(config::ConfigError{next.file, at, why, {}, {}, {}}));
  }
  return {};
}

Task<Result<Agent::LoadedConfig>> Agent::load_next() {
  const std::string file = config_.file;
  auto work = [file, change_logs = config_.change_log.enabled] {
    Result<LoadedConfig> out;
    config::LoadOptions options;
    options.change_logs = change_logs;
    options.regular_files = true;  // a writer that does not come would hold up the agent's stop, too
    auto next = config::load(file, options);
    if (next) {
      out = std::make_shared<const config::Config>(std::move(*next));
    } else {
      out = fail(Code::invalid, config::render(next.error()));
    }
    return out;
  };
  log::room("config").info("reloading {}", file);
  auto loaded = co_await run_on(executors_.io.get_executor(), std::move(work));
  if (!loaded) co_return refused(loaded.error());
  co_return loaded;
}

/// `rekeyed` gets the sinks that sign with new secrets from now on.
Task<Result<core::Control::ReloadReport>> Agent::apply_next(LoadedConfig loaded, std::vector<std::string>& rekeyed) {
  const config::Config& next = *loaded;
  auto look_up = [loaded] { return find_grants(loaded->resolve); };
  auto grants = co_await run_on(executors_.io.get_executor(), std::move(look_up));
  if (!grants) co_return refused(grants.error());
  const config::Comparison changes = config::compare(config_, next);
  const ScannedPlugins plugins = co_await registry_->scan();
  auto plan = co_await registry_->plan(loaded, plugins);
  if (phase_.stopping) co_return fail(Code::cancelled, "the agent stops: nothing was reloaded");
  if (!plan) co_return refused(plan.error());
  if (const Status usable = check_next(next, changes.rekeyed, plugins); !usable) co_return refused(usable.error());
  const Status started = co_await start_new_sinks(next, plugins);
  if (!started) co_return refused(started.error());
  ReloadReport out;
  for (const auto& [what, where] : changes.restart) {
    log::room("config").warn("reload: {} needs a restart{}{}", what, where.empty() ? "" : ": ", where);
    out.needs_restart.push_back({what, where});
  }
  needs_restart_ = out.needs_restart;
  apply_hot_changes(next);
  warn_of_rule_paths(next, plugins);
  co_await audit_rules();
  credentials_->set_grants(std::move(*grants), next.resolve.per_minute);
  registry_->protect(next.secret_files);
  const Registry::Outcome registry = co_await registry_->apply(std::move(*plan));
  co_await audit_rules();  // of backends that were registered by gRPC, which run under the new defaults from here on
  out.applied = registry.done;
  for (const auto& line : registry.later) out.applied.push_back(line + ": " + std::string(Registry::kLater));
  out.applied.insert(out.applied.end(), changes.hot.begin(), changes.hot.end());
  for (const auto& change : out.applied) log::room("config").info("reload: {}", change);
  DRIFTD_CO_CHECK(rekey_sinks(next, changes.rekeyed));
  rekeyed = changes.rekeyed;
  if (registry.failed.empty()) co_return out;
  std::string failed;
  for (const auto& line : registry.failed) failed += (failed.empty() ? "" : "; ") + line;
  log::room("config").error("reload: not everything could be changed: {}", failed);
  co_return fail(Code::unavailable,
                 failed + "; this was not made or does not run yet, the rest of the file is in use: reload again");
}

config::ValueMark Agent::mark_of_values() const {
  constexpr std::size_t kMark = 16;  // characters of a keyed hash
  return [this](const std::string& value) {
    return hmac_hex(store_->key().store.newest(), {"driftd expected value 1", value}).substr(0, kMark);
  };
}

/// A line that cannot be written now is written by the next start or reload: the store knows what it last named.
Task<void> Agent::audit_rules() {
  const config::ValueMark mark = mark_of_values();
  std::map<std::string, std::string> rules;
  for (const auto& spec : config_.backends) {
    if (spec.rules) rules[spec.name] = core::render(config::rules_json(*spec.rules, spec.enforce, mark));
  }
  for (auto& [name, text] : registry_->manual_rules()) rules.emplace(name, std::move(text));
  const Status written = co_await store_->audit_rules(std::move(rules), config_.file);
  if (!written) log::room("config").error("the audit log lacks the changed rules: {}", written.error().message);
}

void Agent::apply_hot_changes(const config::Config& next) {
  config_.backends = next.backends;
  config_.backend_settings_at = next.backend_settings_at;
  config_.program_uses = next.program_uses;
  config_.file_uses = next.file_uses;
  config_.credential_uses = next.credential_uses;
  config_.agent.programs = next.agent.programs;
  config_.defaults = next.defaults;
  config_.places = next.places;
  config_.routes = next.routes;
  config_.resolve = next.resolve;
  set_routes();
}

/// Starts the sinks that are new in the configuration, because its routes may lead to them and events must not pile up
/// for a sink that does not run. All are opened before the first one is started.
Task<Status> Agent::start_new_sinks(const config::Config& next, const ScannedPlugins& plugins) {
  std::map<std::string, std::unique_ptr<core::Sink>> opened;
  std::map<std::string, std::string> types;
  for (const auto& spec : next.sinks) {
    if (relay_->has(spec.name)) continue;
    auto sink = open_sink(spec, plugins);
    if (!sink) {
      const config::ConfigError error{next.file, spec.at, sink.error().message, {}, {}, {}};
      co_return fail(Code::invalid, config::render(error));
    }
    opened[spec.name] = std::move(*sink);
    types[spec.name] = spec.type;
  }
  for (auto& [name, sink] : opened) {
    DRIFTD_CO_CHECK(co_await relay_->start_sink(name, types[name], std::move(sink)));
    log::room("config").info("reload: sink {} is started", name);
  }
  for (const auto& spec : next.sinks) {
    const auto same = [&spec](const auto& known) { return known.name == spec.name; };
    if (std::none_of(config_.sinks.begin(), config_.sinks.end(), same)) config_.sinks.push_back(spec);
  }
  co_return Status{};
}

/// Gives webhooks their new secrets, all at once.
Status Agent::rekey_sinks(const config::Config& next, const std::vector<std::string>& names) {
  for (const auto& spec : next.sinks) {
    if (std::count(names.begin(), names.end(), spec.name) == 0) continue;
    DRIFTD_CHECK(relay_->use_secrets(spec.name, std::get<sinks::WebhookSettings>(spec.settings).secrets));
    const auto same = [&spec](const auto& known) { return known.name == spec.name; };
    *std::find_if(config_.sinks.begin(), config_.sinks.end(), same) = spec;
  }
  return {};
}

Task<Result<std::int64_t>> Agent::replay(Replay request) {
  auto count = co_await relay_->replay(std::move(request));
  co_return count;
}

Task<Result<std::int64_t>> Agent::dead_letter(std::string sink, std::string verb, std::vector<std::int64_t> seqs) {
  auto count = co_await relay_->dead_letter(std::move(sink), std::move(verb), std::move(seqs));
  co_return count;
}

Task<Result<std::vector<std::string>>> Agent::resume(std::string name) {
  if (name.starts_with("sink/")) {
    DRIFTD_CO_CHECK(sessions_->resume(name));
    log::room("app").info("{}: resumed", name);
    co_return std::vector<std::string>{name};
  }
  const auto freed = engine_->resume(name);
  if (!freed) co_return fail(freed.error());
  for (const auto& backend : *freed) log::room("app").info("{}: resumed", backend);
  co_return *freed;
}

std::string Agent::binding(const core::Drift& drift) { return engine_->binding(drift); }

Task<Status> Agent::audit(core::AuditEntry entry) {
  auto status = co_await store_->audit(std::move(entry));
  co_return status;
}

}  // namespace driftd::app
