// SPDX-License-Identifier: Apache-2.0
// The engine under pressure: a refresh that hangs, an outbox that is full.
#include "on_the_store.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

class EngineUnderPressure : public EngineOnTheStore {
 protected:
  bool established() { return line_->view().last_complete_ns > 0; }
  template <class F>
  void in_the_world(F f) {
    line_->on_core([&] {
      f(*line_->world);
      return 0;
    });
  }
  std::size_t health_events() {
    std::size_t n = 0;
    for (const auto& event : line_->events()) n += event.what.find("health") != std::string::npos ? 1 : 0;
    return n;
  }
};

TEST_F(EngineUnderPressure, DownIsToldWhileTheRefreshOfTheDeadBackendStillHangs) {
  line_->interval = milliseconds(10);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return established(); }, seconds(10)));
  in_the_world([](ScriptedWorld& world) {
    world.refresh_hangs = true;
    world.health_fails = Error{Code::unavailable, "connection refused"};
  });
  EXPECT_TRUE(eventually([&] { return health_events() == 1; }, seconds(10)));
  EXPECT_EQ(line_->view().health.state, core::HealthReport::State::down);
}

TEST_F(EngineUnderPressure, WatchedChangeThatMetAFullOutboxIsFoundWhenItDrains) {
  line_->interval = hours(1);
  line_->world->watches = true;
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return established(); }, seconds(10)));
  line_->pressure(true);
  in_the_world([](ScriptedWorld& world) { world.resources[thing(7)] = R"({"partitions":9})"; });
  line_->change(thing(7));
  line_->pressure(false);
  EXPECT_TRUE(eventually([&] { return line_->drifts().size() == 1; }, seconds(10)));
}

TEST_F(EngineUnderPressure, ReloadReachesTheOthersWhileOneBackendHangs) {
  line_->other->declared_kinds = {{"elsewhere", "thing"}};
  line_->interval = hours(1);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return established(); }, seconds(10)));
  const auto busy = [&] { return line_->on_core([&] { return line_->engine().find("b")->busy(); }); };
  ASSERT_TRUE(eventually([&] { return !busy(); }, seconds(10)));
  in_the_world([](ScriptedWorld& world) { world.refresh_hangs = true; });
  auto hangs = asio::co_spawn(line_->core(), line_->engine().refresh("b", true), asio::use_future);
  ASSERT_TRUE(eventually(busy, seconds(10)));  // while the only cycle hangs
  core::Rules rules;
  rules.generation = 9;
  std::vector<engine::Engine::Change> changes;
  for (const char* name : {"b", "other"}) {
    changes.push_back(
        {line_->on_core([&] { return line_->engine().find(name)->ledger().spec(); }), core::BackendEdit::in_place});
    changes.back().spec.rules = std::make_shared<const core::Rules>(rules);
  }
  auto reloaded = asio::co_spawn(line_->core(), line_->engine().apply(std::move(changes)), asio::use_future);
  EXPECT_TRUE(eventually(
      [&] {
        return line_->on_core([&] { return line_->engine().find("other")->ledger().spec().rules->generation; }) == 9;
      },
      seconds(10)));
  line_.reset();  // ends the cycle that hangs, and the reload with it
  EXPECT_THAT(reloaded.get(), testing::SizeIs(2));
  (void)hangs.get();
}

TEST_F(EngineUnderPressure, RefreshOnDemandCommitsNothingWhileTheOutboxIsFull) {
  baseline();
  line_->pressure(true);
  line_->world->resources[thing(7)] = R"({"partitions":9})";
  refresh();
  ASSERT_FALSE(report_.status);
  EXPECT_THAT(report_.status.error().message, HasSubstr("outbox is full"));
  EXPECT_THAT(line_->drifts(), SizeIs(0));
  line_->pressure(false);
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

TEST_F(EngineUnderPressure, HintsWithoutEndBeginACycleEveryHalfSecondAtMost) {
  line_->interval = hours(1);
  line_->world->watches = true;
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return established(); }, seconds(10)));
  const auto before = line_->view().cycles;
  const auto begin = std::chrono::steady_clock::now();
  const auto three_more = [&] {
    line_->hint();
    return line_->view().cycles >= before + 3;
  };
  ASSERT_TRUE(eventually(three_more, seconds(20)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(1000)) << "two distances of half a second";
}

TEST_F(EngineUnderPressure, AWorkerThatStillStartsSaysNothingOfTheSystemBehindIt) {
  line_->interval = milliseconds(10);
  line_->world->worker = "starting";
  line_->world->health_fails = Error{Code::unavailable, "the worker is not running (starting)"};
  line_->world->refresh_fails = line_->world->health_fails;
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().cycles >= 2; }, seconds(10)));
  EXPECT_EQ(health_events(), 0u);
  EXPECT_EQ(line_->view().health.state, core::HealthReport::State::unknown);
  in_the_world([](ScriptedWorld& world) { world.worker = "backoff"; });
  EXPECT_TRUE(
      eventually([&] { return line_->view().health.state == core::HealthReport::State::degraded; }, seconds(10)));
}

}  // namespace
}  // namespace driftd::test
