// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "controller/key.hpp"

namespace driftd::controller {

/// `burst` tokens at first, and one more every `period`. In whole nanoseconds, so that try_take() succeeds exactly from
/// next() on: with fractions a waiter could wake, find nothing, and be told to wake now. Not thread-safe.
class TokenBucket {
 public:
  TokenBucket(Duration period, int burst) : period_(period), tolerance_(period * (burst - 1)) {}

  bool try_take(Time now) {
    if (now < next()) return false;
    full_at_ = std::max(full_at_, now) + period_;
    return true;
  }
  /// From when on there is a token.
  Time next() const { return full_at_ <= Time::min() + tolerance_ ? Time::min() : full_at_ - tolerance_; }

 private:
  Duration period_, tolerance_;
  Time full_at_ = Time::min();  ///< when all tokens are there again
};

}  // namespace driftd::controller
