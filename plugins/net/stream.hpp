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

/// Who is at the other end.
struct Peer {
  std::string where;  ///< as messages name it: `redis 127.0.0.1:6379`
  std::string host;   ///< a name or an address, v6 without brackets
  int port = 0;
  std::string socket;  ///< path of a Unix socket; then host and port are unused
};

/// Bytes to and from one server, over TCP or a Unix socket, plain or TLS. Not thread-safe. Every wait ends at the time
/// that it is given (UNAVAILABLE), at the call's deadline (DEADLINE) or at cancellation (CANCELLED). The process
/// ignores SIGPIPE, as a worker does.
class Stream {
 public:
  /// Connects and shakes hands. UNAVAILABLE, also when the server's certificate does not hold; INVALID for a file of
  /// the settings that cannot be used. The files are read anew each time: a certificate that was renewed is used
  /// without a restart. Resolving a name blocks as the system's resolver does. `tls`: nullptr is plain.
  static std::unique_ptr<Stream> open(sdk::Call& call, const Peer& peer, const Tls* tls, Steady::time_point until);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void write(sdk::Call& call, std::string_view bytes, Steady::time_point until);
  /// At least one byte; UNAVAILABLE when the server closed.
  std::size_t read(sdk::Call& call, char* to, std::size_t max_bytes, Steady::time_point until);
  const std::string& where() const { return where_; }

 private:
  explicit Stream(std::string where) : where_(std::move(where)) {}
  void connect(sdk::Call& call, const Peer& peer, Steady::time_point until);
  bool try_connect(sdk::Call& call, const void* address, unsigned size, int family, Steady::time_point until);
  void shake_hands(sdk::Call& call, const Tls& tls, const std::string& host, Steady::time_point until);
  void wait(sdk::Call& call, short events, Steady::time_point until) const;
  /// After an SSL call that returned `result`: waits for what it wants; throws when it failed.
  void wait_tls(sdk::Call& call, int result, Steady::time_point until, const char* doing);
  [[noreturn]] void fail(const std::string& why) const;

  std::string where_, last_error_;
  int fd_ = -1;
  ssl_st* ssl_ = nullptr;
};

}  // namespace driftd::net
