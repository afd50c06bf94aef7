// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <filesystem>
#include <string>
#include <vector>

namespace driftd {

/// One component of the path to a file: a folder, a symbolic link, or the file itself.
struct PathStep {
  std::filesystem::path at;  ///< absolute, without symbolic links above it
  struct stat st {};         ///< of the component itself, links not followed
  bool last = false;         ///< the last component: the file, or a symbolic link to it
};

/// The path to a file as the kernel resolves it, through every symbolic link.
struct ResolvedPath {
  std::vector<PathStep> steps;          ///< from / on; a symbolic link is a step of its own
  std::filesystem::path reached = "/";  ///< where the steps lead, without symbolic links
  std::filesystem::path missing;        ///< the rest of the path that could not be examined; empty if everything exists
  int error = 0;                        ///< errno of the first missing name
  /// Returns where the path leads, whether it exists or not.
  std::filesystem::path end() const { return missing.empty() ? reached : (reached / missing).lexically_normal(); }
};

/// Resolves `file` by reading the file system. A relative path starts at the working folder. [any thread]
/// It blocks as long as the file system does. What could not be examined is in `missing`.
ResolvedPath resolve_path(const std::filesystem::path& file);

/// Returns who may write besides owner and root: `others`, `group 1234`, or empty. Root's group and the owner's private
/// group (gid = uid, without other members) are trusted; the agent's own group is not, because people may be in it. A
/// sticky folder of root counts as not writable, because nobody can replace the names of others in it.
std::string other_writers(mode_t mode, uid_t owner, gid_t group);

/// Returns why a user other than root or ours could replace this component (owner, other writers, an ACL), and the
/// command that fixes it. Empty if nobody could, provided that the steps before it are safe, too. `opened` is the
/// descriptor of the file if `step.st` is from the open file and not from its name.
std::string tamper_risk(const PathStep& step, int opened = -1);

}  // namespace driftd
