// SPDX-License-Identifier: Apache-2.0
#include "config/secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "config/rights.hpp"

namespace driftd::config {
namespace {

constexpr std::size_t kMaxSecretBytes = 64 * 1024;

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

FileMark mark(const struct stat& st) {
  return {st.st_dev, st.st_ino, st.st_size, nanoseconds(st.st_mtim), nanoseconds(st.st_ctim), S_ISREG(st.st_mode)};
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// At most one byte more than a secret may have.
bool read_bytes(int fd, std::string& out) {
  out.resize(kMaxSecretBytes + 1);
  std::size_t at = 0;
  while (at < out.size()) {
    const ssize_t got = ::read(fd, out.data() + at, out.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  out.resize(at);
  return true;
}

Result<SecretText> read_opened(const std::filesystem::path& file, int flags, bool again) {
  const std::string named = "secret file " + file.string();
  const auto unreadable = [&] { return fail(Code::unavailable, named + " cannot be read: " + std::strerror(errno)); };
  SecretText out;
  struct stat st {};
  const Descriptor opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | flags)};
  if (opened.fd < 0 || ::fstat(opened.fd, &st) != 0) return unreadable();
  if (again && !S_ISREG(st.st_mode)) return fail(Code::invalid, named + " is not a regular file any more");
  if (!read_bytes(opened.fd, out.text)) return unreadable();
  out.mark = mark(st);
  const Rights rights = rights_of(file);
  if (!rights.written.empty()) return fail(Code::denied, named + " is not used, because others may write it: " + rights.written);
  if (out.text.ends_with('\n')) out.text.pop_back();
  if (out.text.ends_with('\r')) out.text.pop_back();
  if (out.text.empty()) return fail(Code::invalid, named + " is empty");
  if (out.text.size() > kMaxSecretBytes) return fail(Code::invalid, named + " is too big");
  return out;
}

}  // namespace

std::optional<FileMark> mark_of(const std::filesystem::path& file) {
  struct stat st {};
  if (::stat(file.c_str(), &st) != 0) return std::nullopt;
  return mark(st);
}

Result<SecretText> read_secret_file(const std::filesystem::path& file) { return read_opened(file, 0, false); }

Result<SecretText> read_secret_file_again(const std::filesystem::path& file) {
  return read_opened(file, O_NONBLOCK | O_NOCTTY, true);
}

}  // namespace driftd::config
