// SPDX-License-Identifier: Apache-2.0
// The ledger of the kill tests finds each fault that it is there for.
#include "ledger.hpp"

#include <gmock/gmock.h>

namespace driftd::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Delivery delivery(const std::string& subject, int value, std::uint64_t sequence, std::size_t run = 0) {
  Delivery out;
  out.subject = subject;
  out.value = value;
  out.id = subject + "-" + std::to_string(value);
  out.incarnation = 7;
  out.sequence = sequence;
  out.bytes = out.content = sequence;
  out.run = run;
  return out;
}

/// Two resources with two changes each, of which the first two events came again after a kill.
Deliveries sound() {
  return {delivery("a", 2, 1),    delivery("b", 2, 2),    delivery("a", 2, 1, 1),
          delivery("b", 2, 2, 1), delivery("a", 3, 3, 1), delivery("b", 3, 4, 1)};
}

const Written kWritten = {{"a", 3}, {"b", 3}, {"never changed", 1}};

TEST(KillsLedger, FindsNoFaultInWhatIsSound) {
  EXPECT_EQ(lost(kWritten, sound()), "");
  EXPECT_EQ(out_of_order(sound()), "");
  EXPECT_EQ(ambiguous(sound()), "");
  EXPECT_EQ(holes(sound()), "");
  EXPECT_EQ(different(sound(), sound(), true), "");
  EXPECT_THAT(repetitions(sound(), 2), ElementsAre(0, 2));
  EXPECT_EQ(distinct(sound()), 4U);
}

TEST(KillsLedger, FindsAChangeThatDidNotArrive) {
  Deliveries got = sound();
  got.erase(got.begin() + 4);
  EXPECT_THAT(lost(kWritten, got), HasSubstr("a=3"));
  EXPECT_THAT(holes(got), HasSubstr("sequence 3 is missing"));
  EXPECT_THAT(different(sound(), got, false), HasSubstr("first receiver only"));
  EXPECT_THAT(different(got, sound(), false), HasSubstr("second receiver only"));
}

TEST(KillsLedger, FindsAnOrderThatIsNotThatOfTheChanges) {
  Deliveries got = sound();
  std::swap(got[0], got[4]);
  EXPECT_THAT(out_of_order(got), HasSubstr("a=2"));
  Deliveries stamps = sound();
  stamps[4].sequence = 1;
  EXPECT_THAT(out_of_order(stamps), HasSubstr("a=3"));
}

TEST(KillsLedger, FindsAnIdWithOtherContentAndAChangeWithTwoIds) {
  Deliveries got = sound();
  got[2].bytes = 99;
  EXPECT_THAT(ambiguous(got), HasSubstr("other content"));
  got = sound();
  got[3].id = "another";
  EXPECT_THAT(ambiguous(got), HasSubstr("came as b-2 before"));
}

TEST(KillsLedger, FindsASecondIncarnationAndEventsThatDiffer) {
  Deliveries got = sound();
  got[5].incarnation = 8;
  EXPECT_THAT(holes(got), HasSubstr("2 incarnations"));
  EXPECT_THAT(different(sound(), got, false), HasSubstr("b=3"));
  got = sound();
  got[5].content = 99;
  EXPECT_EQ(different(sound(), got, false), "");
  EXPECT_THAT(different(sound(), got, true), HasSubstr("b=3"));
}

TEST(KillsLedger, KnowsWhichRunSentSomething) {
  Runs runs;
  runs.begin();
  const auto between = std::chrono::steady_clock::now();
  runs.begin();
  EXPECT_EQ(runs.at(between - std::chrono::hours(1)), 0U);
  EXPECT_EQ(runs.at(between), 0U);
  EXPECT_EQ(runs.at(std::chrono::steady_clock::now()), 1U);
}

}  // namespace
}  // namespace driftd::test
