// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.hpp"

namespace driftd::host {

/// driftd.lock: which bytes of which plugin files may run; lines as sha256sum prints them, `HEX  /path.so`, and `#`
/// comments. Immutable; any thread.
struct PluginLock {
  bool locked = false;                       ///< there is a lock file; without one everything may run
  std::filesystem::path file;                ///< of the lock
  std::map<std::string, std::string> hexes;  ///< plugin file → sha256 in lower-case hex

  /// What the bytes of `plugin` must hash to; empty: anything. `denied` with the next step when the lock does not name
  /// it.
  Result<std::string> of(const std::string& plugin) const;
};

/// A file that is not there is no lock, unless it is `required` (then `not_found`). `invalid` names file, line, what is
/// expected and found; `denied`: unreadable.
Result<PluginLock> read_plugin_lock(const std::filesystem::path& file, bool required);
/// The text of a lock, plugin files in order.
std::string render_plugin_lock(const std::map<std::string, std::string>& hexes);

/// SHA-256 of a plugin in lower-case hex. Reads all of it; fails as PluginFile::open does.
Result<std::string> sha256_of(const std::filesystem::path& file);

}  // namespace driftd::host
