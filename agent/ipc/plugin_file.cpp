// SPDX-License-Identifier: Apache-2.0
#include "ipc/plugin_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/digest.hpp"
#include "base/trust.hpp"

namespace driftd::ipc {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxFileBytes = 1ll << 30;
constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL, Linux 6.3: may be mapped, never executed as a program

Error system_error(const fs::path& file, const char* what) {
  return {Code::invalid, fmt::format("{}: {}: {}", file.string(), what, std::strerror(errno))};
}

/// Checks that the descriptor is what the name leads to, and that nobody else could have replaced it.
Status check_opened(const fs::path& asked, int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return fail(system_error(asked, "cannot be examined"));
  if (!S_ISREG(st.st_mode)) return fail(Code::invalid, asked.string() + ": is not a file; expected a plugin (.so)");
  const ResolvedPath way = resolve_path(asked);
  if (way.error != 0) return fail(Code::invalid, fmt::format("{}: {}", asked.string(), std::strerror(way.error)));
  for (const auto& step : way.steps) {
    const std::string why = tamper_risk(step);
    if (!why.empty()) return fail(Code::denied, fmt::format("{}: refused, because {}", asked.string(), why));
  }
  const struct stat& end = way.steps.back().st;
  if (end.st_dev == st.st_dev && end.st_ino == st.st_ino) return {};
  return fail(Code::denied, asked.string() + ": refused, because it was replaced while it was opened; try again");
}

int open_file(const fs::path& file) { return ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }

int make_memory(const std::string& name) {
  const int fd = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal);
  return fd >= 0 ? fd : ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool copy_all(int from, int to) {
  off_t at = 0;
  for (;;) {
    const ssize_t sent = ::sendfile(to, from, &at, 1u << 20);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return sent == 0;
  }
}

/// Maps the bytes of a sealed memfd.
struct Mapped {
  void* at = MAP_FAILED;
  std::size_t size = 0;
  explicit Mapped(int fd) {
    struct stat st {};
    if (::fstat(fd, &st) != 0 || st.st_size == 0) return;
    size = static_cast<std::size_t>(st.st_size);
    at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  ~Mapped() {
    if (at != MAP_FAILED) ::munmap(at, size);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
};

}  // namespace

Status PluginFile::identify() {
  struct stat st {};
  if (::fstat(fd_, &st) != 0) return fail(system_error(path_, "cannot be examined"));
  if (st.st_size > kMaxFileBytes) {
    return fail(Code::invalid,
                fmt::format("{}: has {} bytes; expected a plugin of at most {}", path_, st.st_size, kMaxFileBytes));
  }
  key_ = {st.st_dev, st.st_ino, st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, st.st_size};
  return {};
}

Result<PluginFile> PluginFile::open(const fs::path& file) {
  const int fd = open_file(file);
  if (fd < 0) return fail(Code::invalid, fmt::format("{}: {}", file.string(), std::strerror(errno)));
  PluginFile out(file.string(), fd);
  DRIFTD_CHECK(check_opened(file, fd));
  DRIFTD_CHECK(out.identify());
  return out;
}

Result<PluginFile> PluginFile::open_sealed(const fs::path& file) {
  DRIFTD_TRY(PluginFile out, open(file));
  DRIFTD_CHECK(out.seal());
  return out;
}

Result<PluginFile> PluginFile::adopt(std::string path, int descriptor) {
  PluginFile out(std::move(path), descriptor);
  out.sealed_ = true;
  DRIFTD_CHECK(out.identify());
  return out;
}

PluginFile::PluginFile(PluginFile&& other) noexcept
    : path_(std::move(other.path_)),
      sha256_(std::move(other.sha256_)),
      fd_(std::exchange(other.fd_, -1)),
      sealed_(other.sealed_),
      key_(other.key_) {}

PluginFile::~PluginFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status PluginFile::seal() {
  if (sealed_) return {};
  const int memory = make_memory(fs::path(path_).filename().string());
  if (memory < 0) return fail(system_error(path_, "cannot be copied into memory"));
  const bool done = copy_all(fd_, memory) &&
                    ::fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
  if (!done) {
    const Error error = system_error(path_, "cannot be copied into memory");
    ::close(memory);
    return fail(error);
  }
  ::close(std::exchange(fd_, memory));
  sealed_ = true;
  const Mapped bytes(fd_);
  if (bytes.at == MAP_FAILED)
    return fail(Code::invalid, path_ + ": is empty or cannot be mapped; expected a plugin (.so)");
  sha256_ = to_hex(driftd::sha256({static_cast<const char*>(bytes.at), bytes.size}));
  return {};
}

std::string PluginFile::load_name() const { return fmt::format("/proc/self/fd/{}", fd_); }

Status check_file_rights(const fs::path& file) {
  const int fd = open_file(file);
  if (fd < 0) return fail(Code::invalid, fmt::format("{}: {}", file.string(), std::strerror(errno)));
  Status checked = check_opened(file, fd);
  ::close(fd);
  return checked;
}

}  // namespace driftd::ipc
