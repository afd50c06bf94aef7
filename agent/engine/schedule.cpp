// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule.hpp"

#include <algorithm>
#include <vector>

namespace driftd::engine {
namespace {
constexpr std::size_t kRemembered = 20;
constexpr Schedule::Millis kFirstRetry{1000};
constexpr Schedule::Millis kLastRetry{60'000};
constexpr Schedule::Millis kLeastHint{500};        ///< minimum, even if the provider asks for less
constexpr Schedule::Millis kUnstoredRetry{5'000};  ///< shorter than for a failing backend, because this one answered
}  // namespace

Schedule::Schedule(Millis interval, unsigned seed) : interval_(interval), random_(seed) {}

Schedule::Millis Schedule::p95() const {
  if (durations_.empty()) return Millis{0};
  std::vector<Millis> sorted(durations_.begin(), durations_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() * 95 + 99) / 100 - 1];
}

Schedule::Millis Schedule::backoff(Millis max) {
  Millis wait = kFirstRetry;
  for (int i = 1; i < failures_ && wait < max; ++i) wait *= 2;
  const double jitter = std::uniform_real_distribution<double>(0.8, 1.2)(random_);
  return Millis(static_cast<Millis::rep>(static_cast<double>(std::min(wait, max).count()) * jitter));
}

void Schedule::record_cycle(Clock::time_point start, Clock::time_point end, Outcome how) {
  if (how != Outcome::succeeded) {
    ++failures_;
    next_ = end + backoff(how == Outcome::failed ? kLastRetry : kUnstoredRetry);
    return;
  }
  failures_ = 0;
  durations_.push_back(std::chrono::duration_cast<Millis>(end - start));
  if (durations_.size() > kRemembered) durations_.pop_front();
  // At least a fiftieth of the interval, because the last change must also be committed and published within the
  // interval.
  const auto interval = static_cast<double>(interval_.count());
  const Millis jitter(
      static_cast<Millis::rep>(std::uniform_real_distribution<double>(interval / 50, interval / 20)(random_)));
  Millis wait = std::max(interval_ * stretch_ - p95() - jitter, p95());
  if (hint_.count() > 0) wait = std::min(wait, std::max(hint_, kLeastHint));
  hint_ = Millis{0};
  next_ = start + wait;
}

}  // namespace driftd::engine
