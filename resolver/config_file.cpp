// SPDX-License-Identifier: Apache-2.0
#include "resolver/config_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace driftd::resolver {
namespace {

using consumer::Code;
using consumer::Status;
namespace fs = std::filesystem;

constexpr off_t kMaxSize = 64 << 20;  // bytes; 1,024 slots need far less

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const auto wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

ConfigFile::ConfigFile(std::string path) : path_(std::move(path)) {
  const fs::path whole(path_);
  folder_ = whole.has_parent_path() ? whole.parent_path().string() : ".";
  prefix_ = "." + whole.filename().string() + ".";
}

void ConfigFile::remove_leftovers() const {
  std::error_code ignored;  // a folder that cannot be read fails the write, which says so
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix_) && name.size() == prefix_.size() + 6) ::unlink(entry.path().c_str());
  }
}

Status ConfigFile::write(const consumer::Secret& text) const {
  std::string temporary = folder_ + "/" + prefix_ + "XXXXXX";
  const auto failed = [this](const std::string& what) {
    const int code = errno;
    return consumer::fail(code == EACCES || code == EPERM || code == EROFS ? Code::denied : Code::unavailable,
                          "failed to write backend config: " + path_ + ": " + what + ": " + std::strerror(code) +
                              "; expected a volume at " + folder_ +
                              " that this user may write (emptyDir with medium: Memory)");
  };
  const OpenFile file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.fd() < 0) return failed("cannot make a file beside it");
  const char* step = nullptr;
  if (!write_all(file.fd(), text.reveal())) {
    step = "write";
  } else if (::fchmod(file.fd(), S_IRUSR) != 0) {
    step = "chmod to 0400";
  } else if (::fsync(file.fd()) != 0) {
    step = "fsync";
  } else if (::rename(temporary.c_str(), path_.c_str()) != 0) {
    step = "rename";
  }
  if (step != nullptr) {
    const auto out = failed(step);
    ::unlink(temporary.c_str());
    return out;
  }
  const OpenFile folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() < 0 || ::fsync(folder.fd()) != 0) return failed("fsync of its folder");
  return {};
}

std::optional<consumer::Secret> ConfigFile::read() const {
  struct stat found {};
  const OpenFile file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd() < 0 || ::fstat(file.fd(), &found) != 0) return std::nullopt;
  const bool is_ours = S_ISREG(found.st_mode) && (found.st_mode & 07777) == S_IRUSR && found.st_uid == ::geteuid();
  if (!is_ours || found.st_size > kMaxSize) return std::nullopt;
  std::string content(static_cast<std::size_t>(found.st_size), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const auto count = ::read(file.fd(), content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<std::size_t>(count);
  }
  return consumer::Secret(std::move(content));
}

bool ConfigFile::has(const consumer::Secret& text) const {
  const auto content = read();
  return content && *content == text;
}

bool ConfigFile::in_memory() const {
  struct statfs found {};
  if (::statfs(folder_.c_str(), &found) != 0) return false;
  const auto type = static_cast<unsigned long>(found.f_type);
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC;
}

}  // namespace driftd::resolver
