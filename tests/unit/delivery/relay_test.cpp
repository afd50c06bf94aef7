// SPDX-License-Identifier: Apache-2.0
// What a relay sends, in which order, and when it tries again.
#include "relay_fixture.hpp"

namespace driftd::delivery::test {
namespace {

using namespace std::chrono_literals;

TEST_F(RelayTest, EveryRoutedEventIsSentOnceAndTheCursorFollowsWithin100Milliseconds) {
  for (int i = 0; i < 50; ++i) outbox_.add("k" + std::to_string(i % 7), {"a"});
  outbox_.add("other", {"b"});
  start({{"a", &a_}});
  EXPECT_EQ(a_.sent.size(), 50U);
  advance(101ms);
  EXPECT_EQ(outbox_.cursors["a"].low_water, 50);
  EXPECT_TRUE(outbox_.cursors["a"].exceptions.empty());
}

TEST_F(RelayTest, NeverTwoEventsOfOneKeyAreInFlightAndManyKeysAre) {
  a_.hold = true;
  for (int i = 0; i < 60; ++i) outbox_.add("k" + std::to_string(i % 6), {"a"});
  start({{"a", &a_}});
  EXPECT_EQ(a_.most_flying, 6);
  a_.release();
  advance(1ms);
  EXPECT_EQ(a_.sent.size(), 60U);
  EXPECT_EQ(a_.most_flying_of_a_key, 1);
  for (std::size_t i = 0; i + 6 < 60; ++i) {
    const auto at = [&](std::size_t n) {
      return std::find(a_.sent.begin(), a_.sent.end(), "id-" + std::to_string(n + 1)) - a_.sent.begin();
    };
    EXPECT_LT(at(i), at(i + 6)) << "order within a key";
  }
}

TEST_F(RelayTest, InFlightNeverExceedsWhatTheSinkBears) {
  a_.policy = webhook_policy();
  a_.hold = true;
  for (int i = 0; i < 60; ++i) outbox_.add("k" + std::to_string(i), {"a"});
  start({{"a", &a_}});
  EXPECT_EQ(a_.most_flying, 8);
  a_.release();
  settle();
}

TEST_F(RelayTest, AKillSendsAtMost256EventsTwice) {
  for (int i = 0; i < 3000; ++i) outbox_.add("k" + std::to_string(i), {"a"});
  start({{"a", &a_}});  // the clock does not move, so only full batches are saved
  EXPECT_EQ(a_.sent.size(), 3000U);
  kill();
  a_.sent.clear();
  start({{"a", &a_}});
  EXPECT_LE(a_.sent.size(), 256U);
}

TEST_F(RelayTest, AKillSendsAtMost256EventsTwiceAlsoBehindOneThatHangs) {
  bool hang = true;
  for (int i = 0; i < 2000; ++i) outbox_.add("k" + std::to_string(i), {"a"});
  a_.answer = [&](const core::StoredEvent& event) {
    if (event.stamp.seq == 1 && hang) return Attempt{Outcome::retry_event, "slow", 3'600'000};
    return Attempt{};
  };
  start({{"a", &a_}});
  EXPECT_EQ(a_.sent.size(), 2000U);
  kill();
  a_.sent.clear();
  start({{"a", &a_}});
  EXPECT_LE(a_.sent.size(), 256U);
  EXPECT_EQ(a_.count("id-1"), 0) << "its wait outlives the kill";
  hang = false;
  advance(1h + 1s);
  EXPECT_EQ(a_.count("id-1"), 1);
}

TEST_F(RelayTest, AFailingEventBlocksOnlyItsOwnKey) {
  outbox_.add("bad", {"a"});
  outbox_.add("good", {"a"});
  outbox_.add("bad", {"a"});
  a_.answer = [](const core::StoredEvent& e) { return e.key == "bad" ? fail_event(e) : Attempt{}; };
  start({{"a", &a_}});
  EXPECT_EQ(a_.sent, (std::vector<std::string>{"id-1", "id-2"}));
  a_.answer = [](const auto&) { return Attempt{}; };
  advance(301ms);
  EXPECT_EQ(a_.sent, (std::vector<std::string>{"id-1", "id-2", "id-1", "id-3"}));
}

TEST_F(RelayTest, OneDeadSinkNeverSlowsAnother) {
  a_.answer = fail_sink;
  for (int i = 0; i < 5000; ++i) outbox_.add("k" + std::to_string(i), {"a", "b"});
  start({{"a", &a_}, {"b", &b_}});
  EXPECT_EQ(b_.sent.size(), 5000U);
  EXPECT_LE(a_.sent.size(), 256U);
}

TEST_F(RelayTest, AWebhookEventIsTriedTenTimesOverItsScheduleThenBecomesADeadLetterThatTheOthersHearOf) {
  a_.policy = webhook_policy();
  a_.answer = [](const core::StoredEvent& e) { return e.key == "bad" ? fail_event(e) : Attempt{}; };
  outbox_.add("bad", {"a"});
  outbox_.add("bad", {"a"});
  start({{"a", &a_}, {"b", &b_}});
  const std::vector<std::chrono::milliseconds> waits = {5s, 5min, 30min, 2h, 5h, 10h, 14h, 20h, 24h};
  for (std::size_t i = 0; i < waits.size(); ++i) {
    advance(waits[i] * 79 / 100);
    EXPECT_EQ(a_.count("id-1"), static_cast<int>(i) + 1) << "not before its time";
    advance(waits[i] * 42 / 100);
    EXPECT_EQ(a_.count("id-1"), static_cast<int>(i) + 2);
  }
  ASSERT_EQ(outbox_.appended.size(), 1U);
  EXPECT_EQ(outbox_.appended[0].what, "dead_letter");
  EXPECT_EQ(outbox_.appended[0].details.at("event_id"), "id-1");
  EXPECT_EQ(b_.count("id-3"), 1) << "the agent event reaches the other sink";
  EXPECT_EQ(a_.count("id-3"), 0) << "and not the one it is about";
  EXPECT_EQ(a_.count("id-2"), 1) << "the key goes on";
  EXPECT_EQ(view("a").dead, 1);
}

TEST_F(RelayTest, TheCircuitBurnsNoAttemptsAndProbesWithOneEvent) {
  a_.policy = webhook_policy();
  a_.answer = fail_sink;
  for (int i = 0; i < 20; ++i) outbox_.add("k" + std::to_string(i), {"a"});
  start({{"a", &a_}});
  const auto first = a_.sent.size();
  EXPECT_LE(first, 8U);
  advance(3s);
  EXPECT_EQ(a_.sent.size(), first) << "open: nothing is sent";
  advance(4s);
  EXPECT_EQ(a_.sent.size(), first + 1) << "half-open: one probe";
  for (int i = 0; i < 200; ++i) advance(6min);
  EXPECT_EQ(view("a").dead, 0);
  a_.answer = [](const auto&) { return Attempt{}; };
  advance(6min + 1s);
  EXPECT_EQ(view("a").delivered, 20);
}

TEST_F(RelayTest, FailuresOfManyKeysInARowAreAboutTheEndpoint) {
  a_.policy = webhook_policy();
  a_.answer = fail_event;
  for (int i = 0; i < 100; ++i) outbox_.add("k" + std::to_string(i), {"a"});
  start({{"a", &a_}});
  EXPECT_LE(a_.sent.size(), 16U);
  EXPECT_EQ(view("a").state.substr(0, 12), "circuit open");
}

TEST_F(RelayTest, AWebhookThatOnlyFailsFor120HoursIsDisabledLoudly) {
  a_.policy = webhook_policy();
  a_.answer = fail_sink;
  outbox_.add("k", {"a"});
  start({{"a", &a_}, {"b", &b_}});
  for (int i = 0; i < 125 * 10; ++i) advance(6min);
  EXPECT_EQ(view("a").state.substr(0, 8), "disabled");
  ASSERT_EQ(outbox_.appended.size(), 1U);
  EXPECT_EQ(outbox_.appended[0].what, "parked");
  EXPECT_EQ(b_.sent.size(), 1U);
}

TEST_F(RelayTest, AReceiverThatIsGoneIsNeverCalledAgain) {
  a_.policy = webhook_policy();
  a_.answer = [](const auto&) { return Attempt{Outcome::disabled, "HTTP 410 from ops", 0}; };
  outbox_.add("k", {"a"});
  start({{"a", &a_}, {"b", &b_}});
  outbox_.add("l", {"a"});
  advance(10h);
  EXPECT_EQ(a_.sent.size(), 1U);
  EXPECT_EQ(outbox_.appended.at(0).what, "parked");
}

TEST_F(RelayTest, RetryAfterIsObeyedAndCappedAtOneHour) {
  outbox_.add("k", {"a"});
  a_.answer = [](const auto&) { return Attempt{Outcome::retry_event, "HTTP 500", 7'200'000}; };
  start({{"a", &a_}});
  advance(59min);
  EXPECT_EQ(a_.sent.size(), 1U);
  advance(2min);
  EXPECT_EQ(a_.sent.size(), 2U);
}

TEST_F(RelayTest, WhatTheReceiverLostIsSentAgain) {
  for (int i = 0; i < 10; ++i) outbox_.add("k" + std::to_string(i), {"a"});
  start({{"a", &a_}});
  advance(101ms);
  a_.lost_after = 4;
  advance(60s);
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(a_.count("id-" + std::to_string(i)), i <= 4 ? 1 : 2) << i;
  advance(101ms);
  EXPECT_EQ(outbox_.cursors["a"].low_water, 10);
}

TEST_F(RelayTest, AReceiverWhoseCheckTakesLongerThanItsIntervalStillGetsEvents) {
  a_.while_checking = [this] {
    if (a_.checks < 50) clock_.advance(61s);
  };
  outbox_.add("k", {"a"});
  start({{"a", &a_}});
  EXPECT_EQ(a_.sent.size(), 1U);
  EXPECT_EQ(a_.checks, 1);
}

TEST_F(RelayTest, NothingIsSettledBeforeItsFlush) {
  outbox_.add("k", {"a"});
  a_.flush_fails = true;
  start({{"a", &a_}});
  advance(101ms);
  EXPECT_EQ(outbox_.cursors["a"].low_water, 0);
  a_.flush_fails = false;
  advance(1s);
  advance(101ms);
  EXPECT_EQ(outbox_.cursors["a"].low_water, 1);
  EXPECT_EQ(a_.count("id-1"), 2);
}

/// The store routes nothing to a sink that was removed and is not open again yet.
TEST_F(RelayTest, TheStartOpensANewSinkBeforeItsRunnerDoes) {
  start({{"a", &a_}});
  EXPECT_EQ(outbox_.opens, 2);
  kill();
  start({{"a", &a_}});
  EXPECT_EQ(outbox_.opens, 3) << "a sink that is open in the store is left to its runner";
}

/// An event that is written closes the circuit: only the waits of the flush itself may make it slower.
TEST_F(RelayTest, AFlushThatKeepsFailingIsTriedLessAndLessOften) {
  outbox_.add("k", {"a"});
  a_.flush_fails = true;
  start({{"a", &a_}});
  for (int i = 0; i < 600; ++i) advance(200ms);  // two minutes
  const int tried = a_.count("id-1");
  EXPECT_GE(tried, 8);
  EXPECT_LE(tried, 14) << "250 ms doubled to 30 s";
  a_.flush_fails = false;
  for (int i = 0; i < 200; ++i) advance(200ms);
  EXPECT_EQ(outbox_.cursors["a"].low_water, 1);
  outbox_.add("k", {"a"});
  a_.flush_fails = true;
  advance(1ms);
  for (int i = 0; i < 15; ++i) advance(200ms);
  EXPECT_GE(a_.count("id-2"), 3) << "a flush that succeeded begins with 250 ms again";
}

TEST_F(RelayTest, TheNumberOfRefusalsComesWithEachAttemptAlsoAfterAKill) {
  a_.policy = webhook_policy();
  std::vector<int> before;
  a_.answer = [&before](const core::StoredEvent& event) {
    before.push_back(event.refusals);
    const bool refused = before.size() != 2;
    return Attempt{event.refusals < 2 ? Outcome::retry_event : Outcome::permanent, "HTTP 400 from ops", 0, refused};
  };
  outbox_.add("k", {"a"});
  start({{"a", &a_}});
  advance(101ms);
  kill();
  start({{"a", &a_}});
  for (int i = 0; i < 100; ++i) advance(60s);
  EXPECT_EQ(before, (std::vector{0, 1, 1, 2})) << "the second answer was no refusal";
  EXPECT_EQ(view("a").dead, 1);
}

TEST_F(RelayTest, ASinkThatDoesNotStartIsTriedUntilItDoes) {
  outbox_.add("k", {"a"});
  a_.start_fails = true;
  start({{"a", &a_}});
  advance(1s);
  EXPECT_TRUE(a_.sent.empty());
  a_.start_fails = false;
  advance(2s);
  EXPECT_EQ(a_.sent.size(), 1U);
}

}  // namespace
}  // namespace driftd::delivery::test
