// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "driftd/sdk/call.hpp"
#include "net/tls.hpp"

struct ssl_st;

namespace driftd::net {

using Steady = std::chrono::steady_clock;

/// The server at the other end.
struct Peer {
  std::string where;  ///< name in error texts: `redis 127.0.0.1:6379`
  std::string host;   ///< a name or an address, v6 without brackets
  int port = 0;
  std::string socket;  ///< path of a Unix socket; then host and port are unused
};

/// A byte stream to one server over TCP or a Unix socket, plain or TLS. Not thread-safe. Every wait ends at its time
/// limit (UNAVAILABLE), at the deadline of the call (DEADLINE) or at cancellation (CANCELLED). The process must ignore
/// SIGPIPE, as a worker does.
class Stream {
 public:
  /// Connects and performs the TLS handshake; `tls` nullptr means a plain connection. Throws UNAVAILABLE, also if the
  /// server's certificate cannot be verified; INVALID if a file of the settings cannot be used. The files are read
  /// again each time, so a renewed certificate needs no restart. Name resolution blocks as long as the system's
  /// resolver does.
  static std::unique_ptr<Stream> open(sdk::Call& call, const Peer& peer, const Tls* tls, Steady::time_point until);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Writes all bytes. Throws UNAVAILABLE if the connection breaks.
  void write(sdk::Call& call, std::string_view bytes, Steady::time_point until);
  /// Reads at least one byte. Throws UNAVAILABLE if the server closed the connection.
  /// Returns how many, `max_bytes` at most.
  std::size_t read(sdk::Call& call, char* to, std::size_t max_bytes, Steady::time_point until);
  const std::string& where() const { return where_; }  ///< as in Peer

 private:
  explicit Stream(std::string where) : where_(std::move(where)) {}
  /// Tries the addresses of the host one after the other, each for a share of the time that is left.
  void connect(sdk::Call& call, const Peer& peer, Steady::time_point until);
  bool try_connect(sdk::Call& call, const void* address, unsigned size, int family,
                   Steady::time_point until);  ///< false, with the reason in `last_error_`
  void shake_hands(sdk::Call& call, const Tls& tls, const std::string& host, Steady::time_point until);
  void wait(sdk::Call& call, short events, Steady::time_point until) const;  ///< `events` of poll(2)
  /// Call after an SSL function returned `result`: waits for what it needs, throws if it failed.
  void wait_tls(sdk::Call& call, int result, Steady::time_point until, const char* doing);
  [[noreturn]] void fail(const std::string& why) const;  ///< UNAVAILABLE with `where_`

  std::string where_, last_error_;  ///< `last_error_`: why the last address failed
  int fd_ = -1;                     ///< owned; non-blocking
  ssl_st* ssl_ = nullptr;           ///< owned; null: plain
};

}  // namespace driftd::net
