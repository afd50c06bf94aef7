// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driftd/sdk/call.hpp"
#include "http/connection_guard.hpp"
#include "http/http.hpp"

namespace driftd::http {

class Exchange;

/// Runs several requests at once on one thread and keeps their connections. Not thread-safe: one for each thread.
/// Failures of sockets and TLS are UNAVAILABLE, of local certificate files INVALID. Error texts name method, host and
/// path, never queries, headers or bodies.
class MultiClient {
 public:
  using Steady = std::chrono::steady_clock;

  /// The end of a request: a response (of whatever status) or a failure.
  struct Completion {
    std::uint64_t id = 0;
    Response response;
    std::optional<sdk::Failure> failure;
  };

  explicit MultiClient(Options options);
  ~MultiClient();
  MultiClient(const MultiClient&) = delete;
  MultiClient& operator=(const MultiClient&) = delete;

  /// Starts a request and returns its number, from 1 on. The request must end before `call` does. Throws INVALID if the
  /// URL cannot be used. Not from inside on_body.
  std::uint64_t start(sdk::Call& call, Request request);
  /// Drops a request that is in flight. Not from inside on_body.
  void abort(std::uint64_t id);
  /// Drops every request in flight and closes every connection. Not from inside on_body.
  void reset();
  std::size_t in_flight() const { return exchanges_.size(); }
  /// Makes run() return soon even if no request has ended. May be called from inside on_body.
  void wake() { woken_ = true; }

  /// Runs all requests until at least one has ended, `until` has come or wake() was called; returns those that have
  /// ended. Throws CANCELLED or DEADLINE of the call.
  std::vector<Completion> run(sdk::Call& call, Steady::time_point until);

 private:
  void end();
  std::vector<Completion> reap();
  void wait(sdk::Call& call, std::chrono::milliseconds max_wait);

  const Options options_;
  ConnectionGuard connection_guard_;
  void* multi_;
  std::uint64_t last_ = 0;
  bool woken_ = false;
  std::map<std::uint64_t, std::unique_ptr<Exchange>> exchanges_;
};

/// Sends one request after the other over connections that stay open. After a failure all connections are made again.
/// Not thread-safe.
class Client {
 public:
  explicit Client(Options options) : multi_client_(std::move(options)) {}

  /// Waits for the response, of whatever status, and follows redirects if the request allows them. Every wait ends at
  /// the deadline of the call and on cancel.
  Response send(sdk::Call& call, const Request& request);

 private:
  Response once(sdk::Call& call, const Request& request);

  MultiClient multi_client_;
};

}  // namespace driftd::http
