// SPDX-License-Identifier: Apache-2.0
#include "base/rate_limiter.hpp"

#include <gtest/gtest.h>
#include <chrono>

namespace driftd {
namespace {

using std::chrono::milliseconds;

TEST(Rate, ABurstPassesAndTheRestWaits) {
  RateLimiter rate;
  const auto now = RateLimiter::Clock::time_point(std::chrono::hours(1));
  EXPECT_EQ(rate.reserve(100, now), now);
  EXPECT_EQ(rate.reserve(1, now), now + milliseconds(20));
  EXPECT_EQ(rate.reserve(5, now), now + milliseconds(120));
  EXPECT_EQ(rate.reserve(1, now + std::chrono::seconds(10)), now + std::chrono::seconds(10));
}

}  // namespace
}  // namespace driftd
