// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace driftd::cli {

/// A syslog server that is reached over TLS (RFC 5425).
struct SyslogServer {
  std::string host, port;
  std::string ca, cert, key;  ///< files in PEM. `ca` empty: the system's authorities; `cert` empty: none is shown
  /// How long one step may take: connecting, the handshake, a write that makes no progress, or the server's end.
  std::chrono::seconds patience{30};
  std::string shown() const { return host + ":" + port; }
};

/// Parses `tls://HOST:PORT`; without a port it is 6514. Returns `invalid` for anything else.
Result<SyslogServer> parse_syslog_server(const std::string& url);

/// One connection over TLS, with the certificate of the server checked against its name. It carries some messages and
/// is then closed by both sides, because syslog has no acknowledgement: how the server ends says what it has read.
/// Blocks; every error is `unavailable` and says which step failed.
class SyslogStream {
 public:
  static Result<SyslogStream> open(const SyslogServer& server);
  /// Sends one message, framed by its length.
  Status send(std::string_view message);
  /// Ends the connection. Succeeds only if the server ended it as one does that has read everything; after any failure
  /// it may have read all, some or nothing of what was sent.
  Status finish();

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  /// A descriptor that is closed at the end of its life.
  class Socket {
   public:
    explicit Socket(int fd = -1) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~Socket();
    int get() const { return fd_; }

   private:
    int fd_;
  };
  explicit SyslogStream(const SyslogServer& server) : shown_(server.shown()), patience_(server.patience) {}
  Status connect(const SyslogServer& server);
  Status secure(const SyslogServer& server);
  Status use_files(const SyslogServer& server);
  Status write(std::string_view bytes);
  Status await_arrival(Deadline deadline);
  Status end_ours(Deadline deadline);
  Status await_end(Deadline deadline);
  Status await_close(Deadline deadline);
  Status await_last_arrival(Deadline deadline) const;
  /// Reads what is there. Returns true once the server has ended its side.
  Result<bool> read_end();
  /// Returns the bytes, our end of TCP among them, that the server's kernel has not acknowledged.
  int unacknowledged() const;
  tl::unexpected<Error> unread() const;
  Error broken(const std::string& step, int result) const;

  std::string shown_;
  std::chrono::seconds patience_;
  Socket socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, &SSL_free};
};

}  // namespace driftd::cli
