// SPDX-License-Identifier: Apache-2.0
#include "base/trust.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>
#include <deque>
#include <string_view>
#include <vector>

namespace driftd {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // symbolic links in one path: the kernel's limit

/// Puts the names of `path` before the others, without empty ones and `.`.
void prepend(std::deque<fs::path>& names, const fs::path& path) {
  std::deque<fs::path> more;
  for (const auto& name : path.relative_path()) {
    if (!name.empty() && name != ".") more.push_back(name);
  }
  names.insert(names.begin(), more.begin(), more.end());
}

/// Resolves the next name. Returns false, with `resolved.error` set, if it cannot be examined.
bool advance(ResolvedPath& resolved, std::deque<fs::path>& names, int& links) {
  fs::path& at = resolved.reached;
  const fs::path name = names.front();
  if (name == "..") {
    names.pop_front();
    at = at.parent_path();
    return true;
  }
  PathStep step{at / name, {}, names.size() == 1};
  std::error_code failed;
  if (::lstat(step.at.c_str(), &step.st) != 0) {
    resolved.error = errno;
    return false;
  }
  const bool link = S_ISLNK(step.st.st_mode);
  const fs::path target = link ? fs::read_symlink(step.at, failed) : fs::path();
  if (failed || (link && ++links > kMaxLinks)) {
    resolved.error = failed ? failed.value() : ELOOP;
    return false;
  }
  resolved.steps.push_back(step);
  names.pop_front();
  if (!link) at = step.at;
  if (link && target.is_absolute()) at = "/";
  if (link) prepend(names, target);
  return true;
}

}  // namespace

ResolvedPath resolve_path(const fs::path& file) {
  ResolvedPath resolved;
  PathStep root{"/", {}, false};
  if (::lstat("/", &root.st) != 0) resolved.error = errno;
  resolved.steps.push_back(root);
  std::deque<fs::path> names;
  prepend(names, fs::absolute(file));
  int links = 0;
  while (!names.empty() && advance(resolved, names, links)) {
  }
  for (const auto& name : names) resolved.missing /= name;
  return resolved;
}

namespace {

/// Returns true for the private group that systems create with each user, if it has no other members.
bool is_private_group(gid_t group, uid_t owner) {
  if (group != owner) return false;
  struct group entry {};
  struct group* found = nullptr;
  std::vector<char> buffer(65'536);
  if (::getgrgid_r(group, &entry, buffer.data(), buffer.size(), &found) != 0) return false;
  if (found == nullptr) return true;  // a number without a name has no members
  struct passwd user {};
  struct passwd* owner_entry = nullptr;
  std::vector<char> names(16'384);
  const bool named =
      ::getpwuid_r(owner, &user, names.data(), names.size(), &owner_entry) == 0 && owner_entry != nullptr;
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (!named || std::string_view(*member) != owner_entry->pw_name) return false;
  }
  return true;
}

}  // namespace

std::string other_writers(mode_t mode, uid_t owner, gid_t group) {
  const bool sticky = S_ISDIR(mode) && (mode & S_ISVTX) != 0 && owner == 0;
  if (sticky) return {};
  if ((mode & S_IWOTH) != 0) return "others";
  const bool harmless = (mode & S_IWGRP) == 0 || group == 0 || is_private_group(group, owner);
  return harmless ? std::string() : fmt::format("group {}", group);
}

std::string tamper_risk(const PathStep& step, int opened) {
  const std::string at = step.at.string();
  const auto& st = step.st;
  if (st.st_uid != 0 && st.st_uid != ::geteuid()) {
    return fmt::format("{} belongs to uid {}, expected root or uid {}; look at it, then `chown -h {} {}`", at,
                       st.st_uid, ::geteuid(), ::geteuid(), at);
  }
  if (S_ISLNK(st.st_mode)) return {};  // the mode of a symbolic link has no meaning
  if (const std::string writers = other_writers(st.st_mode, st.st_uid, st.st_gid); !writers.empty()) {
    return fmt::format("{} is writable by {} (mode {:04o}); `chmod {}-w {}`", at, writers, st.st_mode & 07777,
                       writers == "others" ? 'o' : 'g', at);
  }
  // with an ACL the group bits are its mask; only the ACL says who may write
  constexpr const char* kAcl = "system.posix_acl_access";
  const ssize_t acl = opened < 0 ? ::lgetxattr(at.c_str(), kAcl, nullptr, 0) : ::fgetxattr(opened, kAcl, nullptr, 0);
  const bool listed = (st.st_mode & S_IWGRP) != 0 && acl > 0;
  return listed ? fmt::format("{} has an ACL that lets others write; see `getfacl {}`, `setfacl -b {}` removes it", at,
                              at, at)
                : std::string();
}

}  // namespace driftd
