// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace driftd::config {

/// What users other than root and this process's user may do with a file that the agent trusts. Each member explains it
/// and names the command that fixes it. Empty if nobody may.
struct Rights {
  std::string written;   ///< others may write the file
  std::string replaced;  ///< others own the file or may replace it
  std::string read;      ///< all users of the machine may read it
};

/// Inspects a file, following every link as the kernel does. All members are empty if it is on a read-only mount, or if
/// it is not a regular file (a pipe, a missing file). Accesses the file system. [any thread]
Rights inspect_rights(const std::filesystem::path& file);
/// Does the same for the descriptor `opened`, which was opened by the path `file`. The file itself is inspected through
/// the descriptor, the folders as they are now. Returns nothing if the path now leads to another file.
std::optional<Rights> inspect_rights(const std::filesystem::path& file, int opened);

}  // namespace driftd::config
