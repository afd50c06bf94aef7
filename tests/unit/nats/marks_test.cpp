// SPDX-License-Identifier: Apache-2.0
#include "sinks/common/marks.hpp"

#include <gtest/gtest.h>
#include <random>
#include <set>

#include "sinks/nats/failure_text.hpp"

namespace driftd::sinks {
namespace {

TEST(Marks, ANewMessageAtOrBelowAnOlderOneIsNoAnswerOfAWholeStream) {
  Marks marks;
  EXPECT_TRUE(marks.acked(10, false, "a", 1));
  EXPECT_TRUE(marks.acked(4, true, "b", 2)) << "a duplicate has its old place";
  EXPECT_FALSE(marks.acked(10, false, "c", 3));
  EXPECT_FALSE(marks.acked(9, false, "d", 4));
  EXPECT_EQ(marks.last().stream_seq, 10U);
  EXPECT_EQ(marks.last().id, "a") << "what the doubt is about is not covered up";
  EXPECT_TRUE(marks.acked(11, true, "e", 5)) << "a duplicate whose first acknowledgement was lost";
  EXPECT_EQ(marks.last().id, "e");
}

TEST(Marks, APromiseIsLoweredWhenAnOldEventIsUnsettledAgain) {
  Marks marks;
  marks.acked(1, false, "a", 50);
  marks.promise(50);
  marks.acked(1'000, false, "b", 51);
  marks.promise(20);  // the dead letter with number 21 is requeued
  for (const auto& mark : marks.all()) EXPECT_LE(mark.safe, 20);
  marks.promise(51);
  marks.acked(1'001, false, "c", 7);  // another event was sent and acknowledged between two saves
  for (const auto& mark : marks.all()) EXPECT_LE(mark.safe, 6);
}

TEST(Marks, AReplayLowersNoPromise) {
  Marks marks;
  marks.acked(1, false, "a", 50);
  marks.promise(50);
  marks.acked(2, false, "b_r1", 0);
  EXPECT_EQ(marks.all().back().safe, 50);
}

TEST(Marks, SurviveARestartInTheNotes) {
  Marks marks;
  for (std::uint64_t i = 1; i <= 5'000; ++i) {
    marks.acked(i, false, "id-" + std::to_string(i), static_cast<std::int64_t>(i));
    if (i % 100 == 0) marks.promise(static_cast<std::int64_t>(i));
  }
  std::map<std::string, std::string> notes;
  marks.write(notes);
  Marks again;
  again.read(notes);
  ASSERT_EQ(again.all().size(), marks.all().size());
  EXPECT_EQ(again.last().stream_seq, 5'000U);
  EXPECT_EQ(again.last().id, "id-5000");
  EXPECT_EQ(again.all().back().safe, 5'000);
  Marks unreadable;
  unreadable.read({{"marks", "x 1:2 3:y:z 7:5:kept"}});
  EXPECT_EQ(unreadable.all().size(), 1U);
}

TEST(Marks, AfterALossTheLastPromiseThatHoldsIsTheLastPosition) {
  Marks marks;
  for (std::uint64_t i = 1; i <= 2'000; ++i) {
    marks.acked(i, false, std::to_string(i), static_cast<std::int64_t>(i));
    if (i % 50 == 0) marks.promise(static_cast<std::int64_t>(i));
  }
  const Mark second = marks.all()[1];
  marks.keep_oldest(2);
  EXPECT_EQ(marks.last().stream_seq, second.stream_seq);
  EXPECT_TRUE(marks.acked(second.stream_seq + 1, false, "new", 3'000));
  marks.keep_oldest(0);
  EXPECT_EQ(marks.last().stream_seq, 0U);
}

/// A model that knows where each event was acknowledged last, and which events are settled.
TEST(Marks, NeverPromiseAnEventThatIsUnsettledOrStandsHigherInTheStream) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::minstd_rand random(seed);
    Marks marks;
    std::map<std::int64_t, std::uint64_t> at;  // settled event → its position
    std::set<std::int64_t> open;
    std::int64_t next = 1;
    std::uint64_t top = 0;
    for (int step = 0; step < 3'000; ++step) {
      const auto any = [&](const auto& from) {
        return std::next(from.begin(), static_cast<long>(random() % from.size()));
      };
      if (random() % 3 == 0 || open.empty())
        open.insert(next++);
      else if (random() % 100 == 0 && !at.empty())
        open.insert(at.extract(any(at)).key());  // the event is requeued
      else if (random() % 4 != 0) {
        const auto event = *any(open);
        open.erase(event);
        top += 1 + random() % 3;  // other publishers use the stream too
        at[event] = top;
        ASSERT_TRUE(marks.acked(top, random() % 5 == 0, std::to_string(event), event));
      } else {
        marks.promise(open.empty() ? next - 1 : *open.begin() - 1);
        ASSERT_LE(marks.all().size(), 17U);
        for (const auto& mark : marks.all()) {
          ASSERT_TRUE(open.empty() || mark.safe < *open.begin()) << "seed " << seed;
        }
      }
    }
    for (const auto& mark : marks.all()) {
      for (const auto& [event, place] : at) {
        ASSERT_TRUE(event > mark.safe || place <= mark.stream_seq) << "seed " << seed << ", event " << event;
      }
    }
  }
}

TEST(NatsWords, AServerIsNamedWithoutAnythingOfItsPassword) {
  EXPECT_EQ(shown_urls(
                {"nats://drift:hunter2@tail@127.0.0.1:4222", "nats://token@h:1", "u:p@w@h:2", "nats://plain:3", "h:4"}),
            "nats://127.0.0.1:4222, nats://h:1, h:2, nats://plain:3, h:4");
  EXPECT_EQ(shown_urls({"nats://u:a/b@c://d@h:1"}), "nats://h:1");
}

TEST(NatsWords, AMissingRightIsReadFromWhatTheServerSays) {
  EXPECT_EQ(denied_subject("Permissions Violation for Publish to \"driftd.agent.a.parked\""), "driftd.agent.a.parked");
  EXPECT_EQ(denied_subject("Permissions Violation for Subscription to \"_INBOX.x.*\""), "_INBOX.x.*");
  EXPECT_EQ(denied_subject("Permissions Violation for Publish to backend.x"), "backend.x");
  EXPECT_EQ(denied_subject("Authorization Violation"), "");
}

TEST(NatsWords, AStreamsSubjectsCoverWhatTheServerWouldTake) {
  EXPECT_TRUE(covers({"driftd.x", "backend.>"}, "backend.a.b"));
  EXPECT_FALSE(covers({"backend.>"}, "backend"));
  EXPECT_TRUE(covers({"backend.*.created"}, "backend.a.created"));
  EXPECT_FALSE(covers({"backend.*.created"}, "backend.a.b.created"));
  EXPECT_FALSE(covers({"backend.*"}, "backend.a.b"));
  EXPECT_FALSE(covers({}, "backend.a"));
}

/// A message that the stream refuses for an unknown reason stops no other message: the sink runner decides what is to
/// blame. A connection's failure is never blamed on an event.
TEST(NatsWords, WhatTheStreamRefusesIsNotTheEndpointsFaultByItself) {
  using Outcome = core::Attempt::Outcome;
  for (const int code : {int{JSStreamStoreFailedErr}, 10'097, int{JSStreamSealedErr}, int{JSInsufficientResourcesErr},
                         int{JSStreamWrongLastSequenceErr}, 10'164, 12'345}) {
    EXPECT_EQ(classify_failure(NATS_ERR, code), Outcome::refused) << code;
  }
  EXPECT_EQ(classify_failure(NATS_ERR, JSStreamMessageExceedsMaximumErr), Outcome::permanent);
  EXPECT_EQ(classify_failure(NATS_MAX_PAYLOAD, 0), Outcome::permanent);
  for (const natsStatus status : {NATS_TIMEOUT, NATS_NO_RESPONDERS, NATS_CONNECTION_CLOSED, NATS_INSUFFICIENT_BUFFER}) {
    EXPECT_EQ(classify_failure(status, 0), Outcome::retry_sink) << natsStatus_GetText(status);
  }
}

TEST(NatsWords, CodesOfJetStreamSayWhatToDo) {
  EXPECT_EQ(explain(0), "");
  EXPECT_NE(explain(10065).find("(JetStream error 10065): another stream has backend.>"), std::string::npos);
  EXPECT_EQ(explain(12345), " (JetStream error 12345)");
}

}  // namespace
}  // namespace driftd::sinks
