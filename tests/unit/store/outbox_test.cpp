// SPDX-License-Identifier: Apache-2.0
// What is pending for each sink, and how what became of an event is stored.
#include <gmock/gmock.h>
#include <random>
#include <set>

#include "unit/store/outbox_fixture.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
TEST_F(OutboxTest, SinkGetsItsEventsInOrder) {
  const auto seqs = emit(5);
  emit(2, {"audit"});
  EXPECT_EQ(fetched("ops"), seqs);
  EXPECT_EQ(fetched("ops", seqs[2]), (Seqs{seqs[3], seqs[4]}));
  EXPECT_EQ(bench.get(bench->fetch("ops", 0, 2)).size(), 2U);
  EXPECT_EQ(fetched("audit").size(), 2U);
}

TEST_F(OutboxTest, AnAnswerEndsWithTheEventThatMakesItFull) {
  constexpr int kMegabytes = 6;
  std::vector<core::EventDraft> drafts;
  for (int i = 0; i < kMegabytes; ++i) drafts.push_back(large_draft("r" + std::to_string(i), 1u << 20));
  Seqs seqs;
  for (const auto& event : bench.get(bench->commit(page_of({}, drafts))).events) seqs.push_back(event.stamp.seq);
  EXPECT_EQ(fetched("ops"), Seqs(seqs.begin(), seqs.begin() + 4));
  EXPECT_EQ(fetched("ops", seqs[3]), Seqs(seqs.begin() + 4, seqs.end()));
  Seqs exact;
  for (const auto& event :
       bench.get(bench->fetch_exact("ops", {seqs[5], seqs[4], 999, seqs[3], seqs[2], seqs[1], seqs[0]}))) {
    exact.push_back(event.stamp.seq);
  }
  EXPECT_EQ(exact, (Seqs{seqs[5], seqs[4], seqs[3], seqs[2]})) << "in the order in which they were asked for";
}

TEST_F(OutboxTest, WhatTellsOfADeadLetterIsStoredWithItOrNotAtAll) {
  const auto seqs = emit(1);
  core::AgentEvent event;
  event.agent = "a";
  event.what = "dead_letter";
  core::SinkSettlement settlement;
  settlement.sink = "nobody";
  settlement.upsert = {{seqs[0], 10, 0, true, "HTTP 422"}};
  settlement.events = {{event, {"audit"}}};
  EXPECT_FALSE(bench.wait(bench->settle(settlement)));
  EXPECT_EQ(bench.get(bench->last_events(1)).front().stamp.seq, seqs[0]);
  settlement.sink = "ops";
  settle(settlement);
  EXPECT_EQ(fetched("audit").size(), 1U);
  EXPECT_EQ(bench.get(bench->last_events(1)).front().what, "dead_letter");
  expect_book("ops", 0, 0, 1, 0);
}

TEST_F(OutboxTest, NewSinkStartsNow) {
  const auto seqs = emit(3, {"ops"});
  const auto cursor = bench.get(bench->open_sink("late"));
  EXPECT_EQ(cursor.low_water, seqs.back());
  EXPECT_TRUE(fetched("late").empty());
}

TEST_F(OutboxTest, EventRoutedToASinkThatOpensLaterIsNotLost) {
  const auto seqs = emit(2, {"slow-starter"});
  const auto cursor = bench.get(bench->open_sink("slow-starter"));
  EXPECT_EQ(fetched("slow-starter", cursor.low_water), seqs);
}

TEST_F(OutboxTest, SinkNamedTwiceInARouteGetsTheEventOnce) {
  emit(1, {"ops", "ops"});
  EXPECT_EQ(fetched("ops").size(), 1U);
  expect_book("ops", 0, 1, 0, 0);
}

TEST_F(OutboxTest, CursorWithExceptionsAndNotesSurvivesARestart) {
  const auto seqs = emit(5);
  settle({"ops",
          seqs[3],
          {{seqs[0], 3, kNoon, false, "HTTP 503", 2}, {seqs[1], 10, 0, true, "HTTP 400"}},
          {},
          {{{"id", "x"}}}});
  restart();
  const auto cursor = bench.get(bench->open_sink("ops"));
  EXPECT_EQ(cursor.low_water, seqs[3]);
  EXPECT_EQ(cursor.notes.at("id"), "x");
  ASSERT_EQ(cursor.exceptions.size(), 2U);
  EXPECT_EQ(cursor.exceptions[0].seq, seqs[0]);
  EXPECT_EQ(cursor.exceptions[0].attempts, 3);
  EXPECT_EQ(cursor.exceptions[0].next_ns, kNoon);
  EXPECT_EQ(cursor.exceptions[0].error, "HTTP 503");
  EXPECT_EQ(cursor.exceptions[0].refusals, 2);
  EXPECT_TRUE(cursor.exceptions[1].dead);
  expect_book("ops", 2, 2, 1, 0);
}

TEST_F(OutboxTest, SettledExceptionIsAcknowledged) {
  const auto seqs = emit(3);
  settle({"ops", seqs[2], {{seqs[0], 1, kNoon, false, "HTTP 503"}}, {}, {}});
  expect_book("ops", 2, 1, 0, 0);
  settle({"ops", seqs[2], {}, {seqs[0]}, {}});
  expect_book("ops", 3, 0, 0, 0);
  EXPECT_TRUE(bench.get(bench->open_sink("ops")).exceptions.empty());
}

TEST_F(OutboxTest, DroppedDeadLetterIsCountedAndNeverComesBack) {
  const auto seqs = emit(3);
  settle({"ops", seqs[0], {{seqs[1], 10, 0, true, "HTTP 400"}}, {}, {}});
  expect_book("ops", 1, 1, 1, 0);
  settle({"ops", seqs[0], {}, {}, {}, {seqs[1]}});
  expect_book("ops", 1, 1, 0, 1);
  settle({"ops", 0, {}, {}, {}});  // a rewind
  EXPECT_EQ(fetched("ops"), (Seqs{seqs[0], seqs[2]}));
  expect_book("ops", 0, 2, 0, 1);
  EXPECT_THAT(book("ops").dropped_by, ElementsAre(Pair("dead_letter", 1)));
}

TEST_F(OutboxTest, RevivedDeadLetterIsPendingAgain) {
  const auto seqs = emit(1);
  settle({"ops", seqs[0], {{seqs[0], 10, 0, true, "HTTP 400"}}, {}, {}});
  settle({"ops", seqs[0], {{seqs[0], 0, 0, false, ""}}, {}, {}});
  expect_book("ops", 0, 1, 0, 0);
  settle({"ops", seqs[0], {}, {seqs[0]}, {}});
  expect_book("ops", 1, 0, 0, 0);
}

TEST_F(OutboxTest, MarkMayGoBack) {
  const auto seqs = emit(4);
  settle({"ops", seqs[3], {}, {}, {}});
  settle({"ops", seqs[1], {}, {}, {}});
  EXPECT_EQ(bench.get(bench->open_sink("ops")).low_water, seqs[1]);
  expect_book("ops", 2, 2, 0, 0);
}

TEST_F(OutboxTest, ExceptionForAnEventThatIsGoneIsNotKept) {
  settle({"ops", 0, {{4711, 1, 0, false, "late"}}, {}, {}});
  EXPECT_TRUE(bench.get(bench->open_sink("ops")).exceptions.empty());
}

TEST_F(OutboxTest, DeadLetterThatWasSentAgainIsAcknowledgedNotDropped) {
  const auto seqs = emit(2);
  settle({"ops", seqs[1], {{seqs[0], 10, 0, true, "refused"}}, {}, {}, {}});
  expect_book("ops", 1, 0, 1, 0);
  settle({"ops", seqs[1], {}, {seqs[0]}, {}, {}});
  expect_book("ops", 2, 0, 0, 0);
}

TEST_F(OutboxTest, DroppedDeadLetterIsDroppedEvenBeforeItWasStoredAsOne) {
  const auto seqs = emit(3);
  settle({"ops", seqs[1], {{seqs[0], 10, 0, true, "refused"}}, {}, {}, {}});
  settle({"ops", seqs[2], {}, {}, {}, {seqs[0], seqs[2]}});
  expect_book("ops", 1, 0, 0, 2);
  settle({"ops", 0, {}, {}, {}, {}});
  EXPECT_EQ(fetched("ops"), std::vector{seqs[1]});
}

TEST_F(OutboxTest, BooksStayExactOverRandomSettlements) {
  std::mt19937 random(7);
  std::set<std::int64_t> exceptions;
  std::int64_t low = 0;
  for (int round = 0; round < 60; ++round) {
    const auto seqs = emit(5);
    core::SinkSettlement next{"ops", low, {}, {}, {}};
    const std::int64_t highest = seqs.back();
    for (int i = 0; i < 3; ++i) {
      const auto seq = std::uniform_int_distribution<std::int64_t>(1, highest)(random);
      if (exceptions.erase(seq) != 0) {
        next.settled.push_back(seq);
      } else if (seq > low) {
        next.upsert.push_back({seq, 1, kNoon, random() % 3 == 0, "x"});
        exceptions.insert(seq);
      }
    }
    next.low_water = low =
        std::uniform_int_distribution<std::int64_t>(std::max<std::int64_t>(0, low - 3), highest)(random);
    settle(next);
    const auto read = book("ops");
    ASSERT_EQ(read.emitted, read.acked + read.pending + read.dead + read.dropped) << "round " << round;
    ASSERT_GE(read.acked, 0);
  }
  const auto rest = bench.get(bench->open_sink("ops"));
  core::SinkSettlement last{"ops", fetched("ops").back(), {}, {}, {}, {}};
  for (const auto& state : rest.exceptions) (state.dead ? last.dropped : last.settled).push_back(state.seq);
  settle(last);
  const auto read = book("ops");
  EXPECT_EQ(read.emitted, 300);
  EXPECT_EQ(read.pending + read.dead, 0);
  EXPECT_EQ(read.acked + read.dropped, 300);
}

TEST_F(OutboxTest, ClosingASinkWithPendingEventsIsRefused) {
  const auto seqs = emit(3);
  settle({"ops", seqs[0], {{seqs[1], 10, 0, true, "HTTP 400"}}, {}, {}});
  const auto closed = bench.wait(bench->close_sink("ops", false));
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::conflict);
  EXPECT_THAT(closed.error().message, AllOf(HasSubstr("sink ops"), HasSubstr("1 events pending and 1 dead letters"),
                                            HasSubstr("drop_pending")));
  EXPECT_EQ(bench.get(bench->sinks()), std::vector<std::string>{"ops"});
}

TEST_F(OutboxTest, ClosingWithDropPendingTellsTheOtherSinks) {
  bench.get(bench->open_sink("audit"));
  const auto seqs = emit(3);
  ASSERT_TRUE(bench.wait(bench->close_sink("ops", true)));
  EXPECT_EQ(bench.get(bench->sinks()), std::vector<std::string>{"audit"});
  expect_book("ops", 0, 0, 0, 3);
  EXPECT_EQ(fetched("audit").size(), 1U);
  EXPECT_THAT(last_gap(),
              AllOf(HasSubstr("\"from\":\"" + std::to_string(seqs[0]) + "\""), HasSubstr("\"count\":\"3\"")));
  EXPECT_THAT(book("ops").dropped_by, ElementsAre(Pair("drop_pending", 3)));
}

/// The routes of an event are resolved before its commit: in between its sink may be removed.
TEST_F(OutboxTest, AnEventThatIsCommittedAfterItsSinkWasRemovedDoesNotOpenItAgain) {
  bench.get(bench->open_sink("audit"));
  ASSERT_TRUE(bench.wait(bench->close_sink("ops", false)));
  const auto seqs = emit(3, {"ops", "audit"});
  EXPECT_EQ(bench.get(bench->sinks()), std::vector<std::string>{"audit"});
  EXPECT_EQ(bench.get(bench->backlog()).events, 3) << "they wait for audit alone";
  settle({"audit", seqs[2], {}, {}, {}});
  EXPECT_EQ(bench.get(bench->backlog()).events, 0);
  EXPECT_EQ(bench.get(bench->open_sink("ops")).low_water, seqs[2]) << "it starts now when it comes back";
  expect_book("ops", 0, 0, 0, 0);
}

TEST_F(OutboxTest, EachReasonOfADropIsCountedByItself) {
  const auto seqs = emit(4);
  settle({"ops", seqs[0], {{seqs[1], 10, 0, true, "HTTP 400"}}, {}, {}});
  settle({"ops", seqs[0], {}, {}, {}, {seqs[1]}});
  bench.clock.now += kSecond;
  bench.get(bench->prune(0, kNoon + 1));
  const auto more = emit(2);
  bench.close();
  tamper(file(), "UPDATE event SET payload = x'00' WHERE seq = " + std::to_string(more[0]));
  ASSERT_TRUE(bench.open());
  bench.get(bench->open_sink("ops"));
  fetched("ops");
  ASSERT_TRUE(bench.wait(bench->close_sink("ops", true)));
  const auto ops = book("ops");
  EXPECT_THAT(ops.dropped_by,
              ElementsAre(Pair("corrupt", 1), Pair("dead_letter", 1), Pair("drop_pending", 3), Pair("retention", 2)))
      << "3: an event, the gap of retention and the report of the damage";
  EXPECT_EQ(ops.emitted, ops.acked + ops.dropped);
  EXPECT_EQ(ops.dropped, 7);
}

TEST_F(OutboxTest, SettledSinkClosesQuietlyAndStartsNowWhenItComesBack) {
  const auto seqs = emit(2);
  settle({"ops", seqs[1], {}, {}, {}});
  ASSERT_TRUE(bench.wait(bench->close_sink("ops", false)));
  emit(2, {"audit"});
  const auto cursor = bench.get(bench->open_sink("ops"));
  EXPECT_GT(cursor.low_water, seqs[1]);
  expect_book("ops", 2, 0, 0, 0);
}

TEST_F(OutboxTest, UnknownSinkIsNotFound) {
  EXPECT_EQ(bench.wait(bench->fetch("nope", 0, 1)).error().code, Code::not_found);
  EXPECT_EQ(bench.wait(bench->settle({"nope", 0, {}, {}, {}})).error().code, Code::not_found);
}

TEST_F(OutboxTest, DeadLettersAreListedWithTheirEvent) {
  const auto seqs = emit(3);
  settle({"ops", seqs[2], {{seqs[1], 10, 0, true, "HTTP 400 from ops"}}, {}, {}});
  const auto letters = bench.get(bench->dead_letters("", 10));
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].sink, "ops");
  EXPECT_EQ(letters[0].event.stamp.seq, seqs[1]);
  EXPECT_EQ(letters[0].attempts, 10);
  EXPECT_EQ(letters[0].error, "HTTP 400 from ops");
  EXPECT_TRUE(bench.get(bench->dead_letters("other", 10)).empty());
}

TEST_F(OutboxTest, BacklogCountsAnEventOnceForAllSinks) {
  bench.get(bench->open_sink("audit"));
  const auto seqs = emit(4, {"ops", "audit"});
  settle({"audit", seqs[3], {}, {}, {}});
  settle({"ops", seqs[1], {{seqs[0], 1, 0, false, "x"}, {seqs[1], 1, 0, true, "x"}}, {}, {}});
  std::int64_t bytes = 0;
  for (const auto& event : bench.get(bench->fetch_exact("ops", {seqs[0], seqs[2], seqs[3]}))) {
    bytes += static_cast<std::int64_t>(event.payload.size());
  }
  const auto backlog = bench.get(bench->backlog());
  EXPECT_EQ(backlog.events, 3);
  EXPECT_EQ(backlog.bytes, bytes);
  settle({"ops", seqs[3], {}, {seqs[0]}, {}});
  EXPECT_EQ(bench.get(bench->backlog()).events, 0);
}

TEST_F(OutboxTest, LargeBacklogIsThatOfTheSlowestSink) {
  for (int i = 0; i < 21; ++i) emit(500);
  const auto backlog = bench.get(bench->backlog());
  EXPECT_EQ(backlog.events, 10'500);
  EXPECT_GT(backlog.bytes, 10'500 * 50);
}

TEST_F(OutboxTest, OwnEventsFollowTheConfiguredRoute) {
  bench.get(bench->open_sink("audit"));
  bench.settings.route = [](const core::AgentEvent& event) {
    return event.what == "gap" ? std::vector<std::string>{"audit"} : std::vector<std::string>{};
  };
  restart();
  emit(1);
  bench.clock.now += kSecond;
  bench.get(bench->prune(0, kNoon + 1));
  EXPECT_EQ(fetched("audit").size(), 1U);
  EXPECT_TRUE(fetched("ops").empty());
}

}  // namespace
}  // namespace driftd::test
