// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.hpp"

namespace driftd::host {

/// The content of driftd.lock: which bytes of which plugin files may run. Its lines are those of sha256sum, `HEX
/// /path.so`, and `#` comments. Immutable; any thread.
struct PluginLock {
  bool locked = false;                       ///< there is a lock file; without one every plugin may run
  std::filesystem::path file;                ///< path of the lock
  std::map<std::string, std::string> hexes;  ///< plugin file → SHA-256 in lower-case hex

  /// Returns the SHA-256 that `plugin` must have; empty if any will do. Returns `denied` with the next step if the lock
  /// does not name the plugin.
  Result<std::string> of(const std::string& plugin) const;
};

/// Reads a lock file. If the file does not exist, the result is an unlocked PluginLock, or `not_found` if it is
/// `required`. Returns `denied` if it cannot be read, and `invalid` with file, line, expected and found if a line is
/// wrong.
Result<PluginLock> read_plugin_lock(const std::filesystem::path& file, bool required);
/// Renders a lock file, sorted by plugin file.
std::string render_plugin_lock(const std::map<std::string, std::string>& hexes);

/// Returns the SHA-256 of a plugin in lower-case hex. Reads the whole file; fails as PluginFile::open does.
Result<std::string> sha256_of(const std::filesystem::path& file);

}  // namespace driftd::host
