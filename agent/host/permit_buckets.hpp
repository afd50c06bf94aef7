// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/rate_limiter.hpp"
#include "host/call.hpp"
#include "host/worker_channel.hpp"

namespace driftd::host {

/// Grants the permits of one backend: how fast its plugin may ask its system. Each bucket that the plugin names has a
/// rate limiter of its own, and the next worker continues with it. Owned by a Supervisor. Core thread.
class PermitBuckets {
 public:
  /// Answers the request for a permit in `frame` over `channel`, as soon as the bucket has one. Returns `invalid` if a
  /// worker of ours would not have asked; the message continues a sentence that begins with "the worker".
  Status grant(const std::shared_ptr<Call>& call, const ipc::Frame& frame,
               const std::shared_ptr<WorkerChannel>& channel);

 private:
  std::map<std::string, RateLimiter> buckets_;  ///< by name, kMaxRateLimiters at most; full ones are forgotten first
};

}  // namespace driftd::host
