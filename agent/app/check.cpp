// SPDX-License-Identifier: Apache-2.0
// What `driftd validate` checks beyond the config's syntax.
#include <algorithm>

#include "admin/peer.hpp"
#include "app/app.hpp"
#include "app/change_log.hpp"
#include "app/credentials.hpp"
#include "app/executors.hpp"
#include "app/grpc.hpp"
#include "app/plugins.hpp"
#include "app/record.hpp"
#include "app/rule_paths.hpp"
#include "app/sinks.hpp"
#include "app/store.hpp"
#include "base/fatal.hpp"
#include "config/places.hpp"
#include "host/host.hpp"
#include "ipc/settings_schema.hpp"
#include "secrets/plain_references.hpp"
#include "store/backup.hpp"
#include "store/leftovers.hpp"

namespace driftd::app {
namespace {

using ScannedPlugins = std::vector<core::SessionFactory::ScanResult>;

Task<void> scan(core::SessionFactory& sessions, ScannedPlugins& out) { out = co_await sessions.scan(); }

/// Checks settings against the plugin's schema. `at` has the file, the position and the title of each mistake.
void check_settings(const core::ProviderInfo& info, const std::string& settings_json, const config::ConfigError& at,
                    CheckReport& out) {
  const auto mistakes = ipc::validate_settings(info.settings_schema, settings_json);
  if (!mistakes) out.errors.push_back({at.file, at.at, mistakes.error().message, {}, {}, {}});
  if (!mistakes) return;
  for (const auto& mistake : *mistakes)
    out.errors.push_back({at.file, at.at, at.what + ": " + mistake.path + ": " + mistake.message, {}, {}, {}});
}

void check_backend(const config::Config& config, const core::BackendSpec& spec, const ScannedPlugins& found,
                   CheckReport& out) {
  const auto at = config.backend_settings_at.find(spec.name);
  const config::Position where = at == config.backend_settings_at.end() ? config::Position{} : at->second;
  const core::ProviderInfo* info = secrets::find_plugin(found, spec.provider);
  if (info == nullptr) {
    std::string known, next = "see `driftd plugin ls`";
    for (const auto& plugin : found) {
      if (plugin.info) known += (known.empty() ? "" : ", ") + (*plugin.info)->id;
      if (!plugin.info) next += "; " + plugin.info.error().message;
    }
    out.missing.push_back({config.file,
                           where,
                           "backend '" + spec.name + "': no plugin for provider '" + spec.provider + "'",
                           known.empty() ? "a plugin in agent.plugin_dirs" : known,
                           {},
                           next});
    return;
  }
  core::BackendSpec plain = spec;
  const Status revealed = config.secrets_resolved ? secrets::reveal_plain_references(plain, found) : Status{};
  if (!revealed) {
    out.errors.push_back({config.file, where, revealed.error().message, {}, {}, {}});
    return;
  }
  check_settings(*info, plain.settings_json, {config.file, where, "backend '" + spec.name + "'", {}, {}, {}}, out);
  for (auto& warning : unknown_rule_paths(config, spec, *info)) out.notes.push_back(std::move(warning));
}

/// Checks what a plugin's sink says about its plugin.
void check_plugin_sink(const config::Config& config, const config::SinkSpec& spec, const ScannedPlugins& found,
                       CheckReport& out) {
  auto settings = std::get<sinks::PluginSettings>(spec.settings);
  const core::ProviderInfo* info = secrets::find_sink_plugin(found, settings.plugin);
  const std::string title = "sink '" + spec.name + "'";
  if (info == nullptr) {
    std::string known, next = "see `driftd plugin ls`";
    for (const auto& plugin : found) {
      if (plugin.info && (*plugin.info)->sink) known += (known.empty() ? "" : ", ") + (*plugin.info)->id;
      if (!plugin.info) next += "; " + plugin.info.error().message;
    }
    out.missing.push_back({config.file,
                           spec.at,
                           title + ": no sink plugin '" + settings.plugin + "'",
                           known.empty() ? "a sink plugin in agent.plugin_dirs" : known,
                           {},
                           next});
    return;
  }
  const Status revealed = config.secrets_resolved ? ipc::resolve_plain_settings(settings.settings_json,
                                                                                settings.secrets, info->settings_schema)
                                                  : Status{};
  if (!revealed) {
    out.errors.push_back({config.file, spec.at, revealed.error().message, {}, {}, {}});
    return;
  }
  check_settings(*info, settings.settings_json, {config.file, spec.at, title, {}, {}, {}}, out);
}

config::ConfigError at_place(const config::Config& config, const char* section, std::string what, std::string next) {
  return {config.file, config::find_position(config.places, section), std::move(what), {}, {}, std::move(next)};
}

std::string count_of(std::int64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

void check_left_sink(const config::Config& config, const store::Leftovers::Sink& left, CheckReport& out) {
  const auto same = [&left](const auto& sink) { return sink.name == left.name; };
  const auto& dropped = config.delivery.drop_pending;
  if (std::any_of(config.sinks.begin(), config.sinks.end(), same)) return;
  if (std::find(dropped.begin(), dropped.end(), left.name) != dropped.end()) return;
  std::string still = left.pending > 0 ? count_of(left.pending, "pending event") : std::string();
  if (left.dead > 0) still += (still.empty() ? "" : " and ") + count_of(left.dead, "dead letter");
  out.left.push_back(
      at_place(config, "sinks",
               "sink '" + left.name + "' is not in this file any more, and the store still has " + still +
                   " for it, which nobody would get",
               "put it back until they are delivered, or name it under delivery.drop_pending to give them up"));
}

void check_left_backend(const config::Config& config, const store::Leftovers::Backend& left, CheckReport& out) {
  const auto named = [&config](const std::string& name) {
    const auto same = [&name](const auto& spec) { return spec.name == name || spec.was == name; };
    return std::any_of(config.backends.begin(), config.backends.end(), same);
  };
  if (named(left.name) || (!left.finder.empty() && named(left.finder))) return;
  out.left.push_back(
      at_place(config, "backends",
               "backend '" + left.name + "' is not in this file any more, and has " +
                   count_of(left.open_drifts, "open drift") + ", which the next start or reload retires undecided",
               "decide them first (`driftd drifts`), or name it as `was` of the backend that it is now"));
}

/// Warns of sinks and backends that are no longer in the config and for which the store still holds something.
void check_store(const config::Config& config, CheckReport& out) {
  const auto left = store::read_leftovers(config.agent.data_dir);
  if (!left) {
    const bool none = left.error().code == Code::not_found;
    if (!none)
      out.notes.push_back(
          at_place(config, "agent.data_dir", "the store was not looked into: " + left.error().message, {}));
    return;
  }
  for (const auto& sink : left->sinks) check_left_sink(config, sink, out);
  for (const auto& backend : left->backends) check_left_backend(config, backend, out);
}

/// Reports a key that the start of the agent would refuse.
void check_key(const config::Config& config, CheckReport& out) {
  const auto given = given_key(config);
  if (!given) out.errors.push_back({config.file, {}, given.error().message, {}, {}, {}});
  if (!given || !*given) return;
  const auto stored = store::key_ids_in(config.agent.data_dir / "store.db");
  const std::string ids = store::ids_of((*given)->key);
  if (!stored || stored->empty() || *stored == ids || ids.starts_with(*stored + " ")) return;
  out.errors.push_back(
      at_place(config, "agent.installation_key", store::key_fault((*given)->from, ids, "the store", *stored), {}));
}

/// Reports groups that the start of the agent would look for in vain. Without secrets, this may be another machine than
/// the agent's, where they need not exist.
void check_groups(const config::Config& config, CheckReport& out) {
  const auto& admin = config.admin;
  auto& to = config.secrets_resolved ? out.errors : out.notes;
  for (const auto& [key, name] :
       {std::pair("admin.socket_group", admin.socket_group), std::pair("admin.read_group", admin.read_group),
        std::pair("admin.decide_group", admin.decide_group)}) {
    if (name.empty()) continue;
    const auto found = admin::group_id(name, key);
    if (!found) to.push_back(at_place(config, key, found.error().message, {}));
  }
  const auto grants = find_grants(config.resolve);
  if (!grants) to.push_back(at_place(config, "resolve.grants", grants.error().message, {}));
}

}  // namespace

CheckReport check_config(const config::Config& config) {
  CheckReport out;
  const auto at_grpc = [&](const Error& error) {
    out.errors.push_back({config.file, config::find_position(config.places, "grpc"), error.message, {}, {}, {}});
  };
  if (const Status services = become_driftd_grpc(config); !services) at_grpc(services.error());
  check_key(config, out);
  check_groups(config, out);
  check_store(config, out);
  const SystemClock clock;
  Executors executors;
  for (const auto& sink : config.sinks) {
    if (!config.secrets_resolved) break;  // a sink cannot be opened without its secrets
    if (is_plugin_sink(sink)) continue;   // check_plugin_sink()
    const auto made = make_sink(sink, executors.core.get_executor(), executors.io.get_executor(), clock);
    if (!made) out.errors.push_back({config.file, sink.at, made.error().message, {}, {}, {}});
  }
  if (const Status grpc = check_grpc(config); !grpc) at_grpc(grpc.error());
  if (const Status log = check_change_log(config); !log) {
    out.errors.push_back(
        {config.file, config::find_position(config.places, "change_log"), log.error().message, {}, {}, {}});
  }
  if (const Status workers = check_workers(config); !workers) {
    out.errors.push_back({config.file, {}, workers.error().message, {}, {}, {}});
    return out;  // a scan would run the plugins in such a worker
  }
  const auto sessions = host::make_session_factory(host_options(config, executors));
  ScannedPlugins found;
  asio::co_spawn(executors.core, scan(*sessions, found), fatal);
  executors.core.run();
  for (const auto& spec : config.backends) check_backend(config, spec, found, out);
  for (const auto& spec : config.sinks) {
    if (is_plugin_sink(spec)) check_plugin_sink(config, spec, found, out);
  }
  return out;
}

}  // namespace driftd::app
