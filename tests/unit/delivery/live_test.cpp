// SPDX-License-Identifier: Apache-2.0
// A runner that may send something never sleeps; every committed event is settled in the end; a kill repeats 256 events
// at most.
#include "live.hpp"

namespace driftd::delivery::test {
namespace {

using namespace std::chrono_literals;

TEST(Live, ABacklogDrainsThoughNothingIsCommitted) {
  LaneWorld world;
  world.start();
  world.commit(20'000, 5'000);
  int rounds = 0;
  for (; !world.over() && rounds < 2'000; ++rounds) {
    world.to.answer_all();  // all events in flight are acknowledged before the runner continues
    world.settle();
    if (world.to.open.empty()) world.pass(100ms);
  }
  EXPECT_TRUE(world.over()) << world.low_water() << " of 20000 after " << rounds;
  EXPECT_LT(rounds, 400) << "a lane that waits for its 60 s check between two batches";
  EXPECT_EQ(world.view().missed_wakeups, 0U);
}

TEST(Live, ABacklogThatARestartFindsDrainsThoughNothingIsCommitted) {
  LaneWorld world;
  world.commit(20'000, 200);
  world.start();
  int rounds = 0;
  for (; !world.over() && rounds < 400; ++rounds) {
    world.to.answer_all();
    world.settle();
    if (world.to.open.empty()) world.pass(100ms);
  }
  EXPECT_TRUE(world.over()) << world.low_water() << " of 20000";
}

/// A page that was cut by its size is not the end of the backlog, and the memory of a runner for large events is
/// bounded.
TEST(Live, ABacklogOfLargeEventsDrainsInPiecesThoughNothingIsCommitted) {
  LaneWorld world;
  world.payload = kLarge;
  world.commit(60, 60);
  world.start();
  std::size_t most = 0;
  int rounds = 0;
  for (; !world.over() && rounds < 100; ++rounds) {
    most = std::max(most, world.to.open.size());
    world.to.answer_all();
    world.settle();
    if (world.to.open.empty()) world.pass(100ms);
  }
  EXPECT_TRUE(world.over()) << world.low_water() << " of 60";
  EXPECT_LE(world.outbox.memory.most_bytes, core::Outbox::kMaxAnswerBytes + kLarge);
  EXPECT_LE(most * kLarge, 24u << 20) << "16 MiB, and the page that reaches them";
}

TEST(Live, LargeEventsThatFailedAreFetchedInPiecesAndNoneCountsAsLost) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 422 from ops", 0}; };
  world.payload = kLarge;
  world.start();
  world.commit(40, 40);
  for (int i = 0; i < 30; ++i) world.pass(1s);
  ASSERT_EQ(world.view().dead, 40);
  const std::size_t letters = world.outbox.told.size();
  world.to.at_once = [](const auto&) { return of(Outcome::retry_event); };
  EXPECT_EQ(world.ask(world.relay->dead_letter("s", "replay", {})).value().value(), 40);
  for (int i = 0; i < 3; ++i) world.pass(1s);
  world.kill();
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  for (int i = 0; i < 100 && !world.over(); ++i) world.pass(600s);
  EXPECT_TRUE(world.over()) << world.view().state;
  EXPECT_EQ(world.to.got.size(), 40U);
  EXPECT_EQ(world.outbox.told.size(), letters) << "no gap";
}

/// Retention announced them in the transaction that deleted them. The runner used to announce them once more, and every
/// consumer then loaded everything a second time.
TEST(Live, EventsThatRetentionDeletedAreForgottenAndNotAnnouncedAgain) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return of(Outcome::retry_event); };
  world.start();
  world.commit(6, 2);
  for (int i = 0; i < 5; ++i) world.pass(1s);
  ASSERT_EQ(world.to.got.size(), 0U);
  world.outbox.gone = {1, 2, 3};
  world.to.at_once = [](const auto&) { return Attempt{}; };
  for (int i = 0; i < 100 && !world.over(); ++i) world.pass(600s);
  EXPECT_TRUE(world.over()) << world.view().state;
  EXPECT_EQ(world.to.got, (std::vector<std::int64_t>{4, 5, 6}));
  for (const auto& event : world.outbox.told) EXPECT_NE(event.what, "gap") << event.message;
}

/// The answer used to come before anything was stored: after a kill the dead letters were there again, and those that a
/// person had been told are sent again never were.
TEST(Live, ACommandAboutDeadLettersIsAnsweredOnceItIsStored) {
  for (const std::string verb : {"drop", "replay"}) {
    LaneWorld world;
    world.to.at_once = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 422 from ops", 0}; };
    world.start();
    world.commit(3, 3);
    for (int i = 0; i < 3; ++i) world.pass(1s);
    ASSERT_EQ(world.outbox.memory.cursors["s"].exceptions.size(), 3U);
    world.to.at_once = [](const auto&) { return std::nullopt; };  // no answer yet
    world.outbox.slow_saves = true;
    const auto answer = world.spawn(world.relay->dead_letter("s", verb, {}));
    EXPECT_FALSE(answer->has_value()) << verb << ": a kill now would make it untrue";
    world.outbox.release();
    world.settle();
    ASSERT_TRUE(answer->has_value()) << verb;
    EXPECT_EQ(answer->value().value(), 3);
    world.kill();
    world.to.at_once = [](const auto&) { return Attempt{}; };
    world.start();
    for (int i = 0; i < 3; ++i) world.pass(1s);
    EXPECT_EQ(world.view().dead, 0) << verb;
    EXPECT_EQ(world.to.got.size(), verb == "replay" ? 3U : 0U);
  }
}

TEST(Live, ACommandAboutDeadLettersThatCannotBeStoredIsAnError) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 422 from ops", 0}; };
  world.start();
  world.commit(3, 3);
  for (int i = 0; i < 3; ++i) world.pass(1s);
  world.outbox.save_fails = true;
  const auto answer = world.ask(world.relay->dead_letter("s", "drop", {}));
  ASSERT_TRUE(answer.has_value()) << "it waits for ever";
  ASSERT_FALSE(answer->has_value());
  EXPECT_EQ(answer->error().code, Code::unavailable);
  EXPECT_NE(answer->error().message.find("database or disk is full"), std::string::npos) << answer->error().message;
}

TEST(Live, DeadLettersAreUnknownUntilTheCursorIsOpen) {
  LaneWorld world;
  world.outbox.slow_opens = true;
  world.start();
  const auto answer = world.ask(world.relay->dead_letter("s", "replay", {}));
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->has_value()) << "0 would mean that there are none";
}

/// The store fails after a part of the dead letters was requeued: that part is due and must not wait for a commit.
TEST(Live, DeadLettersThatWereRequeuedBeforeTheStoreFailedAreSent) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 400 from ops", 0}; };
  world.start();
  world.commit(600, 600);
  for (int i = 0; i < 10; ++i) world.pass(std::chrono::seconds(1));
  ASSERT_EQ(world.view().dead, 600);
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.outbox.exact_fetches_left = 1;
  const auto replayed = world.ask(world.relay->dead_letter("s", "replay", {}));
  ASSERT_TRUE(replayed.has_value());
  EXPECT_FALSE(replayed->has_value()) << "the second part could not be read";
  world.outbox.exact_fetches_left.reset();
  world.pass(std::chrono::seconds(2));
  EXPECT_EQ(world.view().missed_wakeups, 0U);
  EXPECT_EQ(world.view().delivered, 512) << "the first part";
}

/// A refusal without blame is stored without an attempt; the events behind it must not fill the runner's memory.
TEST(Live, LargeEventsBehindOneThatWaitsSinceBeforeARestartKeepNoOtherKeyWaiting) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const core::StoredEvent& event) {
    return event.key == "waits0" ? Attempt{Outcome::refused, "HTTP 429 from ops", 3'600'000} : Attempt{};
  };
  world.start();
  world.commit(1, 1, "waits");
  world.pass(1s);
  world.kill();
  world.start();
  world.payload = kLarge;
  world.commit(20, 1, "waits");
  world.commit(1, 1, "other");
  for (int i = 0; i < 10; ++i) world.pass(1s);
  EXPECT_EQ(world.to.got, (std::vector<std::int64_t>{22}));
}

/// Large events that failed before are all due at once: those in flight count for the memory limit.
TEST(Live, LargeEventsThatAreDueAgainAreHeldInPieces) {
  LaneWorld world(core::RetryPolicy{true, {}, 512});
  world.to.at_once = [](const auto&) { return of(Outcome::retry_event); };
  world.payload = kLarge;
  world.start();
  world.commit(60, 60);
  for (int i = 0; i < 20; ++i) world.pass(100ms);
  world.to.at_once = [](const auto&) { return std::nullopt; };
  std::size_t most = 0;
  for (int i = 0; i < 200 && !world.over(); ++i) {
    world.pass(30s);
    most = std::max(most, world.to.open.size());
    world.to.answer_all();
    world.settle();
  }
  EXPECT_TRUE(world.over()) << world.view().state;
  EXPECT_LE(most * kLarge, 40u << 20) << "twice 16 MiB, and the answer that reaches them";
}

TEST(Live, AReplayOfLargeEventsHoldsThemInPieces) {
  LaneWorld world(core::RetryPolicy{true, {}, 512});
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.payload = kLarge;
  world.start();
  world.commit(60, 60);
  for (int i = 0; i < 20 && !world.over(); ++i) world.pass(1s);
  world.to.at_once = [](const auto&) { return std::nullopt; };
  core::Control::Replay request;
  request.sink = "s";
  EXPECT_EQ(world.ask(world.relay->replay(request)).value().value(), 60);
  std::size_t most = 0;
  for (int i = 0; i < 100 && world.to.sent[60] < 2; ++i) {
    world.pass(1s);
    most = std::max(most, world.to.open.size());
    world.to.answer_all();
    world.settle();
  }
  EXPECT_EQ(world.to.sent[60], 2);
  EXPECT_LE(most * kLarge, 24u << 20);
}

TEST(Live, AReplayOfLargeEventsSendsEachOfThem) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.payload = kLarge;
  world.start();
  world.commit(40, 40);
  for (int i = 0; i < 20 && !world.over(); ++i) world.pass(1s);
  core::Control::Replay request;
  request.sink = "s";
  EXPECT_EQ(world.ask(world.relay->replay(request)).value().value(), 40);
  for (int i = 0; i < 20; ++i) world.pass(1s);
  for (std::int64_t seq = 1; seq <= 40; ++seq) EXPECT_EQ(world.to.sent[seq], 2) << seq;
}

TEST(Live, ASinkThatStandsIsLoudOnceAndSaysWhy) {
  LaneWorld world;
  world.start();
  world.commit(1, 1);  // in flight, never answered
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 20; ++i) world.pass(5s);
  const std::string log = ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
  const std::string line = "1 events wait and none was delivered for 30 s: 1 of them are under way without an answer";
  EXPECT_NE(log.find(line), std::string::npos) << log;
  EXPECT_EQ(log.find(line), log.rfind(line)) << log;
  EXPECT_GE(world.view().stalled_seconds, 90);
  EXPECT_NE(world.view().state.find("no progress for 9"), std::string::npos) << world.view().state;
  world.to.answer_all();
  world.settle();
  EXPECT_EQ(world.view().stalled_seconds, 0);
  EXPECT_EQ(world.view().state, "connected");
}

TEST(Live, AStopSendsWhatCanBeSentAndLeavesNothingForTheNextStart) {
  LaneWorld world;
  world.start();
  world.commit(400, 400);
  bool stopped = false;
  world.spawn(world.relay->stop(), stopped);
  for (int i = 0; i < 10 && !stopped; ++i) {
    world.to.answer_all();
    world.run_for(20ms);
  }
  EXPECT_TRUE(stopped);
  EXPECT_EQ(world.low_water(), 400);
}

TEST(Live, AStopWaitsForNoEndpointThatIsDown) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return of(Outcome::retry_sink); };
  world.start();
  world.commit(400, 400);
  bool stopped = false;
  world.spawn(world.relay->stop(), stopped);
  world.run_for(50ms);
  EXPECT_TRUE(stopped);
}

TEST(Live, AStopWhileASinkOfAReloadWaitsForTheStoreEnds) {
  LaneWorld world;
  world.start();
  world.outbox.slow_opens = true;
  const auto added = world.spawn(world.relay->start_sink("t-of-a-reload", "fake", world.new_sink()));
  bool stopped = false;
  world.spawn(world.relay->stop(), stopped);
  world.outbox.release();
  world.run_for(50ms);
  EXPECT_TRUE(stopped);
  ASSERT_TRUE(added->has_value());
  ASSERT_FALSE(**added);
  EXPECT_EQ((**added).error().code, Code::cancelled);
  EXPECT_FALSE(world.relay->has("t-of-a-reload"));
}

TEST(Live, AReplayGoesOnAfterAKill) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.commit(600, 600);
  world.pass(1s);
  world.to.at_once = [](const auto&) { return std::nullopt; };
  core::Control::Replay request;
  request.sink = "s";
  request.from_seq = 101;
  EXPECT_EQ(world.ask(world.relay->replay(request)).value().value(), 500);
  world.to.answer(0, {});
  world.settle();
  world.pass(200ms);
  world.kill();
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  for (int i = 0; i < 3; ++i) world.pass(1s);
  for (std::int64_t seq = 101; seq <= 600; ++seq) EXPECT_GE(world.to.sent[seq], 2) << seq;
  EXPECT_EQ(world.to.sent[100], 1);
  EXPECT_EQ(world.outbox.memory.cursors["s"].notes.count("replay"), 0U);
  world.kill();
  const auto before = world.to.sent;
  world.start();
  world.pass(1s);
  EXPECT_EQ(world.to.sent, before) << "it is over";
}

TEST(Live, AReplayThatCannotBeStoredIsRefused) {
  LaneWorld world;
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.start();
  world.commit(60, 60);
  world.pass(1s);
  world.outbox.save_fails = true;
  core::Control::Replay request;
  request.sink = "s";
  const auto answer = world.ask(world.relay->replay(request));
  ASSERT_TRUE(answer.has_value());
  ASSERT_FALSE(*answer);
  EXPECT_NE(answer->error().message.find("could not be stored"), std::string::npos) << answer->error().message;
}

TEST(Live, ADeadLetterAndItsEventAreStoredTogetherWhenTheStoreCanWriteAgain) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 422 from ops", 0}; };
  world.start();
  world.outbox.save_fails = true;
  world.commit(5, 5);
  for (int i = 0; i < 5; ++i) world.pass(1s);
  EXPECT_TRUE(world.outbox.told.empty());
  EXPECT_TRUE(world.outbox.memory.cursors["s"].exceptions.empty());
  world.outbox.save_fails = false;
  for (int i = 0; i < 3; ++i) world.pass(1s);
  EXPECT_EQ(world.outbox.told.size(), 5U);
  EXPECT_EQ(world.outbox.memory.cursors["s"].exceptions.size(), 5U);
  EXPECT_EQ(world.to.sent.size(), 5U);
}

TEST(Live, ADeadLetterThatAKillForgotIsToldOfWhenItIsOneAgain) {
  LaneWorld world(webhook_policy());
  world.to.at_once = [](const auto&) { return Attempt{Outcome::permanent, "HTTP 422 from ops", 0}; };
  world.start();
  world.outbox.save_fails = true;
  world.commit(1, 1);
  world.pass(1s);
  world.kill();
  world.outbox.save_fails = false;
  world.start();
  world.pass(1s);
  EXPECT_EQ(world.outbox.told.size(), 1U);
  EXPECT_EQ(world.view().dead, 1);
}

TEST(Live, AWatchBetweenAWakeUpAndTheLanesTurnSeesNoMissedOne) {
  LaneWorld world;
  world.start();
  world.ring(1, 1);
  world.relay->watch();  // a busy core thread: the runner was woken, but other work is queued before it
  EXPECT_EQ(world.view().missed_wakeups, 0U);
  world.settle();
  EXPECT_EQ(world.to.sent.size(), 1U);
}

}  // namespace
}  // namespace driftd::delivery::test
