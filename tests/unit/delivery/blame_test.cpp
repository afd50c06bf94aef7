// SPDX-License-Identifier: Apache-2.0
// An answer about one event stops no other event, and a dead endpoint costs no event an attempt.
#include <gmock/gmock.h>

#include "world.hpp"

namespace driftd::delivery::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Event 1 is refused for ever, the others are accepted.
std::optional<Attempt> poison(const core::StoredEvent& event) {
  if (event.stamp.seq == 1) return Attempt{Outcome::refused, "HTTP 403 from ops", 0};
  return Attempt{};
}
std::optional<Attempt> dead(const core::StoredEvent&) { return Attempt{Outcome::refused, "HTTP 503 from ops", 0}; }

class Blame : public ::testing::TestWithParam<bool> {
 protected:
  LaneWorld world{GetParam() ? core::RetryPolicy{} : webhook_policy()};
};

TEST_P(Blame, AnEventThatIsRefusedForEverHoldsBackNoOther) {
  world.to.at_once = poison;
  world.start();
  world.commit(101, 101);
  EXPECT_EQ(world.view().delivered, 100);
  EXPECT_THAT(world.view().state, Not(HasSubstr("circuit")));
  EXPECT_EQ(world.view().last_error, "HTTP 403 from ops (event id-1)");
  world.commit(100, 101);
  EXPECT_GE(world.view().delivered, 199) << "while it waits for its next attempt, too";
}

TEST_P(Blame, ItIsTheOnlyOneThatIsThereFirst) {
  world.to.at_once = poison;
  world.start();
  world.commit(1, 1);
  for (int i = 0; i < 20; ++i) world.pass(std::chrono::seconds(20));
  EXPECT_GT(world.to.sent[1], 2);
  world.commit(100, 101);
  EXPECT_EQ(world.view().delivered, 100) << "no circuit keeps the others waiting";
}

TEST_P(Blame, ThreeOfThemHoldBackNoOtherForLong) {
  world.to.at_once = [](const core::StoredEvent& event) -> std::optional<Attempt> {
    if (event.stamp.seq <= 3) return Attempt{Outcome::refused, "HTTP 403 from ops", 0};
    return Attempt{};
  };
  world.start();
  world.commit(500, 500);
  for (int i = 0; i < 12; ++i) world.pass(std::chrono::seconds(1));
  EXPECT_EQ(world.view().delivered, 497);
}

TEST_P(Blame, AnEndpointThatIsDeadOpensTheCircuitAndCostsNoEventAnAttempt) {
  world.to.at_once = dead;
  world.start();
  world.commit(300, 300);
  EXPECT_THAT(world.view().state, HasSubstr("circuit open"));
  const auto first = world.to.sent.size();
  EXPECT_LE(first, GetParam() ? 256U : 8U);
  int probes = 0;
  for (int hour = 0; hour < 100; ++hour) {
    for (int i = 0; i < 10; ++i) world.pass(std::chrono::minutes(6));
    probes += 10;
  }
  for (const auto& state : world.outbox.memory.cursors["s"].exceptions) {
    EXPECT_EQ(state.attempts, 0) << state.seq;
    EXPECT_FALSE(state.dead) << state.seq;
  }
  world.to.at_once = [](const auto&) { return Attempt{}; };
  for (int i = 0; i < 3; ++i) world.pass(std::chrono::minutes(6));
  EXPECT_EQ(world.view().delivered, 300);
  EXPECT_TRUE(world.outbox.told.empty());
}

TEST_P(Blame, TheProbeIsOfAnotherKeyThanTheOneThatFailed) {
  world.to.at_once = dead;
  world.start();
  world.commit(300, 300);
  for (int i = 0; i < 20; ++i) world.pass(std::chrono::minutes(6));
  int most = 0;
  for (const auto& [seq, count] : world.to.sent) most = std::max(most, count);
  EXPECT_LE(most, 2) << "each probe asks with an event that was not asked with before";
}

INSTANTIATE_TEST_SUITE_P(Kinds, Blame, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "forever" : "webhook"; });

TEST(BlameOfAWebhook, AnEventThatIsRefusedWhileOthersGetThroughBecomesADeadLetterInTheEnd) {
  LaneWorld world(webhook_policy());
  world.to.at_once = poison;
  world.start();
  for (int hour = 0; hour < 120 && world.view().dead == 0; ++hour) {
    for (int i = 0; i < 10; ++i) {
      world.commit(1, 1'000);
      world.pass(std::chrono::minutes(6));
    }
  }
  EXPECT_EQ(world.view().dead, 1);
  EXPECT_EQ(world.outbox.told.size(), 1U);
}

TEST(BlameOfAWebhook, OneKeyThatIsAllThereIsIsDisabledAfter120HoursOfNothingButRefusals) {
  LaneWorld world(webhook_policy());
  world.to.at_once = poison;
  world.start();
  world.commit(1, 1);
  for (int i = 0; i < 125 * 10; ++i) world.pass(std::chrono::minutes(6));
  EXPECT_THAT(world.view().state, HasSubstr("disabled"));
  EXPECT_EQ(world.view().dead, 0);
}

TEST(BlameOfAWebhook, AMachineThatWasOffForDaysAndAClockThatIsSetDisableNothing) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return Attempt{Outcome::retry_sink, "no network yet", 0}; };
  world.start();
  world.commit(1, 1);
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::minutes(1));
  world.kill();
  world.clock.set_wall(std::chrono::hours(24 * 6));
  world.start();
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::minutes(1));
  world.clock.set_wall(std::chrono::hours(24 * 365 * 50));  // NTP
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::minutes(1));
  EXPECT_THAT(world.view().state, HasSubstr("circuit open"));
  world.to.at_once = [](const auto&) { return Attempt{}; };
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::minutes(6));
  EXPECT_EQ(world.to.got, (std::vector<std::int64_t>{1}));
}

TEST(BlameOfAWebhook, WhatFailedBeforeARestartCountsBehindIt) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return Attempt{Outcome::retry_sink, "HTTP 503 from ops", 0}; };
  world.start();
  world.commit(1, 1);
  for (int day = 0; day < 6; ++day) {
    for (int i = 0; i < 22 * 10; ++i) world.pass(std::chrono::minutes(6));
    world.kill();
    world.start();
  }
  EXPECT_THAT(world.view().state, HasSubstr("disabled")) << "6 days of 22 hours";
}

TEST(BlameOfAWebhook, AClockThatIsBehindByYearsAtTheStartHoldsNothingBack) {
  LaneWorld world(webhook_policy());
  world.to.at_once = poison;
  world.start();
  world.commit(20, 20);
  for (int i = 0; i < 30; ++i) world.pass(std::chrono::minutes(6));
  world.kill();
  const auto left = world.committed() - static_cast<std::int64_t>(world.to.got.size());
  ASSERT_GT(left, 0);
  world.clock.set_wall(-std::chrono::hours(24 * 365));
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.pass(std::chrono::seconds(30));
  EXPECT_TRUE(world.over()) << world.view().state;
}

TEST(BlameOfAWebhook, RetryAfterHoldsTheKeyThatItWasSaidTo) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const core::StoredEvent& event) -> std::optional<Attempt> {
    if (event.stamp.seq == 1) return Attempt{Outcome::refused, "HTTP 429 from ops", 60'000};
    return Attempt{};
  };
  world.start();
  world.commit(2, 2);
  world.pass(std::chrono::seconds(59));
  EXPECT_EQ(world.to.sent[1], 1);
  EXPECT_EQ(world.to.sent[2], 1);
  world.pass(std::chrono::seconds(2));
  EXPECT_EQ(world.to.sent[1], 2);
}

TEST(BlameOfAWebhook, WhatWaitsForASignOfLifeGoesWithTheFirst) {
  LaneWorld world(webhook_policy());
  world.to.at_once = dead;
  world.start();
  world.commit(1, 2);
  world.pass(std::chrono::seconds(3));
  world.commit(1, 2);
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.pass(std::chrono::milliseconds(2'100));  // the wait of the first event (5 s) is over, that of the second is not
  EXPECT_EQ(world.view().delivered, 2);
}

TEST(BlameOfAWebhook, TheLogSaysThatACircuitIsClosedOnlyWhenItIs) {
  LaneWorld world(webhook_policy());
  world.start();
  world.commit(8, 8);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  world.to.answer(0, {Outcome::retry_sink, "connection refused", 0});
  world.settle();
  world.to.answer_all();  // these events were in flight when the circuit opened
  world.settle();
  const std::string open = ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(world.view().state, HasSubstr("circuit open"));
  EXPECT_THAT(open, Not(HasSubstr("circuit closed")));
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  world.pass(std::chrono::seconds(7));
  world.to.answer_all();
  world.settle();
  world.commit(8, 8);
  world.to.answer_all();
  world.settle();
  const std::string closed = ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(closed, HasSubstr("circuit closed"));
  EXPECT_EQ(closed.find("circuit closed"), closed.rfind("circuit closed")) << closed;
}

}  // namespace
}  // namespace driftd::delivery::test
