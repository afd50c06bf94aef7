// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "delivery/window.hpp"

namespace driftd::delivery::test {
namespace {

core::StoredEvent event(std::int64_t seq, const std::string& key) {
  core::StoredEvent out;
  out.stamp.seq = seq;
  out.key = key;
  out.payload = "payload";
  return out;
}

class WindowTest : public ::testing::Test {
 protected:
  void add(std::int64_t to) {
    for (std::int64_t seq = window_.fetched_to() + 1; seq <= to; ++seq)
      window_.add(event(seq, "k" + std::to_string(seq)));
  }
  Window::Save save() {
    auto saved = window_.plan(now_, 0, false);
    window_.saved(saved);
    return saved;
  }
  Time now_ = Time{} + std::chrono::hours(1);
  Window window_;
};

TEST_F(WindowTest, AnExceptionThatIsDoneIsAtRiskUntilTheMarkHasPassedIt) {
  add(100);
  for (std::int64_t seq = 2; seq <= 100; ++seq) window_.postpone(seq, now_, "HTTP 500", true);
  save();
  for (std::int64_t seq = 2; seq <= 100; ++seq) window_.settle(seq);
  save();  // event 1 holds the mark back: a kill now would send 99 events twice
  EXPECT_EQ(window_.low_water(), 0);
  EXPECT_EQ(window_.at_risk(), 99U);
  window_.settle(1);
  save();
  EXPECT_EQ(window_.low_water(), 100);
  EXPECT_EQ(window_.at_risk(), 0U);
}

TEST_F(WindowTest, ADroppedDeadLetterIsNotSentWhenAFetchOfBeforeBringsIt) {
  window_.restore_dead(5);
  window_.restore_dead(6);
  window_.drop_dead(5);
  window_.add(event(5, "k5"));  // not stored as dropped yet
  window_.drop_dead(6);
  save();
  window_.add(event(6, "k6"));  // stored as dropped after the fetch had read it
  EXPECT_EQ(window_.take(now_), nullptr);
}

TEST_F(WindowTest, WhatHoldsBackTheMarkOfManyBecomesAnException) {
  add(300);
  for (std::int64_t seq = 2; seq <= 200; ++seq) window_.settle(seq);
  const auto saved = save();
  EXPECT_EQ(saved.upsert.size(), 1U);
  EXPECT_EQ(window_.low_water(), 200);
}

/// The state after a restart, in which a save that changes nothing was due again and again.
TEST_F(WindowTest, ManySettledExceptionsBehindTheLastFetchedEventMakeNoSaveDue) {
  for (std::int64_t seq = 101; seq <= 300; ++seq) {
    core::DeliveryState state;
    state.seq = seq;
    window_.restore(event(seq, "k" + std::to_string(seq)), state, now_, now_);
  }
  for (std::int64_t seq = 101; seq <= 300; ++seq) window_.settle(seq);
  EXPECT_EQ(window_.unsaved(), 200U);
  save();
  EXPECT_EQ(window_.at_risk(), 200U);
  EXPECT_FALSE(window_.worth_saving());
  EXPECT_EQ(window_.unsaved(), 0U);
  add(100);  // an unsettled event does not move the mark for events beyond the last fetched one
  for (std::int64_t seq = 2; seq <= 100; ++seq) window_.settle(seq);
  EXPECT_TRUE(save().upsert.empty());
}

TEST_F(WindowTest, OfAnExceptionNothingButItsKeyAndScheduleIsInMemory) {
  for (std::int64_t seq = 1; seq <= 50; ++seq) window_.add(event(seq, "sick"));
  ASSERT_NE(window_.take(now_), nullptr);
  window_.postpone(1, now_, "HTTP 500", true);
  for (std::int64_t seq = 51; seq <= 100; ++seq) window_.add(event(seq, "sick"));
  for (std::int64_t seq = 1; seq <= 100; ++seq) EXPECT_FALSE(window_.find(seq)->loaded()) << seq;
  EXPECT_EQ(window_.loaded(), 0U);
  EXPECT_EQ(window_.exceptions(), 100U);
  EXPECT_EQ(window_.plain(), 0U);
  EXPECT_EQ(window_.retrying(), 1U);
}

TEST_F(WindowTest, ASaveThatWouldChangeNothingIsNotWorthIt) {
  add(10);
  window_.settle(5);
  EXPECT_FALSE(window_.worth_saving());
  window_.settle(1);
  EXPECT_TRUE(window_.worth_saving());
  save();
  EXPECT_EQ(window_.low_water(), 1);
  EXPECT_FALSE(window_.worth_saving());
}

TEST_F(WindowTest, ASaveThatFailedIsPlannedAgainWhole) {
  add(3);
  window_.postpone(1, now_, "HTTP 500", true);
  window_.dead_letter(2, "HTTP 400");
  const auto first = window_.plan(now_, 0, false);
  window_.not_saved(first);
  const auto second = window_.plan(now_, 0, false);
  EXPECT_EQ(second.upsert.size(), 2U);
  EXPECT_EQ(second.low_water, first.low_water);
}

TEST_F(WindowTest, ADeadLetterThatWasRevivedDuringASaveThatFailedIsNoDeadLetterInTheNext) {
  add(1);
  window_.dead_letter(1, "HTTP 400");
  const auto failed = window_.plan(now_, 0, false);
  window_.requeue_dead(event(1, "k1"));
  window_.not_saved(failed);
  const auto saved = save();
  ASSERT_EQ(saved.upsert.size(), 1U);
  EXPECT_FALSE(saved.upsert[0].dead);
}

TEST_F(WindowTest, AHeldKeyWaitsAndTheOthersDoNot) {
  window_.hold("k1");
  add(2);
  EXPECT_EQ(window_.take(now_)->seq, 2);
  EXPECT_EQ(window_.take(now_), nullptr);
  EXPECT_FALSE(window_.next_loaded().has_value());
  window_.release("k1");
  EXPECT_EQ(window_.take(now_)->seq, 1);
}

TEST_F(WindowTest, AProbeAvoidsTheKeysThatFailedIfThereIsAnotherOne) {
  add(3);
  EXPECT_EQ(window_.take(now_, {"k1", "k2"})->seq, 3);
  EXPECT_EQ(window_.take(now_, {"k1", "k2"})->seq, 1);
}

TEST_F(WindowTest, EventsBehindOneThatFailsCostNoMemoryAndHoldNothingBack) {
  add(1);
  for (std::int64_t seq = 2; seq <= 50; ++seq) window_.add(event(seq, "k1"));
  add(51);
  window_.postpone(1, now_ + std::chrono::hours(1), "HTTP 500", false);
  EXPECT_EQ(window_.loaded(), 1U);
  window_.settle(51);
  save();
  EXPECT_EQ(window_.low_water(), 51);
}

TEST_F(WindowTest, EventsBehindOneThatFailedAreOrdinaryOnesWhenItIsDelivered) {
  for (std::int64_t seq = 1; seq <= 50; ++seq) window_.add(event(seq, "k1"));
  window_.postpone(1, now_, "HTTP 500", true);
  window_.settle(1);
  const auto saved = save();
  EXPECT_TRUE(saved.upsert.empty());
  EXPECT_EQ(saved.low_water, 1);
}

}  // namespace
}  // namespace driftd::delivery::test
