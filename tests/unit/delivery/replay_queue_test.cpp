// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "delivery/replay_queue.hpp"
#include "world.hpp"

namespace driftd::delivery::test {
namespace {

class ReplayTest : public ::testing::Test {
 protected:
  static core::StoredEvent stored(std::int64_t seq, const std::string& key) {
    core::StoredEvent out;
    out.stamp.seq = seq;
    out.key = key;
    return out;
  }
  static bool any(const std::string&) { return true; }
  std::string note() const {
    std::map<std::string, std::string> notes;
    replay_.note(notes);
    return notes["replay"];
  }
  /// Of the events, the first `fetched` are in memory.
  void begin(std::vector<std::string> keys, std::size_t fetched = SIZE_MAX) {
    std::vector<std::int64_t> seqs;
    std::vector<core::StoredEvent> events;
    for (const auto& key : keys) {
      seqs.push_back(static_cast<std::int64_t>(seqs.size()) + 1);
      events.push_back(stored(seqs.back(), key));
    }
    replay_.begin({1, seqs.back(), 7, 0, "shop/topic a"}, seqs);
    const auto asked = replay_.unfetched(std::min(fetched, seqs.size()));
    events.resize(asked.size());
    replay_.fetched(asked, std::move(events));
  }
  Time now_ = Time{} + std::chrono::hours(1);
  ReplayQueue replay_;
};

TEST_F(ReplayTest, WhatIsUnderWayIsStillToBeDoneAfterAKill) {
  begin({"a", "b", "c"});
  auto first = replay_.take(now_, any);
  auto second = replay_.take(now_, any);
  replay_.done(*second, true);
  EXPECT_EQ(note(), std::string("1 3 7 0 shop/topic a") + '\0' + "4 1 3") << "the second was sent";
  replay_.done(*first, true);
  EXPECT_EQ(note(), "3 3 7 0 shop/topic a");
  replay_.done(*replay_.take(now_, any), true);
  EXPECT_TRUE(replay_.finished());
  EXPECT_EQ(note(), "4 3 7 0 shop/topic a") << "nothing is left of it";
  replay_.cancel();
  EXPECT_EQ(note(), "");
}

TEST_F(ReplayTest, ANoteIsReadAsItWasWritten) {
  begin({"a", "b"});
  std::map<std::string, std::string> notes;
  replay_.note(notes);
  ReplayQueue next;
  next.restore(notes);
  ASSERT_TRUE(next.active());
  EXPECT_FALSE(next.planned());
  EXPECT_EQ(next.order()->key, "shop/topic a");
  EXPECT_EQ(next.order()->to, 2);
  EXPECT_EQ(next.order()->from_ns, 7);
}

/// One event that waits must not bring back all that were sent after it.
TEST_F(ReplayTest, WhatWasSentAfterAWaitingEventIsNotSentAgainAfterAKill) {
  begin({"a", "b", "c", "a", "d", "e"}, 5);
  const auto waiting = replay_.take(now_, any);
  for (int i = 0; i < 3; ++i) replay_.done(*replay_.take(now_, any), true);
  replay_.requeue(*waiting, now_ + std::chrono::minutes(5));
  std::map<std::string, std::string> notes;
  replay_.note(notes);
  ReplayQueue next;
  next.restore(notes);
  ASSERT_TRUE(next.active());
  next.resume({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(next.unfetched(10), (std::vector<std::int64_t>{1, 4, 6}));
}

/// An agent before this form of the note reads the key up to a byte 0, and begins at the first that is left.
TEST_F(ReplayTest, AnOlderAgentFindsItsOwnNoteInIt) {
  begin({"a", "b", "c"});
  const auto waiting = replay_.take(now_, any);
  replay_.done(*replay_.take(now_, any), true);
  EXPECT_EQ(note().substr(0, note().find('\0')), "1 3 7 0 shop/topic a");
  ReplayQueue next;
  next.restore({{"replay", "1 3 7 0 shop/topic a"}});
  next.resume({1, 2, 3});
  EXPECT_EQ(next.unfetched(10), (std::vector<std::int64_t>{1, 2, 3})) << "and its note is read as it was meant";
}

TEST_F(ReplayTest, ANoteThatIsCutSendsRatherTooMuch) {
  for (const char* rest : {"", "x", "4 1", "4 1 x", "99999999999999999999 1"}) {
    ReplayQueue next;
    next.restore({{"replay", std::string("1 3 7 0 k") + '\0' + rest}});
    ASSERT_TRUE(next.active());
    next.resume({1, 2, 3});
    EXPECT_THAT(next.unfetched(10), ::testing::Contains(1)) << rest;
  }
}

TEST_F(ReplayTest, OneKeyThatIsNotFreeHoldsBackNoOtherAndKeepsItsOrder) {
  begin({"a", "a", "b"});
  const auto not_a = [](const std::string& key) { return key != "a"; };
  EXPECT_EQ(replay_.take(now_, not_a)->event.stamp.seq, 3);
  EXPECT_FALSE(replay_.next(not_a).has_value());
  auto first = replay_.take(now_, any);
  EXPECT_EQ(first->event.stamp.seq, 1);
  EXPECT_FALSE(replay_.take(now_, any).has_value()) << "the second of its key waits for the first";
  replay_.requeue(*first, now_ + std::chrono::seconds(5));
  EXPECT_FALSE(replay_.take(now_, any).has_value());
  EXPECT_EQ(*replay_.next(any), now_ + std::chrono::seconds(5));
}

// Found by reading: nothing counted as in flight any more, and a cursor was moved back under it; an event that came
// back asked an order that was gone for its rate.
TEST_F(ReplayTest, WhatIsInFlightStaysSoWhenItsOrderIsCancelled) {
  begin({"a", "b"});
  const auto first = replay_.take(now_, any), second = replay_.take(now_, any);
  replay_.cancel();
  EXPECT_EQ(replay_.in_flight(), 2U);
  replay_.requeue(*first, now_);
  EXPECT_EQ(replay_.ready(), 0U) << "nothing more is sent again";
  begin({"b"});
  EXPECT_FALSE(replay_.take(now_, any).has_value()) << "an event of this key is still in flight";
  EXPECT_FALSE(replay_.finished());
  replay_.done(*second, true);
  replay_.done(*replay_.take(now_, any), true);
  EXPECT_TRUE(replay_.finished());
  EXPECT_EQ(replay_.summary(), "1 events were sent again");
}

TEST(ReplayOfAWebhook, AnEventThatIsRefusedForEverIsGivenUpAndTheOthersGo) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.commit(50, 50);
  world.pass(std::chrono::seconds(1));
  world.to.at_once = [](const core::StoredEvent& event) -> std::optional<Attempt> {
    if (event.stamp.seq == 1) return Attempt{Outcome::retry_event, "HTTP 500 from ops", 0};
    return Attempt{};
  };
  core::Control::Replay request;
  request.sink = "s";
  EXPECT_EQ(world.ask(world.relay->replay(request)).value().value(), 50);
  EXPECT_EQ(world.view().delivered, 99) << "the others do not wait for it";
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::minutes(5));
  EXPECT_EQ(world.to.sent[1], 6) << "once, and five times again";
  EXPECT_EQ(world.ask(world.relay->replay(request)).value().value(), 50) << "the first one is over";
}

TEST(ReplayOfAWebhook, ADisabledReceiverKeepsWhatIsLeftForTheNextStart) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.commit(50, 50);
  world.pass(std::chrono::seconds(1));
  world.to.at_once = [](const auto&) { return Attempt{Outcome::disabled, "HTTP 410 from ops", 0}; };
  core::Control::Replay request;
  request.sink = "s";
  (void)world.ask(world.relay->replay(request));
  world.pass(std::chrono::seconds(1));
  world.kill();
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  for (int i = 0; i < 3; ++i) world.pass(std::chrono::seconds(1));
  for (std::int64_t seq = 1; seq <= 50; ++seq) EXPECT_GE(world.to.sent[seq], 2) << seq;
}

/// The cursor is stored while one resource waits for its next attempt, and the agent is killed then.
TEST(ReplayOfAWebhook, AWaitingResourceDoesNotMakeAKillSendEverythingAgain) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.commit(1000, 1000);
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::seconds(1));
  world.to.at_once = [](const core::StoredEvent& event) -> std::optional<Attempt> {
    if (event.stamp.seq == 1) return Attempt{Outcome::retry_event, "HTTP 500 from ops", 0};
    return Attempt{};
  };
  core::Control::Replay request;
  request.sink = "s";
  EXPECT_EQ(world.ask(world.relay->replay(request)).value().value(), 1000);
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::seconds(1));
  for (std::int64_t seq = 2; seq <= 1000; ++seq) ASSERT_EQ(world.to.sent[seq], 2) << seq;
  world.kill();
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::minutes(5));
  std::int64_t again = 0;
  for (std::int64_t seq = 2; seq <= 1000; ++seq) again += world.to.sent[seq] - 2;
  EXPECT_LE(again, 256);
  EXPECT_GE(world.to.sent[1], 3);
}

}  // namespace
}  // namespace driftd::delivery::test
