// SPDX-License-Identifier: Apache-2.0
#include "kube/retry_after.hpp"

namespace driftd::kube {
namespace {

constexpr std::size_t kMost = 1000;  // paths; single objects are read only to confirm a deletion

}  // namespace

void RetryAfter::note(const std::string& path, const http::Response& response, Clock::time_point now) {
  const bool asked = (response.status == 429 || response.status == 503) && response.retry_after_ms > 0;
  const std::lock_guard lock(mutex_);
  std::erase_if(until_, [&](const auto& item) { return item.second <= now; });
  if (asked && until_.size() < kMost) until_[path] = now + Millis(response.retry_after_ms);
}

RetryAfter::Millis RetryAfter::left(const std::string& path, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = until_.find(path);
  if (found == until_.end() || found->second <= now) return Millis(0);
  return std::chrono::ceil<Millis>(found->second - now);
}

}  // namespace driftd::kube
