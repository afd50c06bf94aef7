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

struct Pair {
  int near = -1, far = -1;
  std::size_t back = 0;
  bool mute = false;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

sockaddr_in loopback(int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

/// Returns when the relay's thread has taken it up: nothing passes any more.
void order(std::atomic<bool>& what) {
  what = true;
  if (!eventually([&] { return !what; })) throw std::runtime_error("relay: stuck");
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
  bool is_ahead(const Pair& pair) const {
    const std::chrono::duration<double> lived = std::chrono::steady_clock::now() - pair.began;
    return rate > 0 && static_cast<double>(pair.back) > lived.count() * static_cast<double>(rate.load());
  }
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
  if (back) pair.back += static_cast<std::size_t>(got);
  const bool over = back && limit > 0 && pair.back >= limit;
  if (over) ++cuts;
  return !over;
}

void Relay::State::run() {
  std::vector<Pair> pairs;
  while (!stop) {
    if (cut.exchange(false)) {
      for (const auto& pair : pairs) ::close(pair.near), ::close(pair.far), ++cuts;
      pairs.clear();
    }
    if (mute.exchange(false)) {
      for (auto& pair : pairs) pair.mute = true;
    }
    std::vector<pollfd> fds = {{listener, POLLIN, 0}};
    for (const auto& pair : pairs) {  // poll passes over a negative one
      fds.push_back({pair.mute ? -1 : pair.near, POLLIN, 0});
      fds.push_back({pair.mute || is_ahead(pair) ? -1 : pair.far, POLLIN, 0});
    }
    if (::poll(fds.data(), fds.size(), 20) <= 0) continue;
    std::vector<Pair> left;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      Pair& pair = pairs[i];
      const bool lives = (fds[1 + 2 * i].revents == 0 || pass(pair.near, pair.far, pair, false)) &&
                         (fds[2 + 2 * i].revents == 0 || pass(pair.far, pair.near, pair, true));
      if (lives) {
        left.push_back(pair);
      } else {
        ::close(pair.near);
        ::close(pair.far);
      }
    }
    pairs = std::move(left);
    if (fds[0].revents == 0) continue;
    Pair fresh{::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
               0};
    const sockaddr_in address = loopback(to);
    if (!closed && ::connect(fresh.far, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      pairs.push_back(fresh);
      ++connections;
    } else {
      ::close(fresh.near);
      ::close(fresh.far);
    }
  }
  for (const auto& pair : pairs) ::close(pair.near), ::close(pair.far);
}

Relay::Relay(int to) : state_(std::make_shared<State>()) {
  state_->to = to;
  state_->listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(state_->listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(state_->listener, 16) != 0 ||
      ::getsockname(state_->listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("relay: no port");
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
void Relay::cut_now() { order(state_->cut); }
void Relay::mute_now() { order(state_->mute); }
void Relay::close() {
  state_->closed = true;
  cut_now();
}
void Relay::open() { state_->closed = false; }
void Relay::point_to(int port) { state_->to = port; }
int Relay::cuts() const { return state_->cuts; }
int Relay::connections() const { return state_->connections; }

}  // namespace driftd::test
