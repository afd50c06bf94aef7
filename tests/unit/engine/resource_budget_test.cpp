// SPDX-License-Identifier: Apache-2.0
// Anybody who may name resources in a system can make any number of them. A backend keeps so many as its budget allows
// (budgets.resources).
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Operation;
using testing::HasSubstr;
using testing::Not;

class RoomOfABackend : public EngineOnTheStore {
 protected:
  void SetUp() override { line_->budgets.resources = 51; }  // thirty resources, and the pseudo-resource of the backend
  void add(int from, int to) {
    for (int i = from; i < to; ++i) line_->world->resources[thing(i)] = R"({"partitions":3})";
  }
  std::size_t created() { return all(Operation::created).size(); }
  std::size_t changed() { return all(Operation::changed).size(); }
  std::size_t known() {
    return line_->on_core([&] { return line_->engine().find("b")->ledger().index().size(); });
  }
};

TEST_F(RoomOfABackend, NamesThatComeAndGoWithEachCycleTakeNoMoreThanThat) {
  baseline();
  for (int round = 1; round <= 20; ++round) {
    remove(100 * round - 100 + 30, 100 * round - 100 + 40);
    add(100 * round + 30, 100 * round + 40);  // ten others
    refresh();
    ASSERT_TRUE(report_.status) << report_.status.error().message;
    EXPECT_LE(known(), 51U);
    EXPECT_EQ(reasons(), "") << "there is room: what came and went makes place";
  }
  EXPECT_EQ(created(), 200U) << "each of them was told";
  EXPECT_EQ(line_->wait(line_->store().index(line_->view().uid)).value().size(), known());
}

TEST_F(RoomOfABackend, WhatThereIsNoRoomForIsSaidAndTheOthersStayJudged) {
  baseline();
  add(30, 130);
  refresh();
  EXPECT_THAT(reasons(), HasSubstr("budget: 51 resources of this backend are known"));
  EXPECT_THAT(reasons(), HasSubstr("budgets.resources"));
  EXPECT_EQ(known(), 51U);
  EXPECT_EQ(created(), 20U);
  EXPECT_EQ(report_.coverage.front().unknown, 80);
  line_->world->resources[thing(3)] = R"({"partitions":9})";
  remove(5, 6);
  refresh();
  EXPECT_EQ(changed(), 1U);
  EXPECT_EQ(all(Operation::deleted).size(), 1U);
  EXPECT_TRUE(report_.complete());
}

TEST_F(RoomOfABackend, AFirstListThatDoesNotFitIsNoBaseline) {
  line_->budgets.resources = 20;
  line_->start(false);
  refresh();
  EXPECT_THAT(reasons(), HasSubstr("budget: 20 resources"));
  another_process();
  line_->budgets.resources = 100;
  line_->start(false);
  refresh();
  EXPECT_TRUE(report_.complete());
  EXPECT_EQ(line_->drifts(true).size(), 0U) << "the other ten were there before anybody looked";
  line_->world->resources[thing(40)] = R"({"partitions":3})";
  refresh();
  EXPECT_EQ(created(), 1U);
}

TEST_F(RoomOfABackend, OfAFirstListThatDoesNotFitWhatFitsIsJudged) {
  line_->budgets.resources = 21;
  line_->start(false);
  refresh();
  ASSERT_EQ(known(), 21U);
  EXPECT_EQ(report_.coverage.front().unknown, 10);
  EXPECT_THAT(reasons(), HasSubstr("until all fit, those that come in are taken as they are"));
  std::vector<core::ResourceId> inside;
  for (const auto& [id, body] : line_->world->resources) {
    if (inside.size() < 20) inside.push_back(id);
  }
  line_->world->resources[inside[0]] = R"({"partitions":9})";
  line_->world->resources.erase(inside[1]);
  refresh();
  EXPECT_EQ(changed(), 1U) << reasons();
  EXPECT_EQ(all(Operation::deleted).size(), 1U);
  another_process();
  line_->budgets.resources = 21;
  line_->start(false);
  line_->world->resources[inside[2]] = R"({"partitions":9})";
  refresh();
  EXPECT_EQ(changed(), 2U);
  EXPECT_EQ(report_.coverage.front().unknown, 10);
  EXPECT_EQ(line_->drifts(true).size(), 3U);
}

TEST_F(RoomOfABackend, WhatComesInBeforeAllOfTheFirstListFitIsNotNewAndIsJudgedFromThenOn) {
  line_->budgets.resources = 21;
  line_->start(false);
  refresh();
  refresh();
  another_process();
  line_->budgets.resources = 26;
  line_->start(false);
  refresh();
  EXPECT_EQ(known(), 26U);
  EXPECT_THAT(line_->drifts(true), testing::IsEmpty()) << "they were there before";
  for (auto& [id, body] : line_->world->resources) body = R"({"partitions":9})";
  refresh();
  EXPECT_EQ(changed(), 25U);
  another_process();
  line_->budgets.resources = 100;
  line_->start(false);
  refresh();
  EXPECT_EQ(changed(), 25U);
  EXPECT_EQ(created(), 0U);
  EXPECT_EQ(reasons(), "");
  EXPECT_TRUE(report_.coverage.front().established);
  line_->world->resources[thing(40)] = R"({"partitions":3})";
  refresh();
  EXPECT_EQ(created(), 1U);
}

TEST_F(RoomOfABackend, WhatRetentionTookFromTheStoreTakesNoRoom) {
  baseline();
  add(30, 50);
  refresh();
  remove(30, 50);
  refresh();
  ASSERT_EQ(known(), 51U);
  tamper(dir_.file("data/store.db"), "DELETE FROM resource WHERE present = 0 AND baseline IS NULL");
  add(60, 80);
  refresh();
  EXPECT_EQ(reasons(), "");
  EXPECT_EQ(created(), 40U);
}

TEST_F(RoomOfABackend, ARecordOlderThanTheEndOfWhatIsForgottenIsNotNew) {
  line_->world->watches = true;
  line_->interval = std::chrono::hours(1);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().last_complete_ns > 0; }, std::chrono::seconds(10)));
  const auto told = [&](const std::string& body) {
    line_->replay({{thing(30), body}});
    line_->replay({{thing(3), body.empty() ? R"({"partitions":9})" : R"({"partitions":8})"}});  // pages come in order
    const std::string mark = body.empty() ? "9" : "8";
    return eventually(
        [&] {
          const auto open = line_->drifts();
          return !open.empty() && open.front().changes.front().new_value == mark;
        },
        std::chrono::seconds(10));
  };
  line_->on_core([&] {
    line_->world->observed_at = {{thing(30), line_->clock->wall() - Nanos(60'000'000'000)}};
    return 0;
  });
  ASSERT_TRUE(told(""));
  line_->on_core([&] {
    line_->engine().find("b")->ledger().index().erase_absent();
    return 0;
  });
  ASSERT_TRUE(told(R"({"partitions":3})"));  // from before it went
  EXPECT_EQ(created(), 0U);
}

TEST_F(RoomOfABackend, WhatWasLeftOutComesInWhenThereIsRoomAlsoThoughNothingMovedSince) {
  baseline();
  add(30, 60);
  refresh();
  ASSERT_EQ(created(), 20U);
  remove(30, 45);
  refresh();  // these are gone now and were never accepted
  refresh();
  EXPECT_THAT(reasons(), Not(HasSubstr("budget")));
  EXPECT_EQ(created(), 30U);
}

TEST_F(RoomOfABackend, ARecordOfTheWatchForWhichThereIsNoRoomHidesNoneThatIsKnown) {
  line_->world->watches = true;
  line_->interval = std::chrono::hours(1);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().last_complete_ns > 0; }, std::chrono::seconds(10)));
  line_->on_core([&] {
    add(30, 60);
    line_->world->resources[thing(3)] = R"({"partitions":9})";
    return 0;
  });
  for (int i = 30; i < 60; ++i) line_->change(thing(i));
  line_->change(thing(3));
  EXPECT_TRUE(eventually([&] { return changed() == 1; }, std::chrono::seconds(10)));
  EXPECT_EQ(known(), 51U);
}

TEST_F(RoomOfABackend, TombstonesOfWhatWasNeverThereTakeNoMoreThanThat) {
  line_->world->watches = true;
  line_->interval = std::chrono::hours(1);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return line_->view().last_complete_ns > 0; }, std::chrono::seconds(10)));
  ScriptedSession::States gone;  // no body: a tombstone
  for (int i = 1'000; i < 1'100; ++i) gone.emplace_back(thing(i), "");
  line_->replay(std::move(gone));
  line_->on_core([&] {
    line_->world->resources[thing(3)] = R"({"partitions":9})";
    return 0;
  });
  line_->change(thing(3));
  ASSERT_TRUE(eventually([&] { return changed() == 1; }, std::chrono::seconds(10)));
  EXPECT_EQ(known(), 51U);
}

}  // namespace
}  // namespace driftd::test
