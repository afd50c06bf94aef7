// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "http/http.hpp"

namespace driftd::k8s {

/// What the server asked not to be asked again yet (429 or 503 with Retry-After), by path. Thread-safe.
class RetryAfter {
 public:
  using Clock = std::chrono::steady_clock;
  using Millis = std::chrono::milliseconds;

  void note(const std::string& path, const http::Response& response, Clock::time_point now = Clock::now());
  /// How long it still has to wait; 0: it may be asked.
  Millis left(const std::string& path, Clock::time_point now = Clock::now());

 private:
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> until_;
};

}  // namespace driftd::k8s
