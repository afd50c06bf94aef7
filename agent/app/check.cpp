// SPDX-License-Identifier: Apache-2.0
// What `driftd validate` asks beyond the config's own form.

#include "app/app.hpp"
#include "app/executors.hpp"
#include "app/plain_references.hpp"
#include "app/plugins.hpp"
#include "app/record.hpp"
#include "app/sinks.hpp"
#include "base/fatal.hpp"
#include "host/host.hpp"
#include "host/settings_schema.hpp"

namespace driftd::app {
namespace {

using Found = std::vector<core::SessionFactory::Found>;

Task<void> scan(core::SessionFactory& sessions, Found& out) { out = co_await sessions.scan(); }

void check_backend(const config::Config& config, const core::BackendSpec& spec, const Found& found,
                   Checked& out) {
  const auto at = config.backend_settings_at.find(spec.name);
  const config::Position where = at == config.backend_settings_at.end() ? config::Position{} : at->second;
  const core::ProviderInfo* info = find_plugin(found, spec.provider);
  if (info == nullptr) {
    std::string known, next = "see `driftd plugin ls`";
    for (const auto& plugin : found) {
      if (plugin.info) known += (known.empty() ? "" : ", ") + (*plugin.info)->id;
      if (!plugin.info) next += "; " + plugin.info.error().message;
    }
    out.missing.push_back({config.file, where, "backend '" + spec.name + "': no plugin for provider '" + spec.provider + "'",
                   known.empty() ? "a plugin in agent.plugin_dirs" : known, {}, next});
    return;
  }
  core::BackendSpec plain = spec;
  const Status revealed = config.secrets_resolved ? reveal_plain_references(plain, found) : Status{};
  if (!revealed) {
    out.errors.push_back({config.file, where, revealed.error().message, {}, {}, {}});
    return;
  }
  const auto mistakes = host::validate_settings(info->settings_schema, plain.settings_json);
  if (!mistakes) {
    out.errors.push_back({config.file, where, mistakes.error().message, {}, {}, {}});
    return;
  }
  for (const auto& mistake : *mistakes) {
    out.errors.push_back({config.file, where, "backend '" + spec.name + "': " + mistake.path + ": " + mistake.message, {}, {}, {}});
  }
}

}  // namespace

Checked check_settings(const config::Config& config) {
  Checked out;
  const SystemClock clock;
  Executors executors;
  for (const auto& sink : config.sinks) {
    if (!config.secrets_resolved) break;  // a sink cannot be opened without its secrets
    const auto made = make_sink(sink, executors.core.get_executor(), executors.io.get_executor(), clock);
    if (!made) out.errors.push_back({config.file, sink.at, made.error().message, {}, {}, {}});
  }
  if (const Status workers = check_workers(config); !workers) {
    out.errors.push_back({config.file, {}, workers.error().message, {}, {}, {}});
    return out;  // the plugins would be asked in one
  }
  const auto sessions = host::make_session_factory(host_options(config, executors));
  Found found;
  asio::co_spawn(executors.core, scan(*sessions, found), fatal);
  executors.core.run();
  for (const auto& spec : config.backends) check_backend(config, spec, found, out);
  return out;
}

}  // namespace driftd::app
