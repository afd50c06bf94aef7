// SPDX-License-Identifier: Apache-2.0
#include "host/factory.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "base/fatal.hpp"
#include "host/jail_path_lookup.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::host {
namespace {

namespace fs = std::filesystem;
}  // namespace

Factory::Factory(HostOptions options) : options_(std::move(options)), retry_timer_(options_.core) {}
Factory::~Factory() {
  retry_timer_.cancel();
  if (watch_) watch_->stop();
}

Task<std::vector<Factory::ScanResult>> Factory::scan() {
  const auto self = shared_from_this();
  co_await run_scan(false);
  co_return found();
}

/// Maps provider names to files. A file that a session uses keeps its name; otherwise the first file found wins. A
/// second file with the same id is marked as an error, unless the config names that file by its path.
void Factory::index() {
  by_name_.clear();
  sinks_.clear();
  auto in_folders = plugins_in(options_.plugin_dirs);
  const auto all = sessions();
  std::stable_partition(in_folders.begin(), in_folders.end(), [&](const std::string& file) {
    return std::any_of(all.begin(), all.end(), [&](const auto& session) {
      return !session->waits_for_plugin() && session->plugin().file == file;
    });
  });
  for (const auto& file : in_folders) {
    const auto found = scanned_.find(file);
    if (found == scanned_.end() || !found->second.info) continue;
    const std::string id = (*found->second.info)->id;
    const bool sink = (*found->second.info)->sink.has_value();
    const auto [at, fresh] = (sink ? sinks_ : by_name_).emplace(id, file);
    if (!fresh) {
      found->second.info = fail(Code::conflict, fmt::format("{}: {} `{}` is already found in {}; remove one of them",
                                                            file, sink ? "sink plugin" : "provider", id, at->second));
    }
  }
  for (const auto& file : in_folders) {
    const auto found = scanned_.find(file);
    if (found == scanned_.end() || !found->second.info) continue;
    for (const auto& type : (*found->second.info)->types) by_name_.emplace(type, file);
  }
}

std::vector<Factory::ScanResult> Factory::found() const {
  std::vector<ScanResult> out;
  const auto all = sessions();
  std::set<std::string> gone;
  for (const auto& session : all) {
    const std::string& file = session->plugin().file;
    if (!session->waits_for_plugin() && !scanned_.contains(file)) gone.insert(file);
  }
  for (const auto& [file, seen] : scanned_) out.push_back({file, seen.info, seen.sha256, seen.pin});
  for (const auto& file : gone) {
    ScanResult one{file, fail(Code::not_found, file + ": the file is gone")};
    one.gone = true;
    out.push_back(std::move(one));
  }
  for (auto& one : out) {
    for (const auto& session : all) {
      if (session->waits_for_plugin() || session->plugin().file != one.file) continue;
      one.used_by.push_back({session->spec().backend, session->status()});
      if (one.gone && session->plugin().info) one.info = session->plugin().info;
    }
  }
  return out;
}

std::vector<std::shared_ptr<SupervisedSession>> Factory::sessions() const {
  std::vector<std::shared_ptr<SupervisedSession>> out;
  for (const auto& weak : sessions_) {
    if (auto session = weak.lock()) out.push_back(std::move(session));
  }
  return out;
}

Plugin Factory::plugin_of(const std::string& file) const {
  const auto found = scanned_.find(file);
  if (found == scanned_.end()) return {file, stamp_of(file), nullptr, {}, nullptr};
  Plugin out{file, found->second.stamp, found->second.bytes, {}, nullptr};
  if (found->second.info) out.info = *found->second.info;
  if (found->second.pin == "pinned") out.pin = found->second.sha256;
  return out;
}

Result<Plugin> Factory::find(const std::string& provider, bool sink) const {
  const auto& names = sink ? sinks_ : by_name_;
  const auto named = names.find(provider);
  if (named != names.end()) return plugin_of(named->second);
  const bool path = provider.find('/') != std::string::npos;
  const auto described = scanned_.find(provider);
  if (described != scanned_.end() && !described->second.info) return fail(described->second.info.error());
  std::error_code ignored;  // a path that cannot be examined is not a plugin
  if (!path || !fs::is_regular_file(provider, ignored)) return fail(not_found(provider, sink));
  Plugin out = plugin_of(provider);
  if (out.bytes) return out;
  DRIFTD_TRY(ipc::PluginFile sealed, ipc::PluginFile::open_sealed(provider));  // opened before any scan
  out.bytes = std::make_shared<const ipc::PluginFile>(std::move(sealed));
  ScannedFile seen{out.stamp, out.bytes, out.bytes->sha256(), {}, fail(Code::internal, "not described")};
  DRIFTD_CHECK(admit(provider, seen));
  if (seen.pin == "pinned") out.pin = seen.sha256;
  return out;
}

Error Factory::not_found(const std::string& provider, bool sink) const {
  std::vector<std::string> known;
  std::string list, refused, folders;
  for (const auto& [name, file] : sink ? sinks_ : by_name_) {
    known.push_back(name);
    list += (list.empty() ? "" : ", ") + name;
  }
  for (const auto& [file, seen] : scanned_) {
    if (!seen.info && fs::path(file).stem() == provider) refused += "; " + seen.info.error().message;
  }
  for (const auto& dir : options_.plugin_dirs) folders += (folders.empty() ? "" : " or ") + dir.string();
  const std::string meant = ipc::nearest_name(provider, known);
  return {Code::not_found, fmt::format("no {} `{}`{}; available: {}{}{}", sink ? "sink plugin" : "plugin for provider",
                                       provider, meant.empty() ? "" : " (did you mean `" + meant + "`?)",
                                       list.empty() ? "none (see agent.plugin_dirs)" : list, refused,
                                       folders.empty() || !refused.empty() ? "" : "; put its .so into " + folders)};
}

Result<std::shared_ptr<core::Session>> Factory::open(core::SessionSpec spec) {
  auto plugin = find(spec.provider, !spec.sink.empty());
  if (!plugin && !spec.wait_for_plugin) return fail(plugin.error());
  const auto report = [handler = handler_](core::SessionEvent event) {
    if (*handler) (*handler)(std::move(event));
  };
  const auto ask = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->request_rescan();
  };
  auto session = std::make_shared<SupervisedSession>(options_, std::move(spec), report, ask);
  if (plugin) {
    session->attach(std::move(*plugin));
  } else {
    session->wait_for_plugin(Error{Code::unavailable, plugin.error().message});
  }
  std::erase_if(sessions_, [](const auto& other) { return other.expired(); });
  sessions_.push_back(session);
  return session;
}

Status Factory::resume(const std::string& backend) {
  for (const auto& session : sessions()) {
    if (session->spec().backend == backend) return session->resume();
  }
  return fail(Code::not_found, "there is no worker of " + backend);
}

void Factory::watch(bool on) {
  if (watch_) watch_->stop();
  watch_.reset();
  retry_timer_.cancel();
  closing_ = !on;
  if (!on) {  // nobody waits for a scan any more
    for (const auto& weak : describing_) {
      if (const auto supervisor = weak.lock()) supervisor->drop();
    }
    return;
  }
  std::vector<fs::path> folders = options_.plugin_dirs;
  for (const auto& file : options_.plugin_files) folders.push_back(file.parent_path());
  if (!options_.plugin_lock.empty()) folders.push_back(options_.plugin_lock.parent_path());
  const auto changed = [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self) asio::co_spawn(self->options_.core, rescan(self), fatal);
  };
  watch_ = std::make_shared<FolderWatch>(options_.core, std::move(folders), changed);
  watch_->start();
  changed();  // covers changes between the last scan and now
}

Task<void> Factory::rescan(std::shared_ptr<Factory> self) { co_await self->run_scan(true); }

void Factory::reconcile() {
  for (const auto& session : sessions()) reconcile(session);
}

/// Switches a session to the file that its provider's name leads to now. If the file is gone, nothing changes.
void Factory::reconcile(const std::shared_ptr<SupervisedSession>& session) {
  auto target = find(session->spec().provider, !session->spec().sink.empty());
  if (session->waits_for_plugin()) {
    if (target) return session->attach(std::move(*target));
    return session->wait_for_plugin(Error{Code::unavailable, target.error().message});
  }
  if (target && session->plugin().same_bytes(*target)) return session->forget_refused_upgrade();
  if (target && session->was_tried(*target)) return;
  if (target) {
    asio::co_spawn(options_.core, SupervisedSession::try_upgrade(session, std::move(*target)), fatal);
    return;
  }
  const Plugin own = plugin_of(session->plugin().file);
  if (!own.stamp.there() || session->was_tried(own) || session->plugin().same_bytes(own)) return;
  const auto seen = scanned_.find(own.file);
  session->refuse(
      own, seen != scanned_.end() && !seen->second.info ? seen->second.info.error().message : target.error().message);
}

std::shared_ptr<core::SessionFactory> make_session_factory(HostOptions options) {
  if (!options.path_lookup) options.path_lookup = std::make_shared<JailPathLookup>();
  return std::make_shared<Factory>(std::move(options));
}

}  // namespace driftd::host
