// SPDX-License-Identifier: Apache-2.0
#include "app/plugins.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "app/app.hpp"
#include "app/record.hpp"
#include "host/plugin_lock.hpp"
#include "host/plugin_scan.hpp"
#include "ipc/plugin_file.hpp"

namespace driftd::app {
namespace {

/// The files that no setting can make accessible to a plugin: config, lock, store, secrets, the API's socket.
std::vector<std::filesystem::path> own_paths(const config::Config& config) {
  const auto& data = config.agent.data_dir;
  const auto file = std::filesystem::absolute(config.file);
  std::vector<std::filesystem::path> out = {file, file.parent_path(), data, data / "installation.key",
                                            config.admin.socket};
  for (const char* name : {"store.db", "store.db-wal", "store.db-shm", "store.mark"}) out.push_back(data / name);
  if (!config.agent.plugin_lock.empty()) out.push_back(config.agent.plugin_lock);
  out.insert(out.end(), config.secret_files.begin(), config.secret_files.end());
  return out;
}

std::vector<std::filesystem::path> folders(const config::Config& config) {
  return {config.agent.plugin_dirs.begin(), config.agent.plugin_dirs.end()};
}

/// Returns the plugin files that backends and sinks name.
std::vector<std::filesystem::path> named_files(const config::Config& config) {
  std::vector<std::filesystem::path> out;
  for (const auto& backend : config.backends) {
    if (backend.provider.find('/') != std::string::npos) out.emplace_back(backend.provider);
  }
  for (const auto& sink : config.sinks) {
    const auto* of_plugin = std::get_if<sinks::PluginSettings>(&sink.settings);
    if (of_plugin != nullptr && of_plugin->plugin.find('/') != std::string::npos) out.emplace_back(of_plugin->plugin);
  }
  return out;
}

/// Returns every plugin file that the config refers to.
std::vector<std::string> plugin_files(const config::Config& config) {
  auto out = host::plugins_in(folders(config));
  for (const auto& one : named_files(config)) out.push_back(one.string());
  return out;
}

}  // namespace

host::HostOptions host_options(const config::Config& config, Executors& executors) {
  host::HostOptions out;
  out.core = executors.core.get_executor();
  out.io = executors.io.get_executor();
  out.own = own_paths(config);
  out.worker = worker_path(config);
  out.plugin_lock = config.agent.plugin_lock;
  out.lock_required = config.agent.plugin_lock_named;
  out.plugin_dirs = folders(config);
  out.plugin_files = named_files(config);
  return out;
}

Result<LockReport> lock_plugins(const config::Config& config, const std::string& lock_file) {
  const std::filesystem::path file =
      lock_file.empty() ? config.agent.plugin_lock : std::filesystem::absolute(lock_file);
  LockReport out;
  out.file = file.string();
  const auto before = host::read_plugin_lock(file, false);
  const std::map<std::string, std::string> old = before ? before->hexes : std::map<std::string, std::string>();
  std::map<std::string, std::string> now;
  for (const auto& plugin : plugin_files(config)) {
    DRIFTD_TRY(now[plugin], host::sha256_of(plugin));
  }
  if (now.empty()) {
    return fail(Code::not_found,
                "no plugin to pin in agent.plugin_dirs; refusing to write an empty lock: it would block every plugin");
  }
  for (const auto& [plugin, hex] : now) {
    const auto known = old.find(plugin);
    const char* verb = known == old.end() ? "added" : known->second == hex ? "unchanged" : "changed";
    out.lines.push_back({verb, plugin, hex});
  }
  for (const auto& [plugin, hex] : old) {
    if (!now.contains(plugin)) out.lines.push_back({"removed", plugin, hex});
  }
  const std::filesystem::path fresh = file.string() + ".new";
  std::ofstream stream(fresh, std::ios::trunc);
  stream << host::render_plugin_lock(now);
  stream.close();
  if (!stream) return fail(Code::denied, fresh.string() + ": cannot be written: " + std::strerror(errno));
  std::error_code failed;
  std::filesystem::permissions(fresh, std::filesystem::perms(0644), failed);
  std::filesystem::rename(fresh, file, failed);
  if (failed) return fail(Code::denied, file.string() + ": " + failed.message());
  return out;
}

Status admit_plugin(const std::string& plugin, const std::string& lock_file) {
  DRIFTD_CHECK(ipc::check_file_rights(plugin));
  DRIFTD_TRY(const host::PluginLock pins, host::read_plugin_lock(lock_file, false));
  const auto pinned = pins.hexes.find(std::filesystem::absolute(plugin).lexically_normal().string());
  if (pinned == pins.hexes.end()) return {};
  DRIFTD_TRY(const std::string found, host::sha256_of(plugin));
  if (found == pinned->second) return {};
  return fail(Code::denied, plugin + ": refused, because its bytes are not those that " + lock_file +
                                " pins: expected sha256 " + pinned->second + ", found " + found +
                                "; if the change is yours, run `driftd plugin lock`");
}

}  // namespace driftd::app
