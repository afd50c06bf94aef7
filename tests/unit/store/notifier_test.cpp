// SPDX-License-Identifier: Apache-2.0
// Notifications over a real store: many drifts at once, restarts, and a store that refuses.
#include "delivery/notifier.hpp"

#include <gmock/gmock.h>

#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using delivery::Notifier;
using delivery::NotifySettings;

class NotifierTest : public StoreTest {
 protected:
  NotifierTest() { settings_.on = true; }
  /// Opens a pending drift on each of `count` resources.
  void drifts(int count) {
    for (int from = 0; from < count; from += 500) {
      std::vector<core::ResourceWrite> writes;
      for (int i = from; i < std::min(count, from + 500); ++i) writes.push_back(drifting(i));
      bench.get(bench->commit(page_of(std::move(writes), {})));
    }
  }
  core::ResourceWrite drifting(int number) {
    core::ResourceWrite out = resource_write("r" + std::to_string(number));
    core::Drift drift;
    drift.id = "d-" + std::to_string(1'000'000'000'000'000 + number);
    drift.resource = out.next.id;
    drift.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
    drift.digest = core::digest_of(drift.changes, drift.against);
    drift.opened_ns = drift.updated_ns = bench.clock.now;
    out.next.open = {drift};
    return out;
  }
  void start() {
    delivery::NotifierNeeds needs;
    needs.core = unused_.get_executor();
    needs.reader = &*bench;
    needs.store = &*bench;
    needs.clock = &bench.clock;
    needs.agent = "edge-1";
    needs.routes = [](const core::AgentEvent&) { return std::vector<std::string>{"ops"}; };
    needs.stored = [] {};
    needs.backends = [this] {
      return std::map<std::string, delivery::NotifierNeeds::Backend>{{"orders", {{}, down_}}};
    };
    needs.ref = [](const core::Drift& drift) { return drift.id + "@ref"; };
    notifier_ = std::make_shared<Notifier>(std::move(needs), settings_);
  }
  Status look() { return bench.wait(notifier_->look()); }
  void looks_after(std::chrono::seconds time) {
    bench.clock.now += std::chrono::nanoseconds(time).count();
    const Status done = look();
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }
  std::size_t notes() {
    std::size_t out = 0;
    for (const auto& event : bench.get(bench->last_events(1000))) out += event.what == "notification" ? 1 : 0;
    return out;
  }
  NotifySettings settings_;
  std::shared_ptr<Notifier> notifier_;
  bool down_ = false;
  asio::io_context unused_;
};

TEST_F(NotifierTest, TenThousandDriftsAtOnceAreToldInTimeAndOnce) {
  drifts(10'000);
  start();
  looks_after(std::chrono::seconds(0));
  EXPECT_EQ(notes(), 0u);
  const auto began = std::chrono::steady_clock::now();
  looks_after(settings_.group_wait);
  EXPECT_EQ(notes(), 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  restart();
  start();
  looks_after(std::chrono::seconds(600));
  EXPECT_EQ(notes(), 1u) << "what was sent is known after a restart";
  for (int hour = 0; hour < 24; ++hour) looks_after(std::chrono::hours(1));
  EXPECT_LE(notes(), 20u);
}

TEST_F(NotifierTest, RestartBeforeTheGroupWaitForgetsNothing) {
  drifts(3);
  start();
  looks_after(std::chrono::seconds(10));
  restart();
  start();
  looks_after(std::chrono::seconds(20));
  EXPECT_EQ(notes(), 1u);
}

TEST_F(NotifierTest, WhatTheStoreDidNotTakeIsSentOnceItDoes) {
  drifts(1);
  start();
  tamper(file(), "CREATE TRIGGER full BEFORE INSERT ON notification BEGIN SELECT RAISE(ABORT, 'full'); END");
  bench.clock.now += std::chrono::nanoseconds(settings_.group_wait).count();
  EXPECT_FALSE(look());
  EXPECT_EQ(notes(), 0u) << "the event and what is remembered of it are one";
  tamper(file(), "DROP TRIGGER full");
  looks_after(std::chrono::seconds(1));
  looks_after(std::chrono::seconds(600));
  EXPECT_EQ(notes(), 1u);
}

TEST_F(NotifierTest, SilencedDriftsAreToldWhenTheSilenceEnds) {
  drifts(2);
  start();
  core::Silence silence{
      "s-1", "ord*", "", "", "", "ann", "maintenance", bench.clock.now, bench.clock.now + 600 * kSecond};
  ASSERT_TRUE(bench.wait(bench->write_silence(silence, {})));
  looks_after(std::chrono::seconds(599));
  EXPECT_EQ(notes(), 0u);
  looks_after(std::chrono::seconds(1));
  EXPECT_EQ(notes(), 1u);
  EXPECT_TRUE(bench.get(bench->silences(bench.clock.now)).empty());
}

/// A silence is no decision: what it hides has not ended, and nobody may be told so.
TEST_F(NotifierTest, SilenceOfWhatWasToldIsNoEnd) {
  drifts(2);
  start();
  looks_after(settings_.group_wait);
  ASSERT_EQ(notes(), 1u);
  core::Silence silence{
      "s-1", "ord*", "", "", "", "ann", "maintenance", bench.clock.now, bench.clock.now + 600 * kSecond};
  ASSERT_TRUE(bench.wait(bench->write_silence(silence, {})));
  looks_after(std::chrono::seconds(1));
  looks_after(std::chrono::seconds(599));
  EXPECT_EQ(notes(), 1u);
  looks_after(std::chrono::duration_cast<std::chrono::seconds>(settings_.repeat));
  EXPECT_EQ(notes(), 2u) << "the reminders go on";
}

TEST_F(NotifierTest, BackendThatIsDownIsMuted) {
  drifts(2);
  down_ = true;
  start();
  looks_after(std::chrono::seconds(3'600));
  EXPECT_EQ(notes(), 0u);
  down_ = false;
  looks_after(std::chrono::seconds(1));
  EXPECT_EQ(notes(), 1u);
}

}  // namespace
}  // namespace driftd::test
