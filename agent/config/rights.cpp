// SPDX-License-Identifier: Apache-2.0
#include "config/rights.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include "base/trust.hpp"

namespace driftd::config {
namespace {

/// Returns true if all users may pass every folder of the path and read the file.
bool readable_by_all(const ResolvedPath& way) {
  for (const auto& step : way.steps) {
    if (S_ISDIR(step.st.st_mode) && (step.st.st_mode & S_IXOTH) == 0) return false;
  }
  return (way.steps.back().st.st_mode & S_IROTH) != 0;
}

bool strange_owner(const PathStep& step) { return step.st.st_uid != 0 && step.st.st_uid != ::geteuid(); }

Rights rights_on_path(const ResolvedPath& way, int opened) {
  Rights out;
  const PathStep& last = way.steps.back();
  for (const auto& step : way.steps) {
    const bool end = &step == &last, itself = end && !strange_owner(step);
    const std::string why = tamper_risk(step, end ? opened : -1);
    if (itself) out.written = why;
    if (!itself && out.replaced.empty()) out.replaced = why;
  }
  // `tamper_risk` reports a foreign owner first, but others may also be able to write the file.
  const bool open = !other_writers(last.st.st_mode, last.st.st_uid, last.st.st_gid).empty();
  if (out.written.empty() && open) out.written = out.replaced;
  if (readable_by_all(way))
    out.read = last.at.string() + " is readable by all users; `chmod o-r " + last.at.string() + "`";
  return out;
}

}  // namespace

Rights inspect_rights(const std::filesystem::path& file) {
  const ResolvedPath way = resolve_path(file);
  struct statvfs mount {};
  const bool regular = way.error == 0 && S_ISREG(way.steps.back().st.st_mode);
  if (!regular || (::statvfs(file.c_str(), &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0)) return {};
  return rights_on_path(way, -1);
}

std::optional<Rights> inspect_rights(const std::filesystem::path& file, int opened) {
  struct stat st {};
  struct statvfs mount {};
  if (::fstat(opened, &st) != 0 || !S_ISREG(st.st_mode)) return Rights{};
  ResolvedPath way = resolve_path(file);
  if (way.error != 0) way.steps = {PathStep{file, st, true}};  // the path does not exist any more
  PathStep& last = way.steps.back();
  if (last.st.st_dev != st.st_dev || last.st.st_ino != st.st_ino) return std::nullopt;
  last.st = st;
  if (::fstatvfs(opened, &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0) return Rights{};
  return rights_on_path(way, opened);
}

}  // namespace driftd::config
