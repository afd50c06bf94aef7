// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::host {

/// What the settings of a backend open in its worker's jail.
struct JailPaths {
  std::vector<std::string> read;  ///< without links, sorted, each once
  bool unix_sockets = false;
  std::vector<std::string> refused;  ///< why a setting opens nothing, with the next step; one text each
  /// What lies at the paths now (device and inode: a jail is bound to them) and which sockets are awaited. When it
  /// changes the jail is out of date. Empty: there is nothing that could change.
  std::string seen;
  /// The same jail.
  friend bool operator==(const JailPaths& a, const JailPaths& b) {
    return a.read == b.read && a.unix_sockets == b.unix_sockets;
  }

  /// The first path that leads elsewhere than it did in `before`, for people; empty: none.
  std::string replaced_since(const JailPaths& before) const;
};

/// The settings that the schema calls `format: path` or `format: socket` and that hold an absolute path, with or
/// without `unix:` before it.
/// - A path opens a folder as it is, and for anything else the folder that it is in, for files are replaced by rename.
/// The
///   file alone is opened where that folder is everybody's (`/`, /etc, a home, a sticky one …) or holds something of
///   `own`, and below a folder of `own`. A link is followed when only root and this process's user could have put it
///   there; where it stands for the file, its target is opened alone.
/// - Refused: what `own` names, folders that hold such a thing, everybody's folders, links of others.
/// - A socket, or a folder that holds one, allows Unix sockets; a setting with both formats is a path.
/// `own`: files and folders of the agent's own. Text that is no JSON opens nothing. Looks at the file system. [any
/// thread]
JailPaths jail_paths(std::string_view settings_schema, std::string_view settings_json,
                     const std::vector<std::filesystem::path>& own = {});

}  // namespace driftd::host
