// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace syslog_sink {
namespace {

// The first error of OpenSSL's queue, which it empties.
std::string reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "unknown error" : text;
}

// Returns at once: a Unix socket has somebody behind it or not.
Fd connect_to_socket(const Endpoint& endpoint) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  endpoint.socket.copy(at.sun_path, sizeof at.sun_path - 1);
  Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() >= 0 && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return fd;
  unavailable(endpoint.shown() + ": " + (errno == EPROTOTYPE ? "is not a datagram socket" : std::strerror(errno)));
}

}  // namespace

void unavailable(const std::string& text) { throw sdk::Failure(DRIFTD_UNAVAILABLE, text); }

std::int64_t left_ms(sdk::sink::Call& call, std::int64_t until_ns, const std::string& what) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t left = (until_ns - (now.tv_sec * 1'000'000'000ll + now.tv_nsec)) / 1'000'000;
  if (left <= 0) unavailable(what + ": no answer in time");  // first: at the deadline the call is cancelled, too
  if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, what + ": the host ended the call");
  return left;
}

bool ready_within(sdk::sink::Call& call, int fd, short events, std::int64_t pause_ms, const std::string& what) {
  pollfd on[2] = {{fd, events, 0}, {call.cancel_fd(), POLLIN, 0}};  // poll ignores an fd of -1
  const int ready = ::poll(on, 2, static_cast<int>(pause_ms));
  if (ready < 0 && errno != EINTR) unavailable(what + ": " + std::strerror(errno));
  return ready > 0 && on[0].revents != 0;
}

void wait_for(sdk::sink::Call& call, int fd, short events, std::int64_t until_ns, const std::string& what) {
  for (;;) {
    const std::int64_t left = left_ms(call, until_ns, what);
    if (ready_within(call, fd, events, std::min<std::int64_t>(left, 1'000), what)) return;
  }
}

Fd connect_to(sdk::sink::Call& call, const Endpoint& endpoint, std::int64_t until_ns) {
  if (!endpoint.socket.empty()) return connect_to_socket(endpoint);
  addrinfo hints{};
  hints.ai_socktype = endpoint.udp ? SOCK_DGRAM : SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found);
  if (failed != 0) unavailable(endpoint.shown() + ": " + ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  std::string why = "no address";
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Fd fd(::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol));
    if (fd.get() < 0) continue;
    if (::connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return fd;
    if (errno == EINPROGRESS) {
      wait_for(call, fd.get(), POLLOUT, until_ns, endpoint.shown() + ": connecting");
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return fd;
      errno = error;
    }
    why = std::strerror(errno);
  }
  unavailable(endpoint.shown() + ": " + why);
}

Stream::Stream(sdk::sink::Call& call, const Endpoint& endpoint, std::int64_t until_ns)
    : call_(call),
      endpoint_(endpoint),
      until_ns_(until_ns),
      fd_(connect_to(call, endpoint, until_ns)) {
  if (endpoint_.tls) start_tls();
}

void Stream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const long sent = endpoint_.tls ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                                    : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else {
      wait_to_go_on(sent, POLLOUT, "sending");
    }
  }
}

// The authorities that are trusted, and the client certificate.
void Stream::use_files() {
  const bool trusted = endpoint_.ca.empty()
                           ? SSL_CTX_set_default_verify_paths(context_.get()) == 1
                           : SSL_CTX_load_verify_locations(context_.get(), endpoint_.ca.c_str(), nullptr) == 1;
  if (!trusted) refuse_file("settings.ca", endpoint_.ca);
  if (!endpoint_.cert.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context_.get(), endpoint_.cert.c_str()) != 1)
      refuse_file("settings.cert", endpoint_.cert);
    const bool fits = SSL_CTX_use_PrivateKey_file(context_.get(), endpoint_.key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                      SSL_CTX_check_private_key(context_.get()) == 1;
    if (!fits) refuse_file("settings.key", endpoint_.key);
  }
}

void Stream::start_tls() {
  context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  use_files();
  ssl_.reset(SSL_new(context_.get()));
  const std::string& name = endpoint_.server_name.empty() ? endpoint_.host : endpoint_.server_name;
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), name.c_str()) != 1) {
    SSL_set1_host(ssl_.get(), name.c_str());
    SSL_set_tlsext_host_name(ssl_.get(), name.c_str());  // SNI, which is for names only
  }
  SSL_set_fd(ssl_.get(), fd_.get());
  for (int done = 0; (done = SSL_connect(ssl_.get())) != 1;) wait_to_go_on(done, POLLIN, "TLS");
}

void Stream::refuse_file(const char* setting, const std::string& file) {
  call_.diag(DRIFTD_UNAVAILABLE, file + " cannot be used", 0, setting);
  unavailable(std::string(setting) + ": " + file + " cannot be used: " + reason());
}

// Returns what the last operation waits for; throws if it failed.
short Stream::awaited(long result, short events, const char* doing) const {
  const std::string what = endpoint_.shown() + ": " + doing;
  if (!endpoint_.tls) {
    if (errno != EAGAIN && errno != EINTR) unavailable(what + ": " + std::strerror(errno));
    return events;
  }
  const int error = SSL_get_error(ssl_.get(), static_cast<int>(result));
  if (error == SSL_ERROR_WANT_READ) return POLLIN;
  if (error == SSL_ERROR_WANT_WRITE) return POLLOUT;
  const long verified = SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) unavailable(what + ": " + X509_verify_cert_error_string(verified));
  unavailable(what + ": " + (error == SSL_ERROR_SYSCALL && errno != 0 ? std::strerror(errno) : reason()));
}

// Waits until the last operation can go on; throws if it failed.
void Stream::wait_to_go_on(long result, short events, const char* doing) {
  const short on = awaited(result, events, doing);
  wait_for(call_, fd_.get(), on, until_ns_, endpoint_.shown() + ": " + doing);
}

}  // namespace syslog_sink
