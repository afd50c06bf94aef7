// SPDX-License-Identifier: Apache-2.0
// Putting values back: what is written, when nothing is, and how an operation ends after a kill at any point.
#include <random>

#include "unit/engine/enforcing_engine.hpp"

namespace driftd::test {
namespace {

using core::DriftStatus;
using core::EnforcementState;
using core::HoldReason;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using std::chrono::hours;
using std::chrono::minutes;

class Enforcement : public EnforcingEngine {};

TEST_F(Enforcement, PutsExactlyTheDriftBackAndSaysSo) {
  begin();
  line_->world->resources[thing(1)] = R"({"partitions":9})";
  refresh();
  EXPECT_EQ(body(1), R"({"partitions":3})");
  ASSERT_THAT(line_->world->applied, SizeIs(2));
  EXPECT_TRUE(line_->world->applied[0].dry_run) << "a dry run comes first";
  EXPECT_EQ(line_->world->applied[0].idempotency_key, line_->world->applied[1].idempotency_key);
  ASSERT_THAT(written(), SizeIs(1));
  const core::ApplyRequest call = written()[0];
  EXPECT_EQ(call.id, thing(1));
  EXPECT_THAT(call.changes, ElementsAre(core::Change{"partitions", core::ChangeClass::config, "9", "3", false}));
  EXPECT_THAT(line_->drifts(), IsEmpty());
  const auto drifts = line_->drifts(true);
  ASSERT_THAT(drifts, SizeIs(1));
  EXPECT_EQ(drifts[0].status, DriftStatus::enforced);
  ASSERT_THAT(operations(), SizeIs(1));
  const core::Enforcement one = operations()[0];
  EXPECT_EQ(one.state, EnforcementState::done);
  EXPECT_EQ(one.desired, R"({"partitions":3})");
  EXPECT_EQ(one.observed, R"({"partitions":9})");
  EXPECT_THAT(one.commands, ElementsAre("SET t1 partitions 3"));
  EXPECT_THAT(one.undo, ElementsAre("SET t1 partitions 9"));
  EXPECT_THAT(verbs(), ElementsAre("enforce planned", "enforce applying", "enforce applied", "enforce done"));
  EXPECT_EQ(line_->events().back().what, "config.updated");
  refresh();
  EXPECT_THAT(written(), SizeIs(1)) << "once is enough";
}

TEST_F(Enforcement, WaitsForTheMinimumAge) {
  line_->enforce.minimum_age = hours(1);
  begin();
  set(1, 9);
  refresh();
  EXPECT_THAT(line_->world->applied, IsEmpty());
  EXPECT_EQ(held().begin()->second.reason, HoldReason::too_young);
  line_->clock->pass(minutes(59));
  refresh();
  EXPECT_THAT(line_->world->applied, IsEmpty());
  line_->clock->pass(minutes(2));
  refresh();
  EXPECT_EQ(body(1), R"({"partitions":3})");
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(Enforcement, NeverCreatesOrDeletes) {
  begin();
  line_->world->resources[{"thing", "new"}] = R"({"partitions":1})";
  line_->world->resources.erase(thing(2));
  refresh();
  refresh();
  EXPECT_THAT(line_->world->applied, IsEmpty());
  EXPECT_THAT(line_->drifts(), SizeIs(2));
  for (const auto& [drift, hold] : held()) EXPECT_EQ(hold.reason, HoldReason::refused) << hold.text;
}

TEST_F(Enforcement, TheSwitchHoldsEverythingAndSurvivesARestart) {
  begin();
  ASSERT_TRUE(line_->wait(line_->engine().switch_enforcement(false, {"kim", "incident 7", {}, 1'000})));
  set(1, 9);
  refresh();
  EXPECT_THAT(line_->world->applied, IsEmpty());
  again();
  refresh();
  EXPECT_THAT(line_->world->applied, IsEmpty());
  EXPECT_THAT(line_->enforcement().off, AllOf(HasSubstr("kim"), HasSubstr("incident 7")));
  ASSERT_TRUE(line_->wait(line_->engine().switch_enforcement(true, {"kim", "", {}, 2'000})));
  refresh();
  EXPECT_EQ(body(1), R"({"partitions":3})");
  EXPECT_THAT(verbs(), testing::IsSupersetOf({"enforce off", "enforce on"}));
}

TEST_F(Enforcement, TheFileIsAskedBetweenPlanAndWrite) {
  begin();
  set(1, 9);
  line_->world->apply = [this](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
    if (request.dry_run) line_->enforcement_switch().stop_file = [] { return std::string("the file says stop"); };
    return std::nullopt;
  };
  refresh();
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_EQ(operations().at(0).state, EnforcementState::failed);
  EXPECT_THAT(operations()[0].text, HasSubstr("the file says stop"));
}

TEST_F(Enforcement, TheBlastRadiusIsExact) {
  line_->enforce.per_cycle = 4;
  begin();
  for (int i = 0; i < 20; ++i) line_->world->resources[thing(i)] = R"({"partitions":)" + std::to_string(100 + i) + "}";
  refresh();
  EXPECT_THAT(written(), SizeIs(1)) << "many want the same change: a canary goes first";
  refresh();
  EXPECT_THAT(written(), SizeIs(5));
  refresh();
  EXPECT_THAT(written(), SizeIs(9));
  line_->enforce.per_cycle = 100;
  line_->enforce.per_hour = 11;
  again();
  line_->world->applied.clear();
  refresh();
  EXPECT_THAT(written(), SizeIs(2)) << "the last hour had nine";
  refresh();
  EXPECT_THAT(written(), SizeIs(2));
}

TEST_F(Enforcement, AFightStopsWithinThreeRoundsAndNamesBothWriters) {
  line_->world->metadata = {{"manager", "night-job"}};
  begin();
  for (int round = 0; round < 10; ++round) {
    set(1, 9);
    refresh();
    line_->clock->pass(std::chrono::seconds(5));
  }
  EXPECT_THAT(written(), SizeIs(3));
  EXPECT_EQ(body(1), R"({"partitions":9})");
  ASSERT_THAT(held(), SizeIs(1));
  EXPECT_EQ(held().begin()->second.reason, HoldReason::stopped);
  EXPECT_THAT(held().begin()->second.text,
              AllOf(HasSubstr("driftd cluster/agent"), HasSubstr("night-job"), HasSubstr("op-")));
  EXPECT_THAT(verbs(), testing::Contains("enforce stopped").Times(1));
  again();
  line_->world->applied.clear();
  refresh();
  EXPECT_THAT(written(), IsEmpty()) << "a restart does not end it";
  const core::Drift drift = line_->drifts().at(0);
  ASSERT_TRUE(line_->wait(line_->engine().lift_stop(drift.id, {"kim", "night-job is off", {}, line_->clock->wall()})));
  refresh();
  EXPECT_EQ(body(1), R"({"partitions":3})");
}

TEST_F(Enforcement, WhatTheSystemRefusesIsSaidAndNotRepeated) {
  begin();
  set(1, 9);
  line_->world->apply = [](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
    if (request.dry_run) return std::nullopt;
    return fail(Code::denied, "the user lacks the right ALTER");
  };
  for (int i = 0; i < 4; ++i) refresh();
  EXPECT_THAT(written(), SizeIs(1));
  EXPECT_EQ(operations().at(0).state, EnforcementState::refused);
  EXPECT_THAT(operations()[0].text, HasSubstr("lacks the right ALTER"));
  EXPECT_EQ(held().begin()->second.reason, HoldReason::refused);
  EXPECT_EQ(line_->drifts().at(0).status, DriftStatus::pending);
}

TEST_F(Enforcement, WhatIsHalfDoneIsTakenBack) {
  for (int i = 0; i < 30; ++i) line_->world->resources[thing(i)] = R"({"a":1,"b":2})";
  begin();
  line_->world->resources[thing(1)] = R"({"a":8,"b":9})";
  int calls = 0;
  line_->world->apply = [this, &calls](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
    if (request.dry_run || ++calls > 1) return std::nullopt;
    line_->world->resources[thing(1)] = R"({"a":1,"b":9})";  // only the first of both
    core::ApplyOutcome out;
    out.result = core::ApplyOutcome::Result::success;
    return out;
  };
  refresh();
  EXPECT_EQ(body(1), R"({"a":8,"b":9})");
  EXPECT_EQ(operations().at(0).state, EnforcementState::rolled_back);
  ASSERT_THAT(written(), SizeIs(2));
  EXPECT_THAT(written()[1].changes, ElementsAre(core::Change{"a", core::ChangeClass::config, "1", "8", false}));
  EXPECT_NE(written()[1].idempotency_key, written()[0].idempotency_key);
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

TEST_F(Enforcement, PatienceIsHonouredWithTheSameKey) {
  begin();
  set(1, 9);
  int calls = 0;
  line_->world->apply = [&calls](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
    if (request.dry_run || ++calls > 1) return std::nullopt;
    core::ApplyOutcome out;
    out.result = core::ApplyOutcome::Result::requeue_after;
    out.requeue_after = std::chrono::seconds(30);
    out.text = "a failover is under way";
    return out;
  };
  refresh();
  refresh();
  EXPECT_THAT(written(), SizeIs(1)) << "not before its time";
  line_->clock->pass(std::chrono::seconds(31));
  refresh();
  ASSERT_THAT(written(), SizeIs(2));
  EXPECT_EQ(written()[0].idempotency_key, written()[1].idempotency_key);
  EXPECT_EQ(operations().at(0).state, EnforcementState::done);
  EXPECT_EQ(line_->drifts(true).at(0).status, DriftStatus::enforced);
}

TEST_F(Enforcement, APersonMayAskButOnlyForWhatThePersonSaw) {
  line_->enforce.minimum_age = hours(1);
  begin();
  set(1, 9);
  refresh();
  const core::Drift drift = line_->drifts().at(0);
  const auto plan = ask(drift, true);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->commands, ElementsAre("SET t1 partitions 3"));
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_THAT(operations(), IsEmpty()) << "a dry run leaves nothing";
  set(1, 11);
  const auto moved = ask(drift);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Code::conflict);
  EXPECT_THAT(written(), IsEmpty());
  const auto done = ask(line_->drifts().at(0));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->state, EnforcementState::done);
  EXPECT_EQ(done->actor, "kim");
  EXPECT_EQ(body(1), R"({"partitions":3})");
  EXPECT_EQ(line_->drifts(true).at(0).actor, "kim");
}

TEST_F(Enforcement, AnotherOwnersResourceIsLeftAlone) {
  line_->world->metadata = {{"driftd.io/owner", "east/edge-9"}};
  begin();
  set(1, 9);
  refresh();
  EXPECT_THAT(line_->world->applied, IsEmpty());
  EXPECT_EQ(held().begin()->second.reason, HoldReason::owned);
}

/// A kill after each commit, with and without the write having reached the system.
TEST_F(Enforcement, AKillAtEveryPointEndsInTheTruth) {
  begin();
  for (int number = 0; number < 14; ++number) {
    const int commits = number / 2;
    const bool lost = number % 2 == 1;
    SCOPED_TRACE("killed after " + std::to_string(commits) + " commits" + (lost ? ", the answer is lost" : ""));
    set(number, 9);
    line_->world->apply = [this, lost](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
      if (request.dry_run || !lost) return std::nullopt;
      (void)put_back(*line_->world, request);
      return fail(Code::unavailable, "the worker ended");
    };
    line_->on_core([&] { return line_->cut().commits_left = commits; });
    refresh();
    line_->world->apply = {};
    again();
    for (int i = 0; i < 3; ++i) refresh();
    EXPECT_EQ(body(number), R"({"partitions":3})");
    EXPECT_THAT(line_->drifts(), IsEmpty());
    int done = 0;
    for (const auto& one : operations()) {
      EXPECT_FALSE(core::is_open(one.state)) << core::render(one.state);
      done += one.resource == thing(number) && one.state == EnforcementState::done ? 1 : 0;
    }
    EXPECT_EQ(done, 1);
    for (const auto& drift : line_->drifts(true)) EXPECT_EQ(drift.status, DriftStatus::enforced);
  }
  EXPECT_THAT(verbs(), testing::Contains("enforce done").Times(14));
}

/// Random interleavings of a moved value, its return, another writer's third value, decisions, cycles, lost answers and
/// kills. Whatever happens: a write has only a path and values of its plan, no resource comes or goes, and each step of
/// an operation has one audit line.
TEST_F(Enforcement, NoScheduleWritesAnythingThatWasNotPlanned) {
  line_->enforce.tries = 1'000;
  line_->enforce.rounds = 1'000'000;
  line_->enforce.per_cycle = 100;
  line_->enforce.per_hour = 100'000;
  begin();
  std::mt19937 random(18);
  const char* long_run = std::getenv("DRIFTD_ENFORCE_SCHEDULES");
  const int schedules = long_run != nullptr ? std::atoi(long_run) : 300;
  const auto install = [&] {
    line_->world->apply = [this,
                           &random](const core::ApplyRequest& request) -> std::optional<Result<core::ApplyOutcome>> {
      EXPECT_THAT(request.changes, SizeIs(1));
      EXPECT_EQ(request.changes[0].path, "partitions");
      const bool back = request.idempotency_key.find("-back-") != std::string::npos;
      EXPECT_EQ(back ? request.changes[0].old_value : request.changes[0].new_value, "3");
      EXPECT_TRUE(line_->world->resources.contains(request.id));
      if (request.dry_run) return std::nullopt;
      switch (random() % 8) {
        case 0:
          return fail(Code::unavailable, "nobody knows");
        case 1:
          (void)put_back(*line_->world, request);
          return fail(Code::deadline, "nobody knows");
        case 2:
          line_->world->resources[request.id] = R"({"partitions":77})";
          return std::nullopt;
        default:
          return std::nullopt;
      }
    };
  };
  install();
  for (int i = 0; i < schedules; ++i) {
    const int number = static_cast<int>(random() % 4);
    switch (random() % 9) {
      case 0:
      case 1:
        set(number, 4 + static_cast<int>(random() % 5));
        break;
      case 2:
        set(number, 3);
        break;
      case 3: {
        const auto open = line_->drifts();
        if (!open.empty()) (void)line_->decide(open[0].id, decision(core::Decision::Verb::reject));
        break;
      }
      case 4: {
        const auto open = line_->drifts();
        if (!open.empty()) (void)ask(open[0]);
        break;
      }
      case 5: {
        line_->on_core([&] { return line_->cut().commits_left = static_cast<int>(random() % 6); });
        refresh();
        const auto applied = line_->world->applied.size();
        line_->world->apply = {};
        again();
        install();
        EXPECT_GE(line_->world->applied.size(), applied);
        break;
      }
      default:
        refresh();
        line_->clock->pass(minutes(11));
    }
  }
  refresh();
  EXPECT_THAT(line_->world->resources, SizeIs(30));
  const auto rows = line_->wait(line_->store().audit(1'000'000)).value();
  std::map<std::string, int> steps;
  for (const auto& line : rows) {
    if (line.reason.starts_with("op-") && line.verb != "enforce planned")
      ++steps[line.reason.substr(0, 19) + line.verb];
  }
  const auto made = line_->wait(line_->store().enforcements({"", "", "", 1'000'000}));
  for (const auto& one : made.value()) {
    if (core::is_open(one.state)) continue;
    EXPECT_EQ(steps[one.id + "enforce " + std::string(core::render(one.state))], 1) << one.id;
  }
  EXPECT_TRUE(line_->wait(line_->store().verify_audit({})).value().whole);
}

}  // namespace
}  // namespace driftd::test
