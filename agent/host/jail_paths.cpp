// SPDX-License-Identifier: Apache-2.0
#include "host/jail_paths.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/trust.hpp"

namespace driftd::host {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Formats {
  bool path = false, socket = false;
};
using Named = std::map<const Json*, Formats>;  ///< by value; several schemas may apply to one

constexpr std::array<std::string_view, 16> kShared = {"/",        "/etc",     "/dev",  "/proc", "/sys", "/run",
                                                      "/var",     "/var/run", "/home", "/root", "/tmp", "/opt",
                                                      "/var/lib", "/var/tmp", "/srv",  "/mnt"};
constexpr int kMaxNames = 4096;  // entries of a folder that are searched for a socket

bool same(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  return a == b || fs::equivalent(a, b, missing);
}

/// Returns true if `path` is `folder` or below it, also under another name.
bool within(fs::path path, const fs::path& folder) {
  while (!same(path, folder)) {
    if (path == path.root_path()) return false;
    path = path.parent_path();
  }
  return true;
}

bool is_everybodys(const fs::path& folder) {
  struct stat st {};
  const bool sticky = ::stat(folder.c_str(), &st) == 0 && (st.st_mode & S_ISVTX) != 0 && (st.st_mode & S_IWOTH) != 0;
  const bool known = std::find(kShared.begin(), kShared.end(), folder.string()) != kShared.end();
  return sticky || known || folder.parent_path() == "/home";
}

class Paths {
 public:
  explicit Paths(const std::vector<fs::path>& own) {
    for (const auto& one : own) own_.push_back(resolve_path(one).end());
  }
  void open_path(const std::string& value);
  void open_socket(const std::string& value);
  /// Finishes the result. `seen` records device and inode, because a rule of the jail is bound to them and the same
  /// name may lead elsewhere later.
  JailPaths take() {
    out_.read.assign(read_.begin(), read_.end());
    for (const auto& path : out_.read) {
      struct stat st {};
      const bool there = ::stat(path.c_str(), &st) == 0;
      out_.seen += there ? fmt::format("{}={}:{}\n", path, st.st_dev, st.st_ino) : path + "=\n";
    }
    return std::move(out_);
  }

 private:
  void open_target(const std::string& value, const fs::path& path);
  void open_folder(const std::string& value, const fs::path& folder);
  void open_alone(const std::string& value, const fs::path& file);
  bool is_private(const fs::path& folder) const;
  const fs::path* held_by(const fs::path& folder) const;
  void refuse(const std::string& value, const std::string& why) { out_.refused.push_back(value + ": " + why); }

  std::vector<fs::path> own_;
  std::set<std::string> read_;
  JailPaths out_;
};

const fs::path* Paths::held_by(const fs::path& folder) const {
  const auto found = std::find_if(own_.begin(), own_.end(), [&](const auto& own) { return within(own, folder); });
  return found == own_.end() ? nullptr : &*found;
}

/// Returns true if a folder may be opened as a whole for one of its files: it is not shared and neither contains one of
/// the agent's own files nor is below one of the agent's own folders.
bool Paths::is_private(const fs::path& folder) const {
  const auto below = [&](const fs::path& own) { return !is_everybodys(own) && within(folder, own); };
  return !is_everybodys(folder) && held_by(folder) == nullptr && std::none_of(own_.begin(), own_.end(), below);
}

void Paths::open_folder(const std::string& value, const fs::path& folder) {
  const fs::path* own = held_by(folder);
  if (own == nullptr && !is_everybodys(folder)) {
    read_.insert(folder.string());
    return;
  }
  refuse(value, fmt::format("a plugin may not read this folder, because it {}; name a file in it, or another folder",
                            own == nullptr ? "is a shared folder" : "contains the agent's own " + own->string()));
}

void Paths::open_alone(const std::string& value, const fs::path& file) {
  const bool own = std::any_of(own_.begin(), own_.end(), [&](const auto& one) { return same(file, one); });
  if (own) return refuse(value, "a plugin may not read this file, because it is the agent's own; name another one");
  read_.insert(file.string());
}

void Paths::open_target(const std::string& value, const fs::path& path) {
  std::error_code missing;  // a path that does not exist yet is taken for a file
  if (fs::is_directory(path, missing)) return open_folder(value, path);
  const bool own = std::any_of(own_.begin(), own_.end(), [&](const auto& one) { return same(path, one); });
  if (own || !is_private(path.parent_path())) return open_alone(value, path);
  read_.insert(path.parent_path().string());
}

void Paths::open_path(const std::string& value) {
  const ResolvedPath way = resolve_path(value);
  bool safe = true;  // nobody else could have changed the path so far
  for (const auto& step : way.steps) {
    const std::string why = tamper_risk(step);
    const bool link = S_ISLNK(step.st.st_mode);
    if (link && !(safe && why.empty())) {
      const std::string open = step.at.string() + " is in a folder that others may write";
      return refuse(value, "this link is not followed, because " + (why.empty() ? open : why));
    }
    safe = safe && why.empty();
  }
  const auto named = std::find_if(way.steps.begin(), way.steps.end(), [](const PathStep& step) { return step.last; });
  if (named == way.steps.end() || named->at == way.end()) return open_target(value, way.end());
  std::error_code missing;
  if (fs::is_directory(way.end(), missing)) return open_folder(value, way.end());
  // The folder of the link, because the link may be replaced there.
  if (is_private(named->at.parent_path())) read_.insert(named->at.parent_path().string());
  open_alone(value, way.end());
}

bool holds_socket(const fs::path& path) {
  std::error_code missing;  // an unreadable path counts as one without a socket
  if (fs::is_socket(path, missing)) return true;
  fs::directory_iterator at(path, fs::directory_options::skip_permission_denied, missing);
  for (int i = 0; !missing && at != fs::directory_iterator() && i < kMaxNames; at.increment(missing), ++i) {
    std::error_code gone;
    if (at->is_socket(gone)) return true;
  }
  return false;
}

/// A socket makes nothing readable: connecting is not reading.
void Paths::open_socket(const std::string& value) {
  const std::size_t colon = value.rfind(':');  // unix:/run/postgresql:5432
  const bool port = colon != std::string::npos && value.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  const fs::path folder = port ? value.substr(0, colon) : value;
  const bool there = holds_socket(value) || holds_socket(folder);
  out_.unix_sockets = out_.unix_sockets || there;
  std::error_code failed;
  if (!there && (!fs::exists(folder, failed) || fs::is_directory(folder, failed)))
    out_.seen += folder.string() + " is awaited\n";
}

/// Returns the absolute path in a value; empty if there is none.
std::string path_in(std::string value) {
  if (value.starts_with("unix:")) value.erase(0, value.starts_with("unix:///") ? 7 : 5);
  return value.starts_with('/') ? value : std::string();
}

void walk(const Json& schema, const Json& value, Named& out);

void walk_list(const Json& schema, const char* member, const Json& value, Named& out) {
  const auto found = schema.find(member);
  if (found == schema.end() || !found->is_array()) return;
  for (const auto& alternative : *found) walk(alternative, value, out);
}

void walk_object(const Json& schema, const Json& value, Named& out) {
  const auto properties = schema.find("properties");
  const auto rest = schema.find("additionalProperties");
  for (const auto& [key, member] : value.items()) {
    const bool known = properties != schema.end() && properties->is_object() && properties->contains(key);
    if (known) walk((*properties)[key], member, out);
    if (!known && rest != schema.end()) walk(*rest, member, out);
  }
}

void walk(const Json& schema, const Json& value, Named& out) {
  if (!schema.is_object()) return;
  const auto format = schema.find("format");
  if (value.is_string() && format != schema.end()) {
    if (*format == "path") out[&value].path = true;
    if (*format == "socket") out[&value].socket = true;
  }
  if (value.is_object()) walk_object(schema, value, out);
  const auto items = schema.find("items");
  if (value.is_array() && items != schema.end()) {
    for (const auto& item : value) walk(*items, item, out);
  }
  for (const char* member : {"anyOf", "oneOf", "allOf"}) walk_list(schema, member, value, out);
}

}  // namespace

std::string JailPaths::replaced_since(const JailPaths& before) const {
  std::set<std::string> known;
  std::istringstream old(before.seen), now(seen);
  for (std::string line; std::getline(old, line);) known.insert(line);
  for (std::string line; std::getline(now, line);) {
    if (!known.contains(line)) return line.substr(0, line.rfind('='));
  }
  return {};
}

JailPaths jail_paths(std::string_view settings_schema, std::string_view settings_json,
                     const std::vector<fs::path>& own) {
  const Json schema = Json::parse(settings_schema, nullptr, false);
  const Json settings = Json::parse(settings_json, nullptr, false);
  Named named;
  walk(schema, settings, named);
  std::map<std::string, Formats> values;  // sorted, so that the same settings always give the same text
  for (const auto& [value, formats] : named) {
    auto& known = values[path_in(value->get<std::string>())];
    if (formats.path) known.path = true;
    if (formats.socket && !formats.path) known.socket = true;
  }
  values.erase(std::string());
  Paths paths(own);
  for (const auto& [value, formats] : values) {
    if (formats.path) paths.open_path(value);
    if (formats.socket) paths.open_socket(value);
  }
  return paths.take();
}

}  // namespace driftd::host
