// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::host {

/// What the settings of a backend open in its worker's jail.
struct JailPaths {
  std::vector<std::string> read;  ///< links resolved, sorted, no duplicates
  bool unix_sockets = false;
  std::vector<std::string> refused;  ///< one text for each setting that opens nothing: the reason and the next step
  /// Device and inode of each path, because a jail is bound to them, and the sockets that do not exist yet. The jail is
  /// out of date when this text changes. Empty if nothing can change.
  std::string seen;
  /// Returns true if both make the same jail; compares neither `refused` nor `seen`.
  friend bool operator==(const JailPaths& a, const JailPaths& b) {
    return a.read == b.read && a.unix_sockets == b.unix_sockets;
  }

  /// Returns the first path that leads elsewhere than in `before`, for people; empty if there is none.
  std::string replaced_since(const JailPaths& before) const;
};

/// Finds the settings that the schema calls `format: path` or `format: socket` and that hold an absolute path, with or
/// without `unix:` before it.
/// - A path opens a folder as it is. A file opens the folder that it is in, because files are replaced by rename.
/// - Only the file itself is opened if its folder is shared (`/`, /etc, a home, a sticky folder …), contains something
/// of `own`, or is below a folder of `own`.
/// - A link is followed only if nobody but root and this process's user could have put it there. If the file itself is
/// a link, only its target is opened.
/// - Refused are: paths in `own`, folders that contain one of them, shared folders, and links of other users.
/// - A socket, or a folder that contains one, allows Unix sockets. A setting with both formats counts as a path.
/// `own` lists the agent's own files and folders. Text that is not valid JSON opens nothing. Reads the file system.
/// [any thread]
JailPaths jail_paths(std::string_view settings_schema, std::string_view settings_json,
                     const std::vector<std::filesystem::path>& own = {});

}  // namespace driftd::host
