// SPDX-License-Identifier: Apache-2.0
// The sink of a plugin under a real runner: whenever a worker ends between deliver and flush, what becomes durable is
// in order for each resource, nothing is lost, and the runner goes on by itself.
#include <gmock/gmock.h>
#include <random>

#include "delivery/relay.hpp"
#include "support/memory_outbox.hpp"
#include "unit/delivery/fakes.hpp"
#include "unit/plugin_sink/fake_plugin.hpp"

namespace driftd::test {
namespace {

using core::DeliverEnd;
using delivery::test::FakeClock;
using How = DeliverEnd::How;
using Outcome = core::Attempt::Outcome;
using ::testing::ElementsAre;
using namespace std::chrono_literals;

/// A worker keeps what it is given until a flush makes it durable; what it keeps ends with it.
class Unflushed : public ::testing::Test {
 protected:
  void SetUp() override {
    session_->deliver_with = [this](const core::DeliverRequest& request, const core::SettledHandler& settled) {
      const std::uint64_t worker = session_->serving;
      if (worker == 0) return DeliverEnd{How::not_begun, fail(Code::unavailable, "no worker runs")};
      for (std::size_t i = 0; i < request.events.size(); ++i) {
        if (dies_before_ && --*dies_before_ < 0) {
          dies_before_.reset();
          end_worker();
          return DeliverEnd{How::lost, fail(Code::unavailable, "killed")};
        }
        kept_.push_back(request.events[i]);
        settled({i, {Outcome::delivered, {}, 0}, worker});
      }
      return DeliverEnd{How::returned, Status{}};
    };
    session_->flush_with = [this] {
      if (dies_in_flush_) {
        end_worker();
        return Status(fail(Code::unavailable, "killed"));
      }
      for (auto& event : kept_) durable_.push_back(std::move(event));
      kept_.clear();
      return Status{};
    };
    sinks::PluginSettings settings;
    settings.plugin = "fake";
    auto sink = *sinks::open_plugin("s", settings, sessions_, &session_->described(), core_.get_executor());
    delivery::RelaySettings relay;
    relay.seed = 7;
    relay_ = std::make_unique<delivery::Relay>(core_.get_executor(), outbox_, clock_, relay);
    relay_->add_sink("s", "plugin", std::move(sink));
    asio::co_spawn(core_, relay_->start(), [](std::exception_ptr, const Status& started) { EXPECT_TRUE(started); });
    settle();
  }
  void end_worker() {
    kept_.clear();
    session_->serve(0);
  }
  void next_worker() { session_->serve(++workers_); }
  void settle() {
    core_.restart();
    while (core_.poll() != 0) core_.restart();
  }
  void commit(const std::string& key) {
    core::StoredEvent event = sample_stored(static_cast<std::int64_t>(outbox_.events.size()) + 1);
    event.key = key;
    outbox_.add(std::move(event));
    relay_->wake();
  }
  /// Lets time pass; only a runner that waits for this time wakes.
  void pass(std::chrono::nanoseconds by) {
    clock_.advance(by);
    relay_->watch();
    settle();
  }
  std::vector<std::uint64_t> durable() const {
    std::vector<std::uint64_t> out;
    for (const auto& event : durable_) out.push_back(event.sequence);
    return out;
  }
  /// Checks that each event is durable, that the first time of each is behind those before it of its key, and that this
  /// is stored.
  void expect_all_in_order() {
    std::map<std::string, std::uint64_t> last;
    std::set<std::uint64_t> seen;
    for (const auto& event : durable_) {
      if (!seen.insert(event.sequence).second) continue;
      EXPECT_GT(event.sequence, std::exchange(last[event.order_key], event.sequence)) << event.order_key;
    }
    EXPECT_EQ(seen.size(), outbox_.events.size());
    EXPECT_EQ(outbox_.cursors["s"].low_water, static_cast<std::int64_t>(outbox_.events.size()));
    EXPECT_EQ(relay_->views().at(0).missed_wakeups, 0U);
  }

  asio::io_context core_;
  FakeClock clock_;
  MemoryOutbox outbox_;
  const std::shared_ptr<FakeSession> session_ = std::make_shared<FakeSession>(core_.get_executor());
  const std::shared_ptr<FakeSessions> sessions_ = std::make_shared<FakeSessions>(session_);
  std::unique_ptr<delivery::Relay> relay_;
  std::vector<core::PluginEvent> kept_, durable_;
  std::uint64_t workers_ = 1;
  std::optional<int> dies_before_;  ///< the worker dies before it takes one event more than so many
  bool dies_in_flush_ = false;
};

// Found by reading: the next worker got event 2 and made it durable, and then both again.
TEST_F(Unflushed, ALaterEventOfAResourceIsNotDurableBeforeOneThatEndedWithItsWorker) {
  commit("k");
  settle();
  ASSERT_EQ(kept_.size(), 1U);
  end_worker();
  next_worker();
  commit("k");
  settle();
  pass(1s);
  pass(1s);
  EXPECT_THAT(durable(), ElementsAre(1U, 2U));
  expect_all_in_order();
}

TEST_F(Unflushed, AnEventThatWaitsForItsCallIsNotGivenToTheNextWorker) {
  session_->answers_later = true;
  session_->described().sink->max_events = 1;
  for (const char* key : {"k", "a", "b", "k"}) commit(key);
  dies_before_ = 1;
  settle();  // 1 was delivered, and its worker died; the last one was given to the sink or waits
  next_worker();
  settle();
  for (int i = 0; i < 10; ++i) pass(1s);
  expect_all_in_order();
}

TEST_F(Unflushed, NothingHasToBeCommittedForALossToBeSentAgain) {
  commit("k");
  settle();
  end_worker();
  settle();
  EXPECT_EQ(relay_->views().at(0).waiting, 1) << "at once: it waits again";
  next_worker();
  pass(1s);
  EXPECT_THAT(durable(), ElementsAre(1U));
  expect_all_in_order();
}

// Found by KilledSink: after a loss nothing was left in the window that a flush would be for, and the sink stood still.
TEST_F(Unflushed, WorkersThatEndAgainAndAgainBeforeTheirFlushDelayOnly) {
  for (int i = 0; i < 6; ++i) commit(i % 2 == 0 ? "a" : "b");
  for (int i = 0; i < 20; ++i) {
    settle();
    end_worker();
    settle();
    next_worker();
    pass(i % 3 == 0 ? 1ms : 40s);
  }
  for (int i = 0; i < 10; ++i) pass(31s);
  expect_all_in_order();
}

TEST_F(Unflushed, AWorkerThatEndsInItsFlushDelaysOnly) {
  commit("k");
  settle();
  dies_in_flush_ = true;
  for (int i = 0; i < 5; ++i) {
    pass(31s);
    if (session_->serving == 0) next_worker();
    commit("k");
    settle();
  }
  dies_in_flush_ = false;
  for (int i = 0; i < 10; ++i) pass(31s);
  expect_all_in_order();
}

/// Orders a replay of everything, at most `rate` events a second.
class UnflushedReplay : public Unflushed {
 protected:
  void replay_all(int rate) {
    for (const char* key : {"a", "b", "c"}) commit(key);
    settle();
    pass(1s);
    ASSERT_THAT(durable(), ElementsAre(1U, 2U, 3U));
    core::Control::Replay request;
    request.sink = "s";
    request.from_seq = 1;
    request.rate = rate;
    asio::co_spawn(core_, relay_->replay(request), [](std::exception_ptr, const Result<std::int64_t>& count) {
      ASSERT_TRUE(count);
      EXPECT_EQ(*count, 3);
    });
    for (int i = 0; i < 5 && kept_.empty(); ++i) pass(10ms);
  }
  void expect_sent_again() {
    for (int i = 0; i < 10; ++i) pass(1s);
    EXPECT_THAT(durable(), ElementsAre(1U, 2U, 3U, 1U, 2U, 3U));
    EXPECT_FALSE(outbox_.cursors["s"].notes.contains("replay")) << "it is over";
    EXPECT_EQ(relay_->views().at(0).missed_wakeups, 0U);
  }
};

// Found by reading: the end of the replay was stored together with the way back.
TEST_F(UnflushedReplay, IsNotOverForAWorkerThatEndsInItsFlush) {
  replay_all(0);
  ASSERT_EQ(kept_.size(), 3U);
  dies_in_flush_ = true;
  pass(1s);
  ASSERT_EQ(session_->serving, 0U);
  dies_in_flush_ = false;
  next_worker();
  expect_sent_again();
}

// Found by reading: what it had sent counted as done for the rest of the replay.
TEST_F(UnflushedReplay, BeginsAgainAtWhatAWorkerDidNotFlush) {
  replay_all(1);
  ASSERT_EQ(kept_.size(), 1U);
  end_worker();
  next_worker();
  expect_sent_again();
}

// Found by reading: the answer counted events that the worker had not flushed, and these were not sent again.
TEST_F(UnflushedReplay, WhoseWorkerEndsBeforeItIsStoredIsRefusedOrSentWhole) {
  for (const char* key : {"a", "b", "c"}) commit(key);
  settle();
  pass(1s);
  ASSERT_THAT(durable(), ElementsAre(1U, 2U, 3U));
  outbox_.hold_settle = true;
  commit("d");
  settle();
  pass(1s);
  core::Control::Replay request;
  request.sink = "s";
  request.from_seq = 1;
  std::optional<Result<std::int64_t>> answer;
  asio::co_spawn(core_, relay_->replay(request),
                 [&](std::exception_ptr, Result<std::int64_t> count) { answer = std::move(count); });
  settle();
  ASSERT_FALSE(kept_.empty()) << "it is sent while an earlier save is under way";
  end_worker();
  next_worker();
  outbox_.release_settle();
  for (int i = 0; i < 10; ++i) pass(1s);
  ASSERT_TRUE(answer);
  if (*answer) {
    EXPECT_EQ(durable().size(), 4U + static_cast<std::size_t>(**answer)) << "each once more";
  } else {
    EXPECT_THAT(answer->error().message, ::testing::HasSubstr("nothing more is sent again"));
  }
  EXPECT_FALSE(outbox_.cursors["s"].notes.contains("replay")) << "it is over";
}

/// Random lives: commits, ends of workers at any moment, upgrades, failures of the flush.
class UnflushedLives : public Unflushed, public ::testing::WithParamInterface<unsigned> {};

TEST_P(UnflushedLives, EverythingBecomesDurableInOrder) {
  std::mt19937 random(GetParam());
  const auto pick = [&](unsigned below) { return random() % below; };
  session_->answers_later = GetParam() % 2 == 0;
  session_->described().concurrency = 1 + static_cast<int>(GetParam() % 3);
  for (int step = 0; step < 300; ++step) {
    switch (pick(8)) {
      case 0:
        end_worker();
        break;
      case 1:
        if (session_->serving == 0) next_worker();
        break;
      case 2:
        next_worker();  // an upgrade; what the former one keeps is lost
        kept_.clear();
        break;
      case 3:
        dies_before_ = static_cast<int>(pick(6));
        break;
      case 4:
        dies_in_flush_ = pick(4) == 0;
        break;
      case 5:
        pass(std::chrono::milliseconds(pick(2'000)));
        break;
      default:
        for (unsigned n = pick(5); n > 0; --n) commit("k" + std::to_string(pick(4)));
    }
    for (unsigned turns = pick(30); turns > 0; --turns) {  // the next step may come in the midst of the runner's work
      core_.restart();
      core_.poll_one();
    }
    ASSERT_EQ(relay_->views().at(0).missed_wakeups, 0U) << step;
  }
  dies_before_.reset();
  dies_in_flush_ = false;
  if (session_->serving == 0) next_worker();
  for (int i = 0; i < 20; ++i) pass(31s);
  expect_all_in_order();
}
INSTANTIATE_TEST_SUITE_P(Seeds, UnflushedLives, ::testing::Range(1U, 101U));

}  // namespace
}  // namespace driftd::test
