// SPDX-License-Identifier: Apache-2.0
#include "postgres/turns.hpp"

#include <gmock/gmock.h>

namespace driftd::postgres {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

constexpr seconds kShare{1};

TEST(Turns, WhoWasLeftOutIsFirstNextTime) {
  Turns turns;
  EXPECT_THAT(turns.order({"a", "b", "c", "d"}, kShare).names, ElementsAre("a", "b", "c", "d"));
  turns.took("a", kShare);
  turns.took("b", kShare);
  EXPECT_THAT(turns.order({"a", "b", "c", "d"}, kShare).names, ElementsAre("c", "d", "a", "b"));
}

TEST(Turns, WhoIsDearComesBehindWhoIsCheapAndWaitsNoLongerThanOtherDearOnes) {
  Turns turns;
  turns.order({"a", "b", "c"}, kShare);
  turns.took("a", seconds(2));
  turns.took("b", seconds(2));
  turns.took("c", seconds(0));
  const auto now = turns.order({"a", "b", "c"}, kShare);
  EXPECT_THAT(now.names, ElementsAre("c", "a", "b"));
  EXPECT_EQ(now.cheap, 1u);
  turns.took("a", seconds(2));
  EXPECT_THAT(turns.order({"a", "b", "c"}, kShare).names, ElementsAre("c", "b", "a"));
  turns.took("b", seconds(1));
  EXPECT_EQ(turns.order({"a", "b", "c"}, kShare).cheap, 2u) << "what became cheap is so again";
}

TEST(Turns, WhoIsNewStandsBehindWhoWaits) {
  Turns turns;
  turns.order({"m", "z"}, kShare);
  turns.took("m", seconds(0));
  EXPECT_THAT(turns.order({"a", "b", "m", "z"}, kShare).names, ElementsAre("z", "m", "a", "b"));
}

TEST(Turns, WhoIsGoneIsForgotten) {
  Turns turns;
  turns.order({"a", "b"}, kShare);
  turns.took("a", seconds(9));
  turns.order({"b"}, kShare);
  EXPECT_EQ(turns.order({"a", "b"}, kShare).cheap, 2u);
}

// 50 databases, any of which may become dear at any time, and a cycle in which only some fit: each has its turn.
TEST(Turns, NobodyWaitsForEver) {
  Turns turns;
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back("d" + std::to_string(i));
  std::map<std::string, int> waits;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    const auto now = turns.order(names, kShare);
    int left = 60;  // seconds; a quarter is the dear ones'
    for (std::size_t i = 0; i < now.names.size(); ++i) {
      const int until = i < now.cheap && now.cheap < now.names.size() ? 15 : 0;
      const int cost = (cycle / 7 + static_cast<int>(std::hash<std::string>()(now.names[i]) % 50)) % 3 == 0 ? 5 : 0;
      ++waits[now.names[i]];
      if (left <= until) continue;
      left -= cost;
      turns.took(now.names[i], seconds(cost));
      waits[now.names[i]] = 0;
    }
    for (const auto& [name, many] : waits) ASSERT_LT(many, 50) << name << " in cycle " << cycle;
  }
}

}  // namespace
}  // namespace driftd::postgres
