// SPDX-License-Identifier: Apache-2.0
// Setting the wall clock must not hide or invent a drift: within a process the monotonic clock gives the order
// (semantics 8).
#include <random>

#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using engine::Moment;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::SizeIs;

class ClockThatIsSet : public EngineOnTheStore {
 protected:
  ClockThatIsSet() {
    line_->world->cursors = true;
    line_->world->watches = true;
  }
  void set(int number, int partitions) {
    line_->world->resources[thing(number)] = "{\"partitions\":" + std::to_string(partitions) + "}";
  }
  /// Resources that differ from their baseline.
  std::size_t different() const {
    std::size_t out = 0;
    for (const auto& [id, body] : line_->world->resources) out += body == R"({"partitions":3})" ? 0 : 1;
    return out;
  }
};

TEST_F(ClockThatIsSet, BackHidesNoChangeBehindACursor) {
  baseline();
  for (const int back : {10, 30, 59, 60, 3600}) {
    SCOPED_TRACE(back);
    line_->clock->step(-seconds(back));
    set(back % 30, 9);
    report_ = line_->refresh(false);
    EXPECT_EQ(line_->drifts().size(), different());
  }
}

/// Whatever the clock does between and before the cycles, the next cycle reports the current state.
TEST_F(ClockThatIsSet, RandomStepsHideAndInventNothing) {
  std::mt19937 random(8);
  const auto dice = [&](int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random); };
  baseline();
  std::size_t published = 0;
  for (int step = 0; step < 120 && !HasFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    if (dice(2) == 0) line_->clock->step(milliseconds(dice(180'000) - 90'000));
    const int number = dice(30), partitions = 3 + dice(3);
    const bool moves = line_->world->resources[thing(number)] != "{\"partitions\":" + std::to_string(partitions) + "}";
    set(number, partitions);
    if (dice(10) == 0) line_->world->max_delivered = static_cast<std::size_t>(dice(30));  // an incomplete list
    line_->refresh(dice(5) == 0);
    line_->world->max_delivered = SIZE_MAX;
    report_ = line_->refresh(false);
    EXPECT_TRUE(report_.status);
    EXPECT_EQ(line_->drifts().size(), different());
    const std::size_t events = line_->events().size();
    EXPECT_LE(events, published + (moves ? 1 : 0) + (published == 0 ? 1 : 0)) << "a clock is no news";
    published = events;
  }
}

TEST_F(ClockThatIsSet, BackDuringAWatchHidesNothingThatItTells) {
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().coverage.size() == 1 && line_->view().coverage[0].established; }));
  for (int i = 0; i < 10; ++i) {
    line_->clock->step(i % 2 == 0 ? -seconds(45) : seconds(40));
    line_->on_core([&] {
      set(i, 9);
      return 0;
    });
    line_->change(thing(i));
    EXPECT_TRUE(eventually([&] { return line_->drifts().size() == static_cast<std::size_t>(i) + 1; }));
  }
}

TEST(MomentOf, AnswerIsAsOldAsItsProviderSaysWithinItsCall) {
  const Moment began{1'000'000'000'000, Moment::Mono(seconds(100))}, now{1'010'000'000'000, Moment::Mono(seconds(110))};
  EXPECT_EQ(Moment::asked_at(1'004'000'000'000, began, now), Moment::Mono(seconds(104)));
  EXPECT_EQ(Moment::asked_at(900'000'000'000, began, now), began.mono) << "it was not asked before it was asked";
  EXPECT_EQ(Moment::asked_at(1'500'000'000'000, began, now), began.mono) << "nor later than now";
  EXPECT_EQ(Moment::asked_at(-5, began, now), began.mono);
  EXPECT_EQ(Moment::received_at(1'004'000'000'000, began, now), Moment::Mono(seconds(104)));
  EXPECT_EQ(Moment::received_at(1'500'000'000'000, began, now), now.mono);
}

TEST(MomentOf, NothingWasReadBeforeTheMachineRan) {
  const Moment before{1'000'000'000'000, Moment::Mono(seconds(100))},
      now{1'010'000'000'000, Moment::Mono(seconds(110))};
  for (const Nanos observed : std::vector<Nanos>{1, 800'000'000'000, 899'000'000'000}) {
    EXPECT_EQ(Moment::received_at(observed, before, now), now.mono) << observed;
    EXPECT_EQ(Moment::asked_at(observed, before, now), before.mono) << observed;
  }
}

/// The provider gives the time of the system's own event, long ago. One such record must not outlast all later ones.
TEST_F(ClockThatIsSet, WatchThatTellsOldTimesHidesNothingThatComesLater) {
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().coverage.size() == 1 && line_->view().coverage[0].established; }));
  line_->world->observed_ns = 1;
  line_->on_core([&] {
    set(0, 9);
    return 0;
  });
  line_->change(thing(0));
  ASSERT_TRUE(eventually([&] { return line_->drifts().size() == 1; }));
  line_->world->observed_ns.reset();
  line_->on_core([&] {
    set(0, 3);
    return 0;
  });
  line_->change(thing(0));
  EXPECT_TRUE(eventually([&] { return line_->drifts().empty(); }));
}

/// The record looks older than the list, and a provider that has already sent it answers "unchanged" to the list's
/// cursor.
TEST_F(ClockThatIsSet, WatchRecordThatIsDroppedIsLookedForByAList) {
  line_->world->cursors = line_->world->always_unchanged = true;
  line_->interval = std::chrono::hours(1);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().coverage.size() == 1 && line_->view().coverage[0].established; }));
  line_->world->observed_ns = line_->clock->wall() - Nanos(60'000'000'000);
  line_->on_core([&] {
    set(0, 9);
    return 0;
  });
  line_->change(thing(0));
  EXPECT_TRUE(eventually([&] { return line_->drifts().size() == 1; }));
}

/// At most one list a minute is made for them. What is dropped within that minute is found after it.
TEST_F(ClockThatIsSet, WatchRecordThatIsDroppedSoonAfterAnotherIsLookedForLater) {
  line_->world->cursors = line_->world->always_unchanged = true;
  line_->interval = std::chrono::hours(1);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().cycles == 1; }));
  const auto tell = [&](int number) {
    line_->on_core([&] {
      set(number, 9);
      return 0;
    });
    line_->change(thing(number));
  };
  const Nanos before = line_->clock->wall() - Nanos(60'000'000'000);
  line_->on_core([&] {
    line_->world->observed_at = {{thing(0), before}, {thing(1), before}};
    return 0;
  });
  tell(0);
  // a later list would see the next one, too
  ASSERT_TRUE(eventually([&] { return line_->view().cycles == 2; }));
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  tell(1);
  tell(2);  // the watch gives its pages in order
  ASSERT_TRUE(eventually([&] { return line_->drifts().size() == 2; }));
  line_->clock->pass(seconds(61));
  line_->hint();
  EXPECT_TRUE(eventually([&] { return line_->drifts().size() == 3; }));
}

TEST(MomentOf, ClockThatWasSetMeanwhileTellsNothing) {
  const Moment began{1'000'000'000'000, Moment::Mono(seconds(100))};
  for (const Nanos set : std::vector<Nanos>{-30'000'000'000, -200'000'000, 200'000'000, 3'600'000'000'000}) {
    const Moment now{1'010'000'000'000 + set, Moment::Mono(seconds(110))};
    EXPECT_EQ(Moment::asked_at(1'004'000'000'000, began, now), began.mono) << set;
    EXPECT_EQ(Moment::received_at(1'004'000'000'000, began, now), now.mono) << set;
  }
}

/// A cycle overtakes a page: its record is dropped, and its cursor is not kept.
class Overtaken : public EngineOnTheStore {};

TEST_F(Overtaken, RecordThatWasAskedForEarlierIsDroppedAndItsCursorWithIt) {
  baseline();
  engine::Ledger& ledger = line_->engine().find("b")->ledger();
  const auto sight = [&](const char* body, Moment::Mono asked, engine::CommitExtras extras) {
    core::Observation seen;
    seen.id = thing(1);
    seen.body = body;
    seen.observed_ns = line_->clock->wall();
    seen.digest = digest(1, {body});
    std::vector<engine::ResourceReading> all;
    all.push_back({thing(1), core::Present{seen, {}}, asked});
    return line_->wait(ledger.apply(std::move(all), std::move(extras), false, 99, nullptr)).value();
  };
  const auto now = line_->clock->mono();
  engine::CommitExtras none, cursor;
  cursor.cursor = "c-2";
  cursor.watch_cursor = "w-2";
  EXPECT_EQ(sight(R"({"partitions":9})", now, none).dropped, 0u);
  EXPECT_EQ(sight(R"({"partitions":4})", now - milliseconds(1), cursor).dropped, 1u);
  EXPECT_EQ(ledger.row().cursor, "");
  EXPECT_EQ(ledger.row().watch_cursor, "");
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].changes[0].new_value, "9");
  EXPECT_EQ(sight(R"({"partitions":9})", now + milliseconds(1), cursor).dropped, 0u);
  EXPECT_EQ(ledger.row().cursor, "c-2");
}

/// An older answer that a resource is gone deletes nothing, and an older one that it cannot be read marks nothing
/// stale.
TEST_F(Overtaken, AbsentOrUnreadReadingThatWasAskedForEarlierIsDropped) {
  baseline();
  engine::Ledger& ledger = line_->engine().find("b")->ledger();
  const auto apply = [&](core::Reading outcome, Moment::Mono asked) {
    std::vector<engine::ResourceReading> all;
    all.push_back({thing(1), std::move(outcome), asked});
    return line_->wait(ledger.apply(std::move(all), engine::CommitExtras{}, false, 99, nullptr)).value();
  };
  core::Observation seen;
  seen.id = thing(1);
  seen.body = R"({"partitions":9})";
  seen.observed_ns = line_->clock->wall();
  seen.digest = digest(1, {seen.body});
  const auto now = line_->clock->mono();
  const Nanos wall = seen.observed_ns;
  EXPECT_EQ(apply(core::Present{seen, {}}, now).dropped, 0u);
  EXPECT_EQ(apply(core::Absent{wall}, now - milliseconds(1)).dropped, 1u);
  EXPECT_EQ(apply(core::Unknown{"denied", wall}, now - milliseconds(1)).dropped, 1u);
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].changes[0].new_value, "9");
  EXPECT_NE(line_->drifts()[0].operation, core::Operation::deleted);
  EXPECT_FALSE(line_->drifts()[0].stale_since_ns);
  EXPECT_EQ(apply(core::Absent{wall}, now + milliseconds(1)).dropped, 0u);
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].operation, core::Operation::deleted);
}

}  // namespace
}  // namespace driftd::test
