// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "driftd/sdk/call.hpp"
#include "redis/settings.hpp"

struct ssl_st;

namespace driftd::redis {

using Steady = std::chrono::steady_clock;

/// Bytes to and from one server, over TCP or a Unix socket, plain or TLS 1.2 and newer. Not thread-safe. Every wait ends
/// at the time that it is given (UNAVAILABLE), at the call's deadline (DEADLINE) or at cancellation (CANCELLED).
class Stream {
 public:
  /// Connects and shakes hands. UNAVAILABLE, also when the server's certificate does not hold; INVALID for a file of the
  /// settings that cannot be used. Resolving a name blocks as the system's resolver does.
  static std::unique_ptr<Stream> open(sdk::Call& call, const Address& address, const Tls* tls, Steady::time_point until);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void write(sdk::Call& call, std::string_view bytes, Steady::time_point until);
  /// At least one byte; UNAVAILABLE when the server closed.
  std::size_t read(sdk::Call& call, char* to, std::size_t most, Steady::time_point until);
  const std::string& where() const { return where_; }  ///< `redis 127.0.0.1:6379`, for messages

 private:
  explicit Stream(std::string where) : where_(std::move(where)) {}
  void connect(sdk::Call& call, const Address& address, Steady::time_point until);
  bool try_connect(sdk::Call& call, const void* address, unsigned size, int family, Steady::time_point until);
  void shake_hands(sdk::Call& call, const Tls& tls, const std::string& host, Steady::time_point until);
  void wait(sdk::Call& call, short events, Steady::time_point until) const;
  /// After an SSL call that returned `result`: waits for what it wants; throws when it failed.
  void wait_tls(sdk::Call& call, int result, Steady::time_point until, const char* doing);

  std::string where_, last_error_;
  int fd_ = -1;
  ssl_st* ssl_ = nullptr;
};

}  // namespace driftd::redis
