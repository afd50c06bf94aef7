// SPDX-License-Identifier: Apache-2.0
#include "admin/listen.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "admin/peer.hpp"

namespace driftd::admin {
namespace {

/// A file descriptor that is closed on destruction unless released.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

tl::unexpected<Error> system_error(const std::string& what) {
  const int code = errno;
  const Code kind = code == EACCES || code == EPERM ? Code::denied
                    : code == EADDRINUSE            ? Code::conflict
                                                    : Code::unavailable;
  return fail(kind, what + ": " + std::strerror(code));
}

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(Code::invalid, "socket path '" + path + "' must have 1 to 107 bytes; change admin.socket");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Removes the socket file of a dead agent.
Status clear_stale(const std::string& path) {
  DRIFTD_CHECK(check_unix(path));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("cannot remove the stale socket " + path);
  return {};
}

Status set_access(const std::string& path, const std::string& group, bool open) {
  if (!group.empty()) {
    DRIFTD_TRY(const std::uint32_t gid, group_id(group, "admin.socket_group"));
    if (::chown(path.c_str(), static_cast<uid_t>(-1), gid) != 0) {
      return system_error("cannot give " + path + " to group " + group + " (admin.socket_group)");
    }
  }
  if (::chmod(path.c_str(), open ? 0666 : 0660) != 0) return system_error("cannot set the mode of " + path);
  return {};
}

}  // namespace

Status check_unix(const std::string& path) {
  DRIFTD_TRY(const sockaddr_un address, unix_address(path));
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode))
    return fail(Code::conflict, path + " exists and is not a socket; change admin.socket or remove it");
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return fail(Code::conflict, "an agent answers on " + path + " already; stop it or change admin.socket");
}

Result<int> listen_unix(const std::string& path, const std::string& group, bool open) {
  DRIFTD_TRY(const sockaddr_un address, unix_address(path));
  std::error_code ignored;  // bind() gives the better error
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  DRIFTD_CHECK(clear_stale(path));
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_error("cannot bind the API's socket " + path + " (admin.socket)");
  }
  if (auto status = set_access(path, group, open); !status) {
    ::unlink(path.c_str());
    return fail(status.error());
  }
  if (::listen(fd.get(), 64) != 0) return system_error("cannot listen on " + path);
  return fd.release();
}

Result<int> listen_loopback(const std::string& text, const std::string& setting) {
  const std::size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon);
  std::uint16_t port = 0;
  const std::string digits = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool numeric =
      !digits.empty() && std::from_chars(digits.data(), digits.data() + digits.size(), port).ec == std::errc{};
  sockaddr_in6 six{AF_INET6, htons(port), 0, in6addr_loopback, 0};
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  const bool is_six = host == "[::1]";
  const std::string dotted = host == "localhost" ? "127.0.0.1" : host;
  const bool good =
      numeric && (is_six || (dotted.starts_with("127.") && ::inet_pton(AF_INET, dotted.c_str(), &four.sin_addr) == 1));
  if (!good)
    return fail(Code::invalid,
                "'" + text + "' is not a loopback address; expected 127.0.0.1:PORT or [::1]:PORT (" + setting + ")");
  Descriptor fd(::socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto* address = is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  if (::bind(fd.get(), address, is_six ? sizeof six : sizeof four) != 0 || ::listen(fd.get(), 64) != 0) {
    return system_error("cannot listen on " + text + " (" + setting + ")");
  }
  return fd.release();
}

bool is_loopback_host(std::string_view host) {
  if (host.starts_with("[")) return host.substr(0, host.find(']') + 1) == "[::1]";
  const std::string name(host.substr(0, host.find(':')));
  in_addr address{};
  return name == "localhost" || (name.starts_with("127.") && ::inet_pton(AF_INET, name.c_str(), &address) == 1);
}

}  // namespace driftd::admin
