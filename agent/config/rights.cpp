// SPDX-License-Identifier: Apache-2.0
#include "config/rights.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include "base/trust.hpp"

namespace driftd::config {
namespace {

/// Returns true if all users may pass every folder of the path and read the file.
bool readable_by_all(const ResolvedPath& resolved) {
  for (const auto& step : resolved.steps) {
    if (S_ISDIR(step.st.st_mode) && (step.st.st_mode & S_IXOTH) == 0) return false;
  }
  return (resolved.steps.back().st.st_mode & S_IROTH) != 0;
}

bool has_foreign_owner(const PathStep& step) { return step.st.st_uid != 0 && step.st.st_uid != ::geteuid(); }

Rights rights_on_path(const ResolvedPath& resolved, int opened) {
  Rights out;
  const PathStep& last = resolved.steps.back();
  for (const auto& step : resolved.steps) {
    const bool end = &step == &last, own_file = end && !has_foreign_owner(step);
    const std::string why = tamper_risk(step, end ? opened : -1);
    if (own_file) out.written = why;
    if (!own_file && out.replaced.empty()) out.replaced = why;
  }
  // `tamper_risk` reports a foreign owner first, but others may also be able to write the file.
  const bool open = !other_writers(last.st.st_mode, last.st.st_uid, last.st.st_gid).empty();
  if (out.written.empty() && open) out.written = out.replaced;
  if (readable_by_all(resolved))
    out.read = last.at.string() + " is readable by all users; `chmod o-r " + last.at.string() + "`";
  return out;
}

}  // namespace

Rights inspect_rights(const std::filesystem::path& file) {
  const ResolvedPath resolved = resolve_path(file);
  struct statvfs mount {};
  const bool regular = resolved.error == 0 && S_ISREG(resolved.steps.back().st.st_mode);
  if (!regular || (::statvfs(file.c_str(), &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0)) return {};
  return rights_on_path(resolved, -1);
}

std::optional<Rights> inspect_rights(const std::filesystem::path& file, int opened) {
  struct stat st {};
  struct statvfs mount {};
  if (::fstat(opened, &st) != 0 || !S_ISREG(st.st_mode)) return Rights{};
  ResolvedPath resolved = resolve_path(file);
  if (resolved.error != 0) resolved.steps = {PathStep{file, st, true}};  // the path does not exist any more
  PathStep& last = resolved.steps.back();
  if (last.st.st_dev != st.st_dev || last.st.st_ino != st.st_ino) return std::nullopt;
  last.st = st;
  if (::fstatvfs(opened, &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0) return Rights{};
  return rights_on_path(resolved, opened);
}

}  // namespace driftd::config
