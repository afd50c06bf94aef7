// SPDX-License-Identifier: Apache-2.0
// What a watch brings that cannot be read lowers the coverage, without waiting for the next interval.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

class WatchedUnread : public EngineOnTheStore {
 protected:
  WatchedUnread() {
    line_->interval = std::chrono::hours(1);
    line_->world->watches = true;
    line_->start(true);
  }
  std::int64_t unknown() {
    const auto view = line_->view();
    return view.coverage.size() == 1 && view.coverage[0].established ? view.coverage[0].unknown : -1;
  }
};

TEST_F(WatchedUnread, LowersTheCoverageAndRaisesItAgain) {
  ASSERT_TRUE(eventually([&] { return unknown() == 0; }, std::chrono::seconds(20)));
  line_->on_core([&] {
    line_->world->unread[thing(3)] = {"**", Code::corrupt, "its values cannot be read"};
    line_->world->resources[thing(3)] = "{}";
  });
  line_->change(thing(3));
  EXPECT_TRUE(eventually([&] { return unknown() == 1; }, std::chrono::seconds(20)));
  EXPECT_THAT(line_->view().coverage[0].reasons, testing::Contains(testing::HasSubstr("its values cannot be read")));
  line_->clock->pass(std::chrono::minutes(2));
  line_->on_core([&] {
    line_->world->unread.clear();
    line_->world->resources[thing(3)] = R"({"partitions":3})";
  });
  line_->change(thing(3));
  EXPECT_TRUE(eventually([&] { return unknown() == 0; }, std::chrono::seconds(90)));
  EXPECT_THAT(line_->drifts(), testing::IsEmpty());
}

TEST_F(EngineOnTheStore, WhatIsUnreadStaysUnknownInTheNextCycleAndInTheNextProcess) {
  baseline();
  line_->world->unread[thing(3)] = {"partitions", Code::denied, "no right"};
  line_->world->resources[thing(3)] = "{}";
  const auto expect_unknown = [&] {
    refresh();
    ASSERT_EQ(report_.coverage.size(), 1u);
    EXPECT_EQ(report_.coverage[0].unknown, 1);
    EXPECT_THAT(reasons(), testing::HasSubstr("no right"));
  };
  expect_unknown();
  expect_unknown();
  restart();
  expect_unknown();
  expect_unknown();
}

TEST_F(EngineOnTheStore, ACycleThatFoundNothingChangedTellsTheCoverageOfTheLastList) {
  line_->world->cursors = true;
  baseline();
  line_->world->unread[thing(3)] = {"partitions", Code::denied, "no right"};
  line_->world->resources[thing(3)] = "{}";
  refresh();
  line_->world->always_unchanged = true;
  const engine::CycleReport report = line_->refresh(false);
  ASSERT_TRUE(report.unchanged);
  ASSERT_EQ(report.coverage.size(), 1u);
  EXPECT_EQ(report.coverage[0].unknown, 1);
}

std::string verdicts(const Result<std::vector<core::Step>>& steps) {
  std::string out;
  for (const auto& step : *steps) out += step.path + " " + step.verdict + " " + step.reason + "\n";
  return out;
}

TEST_F(EngineOnTheStore, AnExplanationCallsWhatIsUnreadUnknownAndSaysWhy) {
  for (auto& [id, body] : line_->world->resources) body = R"({"partitions":3,"replicas":2})";
  baseline();
  line_->world->unread[thing(3)] = {"partitions", Code::denied, "no right"};
  line_->world->resources[thing(3)] = R"({"replicas":2})";
  refresh();
  EXPECT_EQ(verdicts(line_->explain(thing(3), "partitions")), "partitions unknown no right\n");
  line_->world->resources[thing(4)] = R"({"replicas":2})";
  refresh();
  EXPECT_THAT(verdicts(line_->explain(thing(4), "partitions")), testing::HasSubstr("drift removed"));
}

TEST_F(EngineOnTheStore, AnExplanationNamesAlsoWhatNobodyCouldEverRead) {
  line_->world->unread[thing(3)] = {"conf.**", Code::denied, "no right"};
  baseline();
  EXPECT_THAT(verdicts(line_->explain(thing(3))), testing::HasSubstr("conf.** unknown no right"));
  EXPECT_EQ(verdicts(line_->explain(thing(3), "conf.a")), "conf.** unknown no right\n");
}

TEST_F(EngineOnTheStore, BeforeTheFirstCycleAnExplanationDoesNotCallAnUnreadAttributeRemoved) {
  baseline();
  line_->world->unread[thing(3)] = {"partitions", Code::denied, "no right"};
  line_->world->resources[thing(3)] = "{}";
  refresh();
  restart();
  EXPECT_THAT(verdicts(line_->explain(thing(3), "partitions")), testing::HasSubstr("unknown it was not read since"));
}

}  // namespace
}  // namespace driftd::test
