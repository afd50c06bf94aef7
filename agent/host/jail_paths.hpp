// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace driftd::host {

/// What the settings of a backend open in its worker's jail.
struct JailPaths {
  std::vector<std::string> read;  ///< sorted, each once
  bool unix_sockets = false;
  friend bool operator==(const JailPaths&, const JailPaths&) = default;
};

/// The settings that the schema calls `format: path` or `format: socket` and that hold an absolute path, with or without
/// `unix:` before it. A socket allows Unix sockets. A path opens a folder as it is, and for anything else its parent
/// folder, for files are replaced by rename; where a link leads counts too. A parent that is everybody's (`/`, /etc,
/// /run …) is not opened: then the file alone. Text that is no JSON opens nothing. Looks at the file system. [any thread]
JailPaths jail_paths(std::string_view settings_schema, std::string_view settings_json);

}  // namespace driftd::host
