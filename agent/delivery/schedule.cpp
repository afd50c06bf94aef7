// SPDX-License-Identifier: Apache-2.0
#include "delivery/schedule.hpp"

#include <algorithm>

namespace driftd::delivery {
namespace {

constexpr Millis kFirst{250};
constexpr Millis kMost{30'000};
constexpr Millis kBreakerFirst{5'000};
constexpr Millis kBreakerMost{300'000};
constexpr Millis kRetryAfterCap{3'600'000};

Millis cap(std::int64_t retry_after_ms) { return std::min(Millis(retry_after_ms), kRetryAfterCap); }

Millis doubled(int attempts) { return std::min<Millis>(kMost, kFirst * (1LL << std::clamp(attempts - 1, 0, 16))); }

Backoff breaker(bool forever, unsigned seed) {
  if (forever) return Backoff(kFirst, kMost, seed);
  return Backoff(kBreakerFirst, kBreakerMost, seed);
}

}  // namespace

RetrySchedule::RetrySchedule(core::RetryPolicy policy, unsigned seed) : policy_(std::move(policy)), random_(seed) {}

std::optional<Millis> RetrySchedule::wait_after(int attempts, std::int64_t retry_after_ms) {
  Millis wait = doubled(attempts);
  if (!policy_.forever) {
    const auto next = static_cast<std::size_t>(attempts);  // the schedule's first entry is the first attempt
    if (next >= policy_.schedule.size()) return std::nullopt;
    wait = policy_.schedule[next];
  }
  const double factor = std::uniform_real_distribution<double>(0.8, 1.2)(random_);
  const auto jittered = Millis(static_cast<Millis::rep>(static_cast<double>(wait.count()) * factor));
  return std::max(jittered, cap(retry_after_ms));
}

Millis hold_after(bool forever, int failures, std::int64_t retry_after_ms) {
  const Millis first = forever ? kFirst : kBreakerFirst, most = forever ? kMost : kBreakerMost;
  return std::max(std::min<Millis>(most, first * (1LL << std::clamp(failures - 1, 0, 16))), cap(retry_after_ms));
}

Circuit::Circuit(bool forever, unsigned seed) : backoff_(breaker(forever, seed)) {}

Circuit::State Circuit::state(Time now) const {
  if (!tripped_) return State::closed;
  return now < until_ ? State::open : State::half_open;
}

void Circuit::trip(Time now, std::int64_t retry_after_ms) {
  if (state(now) == State::open) {
    until_ = std::max(until_, now + cap(retry_after_ms));
    return;
  }
  tripped_ = true;
  until_ = now + std::max(backoff_.next(), cap(retry_after_ms));
}

void Circuit::end_wait(Time now) { until_ = std::min(until_, now); }

void Circuit::close() {
  tripped_ = false;
  backoff_.reset();
}

}  // namespace driftd::delivery
