// SPDX-License-Identifier: Apache-2.0
#include "store/files.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

namespace driftd::store {
namespace {

tl::unexpected<Error> failed(const std::string& what, const std::filesystem::path& path) {
  const int error = errno;
  const Code code = error == EACCES || error == EPERM ? Code::denied : Code::internal;
  return fail(code, "cannot " + what + " " + path.string() + ": " + std::strerror(error));
}

Status write_all(int fd, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::string holder_of(int fd) {
  char text[256];
  const ssize_t size = ::pread(fd, text, sizeof text, 0);
  std::string holder(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  return holder.empty() ? "another process that has not written its pid yet" : holder;
}

std::string name_of(uid_t uid) {
  char space[4096];
  passwd entry{}, *found = nullptr;
  const bool known = ::getpwuid_r(uid, &entry, space, sizeof space, &found) == 0 && found != nullptr;
  return known ? std::string(entry.pw_name) : "uid " + std::to_string(uid);
}

/// Refuses root in another user's data_dir: the owner could not open the files that root creates, and the service would
/// not start again.
Status check_owner(const std::filesystem::path& data_dir, uid_t owner) {
  if (owner == ::geteuid()) return {};
  const std::string user = name_of(owner);
  if (::geteuid() != 0) {
    return fail(Code::denied, "data_dir " + data_dir.string() + " belongs to " + user + ", and this is " +
                                  name_of(::geteuid()) + ": run it as " + user + ", or `chown -R " +
                                  name_of(::geteuid()) + " " + data_dir.string() + "`");
  }
  return fail(Code::denied, "data_dir " + data_dir.string() + " belongs to " + user +
                                ": files that root makes there shut that user's agent out. Run this as " + user +
                                " (`sudo -u " + user + " driftd …`), or `chown -R root " + data_dir.string() + "`");
}

bool is_same(const struct stat& a, const std::filesystem::path& path) {
  struct stat b {};
  return ::stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Returns true if a folder, or one above it, is the one that `dir` describes. Compares inodes, so that a mount or a
/// link hides nothing.
bool lies_in(const struct stat& dir, const std::filesystem::path& path) {
  std::error_code unreadable;
  auto at = std::filesystem::weakly_canonical(std::filesystem::absolute(path, unreadable), unreadable);
  while (!is_same(dir, at)) {
    if (!at.has_relative_path()) return false;
    at = at.parent_path();
  }
  return true;
}

bool is_file_of(const std::filesystem::path& data_dir, const std::filesystem::path& target) {
  struct stat info {};
  std::error_code unreadable;
  if (::stat(target.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return false;
  for (std::filesystem::recursive_directory_iterator at(data_dir, unreadable), end; at != end;
       at.increment(unreadable)) {
    if (is_same(info, at->path())) return true;
  }
  return false;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Result<DirectoryLock> DirectoryLock::take(const std::filesystem::path& data_dir, Nanos now) {
  const auto path = data_dir / "lock";
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return failed("open", path);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("lock", path);
    return fail(Code::conflict, "data_dir " + data_dir.string() + " is in use by " + holder_of(file.get()) +
                                    "; stop that agent, or give this one its own data_dir");
  }
  if (::ftruncate(file.get(), 0) != 0) return failed("truncate", path);
  DRIFTD_CHECK(write_all(file.get(), "pid " + std::to_string(::getpid()) + " since " + render_time(now) + "\n", path));
  return DirectoryLock(std::move(file));
}

Status prepare_directory(const std::filesystem::path& data_dir) {
  std::error_code error;
  std::filesystem::create_directories(data_dir.parent_path(), error);
  if (::mkdir(data_dir.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return failed("make data_dir", data_dir);
  struct stat info {};
  if (::stat(data_dir.c_str(), &info) != 0) return failed("look at data_dir", data_dir);
  if (!S_ISDIR(info.st_mode)) return fail(Code::invalid, "data_dir " + data_dir.string() + " is not a directory");
  DRIFTD_CHECK(check_owner(data_dir, info.st_uid));
  if ((info.st_mode & 077) == 0) return {};
  if (::chmod(data_dir.c_str(), 0700) != 0) return failed("make private (chmod 0700)", data_dir);
  return {};
}

Status check_private(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return failed("look at", file);
  if ((info.st_mode & 077) == 0) return {};
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
  return fail(Code::denied, file.string() + " has mode " + mode +
                                ", expected 0600: others may read it; find out who did, "
                                "then chmod 0600 " +
                                file.string());
}

Status prepare_file(const std::filesystem::path& file) {
  const Descriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return failed("open", file);
  return check_private(file);
}

Status sync(const std::filesystem::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return failed("fsync", path);
  return {};
}

Result<std::string> birth_of(const std::filesystem::path& file) {
  struct statx info {};
  if (::statx(AT_FDCWD, file.c_str(), 0, STATX_INO | STATX_BTIME, &info) != 0) return failed("look at", file);
  char text[64];
  const bool born = (info.stx_mask & STATX_BTIME) != 0;  // not every file system reports the birth time
  std::snprintf(text, sizeof text, "%llu %lld.%09u", static_cast<unsigned long long>(info.stx_ino),
                born ? static_cast<long long>(info.stx_btime.tv_sec) : 0LL, born ? info.stx_btime.tv_nsec : 0U);
  return std::string(text);
}

void WatchedFiles::add(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) == 0) files_.push_back({file, info.st_dev, info.st_ino});
}

std::string WatchedFiles::moved() const {
  for (const auto& file : files_) {
    struct stat info {};
    if (::stat(file.path.c_str(), &info) != 0)
      return file.path.string() + " is not there any more (" + std::strerror(errno) + ")";
    if (info.st_dev != file.device || info.st_ino != file.inode)
      return file.path.string() + " was replaced by another file";
  }
  return {};
}

Status check_outside(const std::filesystem::path& data_dir, const std::filesystem::path& target) {
  struct stat dir {};
  if (::stat(data_dir.c_str(), &dir) != 0) return {};
  std::error_code unreadable;
  // a link of that name is replaced, not followed
  const auto folder = std::filesystem::absolute(target, unreadable).parent_path();
  if (!lies_in(dir, folder) && !lies_in(dir, target) && !is_file_of(data_dir, target)) return {};
  return fail(
      Code::invalid,
      target.string() + " lies in data_dir " + data_dir.string() +
          ", or is a file of it under another name, and would take the place of what the agent lives on; nothing was "
          "written, name a file elsewhere");
}

Status write_private(const std::filesystem::path& file, const std::string& text) {
  auto fresh = file;
  fresh += ".new";
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT) return failed("remove", fresh);  // left by a run that was killed
  Status written = write_new_private(fresh, text);
  if (written && ::rename(fresh.c_str(), file.c_str()) != 0) written = failed("rename into place", file);
  if (!written) {
    ::unlink(fresh.c_str());
    return written;
  }
  return sync(std::filesystem::absolute(file).parent_path());
}

Status write_new_private(const std::filesystem::path& file, const std::string& text) {
  const Descriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0 && errno == EEXIST)
    return fail(Code::conflict, file.string() + " is there already and is not written over; name a new file");
  if (fd.get() < 0) return failed("make", file);
  Status written = write_all(fd.get(), text, file);
  if (written && ::fsync(fd.get()) != 0) written = failed("fsync", file);
  if (!written) {
    ::unlink(file.c_str());
    return written;
  }
  return sync(std::filesystem::absolute(file).parent_path());
}

}  // namespace driftd::store
