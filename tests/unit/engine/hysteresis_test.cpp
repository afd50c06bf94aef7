// SPDX-License-Identifier: Apache-2.0
#include "engine/hysteresis.hpp"

#include <gtest/gtest.h>

namespace driftd::engine {
namespace {

using State = core::HealthReport::State;
const Hysteresis::Time kStart{std::chrono::hours(1)};

Hysteresis::Time at(int seconds) { return kStart + std::chrono::seconds(seconds); }

TEST(Hysteresis, OneBadReportIsNoNews) {
  Hysteresis h(State::up);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(h.report(State::up, at(i)));
  EXPECT_FALSE(h.report(State::down, at(6)));
  EXPECT_EQ(h.state(), State::up);
}

TEST(Hysteresis, ThreeOfTheLastFiveMakeItNewsOnce) {
  Hysteresis h(State::up);
  EXPECT_FALSE(h.report(State::down, at(0)));
  EXPECT_FALSE(h.report(State::up, at(1)));
  EXPECT_FALSE(h.report(State::down, at(2)));
  const auto notice = h.report(State::down, at(3));
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->before, State::up);
  EXPECT_EQ(notice->now, State::down);
  h.told(*notice);
  EXPECT_FALSE(h.report(State::down, at(4)));
}

TEST(Hysteresis, NoticeThatReachedNobodyIsGivenAgain) {
  Hysteresis h(State::up);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(h.report(State::down, at(i)));
  EXPECT_TRUE(h.report(State::down, at(2)));
  const auto again = h.report(State::down, at(3));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->before, State::up);
  EXPECT_EQ(again->now, State::down);
  h.told(*again);
  EXPECT_FALSE(h.report(State::down, at(4)));
}

TEST(Hysteresis, FirstSightOfAHealthyBackendIsBelievedAtOnceADownOneIsNot) {
  Hysteresis healthy(State::unknown), broken(State::unknown);
  EXPECT_TRUE(healthy.report(State::up, at(0)));
  EXPECT_FALSE(broken.report(State::down, at(0)));
}

TEST(Hysteresis, FlappingGivesAStartAndAnEndNotice) {
  Hysteresis h(State::up);
  int began = 0, told = 0, second = 0;
  for (int change = 0; change < 8; ++change) {
    const State state = change % 2 == 0 ? State::down : State::up;
    for (int i = 0; i < 3; ++i) {
      const auto notice = h.report(state, at(second++));
      told += notice ? 1 : 0;
      began += notice && notice->flapping_began ? 1 : 0;
      if (notice) h.told(*notice);
    }
  }
  EXPECT_EQ(began, 1);
  EXPECT_EQ(told, 4);  // three changes, then the start of flapping; the rest is muted
  EXPECT_FALSE(h.report(State::up, at(second + 60)));
  const auto end = h.report(State::up, at(second + 400));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->flapping_ended);
  EXPECT_EQ(end->now, State::up);
}

}  // namespace
}  // namespace driftd::engine
