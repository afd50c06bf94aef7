// SPDX-License-Identifier: Apache-2.0
// The rounds that keep the store below retention.max_bytes: how much one does, when it waits, and what it reports.
#include <gmock/gmock.h>

#include "store/size_limit.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

constexpr std::size_t kLarge = 64u << 10;  // bytes of an event in these tests
constexpr int kPausedRounds = 12;          // in which a store that cannot be made smaller is left alone
constexpr int kSlicesARound = 50;
constexpr int kEventsASlice = 1'000;

class SizeLimitTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    bench.get(bench->open_sink("ops"));
    empty_ = bytes();
  }
  /// Commits large events, which the sink `ops` waits for. Returns the last seq.
  std::int64_t emit_large(int count) {
    std::int64_t last = 0;
    for (int i = 0; i < count; ++i) {
      for (const auto& event :
           bench.get(bench->commit(page_of({}, {large_draft("r" + std::to_string(i), kLarge)}))).events)
        last = event.stamp.seq;
    }
    return last;
  }
  void deliver(std::int64_t up_to) { bench.get(bench->settle({"ops", up_to, {}, {}, {}})); }
  /// One round. `stopping` never ends it if it is empty.
  bool round(std::int64_t max_bytes, std::function<bool()> stopping = {}) {
    if (!stopping) stopping = [] { return false; };
    return bench.get(limit_.enforce(*bench, max_bytes, std::move(stopping)));
  }
  std::int64_t bytes() { return bench.get(bench->shrink(INT64_MAX)).bytes; }
  std::size_t left() { return bench.get(bench->events(0, 100'000)).size(); }

  store::SizeLimit limit_;
  std::int64_t empty_ = 0;  ///< bytes of the store before anything happened
};

TEST_F(SizeLimitTest, AStoreBelowItsLimitIsMeasuredAndKeepsAll) {
  deliver(emit_large(5));
  EXPECT_EQ(limit_.bytes(), 0) << "nothing was measured before the first round";
  EXPECT_FALSE(round(bytes()));
  EXPECT_EQ(limit_.bytes(), bytes());
  EXPECT_EQ(left(), 5u);
}

TEST_F(SizeLimitTest, OneRoundBringsTheStoreBelowItsLimitAndReportsNothing) {
  deliver(emit_large(40));
  const std::int64_t max = empty_ + 10 * static_cast<std::int64_t>(kLarge);
  ASSERT_GT(bytes(), max);
  EXPECT_FALSE(round(max));
  EXPECT_LE(limit_.bytes(), max);
  EXPECT_EQ(limit_.bytes(), bytes()) << "the size after the round, not before it";
  EXPECT_LT(left(), 40u);
}

TEST_F(SizeLimitTest, AStoreThatStaysAboveItsLimitIsReportedOnceInAnHour) {
  emit_large(10);  // the sink waits for all of them, so that none may be deleted
  EXPECT_TRUE(round(empty_));
  EXPECT_GT(limit_.bytes(), empty_);
  for (int i = 0; i < 3 * (kPausedRounds + 1); ++i) EXPECT_FALSE(round(empty_)) << i;
  EXPECT_EQ(left(), 10u);
}

TEST_F(SizeLimitTest, AStoreThatCannotBeMadeSmallerIsLeftAloneForAMinute) {
  const auto last = emit_large(10);
  ASSERT_TRUE(round(empty_));
  deliver(last);  // now they may be deleted
  for (int i = 0; i < kPausedRounds; ++i) {
    round(empty_);
    ASSERT_EQ(left(), 10u) << "round " << i << " of the pause deletes";
  }
  EXPECT_FALSE(round(empty_));
  EXPECT_EQ(left(), 0u) << "the pause does not end";
}

TEST_F(SizeLimitTest, AnAgentThatStopsEndsTheRound) {
  deliver(emit_large(10));
  EXPECT_FALSE(round(empty_, [] { return true; }));
  EXPECT_EQ(left(), 10u);
  EXPECT_FALSE(round(empty_));
  EXPECT_EQ(left(), 0u) << "an ended round is no reason for a pause";
}

TEST_F(SizeLimitTest, ARoundIsBounded) {
  std::int64_t last = 0;
  for (int i = 0; i < kSlicesARound + 2; ++i) last = emit(kEventsASlice).back();
  deliver(last);
  int asked = 0;
  EXPECT_FALSE(round(empty_, [&] { return ++asked < 0; })) << "there is more to do, so nothing is reported";
  EXPECT_EQ(asked, kSlicesARound) << "whether the agent stops is asked before each slice";
  EXPECT_GE(left(), static_cast<std::size_t>(2 * kEventsASlice));
  EXPECT_GT(limit_.bytes(), empty_);
  round(empty_);
  EXPECT_LE(limit_.bytes(), empty_);
}

TEST_F(SizeLimitTest, AStoreThatRefusesIsAnErrorAndNoPause) {
  deliver(emit_large(10));
  tamper(file(),
         "CREATE TRIGGER full BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END");
  EXPECT_FALSE(bench.wait(limit_.enforce(*bench, empty_, [] { return false; })));
  tamper(file(), "DROP TRIGGER full");
  EXPECT_FALSE(round(empty_ + 4'096)) << "the trigger made the schema one page longer";
  EXPECT_EQ(left(), 0u);
}

}  // namespace
}  // namespace driftd::test
