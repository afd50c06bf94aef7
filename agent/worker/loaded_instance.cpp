// SPDX-License-Identifier: Apache-2.0
#include "worker/loaded_instance.hpp"

namespace driftd::worker {

void LoadedInstance::misuse(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (misuses_.count++ == 0) misuses_.first = what;
  ++misuses_.by_function[what.substr(0, what.find(':'))];
}

void LoadedInstance::deny_secret() {
  misuse("secret: a token that was not minted for this instance");
  const std::lock_guard lock(mutex_);
  ++misuses_.denied_secrets;
}

LoadedInstance::Misuses LoadedInstance::drain_misuses() {
  const std::lock_guard lock(mutex_);
  return std::exchange(misuses_, {});
}

std::optional<std::uint64_t> LoadedInstance::may_log() {
  const std::lock_guard lock(mutex_);
  if (logs_.try_take(RateLimiter::Clock::now())) return std::exchange(log_dropped_, 0);
  ++log_dropped_;
  return std::nullopt;
}

bool LoadedInstance::may_send_metric() {
  const std::lock_guard lock(mutex_);
  return metrics_.try_take(RateLimiter::Clock::now());
}

}  // namespace driftd::worker
