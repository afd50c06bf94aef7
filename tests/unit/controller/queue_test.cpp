// SPDX-License-Identifier: Apache-2.0
#include "controller/work_queue.hpp"

#include <gtest/gtest.h>

#include "world.hpp"

namespace driftd::controller {
namespace {

struct Queue : testing::Test {
  WorkQueue make() const {
    return WorkQueue(settings, [] { return 0; });  // no jitter: the whole wait
  }
  /// Takes what is due, and fails the test if there is nothing.
  Taken taken(WorkQueue& queue) {
    const auto out = queue.take(now);
    EXPECT_TRUE(out);
    return out.value_or(Taken{});
  }
  void try_in_vain(WorkQueue& queue, int times) {
    for (int i = 0; i < times; ++i) {
      now = std::max(now, queue.next_due());
      EXPECT_EQ(taken(queue).attempt, i + 1);
      queue.finish(a, Requeue{"refused"}, now);
    }
  }

  Settings settings;
  Time now = Time{} + std::chrono::hours(1);
  const Key a = key_of("a"), b = key_of("b"), c = key_of("c");
};

TEST_F(Queue, GivesKeysInTheOrderInWhichTheyAreDue) {
  WorkQueue queue = make();
  queue.add(b, now);
  queue.add(a, now);
  queue.add_at(c, now - 1s);
  EXPECT_EQ(taken(queue).key, c);
  EXPECT_EQ(taken(queue).key, b);
  EXPECT_EQ(taken(queue).key, a);
  EXPECT_FALSE(queue.take(now));
}

TEST_F(Queue, AKeyThatIsAddedManyTimesComesOnce) {
  WorkQueue queue = make();
  for (int i = 0; i < 100; ++i) queue.add(a, now);
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_EQ(taken(queue).key, a);
  EXPECT_EQ(queue.finish(a, Success{}, now), WorkQueue::End::done);
  EXPECT_FALSE(queue.take(now));
}

TEST_F(Queue, AKeyThatIsInHandIsNotGivenAgainAndComesOnceMoreAfterwards) {
  WorkQueue queue = make();
  queue.add(a, now);
  taken(queue);
  for (int i = 0; i < 100; ++i) queue.add(a, now);
  EXPECT_FALSE(queue.take(now));
  EXPECT_EQ(queue.in_hand(), 1U);
  EXPECT_EQ(queue.finish(a, Success{}, now), WorkQueue::End::again);
  EXPECT_EQ(taken(queue).key, a);
  EXPECT_EQ(queue.finish(a, Success{}, now), WorkQueue::End::done);
  EXPECT_EQ(queue.known(), 0U);
}

TEST_F(Queue, AKeyThatIsDoneLeavesNothingBehind) {
  WorkQueue queue = make();
  for (int i = 0; i < 1'000; ++i) {
    queue.add(key_of(std::to_string(i)), now);
    queue.finish(taken(queue).key, Success{}, now);
  }
  EXPECT_EQ(queue.known(), 0U);
  EXPECT_EQ(queue.next_due(), Time::max());
}

TEST_F(Queue, WaitsDoubleUpToTheMaximum) {
  settings.max_retry_attempts = 8;
  settings.retry_first = 1s;
  settings.retry_max = 20s;
  WorkQueue queue = make();
  queue.add(a, now);
  std::vector<long> waits;
  for (int i = 0; i < 7; ++i) {
    taken(queue);
    EXPECT_EQ(queue.finish(a, Requeue{}, now), WorkQueue::End::retry);
    waits.push_back((queue.next_due() - now) / 1s);
    EXPECT_FALSE(queue.take(queue.next_due() - 1ns));
    now = queue.next_due();
  }
  EXPECT_EQ(waits, (std::vector<long>{1, 2, 4, 8, 16, 20, 20}));
}

TEST_F(Queue, JitterTakesAwayUpToHalfOfAWait) {
  settings.retry_first = 1s;
  for (const std::uint64_t random : {std::uint64_t{0}, std::uint64_t{500'000'000}, ~std::uint64_t{0}}) {
    WorkQueue queue(settings, [random] { return random; });
    queue.add(a, now);
    taken(queue);
    queue.finish(a, Requeue{}, now);
    const Duration wait = queue.next_due() - now;
    EXPECT_GE(wait, 500ms);
    EXPECT_LE(wait, 1s);
    EXPECT_EQ(wait == 500ms, random == 500'000'000);
  }
}

TEST_F(Queue, AfterFiveAttemptsAKeyIsFailedWithItsLastReasonAndIsNotTriedAgain) {
  WorkQueue queue = make();
  queue.add(a, now);
  try_in_vain(queue, 5);
  EXPECT_EQ(queue.next_due(), Time::max());
  ASSERT_EQ(queue.failed().size(), 1U);
  EXPECT_EQ(queue.failed()[0].key, a);
  EXPECT_EQ(queue.failed()[0].reason, "5 attempts in a row did not succeed; the last: refused");
  EXPECT_EQ(queue.failed()[0].since, now);
}

TEST_F(Queue, AFailedKeyHasFiveAttemptsAgainAfterAChange) {
  WorkQueue queue = make();
  queue.add(a, now);
  try_in_vain(queue, 5);
  queue.add(a, now);
  try_in_vain(queue, 5);
  EXPECT_EQ(queue.next_due(), Time::max());
  EXPECT_EQ(queue.failed_count(), 1U);
}

TEST_F(Queue, AFailedKeyHasOneAttemptAfterAResync) {
  WorkQueue queue = make();
  queue.add(a, now);
  try_in_vain(queue, 5);
  queue.add(a, now, Cause::resync);
  EXPECT_EQ(taken(queue).attempt, 5);
  EXPECT_EQ(queue.failed_count(), 1U) << "shown until it succeeds";
  EXPECT_EQ(queue.finish(a, Requeue{"refused"}, now), WorkQueue::End::failed);
  EXPECT_EQ(queue.next_due(), Time::max());
  queue.add(a, now, Cause::resync);
  taken(queue);
  EXPECT_EQ(queue.finish(a, Success{}, now), WorkQueue::End::done);
  EXPECT_EQ(queue.failed_count(), 0U);
  EXPECT_EQ(queue.known(), 0U);
}

TEST_F(Queue, AResyncDoesNotCutAWaitShort) {
  WorkQueue queue = make();
  queue.add(a, now);
  taken(queue);
  queue.finish(a, Requeue{}, now);
  queue.add(a, now, Cause::resync);
  EXPECT_FALSE(queue.take(now));
  EXPECT_EQ(queue.next_due(), now + settings.retry_first);
}

TEST_F(Queue, AResyncDoesNotMakeAKeyInHandComeAgain) {
  WorkQueue queue = make();
  queue.add(a, now);
  taken(queue);
  queue.add(a, now, Cause::resync);
  EXPECT_EQ(queue.finish(a, Success{}, now), WorkQueue::End::done);
}

TEST_F(Queue, AChangeCutsAWaitShortAndTheAttemptsBeginFromOne) {
  WorkQueue queue = make();
  queue.add(a, now);
  try_in_vain(queue, 4);
  queue.add(a, now);
  EXPECT_EQ(taken(queue).attempt, 1);
  queue.finish(a, Requeue{}, now);
  EXPECT_EQ(queue.size(), 1U) << "the former retry is not kept beside the new one";
}

TEST_F(Queue, AChangeDuringTheLastAttemptIsNotLost) {
  WorkQueue queue = make();
  queue.add(a, now);
  try_in_vain(queue, 4);
  now = queue.next_due();
  EXPECT_EQ(taken(queue).attempt, 5);
  queue.add(a, now);
  EXPECT_EQ(queue.finish(a, Requeue{}, now), WorkQueue::End::again);
  EXPECT_EQ(queue.failed_count(), 0U);
  EXPECT_EQ(taken(queue).attempt, 1);
}

TEST_F(Queue, FailedIsNotRetriedAndShown) {
  WorkQueue queue = make();
  queue.add(a, now);
  taken(queue);
  EXPECT_EQ(queue.finish(a, Failed{"Service not found: redis"}, now), WorkQueue::End::failed);
  EXPECT_EQ(queue.next_due(), Time::max());
  EXPECT_EQ(queue.failed().at(0).reason, "Service not found: redis");
}

TEST_F(Queue, RequeueAfterComesAtItsTimeAndBeginsFromOne) {
  WorkQueue queue = make();
  queue.add(a, now);
  try_in_vain(queue, 4);
  now = queue.next_due();
  taken(queue);
  EXPECT_EQ(queue.finish(a, RequeueAfter{30s}, now), WorkQueue::End::later);
  EXPECT_EQ(queue.pending(now), 0U);
  EXPECT_EQ(queue.next_due(), now + 30s);
  now += 30s;
  EXPECT_EQ(taken(queue).attempt, 1);
}

TEST_F(Queue, AChangeOrAResyncComesBeforeTheTimeOfARequeueAfter) {
  for (const Cause cause : {Cause::change, Cause::resync}) {
    WorkQueue queue = make();
    queue.add(a, now);
    taken(queue);
    queue.finish(a, RequeueAfter{24h}, now);
    queue.add(a, now, cause);
    EXPECT_EQ(taken(queue).key, a);
  }
}

TEST_F(Queue, RequeueAfterWithoutATimeWaitsAsARetryDoes) {
  for (const Duration delay : {Duration::zero(), Duration(-5s), Duration::min()}) {
    WorkQueue queue = make();
    queue.add(a, now);
    taken(queue);
    queue.finish(a, RequeueAfter{delay}, now);
    EXPECT_EQ(queue.next_due(), now + settings.retry_first);
  }
}

TEST_F(Queue, RequeueAfterForEverDoesNotOverflow) {
  WorkQueue queue = make();
  queue.add(a, now);
  taken(queue);
  queue.finish(a, RequeueAfter{Duration::max()}, now);
  EXPECT_GT(queue.next_due(), now + 24h);
}

TEST_F(Queue, RetriesOfAllKeysShareOneRate) {
  settings.retry_rate = 2;
  settings.retry_burst = 3;
  WorkQueue queue = make();
  for (int i = 0; i < 10; ++i) queue.add(key_of(std::to_string(i)), now);
  for (int i = 0; i < 10; ++i) queue.finish(taken(queue).key, Requeue{}, now);
  now += settings.retry_first;
  std::vector<long> times;
  const Time first = now;
  while (queue.next_due() != Time::max()) {
    now = std::max(now, queue.next_due());
    queue.finish(taken(queue).key, Success{}, now);
    times.push_back((now - first) / 1ms);
  }
  EXPECT_EQ(times, (std::vector<long>{0, 0, 0, 500, 1000, 1500, 2000, 2500, 3000, 3500}));
}

TEST_F(Queue, AChangeNeedsNoTokenAndPassesRetriesThatWaitForOne) {
  settings.retry_rate = settings.retry_burst = 1;
  WorkQueue queue = make();
  queue.add(a, now);
  queue.add(b, now);
  taken(queue);
  taken(queue);
  queue.finish(a, Requeue{}, now);
  queue.finish(b, Requeue{}, now);
  now += settings.retry_first;
  EXPECT_EQ(taken(queue).key, a);
  EXPECT_FALSE(queue.take(now));
  queue.add(c, now);
  EXPECT_EQ(taken(queue).key, c);
  queue.add(b, now);
  EXPECT_EQ(taken(queue).attempt, 1) << "it changed, so that it is no retry";
}

TEST_F(Queue, AKeyThatChangesAllTheTimeHoldsUpNoOther) {
  WorkQueue queue = make();
  queue.add(a, now);
  taken(queue);
  queue.add(a, now);  // before b
  now += 1s;
  queue.add(b, now);
  now += 1s;
  queue.finish(a, Success{}, now);
  EXPECT_EQ(taken(queue).key, b);
  EXPECT_EQ(taken(queue).key, a);
}

TEST_F(Queue, AForgottenKeyWaitsNoMoreAndIsNotFailed) {
  WorkQueue queue = make();
  queue.add(a, now);
  try_in_vain(queue, 5);
  queue.add(b, now);
  queue.forget(a);
  queue.forget(b);
  queue.forget(c);
  EXPECT_EQ(queue.known(), 0U);
  EXPECT_EQ(queue.failed_count(), 0U);
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(Queue, TheOutcomeOfAKeyThatWasForgottenInHandDoesNotMatter) {
  for (const Outcome& outcome : {Outcome(Requeue{}), Outcome(Failed{"no"}), Outcome(RequeueAfter{1s})}) {
    WorkQueue queue = make();
    queue.add(a, now);
    taken(queue);
    queue.add(a, now);
    queue.forget(a);
    EXPECT_FALSE(queue.take(now)) << "it is still in hand";
    EXPECT_EQ(queue.finish(a, outcome, now), WorkQueue::End::forgotten);
    EXPECT_EQ(queue.known(), 0U);
  }
}

TEST_F(Queue, AnAddAfterForgetCountsAlsoWhileTheKeyIsInHand) {
  WorkQueue queue = make();
  queue.add(a, now);
  taken(queue);
  queue.forget(a);
  queue.add(a, now);
  EXPECT_EQ(queue.finish(a, Failed{"of the former"}, now), WorkQueue::End::again);
  EXPECT_EQ(queue.failed_count(), 0U);
  EXPECT_EQ(taken(queue).attempt, 1);
}

TEST_F(Queue, ShowsHowLongTheFirstOneIsDue) {
  WorkQueue queue = make();
  EXPECT_EQ(queue.oldest_waiting(now), Duration::zero());
  queue.add(a, now);
  now += 3s;
  queue.add(b, now);
  EXPECT_EQ(queue.oldest_waiting(now), 3s);
  EXPECT_EQ(queue.pending(now), 2U);
}

TEST_F(Queue, ALongReasonIsCutAtAWholeCharacter) {
  WorkQueue queue = make();
  queue.add(a, now);
  taken(queue);
  std::string reason = "x";
  for (int i = 0; i < 2'000; ++i) reason += "ü";
  queue.finish(a, Failed{reason}, now);
  const std::string shown = queue.failed().at(0).reason;
  EXPECT_LE(shown.size(), 1'024U);
  EXPECT_TRUE(shown.ends_with("ü..."));
}

TEST(Tokens, AreThereExactlyFromNextOn) {
  TokenBucket bucket(333ms, 3);
  Time now = Time{} + 1h;
  for (int i = 0; i < 1'000; ++i) {
    if (bucket.next() > now) {
      EXPECT_FALSE(bucket.try_take(bucket.next() - 1ns));
      now = bucket.next();
    }
    EXPECT_TRUE(bucket.try_take(now));
  }
  EXPECT_EQ(now, Time{} + 1h + 997 * 333ms);
}

TEST(RuntimeSettings, HaveTheDefaultsOfTheRfc) {
  const Settings settings;
  EXPECT_EQ(settings.reconciliation_timeout, 10min);
  EXPECT_EQ(settings.max_retry_attempts, 5);
  EXPECT_EQ(settings.scheduler_interval, 30s);
  EXPECT_EQ(settings.cleanup_interval, 300s);
  EXPECT_EQ(settings.watch_interval, 5s);
  EXPECT_TRUE(check(settings));
}

TEST(RuntimeSettings, NameWhatCannotWork) {
  const auto text_of = [](auto change) {
    Settings settings;
    change(settings);
    const Status good = check(settings);
    return good ? std::string("good") : good.error();
  };
  EXPECT_EQ(text_of([](Settings& s) { s.reconciliation_timeout = 0s; }),
            "reconciliation_timeout: expected 1 ms to 24 h, found 0 s; correct the setting");
  EXPECT_EQ(text_of([](Settings& s) { s.max_retry_attempts = 0; }),
            "max_retry_attempts: expected 1 to 1000, found 0; correct the setting");
  EXPECT_EQ(text_of([](Settings& s) { s.scheduler_interval = 25h; }),
            "scheduler_interval: expected 10 ms to 24 h, found 25 h; correct the setting");
  EXPECT_EQ(text_of([](Settings& s) { s.cleanup_interval = -1s; }),
            "cleanup_interval: expected 10 ms to 168 h, found -1 s; correct the setting");
  EXPECT_EQ(text_of([](Settings& s) { s.watch_interval = 1ms; }),
            "watch_interval: expected 10 ms to 24 h, found 1 ms; correct the setting");
  EXPECT_EQ(text_of([](Settings& s) { s.retry_max = 250ms; }),
            "retry_max: expected at least retry_first, 500 ms, found 250 ms; correct the setting");
  EXPECT_EQ(text_of([](Settings& s) { s.workers = 1'000; }),
            "workers: expected 1 to 256, found 1000; correct the setting");
}

}  // namespace
}  // namespace driftd::controller
