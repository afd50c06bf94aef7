// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
  void begin(std::vector<std::string> keys) {
    std::vector<std::int64_t> seqs;
    std::vector<core::StoredEvent> events;
    for (const auto& key : keys) {
      seqs.push_back(static_cast<std::int64_t>(seqs.size()) + 1);
      events.push_back(stored(seqs.back(), key));
    }
    replay_.begin({1, seqs.back(), 7, 0, "shop/topic a"}, seqs);
    replay_.fetched(replay_.unfetched(seqs.size()), std::move(events));
  }
  Time now_ = Time{} + std::chrono::hours(1);
  ReplayQueue replay_;
};

TEST_F(ReplayTest, WhatIsUnderWayIsStillToBeDoneAfterAKill) {
  begin({"a", "b", "c"});
  auto first = replay_.take(now_, any);
  auto second = replay_.take(now_, any);
  replay_.done(*second, true);
  EXPECT_EQ(note(), "1 3 7 0 shop/topic a");
  replay_.done(*first, true);
  EXPECT_EQ(note(), "3 3 7 0 shop/topic a");
  replay_.done(*replay_.take(now_, any), true);
  EXPECT_TRUE(replay_.finished());
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

}  // namespace
}  // namespace driftd::delivery::test
