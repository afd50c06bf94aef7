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
/// is then closed by both sides, because syslog has no acknowledgement: a server that closes after it saw our end has
/// read everything before it. Blocks; every error is `unavailable` and says which step failed.
class SyslogStream {
 public:
  static Result<SyslogStream> open(const SyslogServer& server);
  /// Sends one message, framed by its length.
  Status send(std::string_view message);
  /// Ends our direction and waits for the server's end. Only after it was everything received.
  Status finish();

 private:
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
  explicit SyslogStream(std::string shown) : shown_(std::move(shown)) {}
  Status connect(const SyslogServer& server);
  Status secure(const SyslogServer& server);
  Status use_files(const SyslogServer& server);
  Status write(std::string_view bytes);
  Error broken(const std::string& step, int result) const;

  std::string shown_;
  Socket socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, &SSL_free};
};

}  // namespace driftd::cli
