// SPDX-License-Identifier: Apache-2.0
// RegisterBackend, UpdateBackend and DeleteBackend.
#include <algorithm>

#include "app/registry.hpp"
#include "config/rules_text.hpp"
#include "engine/backend_rows.hpp"
#include "engine/runner.hpp"
#include "ipc/settings_schema.hpp"
#include "secrets/plain_references.hpp"

namespace driftd::app {
namespace {

using core::ManualAnswer;
using core::ManualCall;

constexpr std::size_t kMaxDefinition = 64u << 10;  // bytes
constexpr std::ptrdiff_t kMaxManual = 1'000;

core::AuditEntry audit_line(const ManualCall& call, std::string verb, const std::string& name) {
  core::AuditEntry out;
  out.at_ns = SystemClock().wall();
  out.actor = call.actor;
  out.caller = call.caller;
  out.verb = std::move(verb);
  out.subject = name;
  out.backend = name;
  return out;
}

/// Returns the line about the rules that the backend has from now on, as text; empty: none, it is unregistered.
core::AuditEntry rules_line(const ManualCall& call, const std::string& name, std::string rules) {
  core::AuditEntry out = audit_line(call, {}, name);
  out.rules = std::move(rules);
  return out;
}

/// `own`: it is the caller's change.
Error under_way(const std::string& name, bool own) {
  const std::string later(Registry::kLater);
  if (own) {
    return {Code::unavailable, "backend '" + name + "': this change is " + later +
                                   ", unless the agent is stopped before; read the backend then, or call again"};
  }
  return {Code::unavailable, "backend '" + name + "': another change of it is under way, and is " + later +
                                 "; this call changed nothing, try again then"};
}

/// Returns `invalid` with the path if a setting that the plugin calls a secret stands in clear text, or if the settings
/// do not fit its schema. `spec` has plain references resolved.
Status check_settings(const core::BackendSpec& spec, const core::ProviderInfo& info) {
  DRIFTD_TRY(const auto literals, ipc::sensitive_literals(spec.settings_json, spec.secrets, info.settings_schema));
  std::string out;
  for (const auto& path : literals) {
    out += (out.empty() ? "" : "; and ") + path + ": a secret is in clear text; expected a reference such as " +
           "${file:/run/secrets/NAME}; found a text";
  }
  DRIFTD_TRY(const auto mistakes, ipc::validate_settings(info.settings_schema, spec.settings_json));
  for (const auto& one : mistakes) out += (out.empty() ? "" : "; and ") + one.path + ": " + one.message;
  if (out.empty()) return {};
  return fail(Code::invalid, "backend '" + spec.name + "': " + out);
}

}  // namespace

Status Registry::may_change() const {
  if (stopping_) return fail(Code::unavailable, "the agent stops; try again");
  if (config_.grpc.manual_on) return {};
  return fail(Code::denied,
              "backends cannot be registered by gRPC: the configuration has no section grpc.register; an operator of "
              "the agent can add it");
}

ManualAnswer Registry::refuse(ManualAnswer::Refusal refusal, std::string why) const {
  ManualAnswer out;
  out.refusal = refusal;
  out.why = std::move(why);
  return out;
}

/// Returns where a backend comes from that cannot be changed by gRPC; empty if it can, or if there is none.
std::string Registry::place_of(const std::string& name) const {
  const core::RegisteredBackend known = needs_.engine.registered_backend(name);
  if (known.source == "file") return "is defined by the configuration at " + known.defined_at;
  if (known.source == "discovered") return "was discovered by " + known.defined_at;
  return {};
}

/// A change can be stored and not run, until mend() has run. Then returns true if the store has what the caller wants:
/// `wanted` is a definition, or empty for no backend. If it has something else, returns `unavailable`, because what the
/// call would be answered from is out of date.
Task<Result<bool>> Registry::stored_only(std::string name, std::string wanted) {
  if (!behind_) co_return false;
  const std::string start = "backend '" + name + "': ", end = "; this call changed nothing, try again then";
  const bool taken = std::any_of(config_.backends.begin(), config_.backends.end(),
                                 [&](const core::BackendSpec& spec) { return spec.name == name; });
  if (taken) {
    co_return fail(Code::unavailable, start + "the configuration defines it, which is not in use for it yet: the " +
                                          "agent tries again every 30 seconds" + end);
  }
  const auto rows = co_await needs_.store.backends();
  if (!rows) {
    co_return fail(Code::unavailable, start + "what the store has of it could not be read: " + rows.error().message +
                                          "; this call changed nothing, try again");
  }
  const std::string stored = engine::stored_definition(*rows, name);
  const auto known = entries_.find(name);
  const std::string runs = known == entries_.end() ? std::string() : known->second.spec.definition;
  if (stored == runs) co_return false;
  if (stored == wanted) co_return true;
  co_return fail(Code::unavailable, start +
                                        "an earlier change of it is stored, but does not run yet: the agent tries " +
                                        "again every 30 seconds" + end);
}

/// Reads a definition and checks it. `answer` gets the refusal if there is no plugin for it.
Task<Result<Registry::Checked>> Registry::check(ManualCall call, ManualAnswer& answer) {
  if (call.definition.size() > kMaxDefinition) {
    co_return fail(Code::invalid, "the definition has " + std::to_string(call.definition.size()) +
                                      " bytes; expected at most " + std::to_string(kMaxDefinition));
  }
  const auto config = std::make_shared<const config::Config>(config_);
  auto work = [config, json = std::move(call.definition)] {
    Result<config::BackendEntry> out;
    auto read = config::read_definition(*config, json, config->grpc.manual);
    if (read) {
      out = std::move(*read);
    } else {
      out = fail(Code::invalid, config::render_definition(read.error()));
    }
    return out;
  };
  Checked out;
  DRIFTD_CO_TRY(out.entry, co_await run_on(needs_.executors.io.get_executor(), std::move(work)));
  out.entry.spec.defined_at = call.actor;
  out.plain = out.entry.spec;
  const Plugins plugins = co_await scan();
  const core::ProviderInfo* info = secrets::find_plugin(plugins, out.plain.provider);
  if (info == nullptr) {
    answer = refuse(ManualAnswer::Refusal::no_plugin,
                    "no plugin for provider '" + out.plain.provider +
                        "' is installed, so the settings cannot be checked; `driftd plugin ls` lists what is" +
                        (scanning() ? "; another plugin has not described itself yet: try again in a minute" : ""));
    co_return out;
  }
  DRIFTD_CO_CHECK(secrets::reveal_plain_references(out.plain, plugins));
  DRIFTD_CO_CHECK(check_settings(out.plain, *info));
  co_return out;
}

Task<Result<ManualAnswer>> Registry::put(ManualCall call, bool update) {
  DRIFTD_CO_CHECK(may_change());
  const AsyncMutex::Guard held = co_await needs_.changing.lock();
  DRIFTD_CO_CHECK(may_change());
  ManualAnswer answer;
  DRIFTD_CO_TRY(Checked checked, co_await check(call, answer));
  if (answer.refusal != ManualAnswer::Refusal::none) co_return answer;
  config::BackendEntry& entry = checked.entry;
  const std::string name = entry.spec.name;
  if (const std::string place = place_of(name); !place.empty()) {
    const auto refusal = update ? ManualAnswer::Refusal::other_source : ManualAnswer::Refusal::exists;
    co_return refuse(refusal, "backend '" + name + "' " + place + "; " +
                                  (update ? "change it there" : "choose another name, or change it there"));
  }
  if (busy_.contains(name)) co_return fail(under_way(name, false));
  std::string asked = name, wanted = entry.spec.definition;
  DRIFTD_CO_TRY(bool again, co_await stored_only(std::move(asked), std::move(wanted)));
  const auto known = entries_.find(name);
  const bool there = known != entries_.end();
  if (update && !there && !again) {
    co_return fail(Code::not_found, "there is no backend '" + name + "'; use RegisterBackend to register it");
  }
  const core::RegisteredBackend now = needs_.engine.registered_backend(name);
  const bool same = there && known->second.spec.definition == entry.spec.definition;
  const engine::Runner* runner = needs_.engine.find(name);
  again = again || (same && runner != nullptr && runner->is_stopping());
  if (same && known->second.spec.fault.empty() && !again) {
    answer.backend = now;
    co_return answer;
  }
  if (there && !update && !same && !again) {
    co_return refuse(ManualAnswer::Refusal::exists, "backend '" + name + "' is registered with another definition by " +
                                                        now.defined_at + "; use UpdateBackend to change it");
  }
  if (update && !again && !call.etag.empty() && call.etag != now.etag) {
    co_return refuse(ManualAnswer::Refusal::etag_mismatch, "backend '" + name + "' changed: its etag is " + now.etag +
                                                               "; found " + core::shortened(call.etag, 64) +
                                                               "; read it again");
  }
  const auto manual =
      std::count_if(entries_.begin(), entries_.end(),
                    [](const auto& one) { return !one.second.spec.definition.empty(); }) +
      std::count_if(busy_.begin(), busy_.end(), [this](const auto& one) { return !entries_.contains(one); });
  if (!there && manual >= kMaxManual) {
    co_return fail(Code::budget, std::to_string(manual) +
                                     " backends are registered by gRPC, which is the maximum; delete those that nobody "
                                     "needs");
  }
  Plan plan;
  std::vector<std::string> what;
  engine::Engine::Change change{std::move(checked.plain)};
  if (there && !again) change.edit = config::compare_backends(known->second, entry, what);
  change.audit.push_back(audit_line(call, there ? "change backend" : "register backend", name));
  if (entry.spec.rules) {
    change.audit.push_back(
        rules_line(call, name, core::render(config::rules_json(*entry.spec.rules, entry.spec.enforce, needs_.mark))));
  }
  plan.changes.push_back(std::move(change));
  plan.lines.push_back(name);
  std::string definition = entry.spec.definition;
  plan.entries[name] = std::move(entry);
  const Outcome outcome = co_await apply(std::move(plan));
  if (!outcome.later.empty()) co_return fail(under_way(name, true));
  if (!outcome.failed.empty()) {
    std::string backend = name, why = outcome.failed.front();
    Error error = co_await failure(std::move(backend), std::move(definition), std::move(why));
    co_return fail(std::move(error));
  }
  answer.backend = needs_.engine.registered_backend(name);
  co_return answer;
}

Task<Result<ManualAnswer>> Registry::register_backend(ManualCall call) {
  auto answer = co_await put(std::move(call), false);
  co_return answer;
}

Task<Result<ManualAnswer>> Registry::update_backend(ManualCall call) {
  auto answer = co_await put(std::move(call), true);
  co_return answer;
}

Task<Result<ManualAnswer>> Registry::delete_backend(ManualCall call) {
  DRIFTD_CO_CHECK(may_change());
  const AsyncMutex::Guard held = co_await needs_.changing.lock();
  DRIFTD_CO_CHECK(may_change());
  if (const std::string place = place_of(call.name); !place.empty()) {
    co_return refuse(ManualAnswer::Refusal::other_source,
                     "backend '" + call.name + "' " + place + "; take it out there");
  }
  if (busy_.contains(call.name)) co_return fail(under_way(call.name, false));
  std::string asked = call.name, nothing;
  DRIFTD_CO_TRY(const bool again, co_await stored_only(std::move(asked), std::move(nothing)));
  ManualAnswer answer;
  const auto known = entries_.find(call.name);
  answer.existed = known != entries_.end();
  if (!answer.existed) co_return answer;
  const core::RegisteredBackend now = needs_.engine.registered_backend(call.name);
  if (!again && !call.etag.empty() && call.etag != now.etag) {
    co_return refuse(ManualAnswer::Refusal::etag_mismatch, "backend '" + call.name + "' changed: its etag is " +
                                                               now.etag + "; found " + core::shortened(call.etag, 64) +
                                                               "; read it again");
  }
  Plan plan;
  engine::Engine::Change change{known->second.spec};
  change.leaves = true;
  change.cause = "unregistered by " + call.actor;
  change.audit.push_back(audit_line(call, "unregister backend", call.name));
  change.audit.push_back(rules_line(call, call.name, {}));
  plan.changes.push_back(std::move(change));
  plan.lines.push_back(call.name);
  const Outcome outcome = co_await apply(std::move(plan));
  if (!outcome.later.empty()) co_return fail(under_way(call.name, true));
  if (!outcome.failed.empty()) {
    std::string backend = call.name, none, why = outcome.failed.front();
    Error error = co_await failure(std::move(backend), std::move(none), std::move(why));
    co_return fail(std::move(error));
  }
  co_return answer;
}

}  // namespace driftd::app
