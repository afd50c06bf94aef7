// SPDX-License-Identifier: Apache-2.0
// The registry of a start and of a reload. Calls of gRPC: registry_calls.cpp.
#include "app/registry.hpp"

#include <set>

#include "base/log.hpp"
#include "config/rules_text.hpp"
#include "engine/backend_rows.hpp"
#include "engine/runner.hpp"
#include "ipc/settings_schema.hpp"
#include "secrets/plain_references.hpp"

namespace driftd::app {
namespace {

using config::BackendEntry;

/// Returns `settings of FILE:LINE:COL: backend 'x': PATH: …` for settings that the plugin does not accept.
Status check_settings(const config::Config& config, const core::BackendSpec& spec,
                      const std::vector<core::SessionFactory::ScanResult>& plugins) {
  const core::ProviderInfo* info = secrets::find_plugin(plugins, spec.provider);
  if (info == nullptr || !spec.definition.empty()) return {};  // it waits for its plugin; a call checked it already
  const auto mistakes = ipc::validate_settings(info->settings_schema, spec.settings_json);
  if (!mistakes) return fail(mistakes.error());
  if (mistakes->empty()) return {};
  const auto at = config.backend_settings_at.find(spec.name);
  std::vector<config::ConfigError> errors;
  for (const auto& one : *mistakes) {
    errors.push_back({config.file,
                      at == config.backend_settings_at.end() ? config::Position{} : at->second,
                      "backend '" + spec.name + "': " + one.path + ": " + one.message,
                      {},
                      {},
                      {}});
  }
  return fail(Code::invalid, config::render(errors));
}

std::string line_of(const std::string& name, const std::vector<std::string>& what) {
  if (what.empty()) return "backends." + name;
  if (what.size() == 1 && what.front() == "rules") return "rules of backend " + name;
  std::string list;
  for (const auto& one : what) list += (list.empty() ? "" : ", ") + one;
  return "backends." + name + " (" + list + ")";
}

}  // namespace

Registry::Registry(const config::Config& config, Needs needs) : config_(config), needs_(std::move(needs)) {}

/// Returns a manual backend as it can be run now. If its definition cannot be used any more, it stays registered.
Task<BackendEntry> Registry::read_stored(std::shared_ptr<const config::Config> config, core::BackendRow row) {
  const std::string json = row.notes.at(engine::kDefinitionNote);
  const config::ManualLimits limits = config_.grpc.manual;  // a change of `grpc` needs a restart
  auto work = [config, json, limits] {
    Result<BackendEntry> out;
    auto read = config::read_definition(*config, json, limits);
    if (read) {
      out = std::move(*read);
    } else {
      out = fail(Code::invalid, config::render_definition(read.error()));
    }
    return out;
  };
  auto read = co_await run_on(needs_.executors.io.get_executor(), std::move(work));
  BackendEntry out;
  if (read) {
    out = std::move(*read);
  } else {
    out.spec.name = row.name;
    out.spec.provider = row.provider;
    out.spec.type = row.type;
    out.spec.registration_json = row.registration;
    out.spec.settings_json = "{}";
    out.spec.rules = std::make_shared<const core::Rules>(config::rules_of(*config->defaults));
    engine::restore_from_registration(row.registration, out.spec);
    out.spec.definition = json;
    out.spec.fault = "its definition, as it was registered, cannot be used: " + read.error().message +
                     "; it is tried again every 30 seconds and by each reload, or use UpdateBackend";
  }
  const auto by = row.notes.find(engine::kRegisteredByNote);
  out.spec.defined_at = by == row.notes.end() ? std::string() : by->second;
  co_return out;
}

/// Reads those whose names the configuration does not take.
Task<Result<std::map<std::string, BackendEntry>>> Registry::manual(std::shared_ptr<const config::Config> config) {
  DRIFTD_CO_TRY(const auto rows, co_await needs_.store.backends());
  std::set<std::string> there, taken;
  for (const auto& row : rows) {
    if (!row.deleted_ns) there.insert(row.name);
  }
  for (const auto& spec : config->backends) {
    taken.insert(spec.name);
    if (!there.contains(spec.name)) taken.insert(spec.was);  // it takes that row over
  }
  std::map<std::string, BackendEntry> out;
  for (const auto& row : rows) {
    if (row.deleted_ns || !row.notes.contains(engine::kDefinitionNote)) continue;
    if (taken.contains(row.name)) {
      log::room("config").warn("backend {} was registered by gRPC; the configuration defines it from now on", row.name);
      continue;
    }
    out[row.name] = co_await read_stored(config, row);
  }
  co_return out;
}

Task<Result<std::vector<core::BackendSpec>>> Registry::start(const Plugins& plugins) {
  const auto config = std::make_shared<const config::Config>(config_);
  plugins_ = plugins;
  DRIFTD_CO_TRY(entries_, co_await manual(config));
  std::vector<core::BackendSpec> out;
  needs_.uses->protect(config_.secret_files);
  for (auto& entry : config::entries_of(config_)) {
    out.push_back(entry.spec);
    entries_[entry.spec.name] = std::move(entry);
  }
  for (const auto& [name, entry] : entries_) {
    if (!entry.spec.fault.empty()) {
      log::room("config").error("backend {} was registered by gRPC, and does not run: {}", name, entry.spec.fault);
    }
    needs_.uses->set(entry);
    needs_.uses->protect(entry.secret_files);
    if (!entry.spec.definition.empty()) out.push_back(entry.spec);
  }
  for (auto& spec : out) {
    const Status plain = secrets::reveal_plain_references(spec, plugins);
    if (!plain && spec.definition.empty()) co_return fail(plain.error());
    if (!plain) spec.fault = plain.error().message;
  }
  co_return out;
}

Task<Result<Registry::Plan>> Registry::plan(std::shared_ptr<const config::Config> next, const Plugins& plugins) {
  Plan out;
  const std::set<std::string> were_busy = busy_;  // before the rows are read: a change may settle behind them
  DRIFTD_CO_TRY(out.entries, co_await manual(next));
  for (auto& entry : config::entries_of(*next)) out.entries[entry.spec.name] = std::move(entry);
  std::set<std::string> kept;
  for (auto& [name, entry] : out.entries) {
    const auto runs = entries_.find(name);
    const bool same = runs != entries_.end() && runs->second.spec.definition == entry.spec.definition;
    if (!entry.spec.fault.empty() && same && runs->second.spec.fault.empty()) entry = runs->second;  // it goes on
    auto known = entries_.find(name);
    if (known == entries_.end() && !out.entries.contains(entry.spec.was)) known = entries_.find(entry.spec.was);
    const bool added = known == entries_.end();
    std::vector<std::string> what;
    auto edit = core::BackendEdit::reopen;
    if (added) {
      what.emplace_back("added");
    } else {
      kept.insert(known->first);
      edit = config::compare_backends(known->second, entry, what);
    }
    const bool was_busy = were_busy.contains(name) || were_busy.contains(entry.spec.was);
    behind_ = behind_ || was_busy;
    if (was_busy && !entry.spec.definition.empty()) continue;  // its row says nothing of the change under way
    const engine::Runner* runner = added ? nullptr : needs_.engine.find(known->first);
    const bool stopped = !was_busy && runner != nullptr && runner->is_stopping();  // by a change that failed
    if (edit == core::BackendEdit::none && stopped) {
      what.emplace_back("started again");
      edit = core::BackendEdit::reopen;
    }
    if (edit == core::BackendEdit::none) {
      out.unchanged.push_back(name);
      continue;
    }
    engine::Engine::Change change{entry.spec, edit};
    const Status plain = secrets::reveal_plain_references(change.spec, plugins);
    if (!plain && entry.spec.definition.empty()) co_return fail(plain.error());
    if (!plain) change.spec.fault = plain.error().message;
    DRIFTD_CO_CHECK(check_settings(*next, change.spec, plugins));
    if (was_busy) {
      out.later.push_back(line_of(name, what));
      continue;
    }
    out.lines.push_back(line_of(name, what));
    out.changes.push_back(std::move(change));
  }
  for (const auto& [name, entry] : entries_) {
    if (kept.contains(name)) continue;
    if (were_busy.contains(name)) {
      behind_ = true;
      if (entry.spec.definition.empty()) out.later.push_back("backends." + name + " (removed)");
      continue;
    }
    engine::Engine::Change change{entry.spec};
    change.leaves = true;
    out.lines.push_back("backends." + name + " (removed)");
    out.changes.push_back(std::move(change));
  }
  co_return out;
}

std::map<std::string, std::string> Registry::manual_rules() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, entry] : entries_) {
    if (entry.spec.definition.empty()) continue;
    const bool usable = entry.spec.fault.empty() && entry.spec.rules != nullptr;
    out[name] =
        usable ? core::render(config::rules_json(*entry.spec.rules, entry.spec.enforce, needs_.mark)) : std::string();
  }
  return out;
}

}  // namespace driftd::app
