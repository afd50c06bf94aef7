// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "support/kube.hpp"

namespace driftd::test {
namespace {

/// A connection through the relay.
struct Pair {
  int client = -1, server = -1;
  std::size_t bytes_back = 0;  ///< sent by the server
  bool mute = false;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

void close_pair(const Pair& pair) {
  ::close(pair.client);
  ::close(pair.server);
}

sockaddr_in loopback(int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

/// Sets a flag for the relay's thread and waits until the thread has obeyed and cleared it.
void set_and_wait(std::atomic<bool>& flag) {
  flag = true;
  if (!eventually([&] { return !flag; })) throw std::runtime_error("relay: its thread hangs");
}

}  // namespace

struct Relay::State {
  std::atomic<int> to{0};
  int listener = -1;
  std::atomic<std::size_t> limit{0}, rate{0};
  std::atomic<bool> stop{false}, cut{false}, mute{false}, closed{false};
  std::atomic<int> cuts{0}, connections{0};
  std::thread thread;

  void run();
  /// Returns true if the server has already sent more than the rate allows.
  bool is_ahead(const Pair& pair) const {
    const std::chrono::duration<double> lived = std::chrono::steady_clock::now() - pair.began;
    return rate > 0 && static_cast<double>(pair.bytes_back) > lived.count() * static_cast<double>(rate.load());
  }
  /// Passes on what `from` has sent. Returns false if the connection must be closed. `back`: `from` is the server.
  bool pass(int from, int into, Pair& pair, bool back);
};

bool Relay::State::pass(int from, int into, Pair& pair, bool back) {
  char buffer[16 << 10];
  const ssize_t got = ::recv(from, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t some = ::send(into, buffer + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
    if (some <= 0) return false;
    sent += some;
  }
  if (back) pair.bytes_back += static_cast<std::size_t>(got);
  const bool over = back && limit > 0 && pair.bytes_back >= limit;
  if (over) ++cuts;
  return !over;
}

void Relay::State::run() {
  std::vector<Pair> pairs;
  while (!stop) {
    if (cut.exchange(false)) {
      for (const auto& pair : pairs) close_pair(pair);
      cuts += static_cast<int>(pairs.size());
      pairs.clear();
    }
    if (mute.exchange(false)) {
      for (auto& pair : pairs) pair.mute = true;
    }
    std::vector<pollfd> fds = {{listener, POLLIN, 0}};
    for (const auto& pair : pairs) {  // poll() ignores a negative descriptor
      fds.push_back({pair.mute ? -1 : pair.client, POLLIN, 0});
      fds.push_back({pair.mute || is_ahead(pair) ? -1 : pair.server, POLLIN, 0});
    }
    if (::poll(fds.data(), fds.size(), 20) <= 0) continue;
    std::vector<Pair> left;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      Pair& pair = pairs[i];
      const bool lives = (fds[1 + 2 * i].revents == 0 || pass(pair.client, pair.server, pair, false)) &&
                         (fds[2 + 2 * i].revents == 0 || pass(pair.server, pair.client, pair, true));
      if (lives) {
        left.push_back(pair);
      } else {
        close_pair(pair);
      }
    }
    pairs = std::move(left);
    if (fds[0].revents == 0) continue;
    Pair fresh{::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
               0};
    const sockaddr_in address = loopback(to);
    if (!closed && ::connect(fresh.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      pairs.push_back(fresh);
      ++connections;
    } else {
      close_pair(fresh);
    }
  }
  for (const auto& pair : pairs) close_pair(pair);
}

Relay::Relay(int to) : state_(std::make_shared<State>()) {
  state_->to = to;
  state_->listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(state_->listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(state_->listener, 16) != 0 ||
      ::getsockname(state_->listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("relay: cannot listen on loopback");
  }
  port_ = ntohs(address.sin_port);
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Relay::~Relay() {
  state_->stop = true;
  state_->thread.join();
  ::close(state_->listener);
}

void Relay::cut_after(std::size_t bytes) { state_->limit = bytes; }
void Relay::slow(std::size_t bytes_per_second) { state_->rate = bytes_per_second; }
void Relay::cut_now() { set_and_wait(state_->cut); }
void Relay::mute_now() { set_and_wait(state_->mute); }
void Relay::close() {
  state_->closed = true;
  cut_now();
}
void Relay::open() { state_->closed = false; }
void Relay::point_to(int port) { state_->to = port; }
int Relay::cuts() const { return state_->cuts; }
int Relay::connections() const { return state_->connections; }

}  // namespace driftd::test
