// SPDX-License-Identifier: Apache-2.0
// What operators ask of a relay: replays, dead letters, sinks that are removed.
#include "relay_fixture.hpp"

namespace driftd::delivery::test {
namespace {

using namespace std::chrono_literals;

TEST_F(RelayTest, ARemovedSinkIsGoneAndTheEventAboutItIsToldToAllReaders) {
  start({{"a", &a_}, {"b", &b_}});
  std::optional<Status> removed;
  asio::co_spawn(io_, relay_->remove_sink("b"), [&](std::exception_ptr, Status value) {
    removed = std::move(value);
    io_.stop();
  });
  io_.restart();
  io_.run_for(5s);  // it looks every 2 ms whether the runner has ended
  ASSERT_TRUE(removed);
  EXPECT_TRUE(*removed);
  EXPECT_FALSE(relay_->has("b"));
  EXPECT_EQ(outbox_.cursors.count("b"), 0U);
  EXPECT_EQ(appended_, 1);
}

TEST_F(RelayTest, WhatADeadLetterTellsWakesTheOtherSinks) {
  a_.policy = webhook_policy();
  a_.answer = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 400 from ops", 0}; };
  a_.hold = true;
  start({{"a", &a_}, {"b", &b_}});
  outbox_.add("k", {"a"});
  relay_->wake();
  settle();  // b has found nothing and sleeps; only the outcome of this answer can wake it
  ASSERT_EQ(a_.count("id-1"), 1);
  ASSERT_TRUE(outbox_.appended.empty());
  a_.release();
  settle();
  EXPECT_EQ(b_.count("id-2"), 1) << "nothing was committed by anybody else";
}

TEST_F(RelayTest, DeadLetterThatWasDroppedStaysDroppedThroughARewind) {
  a_.policy = webhook_policy();
  a_.answer = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 400 from ops", 0}; };
  outbox_.add("k", {"a"});
  start({{"a", &a_}});
  advance(101ms);
  ASSERT_EQ(view("a").dead, 1);
  a_.lost_after = 1;
  EXPECT_EQ(wait(relay_->dead_letter("a", "drop", {})).value(), 1);
  advance(60s);
  advance(101ms);
  EXPECT_EQ(view("a").dead, 0);
  EXPECT_TRUE(outbox_.cursors["a"].exceptions.empty());
}

TEST_F(RelayTest, AReplayIsMarkedKeepsItsIdsAndLetsLiveTrafficGoFirst) {
  for (int i = 0; i < 6; ++i) outbox_.add("k" + std::to_string(i), {"a"});
  start({{"a", &a_}});
  a_.sent.clear();
  core::Control::Replay request;
  request.sink = "a";
  request.from_seq = 4;
  request.rate = 1;
  EXPECT_EQ(wait(relay_->replay(request)).value(), 3);
  outbox_.add("live", {"a"});
  advance(1s);
  EXPECT_EQ(a_.sent, (std::vector<std::string>{"id-4+", "id-7", "id-5+"}));
  advance(1s);
  EXPECT_EQ(a_.sent.back(), "id-6+");
}

TEST_F(RelayTest, ASecondReplayIsRefusedAlsoWhileTheFirstIsStillBeingPlanned) {
  for (int i = 0; i < 6; ++i) outbox_.add("k" + std::to_string(i), {"a"});
  start({{"a", &a_}});
  a_.sent.clear();
  outbox_.slow = true;
  std::vector<Result<std::int64_t>> answers;
  for (const std::int64_t from : {5, 1}) {
    core::Control::Replay request;
    request.sink = "a";
    request.from_seq = from;
    asio::co_spawn(io_, relay_->replay(request),
                   [&answers](std::exception_ptr, auto answer) { answers.push_back(std::move(answer)); });
  }
  settle();
  advance(1s);
  ASSERT_EQ(answers.size(), 2u);
  const auto refused = std::find_if(answers.begin(), answers.end(), [](const auto& answer) { return !answer; });
  ASSERT_NE(refused, answers.end());
  EXPECT_EQ(refused->error().code, Code::conflict);
  const auto taken =
      std::find_if(answers.begin(), answers.end(), [](const auto& answer) { return answer.has_value(); });
  ASSERT_NE(taken, answers.end());
  EXPECT_EQ(a_.sent.size(), static_cast<std::size_t>(**taken));
}

TEST_F(RelayTest, ADeadLetterIsSentAgainOrDroppedByCommand) {
  a_.policy = webhook_policy();
  a_.answer = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 400 from ops", 0}; };
  outbox_.add("k", {"a"});
  outbox_.add("l", {"a"});
  start({{"a", &a_}});
  advance(101ms);
  ASSERT_EQ(view("a").dead, 2);
  a_.answer = [](const auto&) { return Attempt{}; };
  EXPECT_EQ(wait(relay_->dead_letter("a", "replay", {1})).value(), 1);
  EXPECT_EQ(wait(relay_->dead_letter("a", "drop", {})).value(), 1);
  EXPECT_EQ(a_.count("id-1"), 2);
  advance(101ms);
  EXPECT_EQ(view("a").dead, 0);
  EXPECT_TRUE(outbox_.cursors["a"].exceptions.empty());
}

TEST_F(RelayTest, DeadLettersOfTwoBrokenSinksDoNotTellOfEachOtherForEver) {
  const auto refuse = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 400", 0}; };
  a_.policy = b_.policy = webhook_policy();
  a_.answer = b_.answer = refuse;
  outbox_.add("k", {"a"});
  start({{"a", &a_}, {"b", &b_}});
  for (int i = 0; i < 20; ++i) advance(1s);
  EXPECT_EQ(outbox_.appended.size(), 1U);
}

TEST_F(RelayTest, ARemovedSinkWithPendingEventsIsKeptAsAnOrphanAndTheOthersStart) {
  outbox_.cursors["gone"].sink = "gone";
  outbox_.add("k", {"a"});
  start({{"a", &a_}});
  ASSERT_TRUE(started_) << started_.error().message;
  EXPECT_EQ(a_.sent.size(), 1U);
  EXPECT_EQ(view("gone").state, "orphaned: sink gone has pending events");
  EXPECT_EQ(outbox_.cursors.count("gone"), 1U);
}

TEST_F(RelayTest, AnUnknownSinkIsNamedWithThoseThatExist) {
  start({{"a", &a_}, {"b", &b_}});
  core::Control::Replay request;
  request.sink = "c";
  EXPECT_EQ(wait(relay_->replay(request)).error().message, "no sink 'c'; available: a, b");
}

/// ADR 0023: only what was delivered may be forgotten by a power loss.
TEST_F(RelayTest, OnlyASaveOfWhatWasDeliveredNeedNotBeOnTheDisk) {
  a_.policy = webhook_policy();
  start({{"a", &a_}});
  const auto saved = [&](const std::string& key) {
    outbox_.durable = true;
    const int before = outbox_.saves;
    outbox_.add(key, {"a"});
    advance(101ms);
    advance(5s);
    return outbox_.saves > before && outbox_.durable;
  };
  EXPECT_FALSE(saved("k1"));
  a_.answer = fail_event;
  EXPECT_TRUE(saved("k2")) << "how often it was tried";
  a_.answer = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 400 from ops", 0}; };
  EXPECT_TRUE(saved("k3")) << "a dead letter";
  a_.answer = [](const auto&) { return Attempt{}; };
  outbox_.durable = false;
  EXPECT_EQ(wait(relay_->dead_letter("a", "drop", {})).value(), 2);
  EXPECT_TRUE(outbox_.durable) << "the answer says that it is stored";
  outbox_.durable = false;
  core::Control::Replay request;
  request.sink = "a";
  request.from_seq = 1;
  EXPECT_GT(wait(relay_->replay(request)).value(), 0);
  EXPECT_TRUE(outbox_.durable) << "the answer says that it is stored";
}

}  // namespace
}  // namespace driftd::delivery::test
