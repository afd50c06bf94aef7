// SPDX-License-Identifier: Apache-2.0
// What a hostile reader found in the way values are put back, each with the interleaving that broke it.
#include "unit/engine/enforcing_engine.hpp"

namespace driftd::test {
namespace {

using core::DriftStatus;
using core::EnforcementState;
using core::HoldReason;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Outcome = std::optional<Result<core::ApplyOutcome>>;

Outcome success() {
  core::ApplyOutcome out;
  out.result = core::ApplyOutcome::Result::success;
  return out;
}

class EnforcementAttacked : public EnforcingEngine {
 protected:
  /// Answers of the calls that are not dry runs.
  void answers(std::function<Outcome(const core::ApplyRequest&)> answer) {
    line_->world->apply = [answer = std::move(answer)](const core::ApplyRequest& request) -> Outcome {
      return request.dry_run ? std::nullopt : answer(request);
    };
  }
  /// A person rejects the drift of thing(1) as it is stored now. Core thread.
  Task<Code> reject_as_stored() {
    std::vector<core::ResourceId> ids(1, thing(1));
    std::string uid = line_->engine().view().at(0).uid;
    auto rows = co_await line_->store().load(std::move(uid), std::move(ids));
    const core::Drift drift = rows.value().at(0).open.at(0);
    core::Decision reject = decision(core::Decision::Verb::reject);
    reject.digest = line_->engine().binding(drift);
    std::string id = drift.id;
    const auto done = co_await line_->engine().decide(std::move(id), std::move(reject));
    co_return done ? Code::ok : done.error().code;
  }
  EnforcementState state() { return operations().at(0).state; }
  Status resume() {
    return line_->wait(
        line_->engine().lift_stop(line_->drifts().at(0).id, {"kim", "looked", {}, line_->clock->wall()}));
  }
};

TEST_F(EnforcementAttacked, ADecisionBeforeThePlanIsStoredWins) {
  begin();
  set(1, 9);
  bool decided = false;
  line_->on_core([&] {
    line_->cut().before_commit = [&]() -> Task<void> {
      if (decided || line_->world->applied.empty()) co_return;
      decided = true;  // the dry run is over, and the plan is about to be committed
      EXPECT_EQ(co_await reject_as_stored(), Code::ok);
    };
  });
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_THAT(operations(), IsEmpty());
  EXPECT_EQ(line_->drifts().at(0).status, DriftStatus::rejected);
}

TEST_F(EnforcementAttacked, WhatCannotBeReadAfterTheWriteIsNotTakenBack) {
  for (int i = 0; i < 30; ++i) line_->world->resources[thing(i)] = R"({"a":1,"b":2})";
  begin();
  line_->world->resources[thing(1)] = R"({"a":8,"b":9})";
  answers([this](const core::ApplyRequest& request) -> Outcome {
    (void)put_back(*line_->world, request);
    line_->world->resources[thing(1)] = R"({"a":1})";
    line_->world->unread[thing(1)] = {"b", Code::deadline, "it timed out"};
    return success();
  });
  refresh();
  ASSERT_THAT(written(), SizeIs(1)) << "nothing is taken back";
  EXPECT_EQ(state(), EnforcementState::applied) << "it may be read again";
  line_->clock->pass(minutes(11));
  refresh();
  EXPECT_THAT(written(), SizeIs(1));
  EXPECT_EQ(state(), EnforcementState::unknown);
}

TEST_F(EnforcementAttacked, WhatIsReadAgainInTimeEndsAsDone) {
  for (int i = 0; i < 30; ++i) line_->world->resources[thing(i)] = R"({"a":1,"b":2})";
  begin();
  line_->world->resources[thing(1)] = R"({"a":8,"b":9})";
  answers([this](const core::ApplyRequest& request) -> Outcome {
    (void)put_back(*line_->world, request);
    line_->world->resources[thing(1)] = R"({"a":1})";
    line_->world->unread[thing(1)] = {"b", Code::deadline, "it timed out"};
    return success();
  });
  refresh();
  line_->world->unread.clear();
  line_->world->resources[thing(1)] = R"({"a":1,"b":2})";
  refresh();
  EXPECT_EQ(state(), EnforcementState::done);
  EXPECT_THAT(written(), SizeIs(1));
}

TEST_F(EnforcementAttacked, AWriterFasterThanOurReadingIsAFight) {
  line_->world->metadata = {{"manager", "fast-job"}};
  begin();
  set(1, 9);
  answers([](const core::ApplyRequest&) -> Outcome { return success(); });  // and the value is 9 again at once
  for (int i = 0; i < 50; ++i) {
    refresh();
    line_->clock->pass(minutes(11));
  }
  EXPECT_LE(written().size(), 3u);
  EXPECT_EQ(state(), EnforcementState::undone);
  EXPECT_EQ(held().begin()->second.reason, HoldReason::stopped);
  EXPECT_THAT(held().begin()->second.text, HasSubstr("fast-job"));
  EXPECT_THAT(verbs(), Contains("enforce stopped").Times(1));
}

TEST_F(EnforcementAttacked, NothingIsTakenBackWhereItIsNotAllowedAnyMore) {
  for (int i = 0; i < 30; ++i) line_->world->resources[thing(i)] = R"({"a":1,"b":2})";
  begin();
  line_->world->resources[thing(1)] = R"({"a":8,"b":9})";
  answers([this](const core::ApplyRequest&) -> Outcome {
    line_->world->resources[thing(1)] = R"({"a":1,"b":9})";
    line_->cut().commits_left = 0;  // and the agent ends
    return success();
  });
  refresh();
  line_->world->apply = {};
  line_->enforce.allowed_here = false;
  again();
  line_->world->applied.clear();
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_EQ(state(), EnforcementState::rollback_failed);
  EXPECT_THAT(operations()[0].text, HasSubstr("does not allow it any more"));
}

TEST_F(EnforcementAttacked, ResumeDoesNotHideAnOpenOperation) {
  begin();
  set(1, 9);
  int calls = 0;
  answers([&calls](const core::ApplyRequest&) -> Outcome {
    if (++calls == 1) return fail(Code::conflict, "it moved");
    core::ApplyOutcome out;
    out.result = core::ApplyOutcome::Result::requeue_after;
    out.requeue_after = hours(1);
    out.text = "a failover is under way";
    return out;
  });
  refresh();
  refresh();
  ASSERT_THAT(operations(), SizeIs(2));
  ASSERT_TRUE(resume());
  refresh();
  EXPECT_THAT(operations(), SizeIs(2)) << "the second one is still under way";
  EXPECT_THAT(written(), SizeIs(2));
}

TEST_F(EnforcementAttacked, ASwitchThatComesWhileTheStepIsStoredStopsTheWrite) {
  begin();
  set(1, 9);
  int commits = 0;
  line_->on_core([&] {
    line_->cut().before_commit = [&]() -> Task<void> {
      const bool planned = line_->world->applied.size() == 1;  // the dry run is over
      if (planned && ++commits == 2) line_->enforcement_switch().stop_file = [] { return std::string("stop now"); };
      co_return;
    };
  });
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_EQ(state(), EnforcementState::failed);
  EXPECT_THAT(operations()[0].text, HasSubstr("stop now"));
}

TEST_F(EnforcementAttacked, NobodyDecidesWhileAnOperationIsOpen) {
  begin();
  set(1, 9);
  std::vector<Code> answers;
  int commits = 0;
  line_->on_core([&] {
    line_->cut().before_commit = [&]() -> Task<void> {
      if (line_->world->applied.size() != 1 || ++commits != 2) co_return;  // `applying` is about to be committed
      answers.push_back(co_await reject_as_stored());
    };
  });
  refresh();
  EXPECT_THAT(answers, ElementsAre(Code::conflict));
  EXPECT_EQ(state(), EnforcementState::done);
}

TEST_F(EnforcementAttacked, NobodyUndoesAnApprovalWhileAnOperationIsOpen) {
  for (int i = 0; i < 30; ++i) line_->world->resources[thing(i)] = R"({"a":1,"b":2})";
  core::Rules rules = enforcing();
  core::PolicyRule ask;
  ask.match.path = *core::Glob::parse_path("b");
  rules.policy = {ask};
  line_->start(false, rules);
  ASSERT_TRUE(line_->refresh().complete());
  line_->world->resources[thing(1)] = R"({"a":1,"b":9})";
  refresh();
  const core::Drift approved = line_->drifts().at(0);
  ASSERT_TRUE(line_->decide(approved.id, decision(core::Decision::Verb::approve)));
  line_->world->resources[thing(1)] = R"({"a":8,"b":9})";
  std::vector<Code> answers;
  int commits = 0;
  line_->on_core([&] {
    line_->cut().before_commit = [&]() -> Task<void> {
      if (line_->world->applied.size() != 1 || ++commits != 2) co_return;  // `applying` is about to be committed
      std::string id = approved.id;
      core::Decision undo = decision(core::Decision::Verb::undo);
      const auto done = co_await line_->engine().decide(std::move(id), std::move(undo));
      answers.push_back(done ? Code::ok : done.error().code);
    };
  });
  refresh();
  EXPECT_THAT(answers, ElementsAre(Code::conflict));
  EXPECT_EQ(state(), EnforcementState::done);
}

TEST_F(EnforcementAttacked, AClockThatWasAheadForgivesNoLaterFight) {
  begin();
  set(1, 9);
  answers([](const core::ApplyRequest&) -> Outcome { return fail(Code::conflict, "it moved"); });
  refresh();
  ASSERT_TRUE(line_->wait(line_->engine().lift_stop(line_->drifts().at(0).id,
                                                    {"kim", "looked", {}, line_->clock->wall() + 86'400'000'000'000})));
  line_->world->apply = {};
  line_->world->applied.clear();
  for (int round = 0; round < 10; ++round) {
    set(1, 9);
    refresh();
    line_->clock->pass(seconds(5));
  }
  EXPECT_THAT(written(), SizeIs(3));
  EXPECT_EQ(held().begin()->second.reason, HoldReason::stopped);
}

TEST_F(EnforcementAttacked, WhatWasAcceptedIsNotCalledFailed) {
  begin();
  set(1, 9);
  answers([](const core::ApplyRequest&) -> Outcome {
    core::ApplyOutcome out;
    out.result = core::ApplyOutcome::Result::requeue_after;
    out.requeue_after = seconds(1);
    out.text = "being applied";
    return out;
  });
  refresh();
  line_->enforcement_switch().stop_file = [] { return std::string("stop now"); };
  line_->clock->pass(seconds(2));
  refresh();
  EXPECT_EQ(state(), EnforcementState::unknown);
  EXPECT_THAT(operations()[0].text, HasSubstr("may still apply them"));
}

TEST_F(EnforcementAttacked, ACanaryThatIsRefusedItselfHoldsNobody) {
  begin();
  for (int i = 1; i <= 3; ++i) set(i, 9);
  line_->world->apply = [](const core::ApplyRequest& request) -> Outcome {
    if (request.id != thing(1)) return std::nullopt;
    core::ApplyOutcome out;
    out.result = core::ApplyOutcome::Result::failed;
    out.text = "an ACL is in the way";
    return out;
  };
  for (int i = 0; i < 4; ++i) refresh();
  EXPECT_EQ(body(2), R"({"partitions":3})");
  EXPECT_EQ(body(3), R"({"partitions":3})");
  EXPECT_EQ(body(1), R"({"partitions":9})");
}

}  // namespace
}  // namespace driftd::test
