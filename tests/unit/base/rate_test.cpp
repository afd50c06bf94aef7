// SPDX-License-Identifier: Apache-2.0
#include "base/rate.hpp"

#include <gtest/gtest.h>
#include <chrono>

namespace driftd {
namespace {

using std::chrono::milliseconds;

TEST(Rate, ABurstPassesAndTheRestWaits) {
  Rate rate;
  const auto now = Rate::Clock::time_point(std::chrono::hours(1));
  EXPECT_EQ(rate.take(100, now), now);
  EXPECT_EQ(rate.take(1, now), now + milliseconds(20));
  EXPECT_EQ(rate.take(5, now), now + milliseconds(120));
  EXPECT_EQ(rate.take(1, now + std::chrono::seconds(10)), now + std::chrono::seconds(10));
}

}  // namespace
}  // namespace driftd
