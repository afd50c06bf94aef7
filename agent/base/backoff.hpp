// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace driftd {

/// Exponential backoff with jitter: `first`, then twice as long each time up to `max`, each ±20 %. Not thread-safe.
class Backoff {
 public:
  using Millis = std::chrono::milliseconds;
  /// `seed` is for the jitter.
  Backoff(Millis first, Millis max, unsigned seed = std::random_device{}())
      : first_(first),
        max_(max),
        next_(first),
        random_(seed) {}

  /// Returns the wait before the next attempt, and makes the one after it longer.
  Millis next() {
    const double factor = std::uniform_real_distribution<double>(0.8, 1.2)(random_);
    const auto wait = Millis(static_cast<Millis::rep>(static_cast<double>(next_.count()) * factor));
    next_ = std::min(max_, next_ * 2);
    return wait;
  }
  void reset() { next_ = first_; }  ///< to be called after a success: the next wait is `first` again

 private:
  Millis first_, max_, next_;  ///< without jitter
  std::minstd_rand random_;
};

}  // namespace driftd
