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

/// Requests in flight at once, driven by one thread, with the connections that they leave behind. Not thread-safe: one
/// for each thread. Failures of sockets and TLS are UNAVAILABLE, of local certificate files INVALID; texts name method,
/// host and path, never queries, headers or bodies.
class MultiClient {
 public:
  using Steady = std::chrono::steady_clock;

  /// How a request ended: with a response (of whatever status) or a failure.
  struct Completion {
    std::uint64_t id = 0;
    Response response;
    std::optional<sdk::Failure> failure;
  };

  explicit MultiClient(Options options);
  ~MultiClient();
  MultiClient(const MultiClient&) = delete;
  MultiClient& operator=(const MultiClient&) = delete;

  /// Begins a request and returns its number, from 1 on; it lives no longer than `call`. INVALID: no URL that can be
  /// asked. Not from inside on_body.
  std::uint64_t start(sdk::Call& call, Request request);
  /// Forgets a request that is in flight. Not from inside on_body.
  void abort(std::uint64_t id);
  /// Forgets every request in flight and every connection. Not from inside on_body.
  void reset();
  std::size_t in_flight() const { return exchanges_.size(); }
  /// From inside on_body: run() returns soon, though nothing has ended.
  void wake() { woken_ = true; }

  /// Moves everything on until a request has ended, `until` has come or somebody nudged; those that ended. CANCELLED,
  /// DEADLINE of the call.
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

/// One request after the other, over connections that stay open while they work: after one that broke or said nothing
/// all are made anew. Not thread-safe.
class Client {
 public:
  explicit Client(Options options) : multi_client_(std::move(options)) {}

  /// Waits for the answer, of whatever status, through redirects if the request allows them. Every wait ends at the
  /// deadline of the call and on cancel.
  Response send(sdk::Call& call, const Request& request);

 private:
  Response once(sdk::Call& call, const Request& request);

  MultiClient multi_client_;
};

}  // namespace driftd::http
