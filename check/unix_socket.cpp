// SPDX-License-Identifier: Apache-2.0
#include "check/unix_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "check/check.hpp"

namespace driftd::check {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  if (path.size() >= sizeof out.sun_path) {
    throw CheckNotMade(
        fmt::format("{}: the path of a Unix socket has at most {} bytes, found {}; set TMPDIR to a "
                    "folder with a shorter path",
                    path, sizeof out.sun_path - 1, path.size()));
  }
  path.copy(out.sun_path, path.size());
  return out;
}

}  // namespace

SocketFolder::SocketFolder() {
  std::error_code failed;
  path_ = (std::filesystem::temp_directory_path(failed) / "driftd-check-XXXXXX").string();
  if (failed || ::mkdtemp(path_.data()) == nullptr)
    throw CheckNotMade(fmt::format("no folder for Unix sockets can be made ({}): {}", path_, std::strerror(errno)));
}

SocketFolder::~SocketFolder() {
  std::error_code ignored;  // nothing else can be done about it
  std::filesystem::remove_all(path_, ignored);
}

int bind_unix_socket(const std::string& path, int type) {
  const sockaddr_un at = address_of(path);
  const int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return fd;
  const std::string why = std::strerror(errno);
  if (fd >= 0) ::close(fd);
  throw CheckNotMade(fmt::format("no Unix socket at {}: {}", path, why));
}

int connect_unix_socket(const std::string& path, int type) {
  const sockaddr_un at = address_of(path);
  const int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

}  // namespace driftd::check
