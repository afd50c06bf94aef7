// SPDX-License-Identifier: Apache-2.0
// Which events are deleted and when, also under a clock that was wrong.
#include "unit/store/outbox_fixture.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(OutboxTest, DeliveredEventsGoInSlicesOfAThousand) {
  Seqs seqs;
  for (int i = 0; i < 5; ++i) seqs = emit(500);
  settle({"ops", seqs.back(), {}, {}, {}});
  const Nanos later = kNoon + 1;
  EXPECT_TRUE(bench.get(bench->prune(later, 0)));
  EXPECT_EQ(bench.get(bench->events(0, 10'000)).size(), 1500U);
  EXPECT_TRUE(bench.get(bench->prune(later, 0)));
  EXPECT_FALSE(bench.get(bench->prune(later, 0)));
  EXPECT_TRUE(bench.get(bench->events(0, 10)).empty());
  expect_book("ops", 2500, 0, 0, 0);
}

/// The clock was a year ahead for a while: events from that time stay until their time comes, and do not stop the
/// retention of others.
TEST_F(OutboxTest, EventsOfAClockThatWasAheadHoldUpNoRetention) {
  constexpr Nanos kDay = 86'400 * kSecond;
  for (const int of_that_time : {1, 3'000}) {
    Seqs seqs = emit(10);
    bench.clock.now += 365 * kDay;
    Seqs ahead;
    for (int left = of_that_time; left > 0; left -= 500) {
      for (const auto seq : emit(std::min(left, 500))) ahead.push_back(seq);
    }
    bench.clock.now -= 365 * kDay;
    for (int i = 0; i < 3; ++i) seqs = emit(500);
    settle({"ops", seqs.back(), {}, {}, {}});
    bench.clock.now += 10 * kDay;
    const auto young = emit(2);
    int rounds = 1;
    while (bench.get(bench->prune(bench.clock.now - 7 * kDay, 0))) ASSERT_LT(++rounds, 12);
    Seqs left;
    for (const auto& event : bench.get(bench->events(ahead.front() - 11, 10'000))) left.push_back(event.stamp.seq);
    ahead.insert(ahead.end(), young.begin(), young.end());
    EXPECT_EQ(left, ahead);
  }
}

/// The clock was ahead by less than the retention: its events are in the past when they are examined, and still young.
TEST_F(OutboxTest, EventsThatAreYoungByAClockThatWasAheadHoldUpNoRetention) {
  constexpr Nanos kDay = 86'400 * kSecond;
  bench.clock.now += 6 * kDay;
  const auto ahead = emit(20);
  bench.clock.now -= 6 * kDay;
  settle({"ops", emit(20).back(), {}, {}, {}});
  bench.clock.now += 10 * kDay;
  EXPECT_FALSE(bench.get(bench->prune(bench.clock.now - 7 * kDay, 0)));
  EXPECT_EQ(fetched("ops"), ahead);
}

/// Events that look old because the clock jumped ahead are young once the clock is corrected. Undelivered ones used to
/// be lost for good.
TEST_F(OutboxTest, AClockThatJumpsAheadDeletesNothingForADay) {
  constexpr Nanos kDay = 86'400 * kSecond;
  const auto prune = [&] {
    const Nanos wall = bench.clock.wall();
    return bench.get(bench->prune(wall - 7 * kDay, wall - 30 * kDay));
  };
  const auto seqs = emit(3);
  bench.get(bench->audit({.at_ns = bench.clock.wall(), .actor = "olga", .verb = "approved", .subject = "x"}));
  bench.clock.wrong = 400 * kDay;
  for (int hour = 0; hour < 23; ++hour) {
    EXPECT_FALSE(prune());
    bench.clock.now += 3'600 * kSecond;
  }
  EXPECT_EQ(fetched("ops"), seqs) << "nobody got them yet";
  EXPECT_EQ(bench.get(bench->audit(10)).size(), 1U);
  bench.clock.wrong = 0;
  bench.clock.now += 5 * kDay;
  EXPECT_FALSE(prune());
  EXPECT_EQ(fetched("ops"), seqs) << "and they are as young as they are";
  bench.clock.wrong = 400 * kDay;
  EXPECT_FALSE(prune());
  bench.clock.now += kDay;
  while (prune()) {
  }
  EXPECT_EQ(fetched("ops").size(), 1U)
      << "a clock that stays is believed, and the events that it cost are reported as a gap";
  EXPECT_TRUE(bench.get(bench->audit(10)).empty());
}

/// The last commit of the previous process was made by the doubted clock.
TEST_F(OutboxTest, ARestartEndsNoDoubtOfTheClock) {
  constexpr Nanos kHour = 3'600 * kSecond, kDay = 24 * kHour;
  const auto prune = [&] {
    return bench.get(bench->prune(bench.clock.wall() - 7 * kDay, bench.clock.wall() - 30 * kDay));
  };
  const auto seqs = emit(3);
  bench.clock.wrong = 400 * kDay;
  EXPECT_FALSE(prune());
  for (int i = 0; i < 3; ++i) {
    bench.clock.now += 5 * kHour;
    restart();
    EXPECT_FALSE(prune());
    EXPECT_EQ(fetched("ops"), seqs);
  }
  bench.clock.wrong = 0;  // the clock is corrected
  restart();
  EXPECT_FALSE(prune());
  bench.clock.wrong = 400 * kDay;  // the clock is wrong again, which starts a new wait
  EXPECT_FALSE(prune());
  bench.clock.now += 20 * kHour;
  EXPECT_FALSE(prune());
  EXPECT_EQ(fetched("ops"), seqs);
  bench.clock.now += 5 * kHour;
  restart();
  while (prune()) {
  }
  EXPECT_EQ(fetched("ops").size(), 1U) << "a clock that stays a day is believed, restarts or not";
}

/// At a start, only the last commit can be compared with the clock.
TEST_F(OutboxTest, AStartLongAfterTheLastCommitDeletesNothingForADay) {
  constexpr Nanos kDay = 86'400 * kSecond;
  const auto seqs = emit(3);
  bench.clock.now += 31 * kDay;
  for (int i = 0; i < 2; ++i) {
    restart();
    EXPECT_FALSE(bench.get(bench->prune(bench.clock.wall() - 7 * kDay, bench.clock.wall() - 30 * kDay)));
    EXPECT_EQ(fetched("ops"), seqs);
  }
  bench.clock.now += kDay + kSecond;
  EXPECT_FALSE(bench.get(bench->prune(bench.clock.wall() - 7 * kDay, bench.clock.wall() - 30 * kDay)));
  EXPECT_EQ(fetched("ops").size(), 1U);
}

TEST_F(OutboxTest, UndeliveredEventsStayWhileDeliveredOnesGo) {
  const auto seqs = emit(4);
  settle({"ops", seqs[2], {{seqs[0], 1, 0, false, "x"}, {seqs[1], 1, 0, true, "x"}}, {}, {}});
  EXPECT_FALSE(bench.get(bench->prune(kNoon + 1, 0)));
  EXPECT_EQ(fetched("ops"), (Seqs{seqs[0], seqs[1], seqs[3]}));
}

TEST_F(OutboxTest, SequenceNumbersAreNotUsedAgainAfterAPrune) {
  const auto before = emit(2);
  settle({"ops", before[1], {}, {}, {}});
  bench.get(bench->prune(kNoon + 1, 0));
  restart();
  EXPECT_GT(emit(1).front(), before[1]);
}

TEST_F(OutboxTest, UndeliveredPastRetentionIsAGap) {
  bench.get(bench->open_sink("audit"));
  const auto seqs = emit(4, {"ops", "audit"});
  settle({"audit", seqs[3], {}, {}, {}});
  settle({"ops", seqs[1], {{seqs[0], 1, 0, true, "x"}}, {}, {}});
  bench.clock.now += kSecond;
  EXPECT_FALSE(bench.get(bench->prune(0, kNoon + 1)));
  EXPECT_THAT(last_gap(),
              AllOf(HasSubstr("\"sink\":\"ops\""), HasSubstr("\"from\":\"" + std::to_string(seqs[0]) + "\""),
                    HasSubstr("\"to\":\"" + std::to_string(seqs[3]) + "\""), HasSubstr("\"count\":\"3\"")));
  EXPECT_EQ(fetched("ops").size(), 2U);  // the delivered one and the gap event
  expect_book("ops", 1, 1, 0, 3);
  expect_book("audit", 4, 1, 0, 0);
  EXPECT_TRUE(bench.get(bench->open_sink("ops")).exceptions.empty());
}

/// A stream that is wiped after `retention.delivered` deleted events: they cannot be sent again, which must not be
/// silent.
TEST_F(OutboxTest, WhatAReceiverLostAfterItWasDeletedIsAGap) {
  const auto seqs = emit(4);
  emit(3, {"audit"});
  settle({"ops", seqs[3], {}, {}, {}});
  bench.clock.now += kSecond;
  const auto young = emit(2);
  settle({"ops", young[1], {}, {}, {}});
  EXPECT_FALSE(bench.get(bench->prune(kNoon + 1, 0)));
  restart();
  const auto before = bench.get(bench->last_events(1)).front().stamp.seq;
  settle({"ops", seqs[3], {}, {}, {}});
  EXPECT_EQ(bench.get(bench->last_events(1)).front().stamp.seq, before) << "all that it lost is sent again";
  settle({"ops", 0, {}, {}, {}});
  EXPECT_THAT(last_gap(), AllOf(HasSubstr("\"sink\":\"ops\""), HasSubstr("\"from\":\"1\""),
                                HasSubstr("\"to\":\"" + std::to_string(seqs[3]) + "\""), HasSubstr("\"count\":\"4\""),
                                HasSubstr("lost_by_receiver")));
  const auto gap = bench.get(bench->last_events(1)).front().stamp.seq;
  EXPECT_EQ(fetched("ops"), (Seqs{young[0], young[1], gap})) << "the receiver's own consumers must know of it";
  EXPECT_EQ(fetched("audit").back(), gap);
  expect_book("ops", 4, 3, 0, 0);
}

TEST_F(OutboxTest, OfWhatWasDeletedOnlyWhatAReceiverLostIsAGap) {
  const auto seqs = emit(6);
  settle({"ops", seqs[5], {}, {}, {}});
  bench.get(bench->prune(kNoon + 1, 0));
  settle({"ops", seqs[1], {}, {}, {}});
  EXPECT_THAT(last_gap(), AllOf(HasSubstr("\"from\":\"" + std::to_string(seqs[1] + 1) + "\""),
                                HasSubstr("\"to\":\"" + std::to_string(seqs[5]) + "\""), HasSubstr("\"count\":\"4\"")));
}

/// The mark of a store whose events an older driftd deleted is its oldest event.
TEST_F(OutboxTest, ALossIsToldAlsoIfAnOlderDriftdDeletedTheEvents) {
  const auto seqs = emit(5);
  settle({"ops", seqs[2], {}, {}, {}});
  bench.get(bench->prune(kNoon + 1, 0));
  tamper(file(), "DELETE FROM meta WHERE key LIKE 'settled_and_deleted_to/%'");
  settle({"ops", 0, {}, {}, {}});
  EXPECT_THAT(last_gap(), AllOf(HasSubstr("\"to\":\"" + std::to_string(seqs[2]) + "\""), HasSubstr("\"count\":\"3\"")));
}

}  // namespace
}  // namespace driftd::test
