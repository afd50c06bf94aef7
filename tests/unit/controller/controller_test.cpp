// SPDX-License-Identifier: Apache-2.0
#include "controller/controller.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "world.hpp"

namespace driftd::controller {
namespace {

using Words = std::vector<std::string>;

/// A controller whose steps the test makes.
struct Reconciling : testing::Test {
  void SetUp() override {
    controller = std::make_unique<Controller>("backends", settings, clock, reconciler, lines.log(), 1);
  }
  /// Makes every step that is due until nothing waits, and lets the time pass for it.
  void settle() {
    for (int i = 0; controller->next_due() != Time::max(); ++i) {
      ASSERT_LT(i, 100'000) << "it does not come to rest";
      clock.pass_until(controller->next_due());
      step();
    }
  }
  void step() {
    auto attempt = controller->take();
    ASSERT_TRUE(attempt);
    const AttemptResult result = controller->run(*attempt);
    controller->finish(*attempt, result);
  }
  void change(ChangeType type, const ResourceMeta& resource, bool metadata_changed = false) {
    controller->handle({type, resource, {}, metadata_changed});
  }

  Settings settings;
  StandingClock clock;
  ScriptedReconciler reconciler;
  Lines lines;
  std::unique_ptr<Controller> controller;
};

ResourceMeta deleting(const std::string& name) {
  auto out = resource(name, 2);
  out.deleting = true;
  return out;
}

ResourceMeta again(const std::string& name) {
  auto out = resource(name);
  out.uid = "another";
  return out;
}

TEST_F(Reconciling, ReconcilesWhatIsCreatedUpdatedOrHasOtherMetadata) {
  for (const ChangeType type : {ChangeType::created, ChangeType::updated, ChangeType::metadata_updated}) {
    change(type, resource("a"));
    settle();
  }
  EXPECT_EQ(reconciler.calls, (Words{"reconcile a", "reconcile a", "reconcile a"}));
  EXPECT_EQ(controller->known(), 0U);
}

TEST_F(Reconciling, AStatusAloneIsOnlyReconciledWhereItIsAskedFor) {
  change(ChangeType::status_updated, resource("a"));
  settle();
  EXPECT_TRUE(reconciler.calls.empty());
  change(ChangeType::status_updated, resource("a"), true);
  settle();
  EXPECT_EQ(reconciler.calls.size(), 1U) << "its labels changed, too";
  settings.reconcile_on_status = true;
  SetUp();
  change(ChangeType::status_updated, resource("a"));
  settle();
  EXPECT_EQ(reconciler.calls.size(), 2U);
}

TEST_F(Reconciling, AnExceptionIsAnAttemptThatDidNotSucceed) {
  reconciler.on_reconcile = [](const Key&, Context& context) -> Outcome {
    if (context.attempt == 1) throw std::runtime_error("connection refused");
    if (context.attempt == 2) throw 7;
    return Success{};
  };
  change(ChangeType::created, resource("a"));
  settle();
  EXPECT_EQ(reconciler.calls.size(), 3U);
  EXPECT_TRUE(
      lines.have("controller backends: reconcile of infrastructure/a: attempt 1 of 5 did not succeed: "
                 "connection refused"));
  EXPECT_TRUE(lines.have("attempt 2 of 5 did not succeed: an exception of an unknown type"));
  EXPECT_EQ(controller->metrics().exceptions, 2U);
  EXPECT_EQ(controller->metrics().reconciliations_failed, 2U);
  EXPECT_EQ(controller->metrics().retries, 2U);
}

TEST_F(Reconciling, AfterFiveExceptionsAKeyIsFailedUntilAResyncSucceeds) {
  bool works = false;
  reconciler.on_reconcile = [&](const Key&, Context&) -> Outcome {
    if (!works) throw std::runtime_error("connection refused");
    return Success{};
  };
  change(ChangeType::created, resource("a"));
  settle();
  EXPECT_EQ(reconciler.calls.size(), 5U);
  ASSERT_EQ(controller->failed().size(), 1U);
  EXPECT_EQ(controller->failed()[0].reason, "5 attempts in a row did not succeed; the last: connection refused");
  EXPECT_EQ(controller->metrics().failed_keys, 1U);
  EXPECT_EQ(controller->metrics().given_up, 1U);
  EXPECT_TRUE(lines.have("is Failed in attempt 5"));
  controller->resync({key_of("a")});
  settle();
  EXPECT_EQ(reconciler.calls.size(), 6U);
  works = true;
  controller->resync({key_of("a")});
  settle();
  EXPECT_TRUE(controller->failed().empty());
  EXPECT_EQ(controller->known(), 0U);
}

TEST_F(Reconciling, AResyncTriesFailedKeysThatTheListDoesNotHave) {
  reconciler.on_finalize = [](const Key&, Context&) -> Outcome { return Failed{"the registry refused"}; };
  change(ChangeType::deleted, resource("a"));
  settle();
  EXPECT_EQ(controller->resync({}), 1U);
  settle();
  EXPECT_EQ(reconciler.calls, (Words{"finalize a", "finalize a"}));
}

TEST_F(Reconciling, AResyncIsSpreadOverHalfItsInterval) {
  std::vector<Key> keys;
  for (int i = 0; i < 30'000; ++i) keys.push_back(key_of(std::to_string(i)));
  EXPECT_EQ(controller->resync(keys), keys.size());
  const Time start = clock.now();
  EXPECT_EQ(controller->metrics().pending_reconciliations, 1U);
  settle();
  EXPECT_EQ(reconciler.calls.size(), keys.size());
  EXPECT_LE(clock.now() - start, settings.scheduler_interval / 2);
  EXPECT_GE(clock.now() - start, settings.scheduler_interval / 2 - 1s);
}

TEST_F(Reconciling, FinalizesWhatWasDeletedAndThenKnowsNothingOfIt) {
  reconciler.on_finalize = [](const Key&, Context& context) -> Outcome {
    EXPECT_EQ(context.last_seen->uid, "uid-a");
    return Success{};
  };
  change(ChangeType::created, resource("a"));
  change(ChangeType::deleted, resource("a"));
  settle();
  EXPECT_EQ(reconciler.calls, Words{"finalize a"});
  EXPECT_EQ(controller->metrics().finalizations, 1U);
  EXPECT_EQ(controller->known(), 0U);
}

TEST_F(Reconciling, TriesToFinalizeAgain) {
  reconciler.on_finalize = [](const Key&, Context& context) -> Outcome {
    if (context.attempt == 1) throw std::runtime_error("no");
    if (context.attempt == 2) return RequeueAfter{1min};
    return Success{};
  };
  change(ChangeType::deleted, resource("a"));
  for (int i = 0; i < 3; ++i) {
    clock.pass_until(controller->next_due());
    step();
  }
  EXPECT_EQ(reconciler.calls, (Words{"finalize a", "finalize a", "finalize a"}));
  reconciler.on_finalize = nullptr;
  settle();
  EXPECT_EQ(controller->known(), 0U);
}

TEST_F(Reconciling, FinalizesFirstWhereANameIsUsedAgain) {
  change(ChangeType::created, resource("a"));
  settle();
  change(ChangeType::deleted, resource("a"));
  change(ChangeType::created, again("a"));
  settle();
  EXPECT_EQ(reconciler.calls, (Words{"reconcile a", "finalize a", "reconcile a"}));
}

TEST_F(Reconciling, AFinalizeThatIsGivenUpDoesNotHoldUpTheNextResourceOfThatName) {
  reconciler.on_finalize = [](const Key&, Context&) -> Outcome { throw std::runtime_error("no right"); };
  change(ChangeType::deleted, resource("a"));
  change(ChangeType::created, again("a"));
  settle();
  EXPECT_EQ(reconciler.calls,
            (Words{"finalize a", "finalize a", "finalize a", "finalize a", "finalize a", "reconcile a"}));
  EXPECT_TRUE(
      lines.have("finalize of infrastructure/a was given up, for a resource of that name exists again, which "
                 "is reconciled now: no right"));
  EXPECT_EQ(controller->known(), 0U);
}

TEST_F(Reconciling, FinalizesOnceWhatHasAFinalizer) {
  reconciler.on_finalize = [this](const Key&, Context&) -> Outcome {
    change(ChangeType::deleted, resource("a"));  // the server deletes it as soon as the finalizer is removed
    return Success{};
  };
  change(ChangeType::updated, deleting("a"));
  settle();
  EXPECT_EQ(reconciler.calls, Words{"finalize a"});
  EXPECT_EQ(controller->known(), 0U);
}

TEST_F(Reconciling, FinalizesOnceWhatStillHasFinalizersOfOthers) {
  change(ChangeType::updated, deleting("a"));
  settle();
  change(ChangeType::metadata_updated, deleting("a"));
  controller->resync({key_of("a")});
  settle();
  EXPECT_EQ(reconciler.calls, Words{"finalize a"});
  change(ChangeType::deleted, deleting("a"));
  settle();
  EXPECT_EQ(reconciler.calls, Words{"finalize a"});
  EXPECT_EQ(controller->known(), 0U);
}

TEST_F(Reconciling, AFinalizeThatFailsWhileItsResourceGoesIsTriedAgainAtOnce) {
  for (const Outcome& outcome : {Outcome(Requeue{"it still exists"}), Outcome(Failed{"it still exists"})}) {
    reconciler.calls.clear();
    reconciler.on_finalize = [&](const Key&, Context&) -> Outcome {
      if (reconciler.calls.size() > 1) return Success{};
      change(ChangeType::deleted, resource("a"));
      return outcome;
    };
    change(ChangeType::updated, deleting("a"));
    step();
    step();
    EXPECT_EQ(reconciler.calls, (Words{"finalize a", "finalize a"}));
    EXPECT_EQ(controller->known(), 0U);
  }
}

TEST_F(Reconciling, AStatusThatFinalizeWritesDoesNotCutItsWaitShort) {
  reconciler.on_finalize = [](const Key&, Context&) -> Outcome { return Requeue{"not yet"}; };
  change(ChangeType::updated, deleting("a"));
  step();
  change(ChangeType::status_updated, deleting("a"));
  EXPECT_FALSE(controller->take());
}

TEST_F(Reconciling, AnExplicitAddOfWhatIsFinalizedFinalizesItOnceMoreAndKeepsTrying) {
  change(ChangeType::updated, deleting("a"));
  settle();
  reconciler.on_finalize = [](const Key&, Context&) -> Outcome { return Failed{"no"}; };
  controller->add(key_of("a"));
  settle();
  EXPECT_EQ(controller->resync({key_of("a")}), 1U);
}

TEST_F(Reconciling, WhatIsAddedByHandComesAtItsTime) {
  controller->add_at(key_of("a"), clock.now() + 1min);
  EXPECT_FALSE(controller->take());
  EXPECT_EQ(controller->metrics().scheduled, 1U);
  controller->add(key_of("a"));
  step();
  EXPECT_EQ(controller->next_due(), Time::max());
}

TEST_F(Reconciling, ForgetEndsRetriesAndFinalizations) {
  reconciler.on_reconcile = reconciler.on_finalize = [](const Key&, Context&) -> Outcome { return Failed{"no"}; };
  controller->add(key_of("a"));
  change(ChangeType::deleted, resource("b"));
  settle();
  EXPECT_EQ(controller->known(), 2U);
  controller->forget(key_of("a"));
  controller->forget(key_of("b"));
  EXPECT_EQ(controller->known(), 0U);
}

TEST_F(Reconciling, ACallThatOverrunsHasFailedAtOnceAndItsKeyWaitsUntilItReturns) {
  change(ChangeType::created, resource("a"));
  auto attempt = controller->take();
  ASSERT_TRUE(attempt);
  EXPECT_EQ(controller->next_deadline(), clock.now() + 10min);
  clock.pass(10min - 1ns);
  controller->expire();
  EXPECT_FALSE(attempt->context.stop.stop_requested());
  clock.pass(1ns);
  controller->expire();
  controller->expire();
  EXPECT_TRUE(attempt->context.stop.stop_requested());
  EXPECT_EQ(controller->metrics().timeouts, 1U);
  EXPECT_EQ(controller->metrics().reconciliations_failed, 1U);
  EXPECT_EQ(controller->metrics().reconciliations_total, 1U);
  EXPECT_EQ(controller->metrics().overdue, 1U);
  EXPECT_TRUE(controller->running().at(0).overdue);
  EXPECT_TRUE(
      lines.have("controller backends: reconcile of infrastructure/a timed out after 10 min; it was asked to "
                 "stop, and its key waits until it returns"));
  EXPECT_EQ(controller->next_deadline(), Time::max());
  change(ChangeType::updated, resource("a", 2));
  EXPECT_FALSE(controller->take()) << "the first call has not returned";
  controller->finish(*attempt, {Success{}});
  EXPECT_EQ(controller->metrics().reconciliations_total, 1U);
  EXPECT_EQ(controller->metrics().reconciliations_successful, 0U);
  EXPECT_TRUE(controller->take());
}

TEST_F(Reconciling, ACallThatOverrunsIsTriedAgainAsAnyOther) {
  change(ChangeType::created, resource("a"));
  for (int i = 0; i < 5; ++i) {
    clock.pass_until(controller->next_due());
    auto attempt = controller->take();
    ASSERT_TRUE(attempt);
    clock.pass(11min);
    controller->expire();
    controller->finish(*attempt, {Success{}});
  }
  EXPECT_EQ(controller->next_due(), Time::max());
  EXPECT_EQ(controller->failed().at(0).reason, "5 attempts in a row did not succeed; the last: timed out after 10 min");
}

TEST_F(Reconciling, ACallbackOfTheStopTokenMayUseTheController) {
  change(ChangeType::created, resource("a"));
  auto attempt = controller->take();
  const std::stop_callback callback(attempt->context.stop, [this] { controller->add(key_of("b")); });
  clock.pass(10min);
  controller->expire();
  EXPECT_EQ(controller->take()->key, key_of("b"));
}

TEST_F(Reconciling, HasTheMetricsOfTheRfc) {
  reconciler.on_reconcile = [this](const Key& key, Context&) -> Outcome {
    clock.pass(2s);
    if (key.name == "failed") return Failed{"no"};
    if (key.name == "requeue") return Requeue{};
    if (key.name == "later") return RequeueAfter{1h};
    return Success{};
  };
  for (const auto* name : {"failed", "requeue", "later", "success", "waiting"}) controller->add(key_of(name));
  for (int i = 0; i < 4; ++i) step();
  const ControllerMetrics metrics = controller->metrics();
  EXPECT_EQ(metrics.reconciliations_total, 4U);
  EXPECT_EQ(metrics.reconciliations_successful, 2U);
  EXPECT_EQ(metrics.reconciliations_failed, 1U);
  EXPECT_EQ(metrics.reconciliations_requeued, 1U);
  EXPECT_EQ(metrics.average_reconciliation_duration, 2s);
  EXPECT_EQ(metrics.pending_reconciliations, 2U) << "waiting, and the retry of requeue";
  EXPECT_EQ(metrics.scheduled, 1U);
  EXPECT_EQ(metrics.failed_keys, 1U);
  EXPECT_EQ(metrics.oldest_waiting, 8s);
}

TEST_F(Reconciling, ShowsWhatRunsAndForHowLong) {
  controller->add(key_of("a"));
  auto attempt = controller->take();
  clock.pass(3s);
  EXPECT_EQ(controller->metrics().running, 1U);
  EXPECT_EQ(controller->metrics().longest_running, 3s);
  ASSERT_EQ(controller->running().size(), 1U);
  EXPECT_EQ(controller->running()[0].running, 3s);
  controller->finish(*attempt, {Success{}});
  EXPECT_TRUE(controller->running().empty());
}

TEST_F(Reconciling, AfterStopNothingIsTakenAndWhatWasInterruptedIsNoFailure) {
  controller->add(key_of("a"));
  controller->add(key_of("b"));
  auto attempt = controller->take();
  controller->stop();
  EXPECT_TRUE(attempt->context.stop.stop_requested());
  EXPECT_FALSE(controller->take());
  controller->finish(*attempt, {Requeue{"stopped"}});
  EXPECT_EQ(controller->metrics().reconciliations_failed, 0U);
  EXPECT_EQ(controller->metrics().reconciliations_interrupted, 1U);
  EXPECT_TRUE(lines.all.empty());
}

}  // namespace
}  // namespace driftd::controller
