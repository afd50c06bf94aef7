// SPDX-License-Identifier: Apache-2.0
#include "check/sink/receiver.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "check/check.hpp"
#include "check/sink/events.hpp"
#include "check/sink/receiver_memory.hpp"
#include "check/unix_socket.hpp"

namespace driftd::check {
namespace {

using Json = nlohmann::json;
using Steady = std::chrono::steady_clock;

std::string placeholder(const std::string& protocol) { return "${" + protocol + "}"; }

void replace(std::string& in, const std::string& what, const std::string& by) {
  for (auto at = in.find(what); at != std::string::npos; at = in.find(what, at + by.size()))
    in.replace(at, what.size(), by);
}

void fill_in(Json& value, const Addresses& addresses) {
  if (value.is_structured()) {
    for (auto& item : value.items()) fill_in(item.value(), addresses);
    return;
  }
  if (!value.is_string()) return;
  auto text = value.get<std::string>();
  for (const auto& [name, port] : {std::pair("tcp", addresses.tcp), std::pair("udp", addresses.udp)}) {
    if (text == placeholder(name)) {
      value = port;
      return;
    }
    replace(text, placeholder(name), std::to_string(port));
  }
  replace(text, placeholder("unix"), addresses.unix_stream);
  replace(text, placeholder("unixgram"), addresses.unix_datagram);
  value = text;
}

int open_socket(int type, int& port) {
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  const int room = 8 << 20;  // the kernel gives what it allows
  if (fd >= 0 && type == SOCK_DGRAM) (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  if (fd < 0 || ::bind(fd, address, size) != 0 || (type == SOCK_STREAM && ::listen(fd, 1024) != 0) ||
      ::getsockname(fd, address, &size) != 0) {
    throw CheckNotMade(fmt::format("no listening socket on loopback: {}", std::strerror(errno)));
  }
  port = ::ntohs(at.sin_port);
  return fd;
}

int open_unix_socket(int type, const std::string& folder, const char* name, std::string& path) {
  if (folder.empty()) return -1;
  static int number = 0;
  path = fmt::format("{}/{}-{}.{}", folder, ::getpid(), ++number, name);
  const int fd = bind_unix_socket(path, type | SOCK_NONBLOCK);
  if (type == SOCK_STREAM) (void)::listen(fd, 1024);
  return fd;
}

}  // namespace

std::string with_addresses(const std::string& settings_json, const Addresses& addresses) {
  if (!names_address(settings_json)) return settings_json;
  Json settings = Json::parse(settings_json, nullptr, false);
  fill_in(settings, addresses);
  return settings.dump();
}

bool names_address(const std::string& settings_json, const char* name) {
  return settings_json.find(placeholder(name)) != std::string::npos;
}

bool names_address(const std::string& settings_json) {
  return names_address(settings_json, "tcp") || names_address(settings_json, "udp") ||
         names_unix_address(settings_json);
}

bool names_unix_address(const std::string& settings_json) {
  return names_address(settings_json, "unix") || names_address(settings_json, "unixgram");
}

Receiver::Receiver(const Behaviour& behaviour)
    : shared_(Shared::map()),
      arrived_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const Sockets sockets{open_socket(SOCK_STREAM, addresses_.tcp), open_socket(SOCK_DGRAM, addresses_.udp),
                        open_unix_socket(SOCK_STREAM, behaviour.folder, "stream", addresses_.unix_stream),
                        open_unix_socket(SOCK_DGRAM, behaviour.folder, "datagram", addresses_.unix_datagram)};
  shared_->reset_after = behaviour.reset_after;
  pid_ = ::fork();
  if (pid_ == 0) serve(*shared_, sockets, arrived_, behaviour);
  for (const int fd : {sockets.tcp, sockets.udp, sockets.unix_stream, sockets.unix_datagram}) {
    if (fd >= 0) ::close(fd);
  }
  if (pid_ < 0) throw CheckNotMade(fmt::format("the receiver cannot be started: {}", std::strerror(errno)));
}

Receiver::~Receiver() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (const auto& path : {addresses_.unix_stream, addresses_.unix_datagram}) {
    if (!path.empty()) ::unlink(path.c_str());
  }
  if (arrived_ >= 0) ::close(arrived_);
  Shared::unmap(shared_);
}

void Receiver::set_reset_after(std::uint64_t bytes) { shared_->reset_after = bytes; }
std::uint64_t Receiver::bytes() const { return shared_->arrived; }

void Receiver::update() {
  if (shared_->lost) throw CheckNotMade("more arrived at the check's receiver than it can keep");
  Chunk chunk;
  while (read_ < shared_->used) {
    read_ = shared_->read(read_, chunk);
    Stream& stream = streams_[chunk.connection];
    stream.text.append(chunk.bytes);
    if (!prefix_.empty()) look(chunk.connection, stream);
  }
}

void Receiver::look(std::uint32_t connection, Stream& stream) {
  const std::string start = prefix_ + "-";
  for (;;) {
    const auto at = stream.text.find(start, stream.looked_at);
    if (at == std::string::npos) {  // the beginning of an id may be at the end
      stream.looked_at = std::max(stream.looked_at, stream.text.size() - std::min(stream.text.size(), start.size()));
      return;
    }
    stream.looked_at = at;
    if (stream.text.size() < at + start.size() + EventMaker::kDigits) return;
    const std::string digits = stream.text.substr(at + start.size(), EventMaker::kDigits);
    stream.looked_at = at + start.size();
    if (digits.find_first_not_of("0123456789") != std::string::npos) continue;
    arrivals_.push_back({static_cast<std::size_t>(std::stoul(digits)), connection});
  }
}

const std::vector<Receiver::Arrival>& Receiver::arrivals() {
  update();
  return arrivals_;
}

std::size_t Receiver::count(std::size_t event) {
  update();
  return static_cast<std::size_t>(
      std::count_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& a) { return a.event == event; }));
}

template <class Holds>
bool Receiver::wait_until(const Holds& holds, std::chrono::milliseconds time_limit) {
  const auto until = Steady::now() + time_limit;
  for (;;) {
    std::uint64_t ignored = 0;
    (void)!::read(arrived_, &ignored, sizeof ignored);  // nothing new makes it fail
    update();
    if (holds()) return true;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Steady::now()).count();
    if (left <= 0) return false;
    pollfd fd{arrived_, POLLIN, 0};
    (void)::poll(&fd, 1, static_cast<int>(left));
  }
}

long Receiver::await(const std::vector<std::size_t>& events, std::chrono::milliseconds time_limit, std::size_t times) {
  long missing = -1;
  (void)wait_until(
      [&] {
        std::map<std::size_t, std::size_t> here;
        for (const auto& arrival : arrivals_) ++here[arrival.event];
        const auto first = std::find_if(events.begin(), events.end(), [&](std::size_t e) { return here[e] < times; });
        missing = first == events.end() ? -1 : static_cast<long>(*first);
        return missing < 0;
      },
      time_limit);
  return missing;
}

bool Receiver::await_text(const std::string& text, std::chrono::milliseconds time_limit) {
  return wait_until(
      [&] {
        return std::any_of(streams_.begin(), streams_.end(),
                           [&](const auto& stream) { return stream.second.text.find(text) != std::string::npos; });
      },
      time_limit);
}

}  // namespace driftd::check
