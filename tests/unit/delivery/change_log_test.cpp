// SPDX-License-Identifier: Apache-2.0
// The runner of the change log against a receiver that fails in every way. The store and the receiver are in memory;
// tests/e2e/change_log has the real ones.
#include <gmock/gmock.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>

#include "delivery/change_log_runner.hpp"

namespace driftd::test {
namespace {

using core::ChangeEntry;
using Answer = core::ChangeLogReceiver::Answer;
using Verdict = Answer::Verdict;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MemoryChangeLog final : public core::ChangeLogStore {
 public:
  Task<Result<core::ChangeLogPosition>> position() override {
    core::ChangeLogPosition out;
    out.newest = newest;
    out.settled = settled;
    out.refused = static_cast<std::int64_t>(refused.size());
    co_return out;
  }
  Task<Result<std::vector<ChangeEntry>>> after(std::int64_t sequence, int limit, std::size_t) override {
    std::vector<ChangeEntry> out;
    for (std::int64_t one = sequence + 1; one <= newest && out.size() < static_cast<std::size_t>(limit); ++one) {
      if (missing.contains(one)) continue;
      ChangeEntry entry;
      entry.sequence = one;
      entry.operation.id = "op-" + std::to_string(one);
      out.push_back(entry);
    }
    co_return out;
  }
  Task<Status> settle(core::ChangeLogSettlement settlement) override {
    if (std::exchange(fails_once, false)) co_return fail(Code::unavailable, "the disk is full");
    settled = std::max(settled, settlement.settled);
    for (const auto& one : settlement.refused) refused.push_back(std::to_string(one.sequence) + ": " + one.why);
    co_return Status{};
  }
  Task<Result<std::int64_t>> limit(std::int64_t) override {
    ++limited;
    co_return 0;
  }
  std::int64_t newest = 0, settled = 0;
  int limited = 0;
  std::set<std::int64_t> missing;
  std::vector<std::string> refused;
  bool fails_once = false;
};

class ScriptedReceiver final : public core::ChangeLogReceiver {
 public:
  /// Returns the answer about these entries; by default all are written.
  std::function<Answer(const std::vector<ChangeEntry>&)> script;
  Task<Answer> write(std::vector<ChangeEntry> entries) override {
    ++calls;
    if (entries.empty()) ++probes;
    Answer out;
    out.refusals.resize(entries.size());
    if (script) out = script(entries);
    if (out.verdict == Verdict::answered) {
      for (std::size_t i = 0; i < out.refusals.size(); ++i) {
        if (out.refusals[i].empty()) written.push_back(entries[i].sequence * (entries[i].bare ? -1 : 1));
      }
    }
    co_return out;
  }
  std::string describe() const override { return "unix:///x"; }
  void stop() override {}
  std::vector<std::int64_t> written;  ///< negative: without its bodies
  int calls = 0, probes = 0;
};

Answer accept(const std::vector<ChangeEntry>& entries) {
  Answer out;
  out.refusals.resize(entries.size());
  return out;
}
Answer refuse_with(Verdict verdict) { return {verdict, {}, "not now"}; }

class ChangeLogRunnerTest : public testing::Test {
 protected:
  void start() {
    delivery::ChangeLogNeeds needs;
    needs.core = io.get_executor();
    needs.store = &store;
    needs.receiver = &receiver;
    needs.clock = &clock;
    needs.event_stored = [this] { ++events; };
    needs.first_wait = needs.max_wait = std::chrono::milliseconds(1);
    runner = std::make_shared<delivery::ChangeLogRunner>(std::move(needs));
    runner->start();
  }
  /// Runs until the condition holds; false after ten seconds.
  bool until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition() && std::chrono::steady_clock::now() < end) io.run_one_for(std::chrono::milliseconds(50));
    return condition();
  }
  bool settles(std::int64_t to) {
    return until([&] { return store.settled == to; });
  }
  ~ChangeLogRunnerTest() override {
    runner->stop();
    EXPECT_TRUE(until([&] { return runner->idle(); }));
    io.run();
  }

  int events = 0;  ///< how often the relay was woken
  asio::io_context io;
  SystemClock clock;
  MemoryChangeLog store;
  ScriptedReceiver receiver;
  std::shared_ptr<delivery::ChangeLogRunner> runner;
};

TEST_F(ChangeLogRunnerTest, EntriesGoInOrderAndTheCursorFollows) {
  store.newest = 3;
  start();
  ASSERT_TRUE(settles(3));
  EXPECT_THAT(receiver.written, ElementsAre(1, 2, 3));
  EXPECT_EQ(runner->view().sent, 3);
  EXPECT_EQ(runner->view().state, "idle");
  store.newest = 4;
  runner->wake();
  ASSERT_TRUE(settles(4));
  EXPECT_EQ(receiver.probes, 0);
}

TEST_F(ChangeLogRunnerTest, AnIdleLogAsksNobodyAndIsStillLimited) {
  start();
  ASSERT_TRUE(until([&] { return store.limited > 0; }));
  io.run_for(std::chrono::milliseconds(300));
  EXPECT_EQ(receiver.calls, 0);
}

TEST_F(ChangeLogRunnerTest, AReceiverThatIsAwayIsTriedForEverAndBlamesNoEntry) {
  store.newest = 2;
  receiver.script = [](const auto&) { return refuse_with(Verdict::busy); };
  start();
  ASSERT_TRUE(until([&] { return receiver.calls > 100; }));
  EXPECT_EQ(store.settled, 0);
  EXPECT_EQ(runner->view().waiting, 2);
  EXPECT_TRUE(runner->view().failing);
  EXPECT_EQ(runner->view().state, "not now");
  EXPECT_GT(runner->view().failures, 50);
  receiver.script = nullptr;
  ASSERT_TRUE(settles(2));
  EXPECT_THAT(receiver.written, ElementsAre(1, 2));
  EXPECT_THAT(store.refused, IsEmpty());
  EXPECT_FALSE(runner->view().failing);
}

TEST_F(ChangeLogRunnerTest, WhileItFailsItIsAskedWithoutEntriesFirst) {
  store.newest = 1;
  bool up = false;
  receiver.script = [&](const auto& entries) {
    EXPECT_TRUE(up || entries.empty() || receiver.calls == 1);
    return up ? accept(entries) : refuse_with(Verdict::busy);
  };
  start();
  ASSERT_TRUE(until([&] { return receiver.probes > 5; }));
  up = true;
  EXPECT_TRUE(settles(1));
}

TEST_F(ChangeLogRunnerTest, ARefusedEntryGoesWithoutItsStatesAndTheOthersGoOn) {
  store.newest = 4;
  receiver.script = [](const auto& entries) {
    Answer out = accept(entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].sequence == 2 && !entries[i].bare) out.refusals[i] = "too large";
    }
    return out;
  };
  start();
  ASSERT_TRUE(settles(4));
  EXPECT_THAT(receiver.written, ElementsAre(1, 3, 4, -2));
  EXPECT_THAT(store.refused, IsEmpty());
}

TEST_F(ChangeLogRunnerTest, AnEntryThatIsRefusedForEverIsGivenUpLoudlyAndTheOthersGoOn) {
  store.newest = 3;
  receiver.script = [](const auto& entries) {
    Answer out = accept(entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].sequence == 2) out.refusals[i] = "never";
    }
    return out;
  };
  start();
  ASSERT_TRUE(settles(3));
  EXPECT_THAT(receiver.written, ElementsAre(1, 3));
  EXPECT_THAT(store.refused, ElementsAre("2: never"));
  EXPECT_EQ(events, 1) << "the relay is woken for the event";
  EXPECT_EQ(runner->view().sent, 2);
}

TEST_F(ChangeLogRunnerTest, AnEntryThatKillsTheReceiverIsFoundAndTheOthersGoOn) {
  store.newest = 5;
  receiver.script = [](const std::vector<ChangeEntry>& entries) {
    const bool poisoned =
        std::any_of(entries.begin(), entries.end(), [](const auto& one) { return one.sequence == 3; });
    return poisoned ? refuse_with(Verdict::lost) : accept(entries);
  };
  start();
  ASSERT_TRUE(settles(5));
  EXPECT_THAT(receiver.written, ElementsAre(1, 2, 4, 5));
  ASSERT_EQ(store.refused.size(), 1u);
  EXPECT_THAT(store.refused.front(), HasSubstr("3: not now"));
}

/// A whole request may be refused because of one entry in it.
TEST_F(ChangeLogRunnerTest, ARejectedRequestIsTakenApart) {
  store.newest = 3;
  receiver.script = [](const std::vector<ChangeEntry>& entries) {
    const bool large =
        std::any_of(entries.begin(), entries.end(), [](const auto& one) { return one.sequence == 2 && !one.bare; });
    return large ? refuse_with(Verdict::rejected) : accept(entries);
  };
  start();
  ASSERT_TRUE(settles(3));
  EXPECT_THAT(receiver.written, ElementsAre(1, -2, 3));
  EXPECT_THAT(store.refused, IsEmpty());
}

TEST_F(ChangeLogRunnerTest, AConnectionThatBreaksNowAndThenBlamesNoEntry) {
  store.newest = 200;
  int calls = 0;
  receiver.script = [&](const auto& entries) {
    return ++calls % 3 == 0 ? refuse_with(Verdict::lost) : accept(entries);
  };
  start();
  ASSERT_TRUE(settles(200));
  EXPECT_THAT(store.refused, IsEmpty());
}

TEST_F(ChangeLogRunnerTest, AnAnswerAboutTooFewEntriesSettlesNothingAndDoesNotSpin) {
  store.newest = 2;
  receiver.script = [](const auto& entries) {
    Answer out = accept(entries);
    if (entries.size() == 2) out.refusals.pop_back();
    return out;
  };
  start();
  ASSERT_TRUE(settles(2));  // one by one
  EXPECT_THAT(store.refused, IsEmpty());
  EXPECT_LT(receiver.calls, 10);
}

TEST_F(ChangeLogRunnerTest, MissingRowsAreSaidAndNotWaitedFor) {
  store.newest = 6;
  store.missing = {1, 2, 6};
  start();
  ASSERT_TRUE(settles(6));
  EXPECT_THAT(receiver.written, ElementsAre(3, 4, 5));
  ASSERT_EQ(store.refused.size(), 2u);
  EXPECT_THAT(store.refused[0], HasSubstr("the rows of entries 1 to 2 are not in the store"));
  EXPECT_THAT(store.refused[1], HasSubstr("the rows of entries 6 to 6 are not in the store"));
}

TEST_F(ChangeLogRunnerTest, AStoreThatFailsOnceIsTriedAgain) {
  store.newest = 1;
  store.fails_once = true;
  start();
  ASSERT_TRUE(settles(1));
  EXPECT_THAT(receiver.written, ElementsAre(1, 1)) << "what was not settled is sent again";
}

}  // namespace
}  // namespace driftd::test
