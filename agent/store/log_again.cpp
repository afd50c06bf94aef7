// SPDX-License-Identifier: Apache-2.0
#include "store/log_again.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <vector>

#include "store/files.hpp"

namespace driftd::store {
namespace {

constexpr std::size_t kPiece = 1u << 20;

tl::unexpected<Error> log_failed(const char* what, const std::filesystem::path& log) {
  return fail(Code::internal, std::string("cannot ") + what + " " + log.string() + ": " + std::strerror(errno) +
                                  "; check the disk and its file system, then start the agent again");
}

}  // namespace

Status write_log_again(const std::filesystem::path& log) {
  const Descriptor file(::open(log.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) return errno == ENOENT ? Status{} : Status(log_failed("open", log));
  std::vector<char> piece(kPiece);
  for (off_t at = 0;;) {
    const ssize_t read = ::pread(file.get(), piece.data(), piece.size(), at);
    if (read < 0) return log_failed("read", log);
    if (read == 0) break;
    const ssize_t written = ::pwrite(file.get(), piece.data(), static_cast<std::size_t>(read), at);
    if (written <= 0) return log_failed("write", log);
    at += written;
  }
  if (::fsync(file.get()) != 0) return log_failed("fsync", log);
  return {};
}

}  // namespace driftd::store
