// SPDX-License-Identifier: Apache-2.0
// Saves and fetches run beside the loop of a runner: sending goes on meanwhile, a kill repeats 256 events at most, and
// a stop, a dropped dead letter or commits for other sinks in between do no harm.
#include "live.hpp"

namespace driftd::delivery::test {
namespace {

using namespace std::chrono_literals;

TEST(Live, AtMost256AreRepeatedAlsoWhenTheStoreIsSlow) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.outbox.slow_saves = true;
  world.start();
  world.commit(5'000, 5'000);
  world.pass(1s);
  EXPECT_LE(world.to.got.size(), 256U);
  EXPECT_GE(world.to.got.size(), 128U);
}

/// Each fetch of a sink that gets nothing is overtaken by a commit for other sinks, because the store is busy.
TEST(Live, ASinkThatGetsNothingWhileOthersGetMuchIsNoDefect) {
  LaneWorld world;
  int commits = 40;
  world.outbox.while_fetching = [&]() -> Task<void> {
    if (commits-- > 0) world.relay->wake();
    co_return;
  };
  world.start();
  world.pass(1s);
  EXPECT_LE(commits, 0);
  EXPECT_EQ(world.view().missed_wakeups, 0U);
}

/// Dead letters in a save under way are not stored yet, while other events go on being sent.
TEST(Live, AtMost256AreRepeatedAlsoWhenDeadLettersAreBeingStored) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 422 from ops", 0}; };
  world.start();
  world.outbox.slow_saves = true;
  world.commit(5'000, 5'000);
  EXPECT_LE(world.to.sent.size(), 256U);
  EXPECT_GE(world.to.sent.size(), 128U);
}

// Found by an attack: with a slow disk the sink slept through every second save, at half its rate.
TEST(Live, ASaveThatFollowsAnotherHoldsUpNoSending) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.outbox.slow_saves = true;
  world.commit(100, 100);  // the first save has these
  world.commit(900, 900, "other");
  ASSERT_EQ(world.to.got.size(), 256U) << "as many as may be sent and unsaved";
  world.outbox.release_one();
  world.settle();
  EXPECT_EQ(world.low_water(), 100) << "the second save is under way";
  EXPECT_EQ(world.to.got.size(), 356U) << "the first one made room";
  world.outbox.release();
  world.settle();
  world.pass(1s);
  EXPECT_TRUE(world.over());
  EXPECT_EQ(world.view().missed_wakeups, 0U);
}

// Found by the simulation (seed 219): retention then called them undelivered.
TEST(Live, WhatWasDeliveredBehindAnEventThatWaitsForADisabledSinkIsSaved) {
  for (const Outcome outcome : {Outcome::disabled, Outcome::retry_sink}) {
    LaneWorld world;
    world.to.at_once = [outcome](const auto& event) { return of(event.stamp.seq == 1 ? outcome : Outcome::delivered); };
    world.start();
    world.commit(10, 10);
    world.run_for(2s);
    EXPECT_EQ(world.low_water(), 10) << "the first one is an exception of the cursor";
  }
}

TEST(Live, AStopWaitsForTheSaveUnderWayAndBeginsNoSecondOne) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.outbox.slow_saves = true;
  world.commit(128, 128);
  ASSERT_EQ(world.outbox.saves_under_way, 1);
  bool stopped = false;
  world.spawn(world.relay->stop(), stopped);
  world.pass(11s);  // its time to drain is over
  EXPECT_EQ(world.outbox.most_saves, 1);
  EXPECT_FALSE(stopped);
  world.outbox.release();
  for (int i = 0; i < 100 && !stopped; ++i) world.run_for(10ms);
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(world.relay->abandoned());
  EXPECT_EQ(world.low_water(), 128);
}

TEST(Live, AStopGivesUpASaveThatHangs) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.outbox.slow_saves = true;
  world.commit(128, 128);
  ASSERT_EQ(world.outbox.saves_under_way, 1);
  bool stopped = false;
  world.spawn(world.relay->stop(), stopped);
  world.pass(11s);
  EXPECT_FALSE(stopped);
  world.pass(5s);
  for (int i = 0; i < 100 && !stopped; ++i) world.run_for(10ms);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(world.relay->abandoned()) << "a thread may still be in it";
  world.outbox.release();
  world.settle();
  EXPECT_EQ(world.outbox.most_saves, 1) << "what was abandoned saves nothing any more";
}

TEST(Live, AStopGivesUpASinkThatIsStillStarting) {
  LaneWorld world;
  world.to.never_starts = true;
  world.start();
  world.commit(10, 10);
  bool stopped = false;
  world.spawn(world.relay->stop(), stopped);
  world.pass(11s);
  EXPECT_FALSE(stopped);
  world.pass(5s);
  for (int i = 0; i < 100 && !stopped; ++i) world.run_for(10ms);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(world.relay->abandoned());
}

/// Another runner may have the cursor by the time that the flush returns.
TEST(Live, AFlushThatReturnsAfterItsRunnerWasGivenUpMovesNoCursor) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.to.slow_flush = true;
  world.start();
  world.commit(128, 128);
  ASSERT_TRUE(world.to.flushing);
  bool stopped = false;
  world.spawn(world.relay->stop(), stopped);
  world.pass(16s);
  for (int i = 0; i < 100 && !stopped; ++i) world.run_for(10ms);
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(world.relay->abandoned());
  world.to.end_flush();
  world.settle();
  EXPECT_EQ(world.low_water(), 0);
}

TEST(Live, AStopGivesUpASinkThatDoesNotEnd) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.to.never_stops = true;
  world.start();
  world.commit(10, 10);
  bool stopped = false;
  world.spawn(world.relay->stop(), stopped);
  world.pass(16s);
  for (int i = 0; i < 100 && !stopped; ++i) world.run_for(10ms);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(world.relay->abandoned());
  EXPECT_EQ(world.low_water(), 10) << "its events are saved before it is stopped";
}

/// After a restart dead letters may be newer than the last event that was fetched.
TEST(Live, ADeadLetterThatIsDroppedWhileAFetchBringsItIsNotSent) {
  LaneWorld world;
  world.to.at_once = [](const core::StoredEvent& event) -> std::optional<Attempt> {
    if (event.stamp.seq == 1) return std::nullopt;  // holds the mark back
    return Attempt{Outcome::permanent, "HTTP 422 from ops", 0};
  };
  world.start();
  world.commit(10, 10);
  for (int i = 0; i < 3; ++i) world.pass(1s);
  ASSERT_EQ(world.view().dead, 9);
  ASSERT_EQ(world.low_water(), 0);
  world.kill();
  std::int64_t dropped = 0;
  world.outbox.while_fetching = [&]() -> Task<void> {
    if (dropped != 0) co_return;  // a command makes the runner fetch again
    const auto count = co_await world.relay->dead_letter("s", "drop", {});
    dropped = count.value_or(0);
  };
  world.start();
  for (int i = 0; i < 3; ++i) world.pass(1s);
  EXPECT_EQ(dropped, 9);
  for (std::int64_t seq = 2; seq <= 10; ++seq) EXPECT_EQ(world.to.sent[seq], 1) << seq;
}

/// The store may need long for a save: its disk is slow, or a large commit is before it.
TEST(Live, EventsGoOnBeingSentWhileASaveIsUnderWay) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.outbox.slow_saves = true;
  world.commit(128, 128);
  ASSERT_EQ(world.to.got.size(), 128U);
  world.commit(100, 100);
  EXPECT_EQ(world.to.got.size(), 228U);
  EXPECT_EQ(world.low_water(), 0) << "the save has not ended";
  world.outbox.release();
  world.settle();
  world.pass(1s);
  EXPECT_TRUE(world.over());
  EXPECT_EQ(world.view().missed_wakeups, 0U);
}

TEST(Live, AtMost256AreRepeatedWhenManyFailedFirstBehindOneThatHangs) {
  LaneWorld world;
  world.to.at_once = [&world](const core::StoredEvent& event) -> std::optional<Attempt> {
    if (event.stamp.seq == 1) return std::nullopt;
    return world.to.sent[event.stamp.seq] == 1 ? of(Outcome::retry_event) : Attempt{};
  };
  world.start();
  world.commit(2'000, 2'000);
  for (int i = 0; i < 100; ++i) world.pass(400ms);
  ASSERT_EQ(world.to.got.size(), 1'999U);
  world.kill();
  const auto before = world.to.sent;
  world.start();
  for (int i = 0; i < 20; ++i) world.pass(400ms);
  int again = 0;
  for (const auto& [seq, count] : world.to.sent) again += count > before.at(seq) ? 1 : 0;
  EXPECT_LE(again, 256);
}

}  // namespace
}  // namespace driftd::delivery::test
