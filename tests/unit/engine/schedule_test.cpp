// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule.hpp"

#include <gtest/gtest.h>

namespace driftd::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = Schedule::Outcome;
const Schedule::Clock::time_point kStart{seconds(1000)};

TEST(Schedule, NextStartKeepsTheAgeOfAnObservationWithinTheInterval) {
  Schedule schedule(seconds(30), 1);
  schedule.record_cycle(kStart, kStart + seconds(2), Outcome::succeeded);
  EXPECT_LE(schedule.next() + schedule.p95(), kStart + seconds(30));
  EXPECT_GE(schedule.next(), kStart + seconds(30) - seconds(2) - milliseconds(1500));
}

TEST(Schedule, LeavesRoomToTellWhatTheLastMomentShowed) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Schedule schedule(seconds(30), seed);
    schedule.record_cycle(kStart, kStart + seconds(2), Outcome::succeeded);
    EXPECT_LE(schedule.next() + schedule.p95(), kStart + seconds(30) - milliseconds(600)) << "seed " << seed;
  }
}

TEST(Schedule, SlowBackendIsLateAndSaysWhatIsAchievable) {
  Schedule schedule(seconds(10), 1);
  schedule.record_cycle(kStart, kStart + seconds(8), Outcome::succeeded);
  EXPECT_TRUE(schedule.late());
  EXPECT_EQ(schedule.achievable(), seconds(16));
  EXPECT_GE(schedule.next(), kStart + seconds(8));
}

TEST(Schedule, FailuresBackOffExponentiallyUpToAMinute) {
  Schedule schedule(seconds(30), 1);
  milliseconds last{0};
  for (int i = 0; i < 12; ++i) {
    schedule.record_cycle(kStart, kStart, Outcome::failed);
    last = std::chrono::duration_cast<milliseconds>(schedule.next() - kStart);
    if (i == 0) {
      EXPECT_LE(last, milliseconds(1200));
    }
  }
  EXPECT_TRUE(schedule.backing_off());
  EXPECT_GE(last, seconds(48));
  EXPECT_LE(last, seconds(72));
}

/// The disk may have room again long before a minute is over, and a change of that time must not wait so long.
TEST(Schedule, WhatTheStoreCouldNotTakeIsTriedAgainWithinSeconds) {
  Schedule schedule(seconds(30), 1);
  for (int i = 0; i < 12; ++i) {
    schedule.record_cycle(kStart, kStart, Outcome::unstored);
    EXPECT_LE(schedule.next() - kStart, seconds(6));
  }
  EXPECT_TRUE(schedule.backing_off());
  EXPECT_GE(schedule.next() - kStart, seconds(4));
}

TEST(Schedule, SuccessEndsTheBackoff) {
  Schedule schedule(seconds(30), 1);
  schedule.record_cycle(kStart, kStart, Outcome::failed);
  schedule.record_cycle(kStart, kStart, Outcome::succeeded);
  EXPECT_FALSE(schedule.backing_off());
  EXPECT_GE(schedule.next(), kStart + seconds(28));
}

TEST(Schedule, BackpressureStretchesTheInterval) {
  Schedule schedule(seconds(30), 1);
  schedule.set_stretch(4);
  schedule.record_cycle(kStart, kStart, Outcome::succeeded);
  EXPECT_GE(schedule.next(), kStart + seconds(118));
}

TEST(Schedule, ProviderMayAskToComeSoonerButNotLater) {
  Schedule schedule(seconds(30), 1);
  schedule.hint(seconds(5));
  schedule.record_cycle(kStart, kStart, Outcome::succeeded);
  EXPECT_EQ(schedule.next(), kStart + seconds(5));
  schedule.hint(seconds(500));
  schedule.record_cycle(kStart, kStart, Outcome::succeeded);
  EXPECT_LE(schedule.next(), kStart + seconds(30));
}

TEST(Schedule, ProviderThatAsksToComeAtOnceWaitsHalfASecond) {
  Schedule schedule(seconds(30), 1);
  schedule.hint(milliseconds(1));
  schedule.record_cycle(kStart, kStart, Outcome::succeeded);
  EXPECT_EQ(schedule.next(), kStart + milliseconds(500));
}

}  // namespace
}  // namespace driftd::engine
