// SPDX-License-Identifier: Apache-2.0
#include "host/plugin_lock.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "ipc/plugin_file.hpp"

namespace driftd::host {
namespace {

constexpr std::size_t kHexSize = 64;

bool is_hex(const std::string& text) {
  return text.size() == kHexSize &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<std::string> content_of(const std::filesystem::path& file) {
  std::error_code unknown;  // opening the stream then says why
  const auto type = std::filesystem::status(file, unknown).type();
  if (type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::directory)
    return fail(Code::invalid, file.string() + ": is not a regular file");
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(Code::denied, fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  std::ostringstream out;
  out << in.rdbuf();
  if (in.bad() || out.bad()) return fail(Code::denied, file.string() + ": cannot be read to its end");
  return std::move(out).str();
}

}  // namespace

Result<std::string> PluginLock::of(const std::string& plugin) const {
  if (!locked) return std::string();
  const auto found = hexes.find(plugin);
  if (found != hexes.end()) return found->second;
  return fail(Code::denied, fmt::format("{}: refused, because {} does not name it; look at the file, then run `driftd "
                                        "plugin lock`",
                                        plugin, file.string()));
}

Result<PluginLock> read_plugin_lock(const std::filesystem::path& file, bool required) {
  PluginLock out;
  out.file = file;
  std::error_code failed;
  if (file.empty()) return out;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, failed))) {
    if (!required) return out;
    return fail(Code::not_found, file.string() +
                                     " (agent.plugin_lock) is not there, so no plugin may run; make it with "
                                     "`driftd plugin lock`");
  }
  DRIFTD_TRY(const std::string text, content_of(file));
  out.locked = true;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const bool spaced =
        line.size() > kHexSize + 2 && line[kHexSize] == ' ' && (line[kHexSize + 1] == ' ' || line[kHexSize + 1] == '*');
    const std::string hex = line.substr(0, kHexSize), plugin = spaced ? line.substr(kHexSize + 2) : std::string();
    if (!spaced || !is_hex(hex) || plugin[0] != '/') {
      return fail(Code::invalid, fmt::format("{}:{}: expected `SHA256  /path/of/a.so` as sha256sum prints it, found "
                                             "`{}`; create the file again with `driftd plugin lock`",
                                             file.string(), number, line.substr(0, 100)));
    }
    out.hexes[plugin] = hex;
  }
  return out;
}

std::string render_plugin_lock(const std::map<std::string, std::string>& hexes) {
  std::string out =
      "# Plugins that may run, by their bytes. Made by `driftd plugin lock`; `sha256sum -c` reads it, too.\n";
  for (const auto& [file, hex] : hexes) out += hex + "  " + file + "\n";
  return out;
}

Result<std::string> sha256_of(const std::filesystem::path& file) {
  DRIFTD_TRY(const ipc::PluginFile sealed, ipc::PluginFile::open_sealed(file));
  return sealed.sha256();
}

}  // namespace driftd::host
