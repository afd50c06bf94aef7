// SPDX-License-Identifier: Apache-2.0
// The receiver's own process, and the memory that it shares.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <unordered_map>

#include "check/check.hpp"
#include "check/sink/receiver_memory.hpp"

namespace driftd::check {

Receiver::Shared* Receiver::Shared::map() {
  void* at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw CheckNotMade("no memory for what a receiver gets");
  return new (at) Shared;
}

void Receiver::Shared::unmap(Shared* shared) { ::munmap(shared, sizeof *shared); }

void Receiver::Shared::append(std::uint32_t connection, const char* bytes, std::size_t size) {
  const auto length = static_cast<std::uint32_t>(size);
  const std::uint64_t at = used;
  if (at + sizeof connection + sizeof length + size > kCapacity) {
    lost = true;
    return;
  }
  std::memcpy(data + at, &connection, sizeof connection);
  std::memcpy(data + at + sizeof connection, &length, sizeof length);
  std::memcpy(data + at + sizeof connection + sizeof length, bytes, size);
  used = at + sizeof connection + sizeof length + size;
}

std::uint64_t Receiver::Shared::read(std::uint64_t at, Chunk& out) const {
  std::uint32_t length = 0;
  std::memcpy(&out.connection, data + at, sizeof out.connection);
  std::memcpy(&length, data + at + sizeof out.connection, sizeof length);
  const std::uint64_t begin = at + sizeof out.connection + sizeof length;
  out.bytes.assign(data + begin, length);
  return begin + length;
}

namespace {

constexpr std::size_t kBuffer = 1u << 20;  // no datagram of a Unix socket is larger where limits are the usual ones

/// One connection of the receiver.
struct Connection {
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
};

/// The loop of the receiver's process. It ends when it is killed.
template <class Memory, class Sockets>
class Server {
 public:
  Server(Memory& memory, const Sockets& sockets, int arrived, const Receiver::Behaviour& behaviour)
      : memory_(memory),
        sockets_(sockets),
        arrived_(arrived),
        behaviour_(behaviour),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (const int fd : {sockets_.tcp, sockets_.udp, sockets_.unix_stream, sockets_.unix_datagram}) {
      if (fd >= 0) watch(fd);
    }
  }

  [[noreturn]] void run() {
    for (;;) {
      std::array<epoll_event, 64> events{};
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      if (count < 0 && errno != EINTR) ::_exit(1);
      for (int i = 0; i < count; ++i) handle(events[static_cast<std::size_t>(i)].data.fd);
    }
  }

 private:
  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    (void)::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void handle(int fd) {
    if (fd == sockets_.tcp || fd == sockets_.unix_stream) return accept_all(fd);
    if (fd == sockets_.udp || fd == sockets_.unix_datagram) return read_datagrams(fd);
    read_stream(fd);
  }

  void accept_all(int listener) {
    for (int fd = 0; (fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
      connections_[fd] = {++numbers_, 0};
      watch(fd);
    }
  }

  void read_datagrams(int socket) {
    ssize_t n = 0;
    while ((n = ::recv(socket, buffer_.data(), buffer_.size(), 0)) >= 0) take(++numbers_, static_cast<std::size_t>(n));
  }

  void read_stream(int fd) {
    Connection& connection = connections_[fd];
    for (;;) {
      std::size_t room = buffer_.size();
      const std::uint64_t reset_after = memory_.reset_after;
      if (reset_after > 0) room = std::min<std::size_t>(room, reset_after - std::min(reset_after, connection.bytes));
      if (room == 0) return reset(fd);
      const ssize_t n = ::read(fd, buffer_.data(), room);
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return drop(fd);
      connection.bytes += static_cast<std::uint64_t>(n);
      take(connection.number, static_cast<std::size_t>(n));
      if (!answer(fd, static_cast<std::size_t>(n))) return drop(fd);
    }
  }

  void take(std::uint32_t connection, std::size_t size) {
    memory_.arrived += size;
    if (!behaviour_.keeps) return;
    memory_.append(connection, buffer_.data(), size);
    (void)::eventfd_write(arrived_, 1);
  }

  /// Answers each line in the buffer. Returns false if the peer does not read the answers.
  bool answer(int fd, std::size_t size) {
    if (behaviour_.answer.empty()) return true;
    const auto lines = std::count(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(size), '\n');
    std::string text;
    for (std::ptrdiff_t i = 0; i < lines; ++i) text += behaviour_.answer;
    return text.empty() || ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  void drop(int fd) {
    connections_.erase(fd);
    ::close(fd);
  }

  /// A Unix socket has no reset of its own: its peer sees one if it is closed while unread bytes are left.
  void reset(int fd) {
    const linger now{1, 0};
    (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    drop(fd);
  }

  Memory& memory_;
  const Sockets& sockets_;
  const int arrived_;
  const Receiver::Behaviour& behaviour_;
  const int epoll_;
  std::uint32_t numbers_ = 0;
  std::unordered_map<int, Connection> connections_;
  std::array<char, kBuffer> buffer_{};
};

}  // namespace

void Receiver::serve(Shared& shared, const Sockets& sockets, int arrived, const Behaviour& behaviour) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Server(shared, sockets, arrived, behaviour).run();
}

}  // namespace driftd::check
