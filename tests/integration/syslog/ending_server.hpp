// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

#include "support/certificates.hpp"

namespace driftd::test {

/// How a syslog server ends a connection.
enum class Ending {
  after_the_client,     ///< it reads everything, answers the client's end, and closes
  after_both_ends,      ///< the same, but it closes only after the client's end of the TCP connection
  at_once,              ///< it ends its side before it has anything, and drops what arrives after
  unread,               ///< it waits until everything is in its queue and closes without reading it, as one that stops
  unread_in_two_steps,  ///< the same, and it ends both directions before it closes
  left_open             ///< it reads everything, answers the client's end, and does not close
};

/// A server on loopback, for TLS or plain TCP, with one thread for all its connections.
class EndingServer {
 public:
  EndingServer(const Certificates& certificates, Ending ending, bool tls = true);
  ~EndingServer();
  EndingServer(const EndingServer&) = delete;
  EndingServer& operator=(const EndingServer&) = delete;

  int port() const { return port_; }
  std::size_t bytes() const { return bytes_; }              ///< read from all clients
  std::size_t connections() const { return connections_; }  ///< that ended

 private:
  void serve();
  void talk(int fd, SSL* ssl);
  void read_all(int fd, SSL* ssl);
  /// Waits until all that the client sends, its end too, is in the queue of the socket.
  void await_all(int fd) const;
  void await_client_gone(int fd) const;

  const Ending ending_;
  const bool tls_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  int listener_ = -1, port_ = 0;
  std::atomic<int> open_{-1};  ///< the connection that is served
  std::atomic<bool> done_{false};
  std::atomic<std::size_t> bytes_{0}, connections_{0};
  std::thread thread_;
};

}  // namespace driftd::test
