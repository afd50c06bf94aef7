// SPDX-License-Identifier: Apache-2.0
#include "engine/health_smoothing.hpp"

#include <gtest/gtest.h>

#include <random>

namespace driftd::engine {
namespace {

using State = core::HealthReport::State;
const HealthSmoothing::Time kStart{std::chrono::hours(1)};

HealthSmoothing::Time at(int seconds) { return kStart + std::chrono::seconds(seconds); }

TEST(Hysteresis, OneBadReportIsNoNews) {
  HealthSmoothing h(State::up);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(h.report(State::up, at(i)));
  EXPECT_FALSE(h.report(State::down, at(6)));
  EXPECT_EQ(h.state(), State::up);
}

TEST(Hysteresis, ThreeOfTheLastFiveMakeItNewsOnce) {
  HealthSmoothing h(State::up);
  EXPECT_FALSE(h.report(State::down, at(0)));
  EXPECT_FALSE(h.report(State::up, at(1)));
  EXPECT_FALSE(h.report(State::down, at(2)));
  const auto notice = h.report(State::down, at(3));
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->before, State::up);
  EXPECT_EQ(notice->now, State::down);
  h.published(*notice);
  EXPECT_FALSE(h.report(State::down, at(4)));
}

TEST(Hysteresis, NoticeThatReachedNobodyIsGivenAgain) {
  HealthSmoothing h(State::up);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(h.report(State::down, at(i)));
  EXPECT_TRUE(h.report(State::down, at(2)));
  const auto again = h.report(State::down, at(3));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->before, State::up);
  EXPECT_EQ(again->now, State::down);
  h.published(*again);
  EXPECT_FALSE(h.report(State::down, at(4)));
}

TEST(Hysteresis, FirstSightOfAHealthyBackendIsBelievedAtOnceADownOneIsNot) {
  HealthSmoothing healthy(State::unknown), broken(State::unknown);
  EXPECT_TRUE(healthy.report(State::up, at(0)));
  EXPECT_FALSE(broken.report(State::down, at(0)));
}

TEST(Hysteresis, FlappingGivesAStartAndAnEndNotice) {
  HealthSmoothing h(State::up);
  int began = 0, published = 0, second = 0;
  for (int change = 0; change < 8; ++change) {
    const State state = change % 2 == 0 ? State::down : State::up;
    for (int i = 0; i < 3; ++i) {
      const auto notice = h.report(state, at(second++));
      published += notice ? 1 : 0;
      began += notice && notice->flapping_began ? 1 : 0;
      if (notice) h.published(*notice);
    }
  }
  EXPECT_EQ(began, 1);
  EXPECT_EQ(published, 4);  // three changes, then the start of flapping; the rest is muted
  EXPECT_FALSE(h.report(State::up, at(second + 60)));
  const auto end = h.report(State::up, at(second + 400));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->flapping_ended);
  EXPECT_EQ(end->now, State::up);
}

/// A backend that is probed every five seconds, with a reader who gets every notice.
struct Subscriber {
  explicit Subscriber(State known) : hysteresis(known), published(known) {}
  HealthSmoothing hysteresis;
  State published;
  std::vector<HealthSmoothing::Notice> notices;
  int second = 0;

  void report(State state) {
    second += 5;
    const auto notice = hysteresis.report(state, at(second));
    if (!notice) return;
    hysteresis.published(*notice);
    published = notice->now;
    notices.push_back(*notice);
  }
  void report(State state, int times) {
    for (int i = 0; i < times; ++i) report(state);
  }
};

TEST(Hysteresis, BackendThatCameBackAfterTwoRestartsIsNoNewsAnyMore) {
  Subscriber redis(State::unknown);
  redis.report(State::up, 4);
  for (int restart = 0; restart < 2; ++restart) {
    redis.report(State::down, 4);
    redis.report(State::up, 8);
  }
  redis.report(State::up, 12);
  EXPECT_EQ(redis.published, State::up) << "within a minute, whether it flaps or not";
  redis.report(State::up, 80);
  const std::size_t published = redis.notices.size();
  redis.report(State::up, 240);  // twenty minutes
  EXPECT_EQ(redis.notices.size(), published);
}

TEST(Hysteresis, FirstSightIsNoChange) {
  Subscriber fresh(State::unknown);
  fresh.report(State::up);
  for (const State state : {State::down, State::up, State::down}) fresh.report(state, 3);
  EXPECT_FALSE(fresh.hysteresis.flapping()) << "three changes";
  EXPECT_EQ(fresh.published, State::down);
  fresh.report(State::up, 3);
  EXPECT_TRUE(fresh.hysteresis.flapping());
}

TEST(Hysteresis, MutedStateThatStandsIsToldWithinAMinute) {
  Subscriber backend(State::up);
  for (const State state : {State::down, State::up, State::down, State::up, State::down}) backend.report(state, 3);
  ASSERT_TRUE(backend.hysteresis.flapping());
  ASSERT_EQ(backend.published, State::up);
  backend.report(State::down, 12);
  EXPECT_EQ(backend.published, State::down);
  EXPECT_TRUE(backend.hysteresis.flapping()) << "which the end notice says later";
}

/// Whatever a backend does: its state is known after a minute, a quiet backend gets no notice, and no notice is empty.
TEST(Hysteresis, RandomHealthIsToldInTimeAndNeverWithoutNeed) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto dice = [&](int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random); };
    constexpr State kStates[] = {State::up, State::degraded, State::down};
    Subscriber backend(dice(2) == 0 ? State::unknown : State::up);
    int wrong_since = 0;
    for (int phase = 0; phase < 60; ++phase) {
      const State state = kStates[dice(3)];
      for (int i = dice(30) + 1; i > 0; --i) {
        backend.report(state);
        if (backend.published == backend.hysteresis.state()) wrong_since = backend.second;
        ASSERT_LE(backend.second - wrong_since, 60 + 5);
      }
    }
    backend.report(State::up, 4 + 12 + 60 + 1);  // seen, published, quiet for five minutes
    const std::size_t published = backend.notices.size();
    backend.report(State::up, 300);
    EXPECT_EQ(backend.notices.size(), published);
    int open = 0;
    for (const auto& notice : backend.notices) {
      EXPECT_TRUE(notice.before != notice.now || notice.flapping_began || notice.flapping_ended);
      open += (notice.flapping_began ? 1 : 0) - (notice.flapping_ended ? 1 : 0);
      EXPECT_TRUE(open == 0 || open == 1) << "a start, then its end";
    }
    EXPECT_EQ(open, 0);
  }
}

}  // namespace
}  // namespace driftd::engine
