// SPDX-License-Identifier: Apache-2.0
#include "worker/agent_channel.hpp"

#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>

namespace driftd::worker {

AgentChannel::~AgentChannel() { ::close(fd_); }

bool AgentChannel::send(ipc::FrameType type, std::uint64_t call, std::string payload) {
  const std::string bytes = render(ipc::Frame{type, call, std::move(payload)});
  const std::lock_guard lock(sending_);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += static_cast<std::size_t>(sent);
  }
  return true;
}

Result<std::optional<ipc::Frame>> AgentChannel::receive() {
  for (;;) {
    DRIFTD_TRY(auto frame, reader_.next());
    if (frame) return frame;
    char buffer[65536];
    const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::optional<ipc::Frame>{};
    reader_.feed({buffer, static_cast<std::size_t>(got)});
  }
}

void AgentChannel::shut() { ::shutdown(fd_, SHUT_RDWR); }

}  // namespace driftd::worker
