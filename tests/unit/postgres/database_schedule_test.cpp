// SPDX-License-Identifier: Apache-2.0
#include "postgres/database_schedule.hpp"

#include <gmock/gmock.h>

namespace driftd::postgres {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

constexpr seconds kShare{1};

TEST(Turns, WhoWasLeftOutIsFirstNextTime) {
  DatabaseSchedule schedule;
  EXPECT_THAT(schedule.order({"a", "b", "c", "d"}, kShare).names, ElementsAre("a", "b", "c", "d"));
  schedule.record("a", kShare);
  schedule.record("b", kShare);
  EXPECT_THAT(schedule.order({"a", "b", "c", "d"}, kShare).names, ElementsAre("c", "d", "a", "b"));
}

TEST(Turns, WhoIsDearComesBehindWhoIsCheapAndWaitsNoLongerThanOtherDearOnes) {
  DatabaseSchedule schedule;
  schedule.order({"a", "b", "c"}, kShare);
  schedule.record("a", seconds(2));
  schedule.record("b", seconds(2));
  schedule.record("c", seconds(0));
  const auto now = schedule.order({"a", "b", "c"}, kShare);
  EXPECT_THAT(now.names, ElementsAre("c", "a", "b"));
  EXPECT_EQ(now.cheap, 1u);
  schedule.record("a", seconds(2));
  EXPECT_THAT(schedule.order({"a", "b", "c"}, kShare).names, ElementsAre("c", "b", "a"));
  schedule.record("b", seconds(1));
  EXPECT_EQ(schedule.order({"a", "b", "c"}, kShare).cheap, 2u) << "what became cheap is so again";
}

TEST(Turns, WhoIsNewStandsBehindWhoWaits) {
  DatabaseSchedule schedule;
  schedule.order({"m", "z"}, kShare);
  schedule.record("m", seconds(0));
  EXPECT_THAT(schedule.order({"a", "b", "m", "z"}, kShare).names, ElementsAre("z", "m", "a", "b"));
}

TEST(Turns, WhoIsGoneIsForgotten) {
  DatabaseSchedule schedule;
  schedule.order({"a", "b"}, kShare);
  schedule.record("a", seconds(9));
  schedule.order({"b"}, kShare);
  EXPECT_EQ(schedule.order({"a", "b"}, kShare).cheap, 2u);
}

// 50 databases, each of which may become expensive at any time, and a cycle in which only some fit: each is read
// eventually.
TEST(Turns, NobodyWaitsForEver) {
  DatabaseSchedule schedule;
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back("d" + std::to_string(i));
  std::map<std::string, int> waits;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    const auto now = schedule.order(names, kShare);
    int left = 60;  // seconds; a quarter is the dear ones'
    for (std::size_t i = 0; i < now.names.size(); ++i) {
      const int until = i < now.cheap && now.cheap < now.names.size() ? 15 : 0;
      const int cost = (cycle / 7 + static_cast<int>(std::hash<std::string>()(now.names[i]) % 50)) % 3 == 0 ? 5 : 0;
      ++waits[now.names[i]];
      if (left <= until) continue;
      left -= cost;
      schedule.record(now.names[i], seconds(cost));
      waits[now.names[i]] = 0;
    }
    for (const auto& [name, many] : waits) ASSERT_LT(many, 50) << name << " in cycle " << cycle;
  }
}

}  // namespace
}  // namespace driftd::postgres
