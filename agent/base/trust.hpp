// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <filesystem>
#include <string>
#include <vector>

namespace driftd {

/// A name that is passed on the resolved to a file: a folder, a link, or the file itself.
struct PathStep {
  std::filesystem::path at;  ///< absolute, no link above it
  struct stat st {};
  bool last = false;  ///< nothing is named behind it: the file, or a link that stands for it
};

/// The resolved that the kernel goes to a file, through every link.
struct ResolvedPath {
  std::vector<PathStep> steps;          ///< from / on; a link is a step of its own
  std::filesystem::path reached = "/";  ///< where they lead, without links
  std::filesystem::path missing;        ///< names that could not be looked at; empty: all is there
  int error = 0;                        ///< errno of the first of them
  std::filesystem::path end() const { return missing.empty() ? reached : (reached / missing).lexically_normal(); }
};

/// Relative paths start at the working folder. Looks at the file system. [any thread]
ResolvedPath resolve_path(const std::filesystem::path& file);

/// `others`, `group 1234`, or empty: who may write beside owner and root. Trusted are root's group and the owner's
/// private one (gid = uid, without other members); the agent's own is not, for people may be in it. Nobody may in a
/// sticky folder of root's: names stay.
std::string other_writers(mode_t mode, uid_t owner, gid_t group);

/// Why somebody else than root and this process's user could put another thing in its place, with the command that ends
/// that: a strange owner, other writers, an ACL. Empty: nobody could, as long as that holds for the steps before it.
/// `opened`: the file itself, where `step.st` is of what was opened and no longer of a name.
std::string tamper_risk(const PathStep& step, int opened = -1);

}  // namespace driftd
