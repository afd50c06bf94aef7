// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <filesystem>
#include <string>
#include <vector>

namespace driftd {

/// A name that is passed on the way to a file: a folder, a link, or the file itself.
struct Hop {
  std::filesystem::path at;  ///< absolute, no link above it
  struct stat st {};
  bool last = false;  ///< nothing is named behind it: the file, or a link that stands for it
};

/// The way that the kernel goes to a file, through every link.
struct Way {
  std::vector<Hop> hops;                ///< from / on; a link is a hop of its own
  std::filesystem::path reached = "/";  ///< where they lead, without links
  std::filesystem::path missing;        ///< names that could not be looked at; empty: all is there
  int error = 0;                        ///< errno of the first of them
  std::filesystem::path end() const { return missing.empty() ? reached : (reached / missing).lexically_normal(); }
};

/// Relative paths start at the working folder. Looks at the file system. [any thread]
Way way_to(const std::filesystem::path& file);

/// `others`, `group 1234`, or empty: who may write beside owner and root. Trusted are root's group and the owner's
/// private one (gid = uid, without other members); the agent's own is not, for people may be in it. Nobody may in a
/// sticky folder of root's: names stay.
std::string other_writers(mode_t mode, uid_t owner, gid_t group);

/// Why somebody else than root and this process's user could put another thing in its place, with the command that ends
/// that: a strange owner, other writers, an ACL. Empty: nobody could, as long as that holds for the hops before it.
/// `opened`: the file itself, where `hop.st` is of what was opened and no longer of a name.
std::string distrust(const Hop& hop, int opened = -1);

}  // namespace driftd
