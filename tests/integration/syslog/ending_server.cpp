// SPDX-License-Identifier: Apache-2.0
#include "integration/syslog/ending_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <stdexcept>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {
namespace {

void await_client_end(int fd) {
  pollfd on{fd, POLLRDHUP, 0};
  ::poll(&on, 1, -1);
}

/// Takes what arrives from the socket, but never reads it: the session of TLS has ended.
void drop_all(int fd) {
  std::array<char, 1'024> page{};
  while (::recv(fd, page.data(), page.size(), 0) > 0) {
  }
}

/// Returns true if the last record of TLS 1.3 in these bytes is complete and an alert: two bytes with their type and
/// the tag. No line is that short.
bool ends_with_alert(const std::vector<unsigned char>& bytes) {
  constexpr std::size_t kHeader = 5, kAlert = 19;
  std::size_t at = 0, size = 0;
  while (at + kHeader <= bytes.size()) {
    size = bytes[at + 3] * 256u + bytes[at + 4];
    at += kHeader + size;
  }
  return at == bytes.size() && size == kAlert;
}

}  // namespace

EndingServer::EndingServer(const Certificates& certificates, Ending ending, bool tls)
    : ending_(ending),
      tls_(tls),
      context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
  certificates.issue("ending", "localhost", "DNS:localhost,IP:127.0.0.1");
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
  SSL_CTX_use_certificate_chain_file(context_.get(), certificates.certificate("ending").c_str());
  SSL_CTX_use_PrivateKey_file(context_.get(), certificates.key("ending").c_str(), SSL_FILETYPE_PEM);
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  const int small = 2'048;  // less than what a test sends, so that it is not all acknowledged before the server ended
  if (ending == Ending::at_once) ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&name), size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    throw std::runtime_error("ending server: cannot listen on loopback");
  }
  port_ = ntohs(name.sin_port);
  thread_ = std::thread([this] { serve(); });
}

EndingServer::~EndingServer() {
  done_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  if (const int fd = open_; fd >= 0) ::shutdown(fd, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

void EndingServer::serve() {
  while (!done_) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    open_ = fd;
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(tls_ ? SSL_new(context_.get()) : nullptr, &SSL_free);
    if (tls_) SSL_set_fd(ssl.get(), fd);
    if (!tls_ || SSL_accept(ssl.get()) == 1) talk(fd, ssl.get());
    open_ = -1;
    ::close(fd);
    ++connections_;
  }
}

void EndingServer::talk(int fd, SSL* ssl) {
  if (ending_ == Ending::unread || ending_ == Ending::unread_in_two_steps) {
    await_all(fd);
  } else if (ending_ != Ending::at_once) {
    read_all(fd, ssl);
  }
  if (ssl != nullptr) SSL_shutdown(ssl);
  switch (ending_) {
    case Ending::after_the_client:
    case Ending::unread:
      return;
    case Ending::after_both_ends:
      return await_client_end(fd);
    case Ending::at_once:
      ::shutdown(fd, SHUT_WR);
      return drop_all(fd);
    case Ending::unread_in_two_steps:
      ::shutdown(fd, SHUT_RDWR);
      return;
    case Ending::left_open:
      return await_client_gone(fd);
  }
}

void EndingServer::await_client_gone(int fd) const {
  eventually([&] {
    pollfd on{fd, 0, 0};  // POLLERR: the client refuses what it gets. It does so at the latest at this byte.
    ::send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return done_ || ::poll(&on, 1, 0) != 0;
  });
}

void EndingServer::read_all(int fd, SSL* ssl) {
  std::array<char, 4096> page{};
  for (;;) {
    const long got = ssl != nullptr ? SSL_read(ssl, page.data(), static_cast<int>(page.size()))
                                    : ::recv(fd, page.data(), page.size(), 0);
    if (got <= 0) return;
    bytes_ += static_cast<std::size_t>(got);
  }
}

void EndingServer::await_all(int fd) const {
  if (!tls_) return await_client_end(fd);
  eventually([&] {
    std::vector<unsigned char> queued(std::size_t{1} << 20);
    const ssize_t got = ::recv(fd, queued.data(), queued.size(), MSG_PEEK | MSG_DONTWAIT);
    queued.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    pollfd on{fd, POLLRDHUP, 0};  // a probe says nothing before it leaves
    return done_ || ends_with_alert(queued) || ::poll(&on, 1, 0) != 0;
  });
}

}  // namespace driftd::test
