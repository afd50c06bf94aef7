// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>
#include <algorithm>

#include "host/describe.hpp"
#include "host/host.hpp"
#include "host/library.hpp"
#include "host/session.hpp"
#include "host/settings_schema.hpp"

namespace driftd::host {
namespace {

namespace fs = std::filesystem;
using Info = std::shared_ptr<const core::ProviderInfo>;

/// A file as it was when it was described: a changed one is described again.
struct Stamp {
  std::int64_t mtime_ns = 0, size = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

Stamp stamp_of(const fs::path& file) {
  struct stat st {};
  if (::stat(file.c_str(), &st) != 0) return {};
  return {st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, st.st_size, st.st_ino};
}

std::vector<fs::path> plugins_in(const std::vector<fs::path>& folders) {
  std::vector<fs::path> out;
  for (const auto& folder : folders) {
    std::vector<fs::path> files;
    std::error_code failed;  // a folder that is not there holds no plugins
    for (const auto& entry : fs::directory_iterator(folder, failed)) {
      if (entry.path().extension() == ".so") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    out.insert(out.end(), files.begin(), files.end());
  }
  return out;
}

/// A worker for one file that loads it, tells what it says and ends.
Task<Result<Info>> describe_file(HostOptions options, fs::path file) {
  if (const Status rights = check_file_rights(file); !rights) co_return fail(rights.error());
  SupervisorSpec spec;
  spec.session.backend = "scan";
  spec.file = file.string();
  spec.describe_only = true;
  const auto supervisor = std::make_shared<Supervisor>(options, spec, Supervisor::OnEvent{});
  supervisor->start();
  Result<Info> info = co_await Supervisor::info(supervisor);
  co_await Supervisor::stop(supervisor);
  co_return info;
}

class Factory final : public core::SessionFactory, public std::enable_shared_from_this<Factory> {
 public:
  explicit Factory(HostOptions options) : options_(std::move(options)) {}

  Task<std::vector<Found>> scan() override {
    const auto self = shared_from_this();
    std::vector<Found> out;
    std::map<std::string, Described> kept;
    for (const auto& file : plugins_in(options_.plugin_dirs)) {
      const Stamp stamp = stamp_of(file);
      const auto before = described_.find(file.string());
      Result<Info> info = fail(Code::internal, "not described");
      if (before != described_.end() && before->second.stamp == stamp) {
        info = before->second.info;
      } else {
        info = co_await describe_file(options_, file);
      }
      kept[file.string()] = {stamp, info};
      Found found{file.string(), info};
      found.used_by = uses_of(found.file);
      out.push_back(std::move(found));
    }
    described_ = std::move(kept);
    index(out);
    co_return out;
  }

  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override {
    SupervisorSpec supervised;
    DRIFTD_TRY(supervised.file, find_file(spec.provider));
    supervised.session = std::move(spec);
    const auto known = described_.find(supervised.file);
    if (known != described_.end() && known->second.info) supervised.schema = (*known->second.info)->settings_schema;
    const auto tell = [handler = handler_](core::SessionEvent event) {
      if (*handler) (*handler)(std::move(event));
    };
    const auto supervisor = std::make_shared<Supervisor>(options_, std::move(supervised), tell);
    supervisor->start();
    auto session = std::make_shared<SupervisedSession>(supervisor);
    std::erase_if(sessions_, [](const auto& other) { return other.expired(); });
    sessions_.push_back(session);
    return session;
  }

  void on_event(std::function<void(core::SessionEvent)> handler) override { *handler_ = std::move(handler); }

 private:
  std::vector<Use> uses_of(const std::string& file) const {
    std::vector<Use> out;
    for (const auto& weak : sessions_) {
      const auto session = weak.lock();
      if (session && session->status().file == file) out.push_back({session->backend(), session->status()});
    }
    return out;
  }

  struct Described {
    Stamp stamp;
    Result<Info> info;
  };

  /// The first file that claims a name has it; a second plugin of the same id is an error of its own.
  void index(std::vector<Found>& all) {
    by_name_.clear();
    for (auto& found : all) {
      if (!found.info) continue;
      const auto [at, fresh] = by_name_.emplace((*found.info)->id, found.file);
      if (!fresh) {
        found.info = fail(Code::conflict, fmt::format("{}: provider `{}` is already found in {}; remove one of them",
                                                      found.file, (*found.info)->id, at->second));
      }
    }
    for (const auto& found : all) {
      if (!found.info) continue;
      for (const auto& type : (*found.info)->types) by_name_.emplace(type, found.file);
    }
  }

  Result<std::string> find_file(const std::string& provider) const {
    const auto found = by_name_.find(provider);
    if (found != by_name_.end()) return found->second;
    std::error_code ignored;  // a path that cannot be examined is no plugin
    if (provider.find('/') != std::string::npos && fs::is_regular_file(provider, ignored)) return provider;
    std::vector<std::string> known;
    for (const auto& [name, file] : by_name_) known.push_back(name);
    const std::string meant = nearest_name(provider, known);
    std::string list;
    for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
    return fail(Code::not_found, fmt::format("no plugin for provider `{}`{}; found are: {}", provider,
                                             meant.empty() ? "" : " (did you mean `" + meant + "`?)",
                                             list.empty() ? "none (see agent.plugin_dirs)" : list));
  }

  const HostOptions options_;
  std::map<std::string, Described> described_;
  std::map<std::string, std::string> by_name_;  // id or type → file
  std::vector<std::weak_ptr<SupervisedSession>> sessions_;
  const std::shared_ptr<std::function<void(core::SessionEvent)>> handler_ =
      std::make_shared<std::function<void(core::SessionEvent)>>();
};

}  // namespace

std::shared_ptr<core::SessionFactory> make_session_factory(HostOptions options) {
  return std::make_shared<Factory>(std::move(options));
}

}  // namespace driftd::host
