// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace driftd::config {

/// What people other than root and this process's user may do with a file that the agent believes. Each is a sentence
/// with the command that ends it; empty: nobody may.
struct Rights {
  std::string written;   ///< they may write the file itself
  std::string replaced;  ///< they own it, or may put another one in its place
  std::string read;      ///< all users of the machine may read it
};

/// Of the file that the kernel reaches, through every link. Nobody may change what stands on a read-only mount, and
/// what is not a regular file (a pipe, a missing file) has no rights to look at. Looks at the file system. [any thread]
Rights inspect_rights(const std::filesystem::path& file);
/// The same of the file that `opened` reads, which was reached by `file`: what is at that path meanwhile says nothing
/// of it. The folders on the way are those of now. Empty: the way leads to another file now.
std::optional<Rights> inspect_rights(const std::filesystem::path& file, int opened);

}  // namespace driftd::config
