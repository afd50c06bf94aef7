// SPDX-License-Identifier: Apache-2.0
#include "sinks/file/stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace driftd::sinks {
namespace {

/// Writes without blocking: with MSG_DONTWAIT on a socket, by O_NONBLOCK on other descriptors that have it. Otherwise
/// it writes only as much as a ready pipe has room for (pipe(7)).
ssize_t write_some(int fd, std::string_view text) {
  const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
}

}  // namespace

int reopen_without_blocking(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool Stream::wait_for_room() {
  pollfd ready{fd_, POLLOUT, 0};
  const int wait = stuck_ ? 0 : static_cast<int>(kPatience.count());
  int found = ::poll(&ready, 1, wait);
  while (found < 0 && errno == EINTR) found = ::poll(&ready, 1, wait);
  stuck_ = found <= 0;
  return !stuck_;
}

/// Writes the rest of a line that was written in part.
Status Stream::drain() {
  while (written_ < line_.size()) {
    if (!wait_for_room()) return fail(Code::unavailable, "write " + name_ + ": nobody reads it");
    const ssize_t n = write_some(fd_, std::string_view(line_).substr(written_));
    if (n > 0) written_ += static_cast<std::size_t>(n);
    if (n >= 0 || errno == EINTR) continue;
    stuck_ = errno == EAGAIN;  // poll() reports it as ready although it has no room: retrying at once would never end
    return fail(Code::unavailable, "write " + name_ + ": " + (stuck_ ? "nobody reads it" : std::strerror(errno)));
  }
  line_.clear();
  written_ = 0;
  return Status{};
}

Status Stream::write(std::string_view line) {
  const bool same = written_ > 0 && line_.size() == line.size() + 1 && line_.starts_with(line);
  if (written_ == 0) line_.clear();
  if (!line_.empty()) DRIFTD_CHECK(drain());
  if (same) return Status{};
  line_ = std::string(line) + "\n";
  return drain();
}

}  // namespace driftd::sinks
