// SPDX-License-Identifier: Apache-2.0
#include "sinks/file/log_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace driftd::sinks {
namespace {

constexpr std::int64_t kBlock = 64 << 10;  // bytes that are searched for the last newline at a time

void sync_folder(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the file itself was synced; its name can only be as durable as the folder allows
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

LogFile::~LogFile() {
  if (ours_) ::close(fd_);
}

Status LogFile::failure(const std::string& doing) const {
  const std::string name = settings_.path.empty() ? "stdout" : settings_.path.string();
  return fail(Code::unavailable, doing + " " + name + ": " + std::strerror(errno));
}

Status LogFile::open() { return settings_.path.empty() ? open_stdout() : reopen(); }

Status LogFile::open_stdout() {
  if (ours_) ::close(fd_);
  ours_ = false;
  fd_ = STDOUT_FILENO;
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return failure("stat");
  if (S_ISREG(info.st_mode)) return Status{};
  const int own = reopen_without_blocking(STDOUT_FILENO);
  if (own >= 0) fd_ = own, ours_ = true;
  stream_.emplace(fd_, "stdout");
  return Status{};
}

Status LogFile::reopen() {
  if (ours_) ::close(fd_);
  ours_ = false;
  if (unsynced_) lost_ = true;  // it can no longer be known whether those lines were synced
  unsynced_ = false;
  stream_.reset();
  fd_ = ::open(settings_.path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
  if (fd_ < 0) return failure("open");
  ours_ = true;
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return failure("stat");
  size_ = info.st_size;
  if (S_ISREG(info.st_mode)) return cut_torn_line();
  stream_.emplace(fd_, settings_.path.string());
  return Status{};
}

Status LogFile::cut_torn_line() {
  std::int64_t end = size_;
  std::string block;
  while (end > 0) {
    const std::int64_t from = std::max<std::int64_t>(0, end - kBlock);
    block.resize(static_cast<std::size_t>(end - from));
    if (::pread(fd_, block.data(), block.size(), from) != static_cast<ssize_t>(block.size())) return failure("read");
    const auto newline = block.rfind('\n');
    end = newline == std::string::npos ? from : from + static_cast<std::int64_t>(newline) + 1;
    if (newline != std::string::npos) break;
  }
  if (end == size_) return Status{};
  if (::ftruncate(fd_, end) != 0) return failure("cut the torn last line of");
  size_ = end;
  return Status{};
}

/// Returns true if the open file is the one at its path. Refreshes its size, because others may cut it.
bool LogFile::is_at_its_path() {
  struct stat named {
  }, open{};
  if (::stat(settings_.path.c_str(), &named) != 0 || ::fstat(fd_, &open) != 0) return false;
  size_ = open.st_size;
  return named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/// Continues in the file at the path, or creates it: what is written to a removed file is lost for readers.
Status LogFile::follow_path() {
  if (settings_.path.empty() || (ours_ && is_at_its_path())) return Status{};
  return reopen();
}

Status LogFile::write(std::string_view line) {
  DRIFTD_CHECK(follow_path());
  DRIFTD_CHECK(refuse_if_lost());
  if (stream_) return stream_->write(line);
  std::string text(line);
  text += '\n';
  const auto length = static_cast<std::int64_t>(text.size());
  if (ours_ && size_ > 0 && size_ + length > settings_.rotate_bytes) DRIFTD_CHECK(rotate());
  DRIFTD_CHECK(refuse_if_lost());
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(fd_, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      Status failed = failure("write");
      if (ours_ && written > 0 && ::ftruncate(fd_, size_) != 0) return failure("cut a half-written line of");
      return failed;
    }
    written += static_cast<std::size_t>(n);
  }
  size_ += length;
  unsynced_ = ours_;
  return Status{};
}

Status LogFile::sync() {
  if (settings_.path.empty()) return Status{};
  if (ours_ && ::fdatasync(fd_) != 0 && errno != EINVAL) return sync_failure();
  if (unsynced_ && !is_at_its_path()) lost_ = true;
  unsynced_ = false;
  return refuse_if_lost();
}

/// The next fdatasync may succeed although those lines never reached the disk.
Status LogFile::sync_failure() {
  lost_ = true;
  return failure("fdatasync");
}

Status LogFile::refuse_if_lost() const {
  if (!lost_) return Status{};
  return fail(Code::unavailable, settings_.path.string() +
                                     " was removed or renamed by somebody else, or could not be synced: what was not "
                                     "synced before is written again");
}

/// Moves path.1 to path.2 and so on, up to the first free number, so that repeating a rotation that failed half-way
/// drops no further file.
Status LogFile::shift_rotated() const {
  const auto numbered = [this](int n) { return settings_.path.string() + "." + std::to_string(n); };
  std::error_code error;
  int free = 1;
  while (free < settings_.keep && std::filesystem::exists(numbered(free), error)) ++free;
  for (int n = free - 1; n >= 1; --n) {
    std::filesystem::rename(numbered(n), numbered(n + 1), error);
    const bool gone = error == std::errc::no_such_file_or_directory;
    if (error && !gone) return fail(Code::unavailable, "rotate " + numbered(n) + ": " + error.message());
  }
  return Status{};
}

Status LogFile::rotate() {
  if (::fdatasync(fd_) != 0 && errno != EINVAL) return sync_failure();
  unsynced_ = false;  // only the name of the synced file changes
  DRIFTD_CHECK(shift_rotated());
  std::error_code error;
  if (settings_.keep > 0) {
    std::filesystem::rename(settings_.path, settings_.path.string() + ".1", error);
  } else {
    std::filesystem::remove(settings_.path, error);
  }
  const bool gone = error == std::errc::no_such_file_or_directory;  // somebody else moved it already
  if (gone) lost_ = true;
  if (error && !gone) return fail(Code::unavailable, "rotate " + settings_.path.string() + ": " + error.message());
  DRIFTD_CHECK(reopen());
  sync_folder(settings_.path);
  return Status{};
}

}  // namespace driftd::sinks
