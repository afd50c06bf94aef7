// SPDX-License-Identifier: Apache-2.0
#include "engine/cycle_plan.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "engine/cycle_report.hpp"

namespace driftd::engine {
namespace {

using namespace std::chrono_literals;

/// The report of a cycle that listed everything.
CycleReport whole() { return {}; }

CycleReport failed() {
  CycleReport out;
  out.status = fail(Code::unavailable, "down");
  return out;
}

class CyclePlanTest : public ::testing::Test {
 protected:
  void run(const CycleReport& report) {
    plan_.note_start(now_);
    const CyclePlan::Pass pass = plan_.begin(false, true, now_);
    EXPECT_TRUE(plan_.finish(pass, report));
    plan_.schedule().record_cycle(now_, now_, Schedule::Outcome::succeeded);
  }
  bool next_is_full() { return plan_.begin(false, true, now_).full; }

  asio::io_context core_;
  CyclePlan plan_{core_.get_executor(), 30s};
  CyclePlan::Time now_ = CyclePlan::Time{} + 1h;
};

TEST_F(CyclePlanTest, FirstCycleReadsEverythingAndTheNextOneDoesNot) {
  EXPECT_FALSE(plan_.has_baseline());
  run(whole());
  EXPECT_TRUE(plan_.has_baseline());
  EXPECT_FALSE(next_is_full());
}

TEST_F(CyclePlanTest, AfterACycleThatFailedEverythingIsReadAgain) {
  run(failed());
  EXPECT_FALSE(plan_.has_baseline());
  EXPECT_TRUE(next_is_full());
}

TEST_F(CyclePlanTest, HintStartsACycleNoEarlierThanHalfASecondAfterTheLastOne) {
  run(whole());
  plan_.hint();
  EXPECT_EQ(plan_.next(), now_ + 500ms);
  plan_.answer_hints(now_);
  EXPECT_GT(plan_.next(), now_ + 20s);
}

TEST_F(CyclePlanTest, HintWaitsWhileTheBackendIsHeldBack) {
  run(whole());
  plan_.hold(true);
  plan_.hint();
  EXPECT_GT(plan_.next(), now_ + 20s);
  plan_.hold(false);
  EXPECT_EQ(plan_.next(), now_ + 500ms);
}

TEST_F(CyclePlanTest, ListsForLateRecordsAreAMinuteApart) {
  run(whole());
  plan_.list_again(now_ + 1s);
  EXPECT_EQ(plan_.next(), now_ + 1s);
  plan_.answer_hints(now_ + 1s);
  EXPECT_TRUE(next_is_full());
  plan_.list_again(now_ + 2s);
  plan_.answer_hints(now_ + 60s);
  EXPECT_FALSE(next_is_full());
  plan_.answer_hints(now_ + 61s);
  EXPECT_TRUE(next_is_full());
}

TEST_F(CyclePlanTest, CycleOfAPluginThatWasUpgradedMeanwhileCountsForNothing) {
  run(whole());
  const CyclePlan::Pass pass = plan_.begin(true, true, now_);
  plan_.start_over();
  EXPECT_FALSE(plan_.finish(pass, whole()));
  EXPECT_FALSE(plan_.has_baseline());
  EXPECT_TRUE(next_is_full());
}

TEST_F(CyclePlanTest, WhatWasLeftOutIsReadOnceThereIsRoom) {
  run(whole());
  plan_.note_left_out();
  EXPECT_FALSE(plan_.begin(false, false, now_).full);
  EXPECT_TRUE(plan_.begin(false, true, now_).full);
  EXPECT_FALSE(plan_.begin(false, true, now_).full);
}

}  // namespace
}  // namespace driftd::engine
