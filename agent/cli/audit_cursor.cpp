// SPDX-License-Identifier: Apache-2.0
#include "cli/audit_cursor.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace driftd::cli {
namespace {

tl::unexpected<Error> cannot(const char* what, const std::string& file) {
  return fail(Code::unavailable, "--state: cannot " + std::string(what) + " " + file + ": " + std::strerror(errno));
}

/// Opens, writes and syncs; the file is closed again.
Status write_synced(const std::string& file, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return cannot("write", file);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  errno = error;
  if (!written) return cannot("write", file);
  return {};
}

Status sync_folder_of(const std::string& file) {
  std::string folder = std::filesystem::path(file).parent_path().string();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return cannot("open the folder of", file);
  const bool synced = ::fsync(fd) == 0;
  ::close(fd);
  if (!synced) return cannot("sync the folder of", file);
  return {};
}

}  // namespace

Result<AuditCursor> AuditCursor::read(const std::string& file) {
  std::ifstream in(file);
  if (!in) {
    if (errno == ENOENT) return AuditCursor{};
    return cannot("read", file);
  }
  AuditCursor out;
  std::string more;
  const bool two = static_cast<bool>(in >> out.id >> out.hash) && !(in >> more);
  if (two && out.id.find_first_not_of("0123456789") == std::string::npos && out.hash.size() == 64) return out;
  return fail(Code::invalid, "--state: " + file +
                                 " is not a state file of `driftd audit export`; expected a number and a hash. Name "
                                 "another file, or remove it to export from the first line on");
}

Status AuditCursor::write(const std::string& file) const {
  const std::string fresh = file + ".new";
  DRIFTD_CHECK(write_synced(fresh, id + " " + hash + "\n"));
  if (std::rename(fresh.c_str(), file.c_str()) != 0) return cannot("replace", file);
  return sync_folder_of(file);
}

}  // namespace driftd::cli
