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
    std::uint64_t id = 0;                 ///< number that start() returned
    Response response;                    ///< empty if there is a failure
    std::optional<sdk::Failure> failure;  ///< empty if a response came, of whatever status
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
  std::size_t in_flight() const { return exchanges_.size(); }  ///< started and not yet returned by run()
  /// Makes run() return soon even if no request has ended. May be called from inside on_body.
  void wake() { woken_ = true; }

  /// Runs all requests until at least one has ended, `until` has come or wake() was called; returns those that have
  /// ended. Throws CANCELLED or DEADLINE of the call.
  std::vector<Completion> run(sdk::Call& call, Steady::time_point until);

 private:
  void end();                      ///< drops all requests and libcurl's handle
  std::vector<Completion> reap();  ///< what has ended; after a refusal also what waits for a connection
  /// Waits for a socket, for cancellation or for `max_wait`; without a descriptor for cancellation 100 ms at most.
  void wait(sdk::Call& call, std::chrono::milliseconds max_wait);

  const Options options_;
  ConnectionGuard connection_guard_;
  void* multi_;             ///< CURLM of libcurl, owned
  std::uint64_t last_ = 0;  ///< number of the last request
  bool woken_ = false;
  std::map<std::uint64_t, std::unique_ptr<Exchange>> exchanges_;  ///< in flight, by number
};

/// Sends one request after the other over connections that stay open. After a failure all connections are made again.
/// Not thread-safe.
class Client {
 public:
  explicit Client(Options options) : multi_client_(std::move(options)) {}

  /// Waits for the response, of whatever status, and follows redirects if the request allows them. Every wait ends at
  /// the deadline of the call and on cancel.
  /// Throws like MultiClient, and INVALID if a redirect leads to another host. CANCELLED and DEADLINE name the request.
  Response send(sdk::Call& call, const Request& request);

 private:
  /// Sends without following redirects. After UNAVAILABLE all connections are closed.
  Response once(sdk::Call& call, const Request& request);

  MultiClient multi_client_;
};

}  // namespace driftd::http
