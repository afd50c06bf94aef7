// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace driftd::consumer {

/// Waits that double from `first` to `max`, each a random part of its bound but at least half of it ("equal jitter"),
/// so that those who failed together do not come back together. One thread at a time.
class Backoff {
 public:
  using Milliseconds = std::chrono::milliseconds;
  Backoff(Milliseconds first, Milliseconds max) : first_(first), max_(max), bound_(first) {}

  template <class Random>
  Milliseconds next(Random& random) {
    const auto bound = std::max<Milliseconds::rep>(bound_.count(), 1);
    bound_ = std::min(bound_ * 2, max_);
    return Milliseconds(std::uniform_int_distribution<Milliseconds::rep>(bound - bound / 2, bound)(random));
  }
  void reset() { bound_ = first_; }

 private:
  Milliseconds first_, max_, bound_;
};

}  // namespace driftd::consumer
