// SPDX-License-Identifier: Apache-2.0
// The levels of docs/delivery.md, row backpressure.
#include "delivery/backpressure.hpp"

#include <gtest/gtest.h>

namespace driftd::delivery::test {
namespace {

Backpressure of_events(std::int64_t events) { return backpressure({.bytes = 0, .events = events}, {1'000, 1'000'000}); }

TEST(Backpressure, ASmallBacklogChangesNothing) {
  const Backpressure none = of_events(699);
  EXPECT_FALSE(none.warn);
  EXPECT_EQ(none.interval_factor, 1);
  EXPECT_FALSE(none.holds_cycles);
}

TEST(Backpressure, At70PercentItWarnsOnly) {
  const Backpressure warned = of_events(700);
  EXPECT_TRUE(warned.warn);
  EXPECT_EQ(warned.interval_factor, 1);
  EXPECT_FALSE(warned.holds_cycles);
}

TEST(Backpressure, At85PercentIntervalsAreFourTimesAsLong) {
  EXPECT_EQ(of_events(849).interval_factor, 1);
  EXPECT_EQ(of_events(850).interval_factor, 4);
  EXPECT_FALSE(of_events(949).holds_cycles);
}

TEST(Backpressure, At95PercentTheCyclesAreHeld) {
  EXPECT_TRUE(of_events(950).holds_cycles);
  EXPECT_TRUE(of_events(5'000).holds_cycles);
}

TEST(Backpressure, TheFullerOfTheTwoLimitsDecides) {
  const BacklogLimits limits{1'000, 1'000'000};
  EXPECT_TRUE(backpressure({.bytes = 960'000, .events = 1}, limits).holds_cycles);
  EXPECT_TRUE(backpressure({.bytes = 1, .events = 960}, limits).holds_cycles);
  EXPECT_FALSE(backpressure({.bytes = 600'000, .events = 600}, limits).warn);
}

}  // namespace
}  // namespace driftd::delivery::test
