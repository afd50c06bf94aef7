// SPDX-License-Identifier: Apache-2.0
#include "fault/sink_plugin/line_receiver.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace driftd::test {

LineReceiver::LineReceiver(Decide decide) : decide_(std::move(decide)) {
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool ready = ::bind(listening_, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                     ::listen(listening_, 128) == 0 &&
                     ::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  if (!ready) throw std::runtime_error("the receiver cannot listen");
  port_ = ntohs(at.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

LineReceiver::~LineReceiver() {
  ::shutdown(listening_, SHUT_RDWR);
  accepting_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  for (auto& thread : serving_) thread.join();
  ::close(listening_);
}

void LineReceiver::accept_all() {
  for (;;) {
    const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard lock(mutex_);
    open_.insert(fd);
    serving_.emplace_back([this, fd] { serve(fd); });
  }
}

void LineReceiver::serve(int fd) {
  FILE* lines = ::fdopen(fd, "r+");
  char text[1024];
  while (std::fgets(text, sizeof text, lines) != nullptr) {
    ReceivedLine line;
    std::istringstream(text) >> line.key >> line.sequence >> line.id;
    std::string answer = "bad\n";
    {
      const std::lock_guard lock(mutex_);
      if (!decide_(line)) {
        accepted_.push_back(line);
        answer = "ok\n";
      }
    }
    if (::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
  }
  const std::lock_guard lock(mutex_);
  open_.erase(fd);
  std::fclose(lines);
}

std::vector<ReceivedLine> LineReceiver::accepted() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

std::size_t LineReceiver::distinct() const {
  std::set<std::string> ids;
  for (const auto& line : accepted()) ids.insert(line.id);
  return ids.size();
}

std::string LineReceiver::key_out_of_order() const {
  std::map<std::string, unsigned long long> last;
  std::set<std::string> seen;
  for (const auto& line : accepted()) {
    if (!seen.insert(line.id).second) continue;
    auto& before = last[line.key];
    if (line.sequence <= before) return line.key;
    before = line.sequence;
  }
  return {};
}

}  // namespace driftd::test
