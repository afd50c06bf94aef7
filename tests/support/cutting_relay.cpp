// SPDX-License-Identifier: Apache-2.0
#include "support/cutting_relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

namespace driftd::test {
namespace {

struct Pair {
  int client = -1, server = -1;
  bool client_ended = false;
};

sockaddr_in loopback(int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

void close_pair(Pair& pair) {
  for (int* fd : {&pair.client, &pair.server}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
}

/// A client that ended its side may still wait for the server's end, as one of syslog over TLS does. Returns false if
/// it had ended before.
bool pass_on_end(Pair& pair) {
  if (std::exchange(pair.client_ended, true)) return false;
  ::shutdown(pair.server, SHUT_WR);
  return true;
}

bool forward(int to, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(to, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

CuttingRelay::CuttingRelay(int server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name = loopback(0);
  socklen_t size = sizeof name;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&name), size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    throw std::runtime_error("relay: cannot listen on loopback");
  }
  port_ = ntohs(name.sin_port);
  thread_ = std::thread([this] { serve(); });
}

CuttingRelay::~CuttingRelay() {
  done_ = true;
  thread_.join();
  ::close(listener_);
}

void CuttingRelay::cut_after(long long bytes) {
  passed_ = 0;
  limit_ = bytes;
}

void CuttingRelay::point_to(int server_port) {
  server_port_ = server_port;
  cut_all_ = true;
}

void CuttingRelay::before(const std::string& text, std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  awaited_ = text;
  action_ = std::move(action);
}

void CuttingRelay::act_before(std::string_view bytes) {
  std::function<void()> action;
  {
    const std::lock_guard lock(mutex_);
    if (action_ && bytes.find(awaited_) != std::string_view::npos) action.swap(action_);
  }
  if (action) action();
}

void CuttingRelay::serve() {
  std::vector<Pair> pairs;
  std::array<char, 4096> page{};
  while (!done_) {
    if (cut_all_.exchange(false)) {
      for (auto& pair : pairs) close_pair(pair);
      pairs.clear();
    }
    std::vector<pollfd> fds{{listener_, POLLIN, 0}};
    for (const auto& pair : pairs) {
      fds.push_back({pair.client, static_cast<short>(pair.client_ended ? 0 : POLLIN), 0});
      fds.push_back({pair.server, POLLIN, 0});
    }
    ::poll(fds.data(), fds.size(), 20);
    for (std::size_t i = 1; i < fds.size(); ++i) {
      Pair& pair = pairs[(i - 1) / 2];
      if (fds[i].revents == 0 || pair.client < 0) continue;
      const bool from_server = i % 2 == 0;
      ssize_t got = ::recv(from_server ? pair.server : pair.client, page.data(), page.size(), 0);
      if (got == 0 && !from_server && pass_on_end(pair)) continue;
      bool cut = got <= 0;
      if (!cut && from_server && limit_ >= 0) {
        got = std::min<long long>(got, limit_ - passed_);
        cut = passed_ + got >= limit_;
        cuts_ += cut ? 1 : 0;
      }
      if (got > 0 && from_server) passed_ += got;
      if (got > 0 && !from_server) act_before({page.data(), static_cast<std::size_t>(got)});
      if (got > 0 && !forward(from_server ? pair.client : pair.server, page.data(), static_cast<std::size_t>(got)))
        cut = true;
      if (cut) close_pair(pair);
    }
    std::erase_if(pairs, [](const Pair& pair) { return pair.client < 0; });
    if (fds[0].revents == 0) continue;
    Pair fresh{::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const sockaddr_in name = loopback(server_port_);
    if (::connect(fresh.server, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
      close_pair(fresh);
    else
      pairs.push_back(fresh);
  }
  for (auto& pair : pairs) close_pair(pair);
}

}  // namespace driftd::test
