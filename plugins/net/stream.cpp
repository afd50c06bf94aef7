// SPDX-License-Identifier: Apache-2.0
#include "net/stream.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace driftd::net {
namespace {

std::string tls_error() {
  const unsigned long code = ERR_get_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "the connection was closed" : reason;
}

void must(int result, const char* setting, const std::string& path) {
  if (result == 1) return;
  throw sdk::Failure(DRIFTD_INVALID, std::string("settings.tls.") + setting + ": " + path + ": " + tls_error());
}

int give_password(char* to, int max_bytes, int, void* user) {
  const auto& password = *static_cast<const std::string*>(user);
  const int size = std::min(max_bytes, static_cast<int>(password.size()));
  std::memcpy(to, password.data(), static_cast<std::size_t>(size));
  return size;
}

void use_certificate(sdk::Call& call, SSL_CTX* to, const Tls& tls) {
  must(SSL_CTX_use_certificate_chain_file(to, tls.certificate.c_str()), "certificate", tls.certificate);
  std::string password = tls.key_password_token.empty() ? std::string() : call.secret(tls.key_password_token);
  SSL_CTX_set_default_passwd_cb(to, &give_password);  // also without one: OpenSSL would ask the terminal
  SSL_CTX_set_default_passwd_cb_userdata(to, &password);
  const int used = SSL_CTX_use_PrivateKey_file(to, tls.key.c_str(), SSL_FILETYPE_PEM);
  SSL_CTX_set_default_passwd_cb_userdata(to, nullptr);
  OPENSSL_cleanse(password.data(), password.size());
  must(used, "key", tls.key);
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Context make_context(sdk::Call& call, const Tls& tls) {
  // A worker may read little of /etc, and nothing in openssl.cnf concerns us.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  Context out(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (!out) throw sdk::Failure(DRIFTD_INTERNAL, "TLS: " + tls_error());
  SSL_CTX_set_min_proto_version(out.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(out.get(), tls.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (tls.ca.empty())
    SSL_CTX_set_default_verify_paths(out.get());
  else
    must(SSL_CTX_load_verify_locations(out.get(), tls.ca.c_str(), nullptr), "ca", tls.ca);
  if (!tls.certificate.empty()) use_certificate(call, out.get(), tls);
  return out;
}

}  // namespace

std::unique_ptr<Stream> Stream::open(sdk::Call& call, const Peer& peer, const Tls* tls, Steady::time_point until) {
  std::unique_ptr<Stream> out(new Stream(peer.where));
  out->connect(call, peer, until);
  if (tls != nullptr) out->shake_hands(call, *tls, peer.host, until);
  return out;
}

Stream::~Stream() {
  SSL_free(ssl_);
  if (fd_ >= 0) ::close(fd_);
}

void Stream::fail(const std::string& why) const { throw sdk::Failure(DRIFTD_UNAVAILABLE, where_ + ": " + why); }

void Stream::connect(sdk::Call& call, const Peer& peer, Steady::time_point until) {
  if (!peer.socket.empty()) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (peer.socket.size() >= sizeof name.sun_path) {
      throw sdk::Failure(DRIFTD_INVALID, where_ + ": the path of the socket is too long");
    }
    std::memcpy(name.sun_path, peer.socket.c_str(), peer.socket.size() + 1);
    if (try_connect(call, &name, sizeof name, AF_UNIX, until)) return;
    fail(last_error_);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int status = ::getaddrinfo(peer.host.c_str(), std::to_string(peer.port).c_str(), &hints, &raw);
  if (status != 0) fail(::gai_strerror(status));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
  int left = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) ++left;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next, --left) {
    const auto now = Steady::now();
    const auto share = std::max(now, now + (until - now) / left);  // a silent address must not use up the time of the
                                                                   // others
    if (try_connect(call, one->ai_addr, one->ai_addrlen, one->ai_family, share)) return;
  }
  fail(last_error_);
}

bool Stream::try_connect(sdk::Call& call, const void* address, unsigned size, int family, Steady::time_point until) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return last_error_ = std::strerror(errno), false;
  const int on = 1;
  if (family != AF_UNIX) ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd_, static_cast<const sockaddr*>(address), size) == 0) return true;
  if (errno != EINPROGRESS) return last_error_ = std::strerror(errno), false;
  try {
    wait(call, POLLOUT, until);
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_UNAVAILABLE) throw;
    return last_error_ = "no answer in time", false;
  }
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) last_error_ = std::strerror(error);
  return error == 0;
}

void Stream::shake_hands(sdk::Call& call, const Tls& tls, const std::string& host, Steady::time_point until) {
  const Context context = make_context(call, tls);
  const std::string& name = tls.server_name.empty() ? host : tls.server_name;
  ssl_ = SSL_new(context.get());
  if (ssl_ == nullptr || SSL_set_fd(ssl_, fd_) != 1) throw sdk::Failure(DRIFTD_INTERNAL, "TLS: " + tls_error());
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl_);
  if (is_address(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(expected, name.c_str(), name.size());
    SSL_set_tlsext_host_name(ssl_, name.c_str());
  }
  for (int result = SSL_connect(ssl_); result != 1; result = SSL_connect(ssl_)) {
    wait_tls(call, result, until, "TLS handshake");
  }
}

void Stream::wait_tls(sdk::Call& call, int result, Steady::time_point until, const char* doing) {
  const int reason = SSL_get_error(ssl_, result);
  if (reason == SSL_ERROR_WANT_READ) return wait(call, POLLIN, until);
  if (reason == SSL_ERROR_WANT_WRITE) return wait(call, POLLOUT, until);
  const long verdict = SSL_get_verify_result(ssl_);
  const bool refused = SSL_get_verify_mode(ssl_) != SSL_VERIFY_NONE && verdict != X509_V_OK;
  const int system = reason == SSL_ERROR_SYSCALL ? errno : 0;
  const std::string why =
      system != 0 ? std::strerror(system)
      : refused   ? std::string("the server's certificate is refused: ") + X509_verify_cert_error_string(verdict)
                  : tls_error();
  ERR_clear_error();
  fail(std::string(doing) + ": " + why);
}

void Stream::wait(sdk::Call& call, short events, Steady::time_point until) const {
  const Steady::time_point deadline = call.deadline_ns() > 0
                                          ? Steady::time_point(std::chrono::nanoseconds(call.deadline_ns()))
                                          : Steady::time_point::max();
  const auto end = std::min(until, deadline);
  while (true) {
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, where_ + ": cancelled");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Steady::now()).count();
    if (left <= 0) {
      throw sdk::Failure(end == deadline ? DRIFTD_DEADLINE : DRIFTD_UNAVAILABLE, where_ + ": no answer in time");
    }
    pollfd fds[2] = {{fd_, events, 0}, {call.cancel_fd(), POLLIN, 0}};
    const int ready = ::poll(fds, 2, static_cast<int>(std::min<long long>(left, 60'000)));
    if (ready < 0 && errno != EINTR) throw sdk::Failure(DRIFTD_INTERNAL, where_ + ": poll: " + std::strerror(errno));
    if (ready > 0 && fds[0].revents != 0) return;
  }
}

void Stream::write(sdk::Call& call, std::string_view bytes, Steady::time_point until) {
  while (!bytes.empty()) {
    if (ssl_ != nullptr) {
      const int done = SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
      if (done > 0)
        bytes.remove_prefix(static_cast<std::size_t>(done));
      else
        wait_tls(call, done, until, "TLS write");
      continue;
    }
    const ssize_t done = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done > 0)
      bytes.remove_prefix(static_cast<std::size_t>(done));
    else if (errno == EAGAIN || errno == EINTR)
      wait(call, POLLOUT, until);
    else
      fail(std::strerror(errno));
  }
}

std::size_t Stream::read(sdk::Call& call, char* to, std::size_t max_bytes, Steady::time_point until) {
  while (true) {
    if (ssl_ != nullptr) {
      const int done = SSL_read(ssl_, to, static_cast<int>(max_bytes));
      if (done > 0) return static_cast<std::size_t>(done);
      wait_tls(call, done, until, "TLS read");
      continue;
    }
    const ssize_t done = ::recv(fd_, to, max_bytes, 0);
    if (done > 0) return static_cast<std::size_t>(done);
    if (done == 0) fail("the server closed the connection");
    if (errno != EAGAIN && errno != EINTR) fail(std::strerror(errno));
    wait(call, POLLIN, until);
  }
}

}  // namespace driftd::net
