// SPDX-License-Identifier: Apache-2.0
#include "host/jail_paths.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

namespace driftd::host {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Found {
  std::set<std::string> read;
  bool unix_sockets = false;
};

constexpr std::array<std::string_view, 16> kShared = {"/",     "/etc",  "/dev", "/proc", "/sys",     "/run",     "/var", "/var/run",
                                                      "/home", "/root", "/tmp", "/opt",  "/var/lib", "/var/tmp", "/srv", "/mnt"};

/// A folder is opened as it is; a file by its folder, unless that is shared by everybody.
void open_one(const fs::path& path, Found& out) {
  std::error_code missing;  // what is not there yet is a file to come
  const bool folder = fs::is_directory(path, missing);
  const std::string parent = path.parent_path().string();
  const bool shared = std::find(kShared.begin(), kShared.end(), parent) != kShared.end();
  out.read.insert(folder || shared ? path.string() : parent);
}

void open_value(std::string value, bool socket, Found& out) {
  if (value.starts_with("unix:")) value.erase(0, value.starts_with("unix:///") ? 7 : 5);
  if (!value.starts_with('/')) return;
  fs::path path = fs::path(value).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a slash at the end
  if (path == "/") return;
  if (socket) {  // connecting is not reading: nothing becomes readable
    out.unix_sockets = true;
    return;
  }
  open_one(path, out);
  std::error_code missing;
  const fs::path target = fs::canonical(path, missing);
  if (!missing && target != path && target != "/") open_one(target, out);
}

void walk(const Json& schema, const Json& value, Found& out);

void walk_list(const Json& schema, const char* member, const Json& value, Found& out) {
  const auto found = schema.find(member);
  if (found == schema.end() || !found->is_array()) return;
  for (const auto& alternative : *found) walk(alternative, value, out);
}

void walk_object(const Json& schema, const Json& value, Found& out) {
  const auto properties = schema.find("properties");
  const auto rest = schema.find("additionalProperties");
  for (const auto& [key, member] : value.items()) {
    const bool known = properties != schema.end() && properties->is_object() && properties->contains(key);
    if (known) walk((*properties)[key], member, out);
    if (!known && rest != schema.end()) walk(*rest, member, out);
  }
}

void walk(const Json& schema, const Json& value, Found& out) {
  if (!schema.is_object()) return;
  const auto format = schema.find("format");
  if (value.is_string() && format != schema.end() && (*format == "path" || *format == "socket"))
    open_value(value.get<std::string>(), *format == "socket", out);
  if (value.is_object()) walk_object(schema, value, out);
  const auto items = schema.find("items");
  if (value.is_array() && items != schema.end()) {
    for (const auto& item : value) walk(*items, item, out);
  }
  for (const char* member : {"anyOf", "oneOf", "allOf"}) walk_list(schema, member, value, out);
}

}  // namespace

JailPaths jail_paths(std::string_view settings_schema, std::string_view settings_json) {
  const Json schema = Json::parse(settings_schema, nullptr, false);
  const Json settings = Json::parse(settings_json, nullptr, false);
  Found found;
  walk(schema, settings, found);
  return {{found.read.begin(), found.read.end()}, found.unix_sockets};
}

}  // namespace driftd::host
