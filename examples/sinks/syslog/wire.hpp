// SPDX-License-Identifier: Apache-2.0
// Sending to a syslog server: TCP (RFC 6587), TLS (RFC 5425), UDP (RFC 5426) and a Unix datagram socket. Every wait
// ends when the call is cancelled or its deadline passes. A failure of the endpoint is thrown as UNAVAILABLE: the host
// pauses the sink.
#pragma once

#include <openssl/ssl.h>
#include <unistd.h>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "driftd/sink.hpp"

namespace syslog_sink {

namespace sdk = driftd::sdk;

// The address of the server, and the certificate to show to it.
struct Endpoint {
  std::string host, port;
  std::string socket;  // path of a Unix socket; then there is no host
  bool tls = false, udp = false;
  std::string server_name;    // checked against the certificate and sent as SNI; empty: `host`
  std::string ca, cert, key;  // files in PEM; `ca` empty: the system's authorities
  bool datagrams() const { return udp || !socket.empty(); }
  std::string shown() const { return socket.empty() ? host + ":" + port : socket; }
};

// A descriptor that is closed at the end of its scope.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Throws UNAVAILABLE with this text.
[[noreturn]] void unavailable(const std::string& text);

// Returns how long it is until then, at least 1. Throws UNAVAILABLE if it has passed, CANCELLED if the call was.
std::int64_t left_ms(sdk::sink::Call& call, std::int64_t until_ns, const std::string& what);

// Returns true if the socket is ready within that time. Returns earlier if the call is cancelled.
bool ready_within(sdk::sink::Call& call, int fd, short events, std::int64_t pause_ms, const std::string& what);

// Waits until the socket is ready. `until_ns` (CLOCK_MONOTONIC) may be earlier than the deadline of the call.
void wait_for(sdk::sink::Call& call, int fd, short events, std::int64_t until_ns, const std::string& what);

// Connects to the first address that answers. The look-up of the name is the one step that cannot be cancelled: it
// lasts as long as the resolver's own limits.
Fd connect_to(sdk::sink::Call& call, const Endpoint& endpoint, std::int64_t until_ns);

// A connection over TCP or TLS. It carries the messages of one batch and is then closed by both sides. Borrows the call
// and the endpoint.
class Stream {
 public:
  Stream(sdk::sink::Call& call, const Endpoint& endpoint, std::int64_t until_ns);
  void write(std::string_view bytes);
  // Ends the connection (end.cpp). Returns only if the server ended it as one does that has read everything. What it
  // does with it then is its own affair.
  void finish();

 private:
  void await_arrival();
  void end_ours();
  void await_end();
  void await_close();
  void await_last_arrival();
  void start_tls();
  void use_files();
  bool read_end();
  int unacknowledged() const;
  [[noreturn]] void unread() const;
  [[noreturn]] void refuse_file(const char* setting, const std::string& file);
  short awaited(long result, short events, const char* doing) const;
  void wait_to_go_on(long result, short events, const char* doing);

  sdk::sink::Call& call_;
  const Endpoint& endpoint_;
  const std::int64_t until_ns_;
  Fd fd_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, &SSL_free};
};

}  // namespace syslog_sink
