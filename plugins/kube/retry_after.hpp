// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "http/http.hpp"

namespace driftd::kube {

/// Remembers by path until when the server does not want another request (429 or 503 with Retry-After). Thread-safe.
class RetryAfter {
 public:
  using Clock = std::chrono::steady_clock;
  using Millis = std::chrono::milliseconds;

  /// Takes a response to a request for this path. Only a 429 or 503 with Retry-After is remembered.
  void note(const std::string& path, const http::Response& response, Clock::time_point now = Clock::now());
  /// Returns how long to wait before the next request; 0: no wait.
  Millis left(const std::string& path, Clock::time_point now = Clock::now());

 private:
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> until_;  ///< by path
};

}  // namespace driftd::kube
