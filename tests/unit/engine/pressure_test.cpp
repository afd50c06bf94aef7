// SPDX-License-Identifier: Apache-2.0
// The engine while something does not move: a refresh that hangs, an outbox that is full.
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

}  // namespace
}  // namespace driftd::test
