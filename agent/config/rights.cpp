// SPDX-License-Identifier: Apache-2.0
#include "config/rights.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include "base/trust.hpp"

namespace driftd::config {
namespace {

/// All users may pass every folder on the way and read its end.
bool readable_by_all(const Way& way) {
  for (const auto& hop : way.hops) {
    if (S_ISDIR(hop.st.st_mode) && (hop.st.st_mode & S_IXOTH) == 0) return false;
  }
  return (way.hops.back().st.st_mode & S_IROTH) != 0;
}

bool strange_owner(const Hop& hop) { return hop.st.st_uid != 0 && hop.st.st_uid != ::geteuid(); }

Rights judged(const Way& way, int opened) {
  Rights out;
  const Hop& last = way.hops.back();
  for (const auto& hop : way.hops) {
    const bool end = &hop == &last, itself = end && !strange_owner(hop);
    const std::string why = distrust(hop, end ? opened : -1);
    if (itself) out.written = why;
    if (!itself && out.replaced.empty()) out.replaced = why;
  }
  // `distrust` names the owner first: others may write what a stranger owns, too
  const bool open = !other_writers(last.st.st_mode, last.st.st_uid, last.st.st_gid).empty();
  if (out.written.empty() && open) out.written = out.replaced;
  if (readable_by_all(way))
    out.read = last.at.string() + " is readable by all users; `chmod o-r " + last.at.string() + "`";
  return out;
}

}  // namespace

Rights rights_of(const std::filesystem::path& file) {
  const Way way = way_to(file);
  struct statvfs mount {};
  const bool regular = way.error == 0 && S_ISREG(way.hops.back().st.st_mode);
  if (!regular || (::statvfs(file.c_str(), &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0)) return {};
  return judged(way, -1);
}

std::optional<Rights> rights_of(const std::filesystem::path& file, int opened) {
  struct stat st {};
  struct statvfs mount {};
  if (::fstat(opened, &st) != 0 || !S_ISREG(st.st_mode)) return Rights{};
  Way way = way_to(file);
  if (way.error != 0) way.hops = {Hop{file, st, true}};  // no name leads to it any more
  Hop& last = way.hops.back();
  if (last.st.st_dev != st.st_dev || last.st.st_ino != st.st_ino) return std::nullopt;
  last.st = st;
  if (::fstatvfs(opened, &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0) return Rights{};
  return judged(way, opened);
}

}  // namespace driftd::config
