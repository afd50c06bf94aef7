// SPDX-License-Identifier: Apache-2.0
// A whole agent puts values of real systems back: by policy and by a person, without the right, against the system's
// rules, beside another writer, and killed at each commit.
#include <gmock/gmock.h>
#include <csignal>
#include <future>

#include "at_sync.hpp"
#include "support/agent.hpp"
#include "system.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Enforced : public testing::TestWithParam<std::unique_ptr<System> (*)()> {
 protected:
  Enforced() : system_(GetParam()()) { agreed_ = system_->value(); }

  /// Starts an agent whose policy for the value is this one, and waits for its baseline.
  void start(const std::string& action = "enforce") {
    const std::string kind = system_->resource().substr(0, system_->resource().find('/'));
    agent_ = std::make_unique<Agent>(
        dir_,
        "enforce: { enabled: true, minimum_age: 0s, per_hour: 1000, per_cycle: 100 }\ndefaults: { interval: 200ms }\n"
        "backends:\n  - { name: system, enforce: true, policy: [{ match: { kind: " +
            kind + ", path: '" + system_->path() + "' }, action: " + action + " }], " + system_->backend() + " }\n",
        at_sync_.environment(system_->secrets()));
    start_again();
  }
  void start_again() {
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"system"}); }, seconds(60))) << agent_->log();
  }
  bool is_stopped() const {
    const std::string status = read_file("/proc/" + std::to_string(agent_->pid()) + "/status");
    return status.find("State:\tT") != std::string::npos;
  }
  std::vector<std::string> states() const {
    std::vector<std::string> out;
    for (const auto& one : agent_->rows({"operations", "--limit", "1000"})) out.push_back(one.value("state", ""));
    return out;
  }
  /// An agent that is gone has said nothing about its operations.
  nlohmann::json status() const {
    const auto answer = agent_->ask({"enforce", "status"});
    if (answer.is_object()) return answer.at("backends").at(0);
    return {{"open", {"not known"}}, {"held", nlohmann::json::object()}};
  }
  std::vector<std::string> verbs() const {
    std::vector<std::string> out;
    for (const auto& line : agent_->rows({"audit", "--limit", "1000"})) out.push_back(line.value("verb", ""));
    return out;
  }
  /// The value is the agreed one, no drift is open, and no operation either.
  bool is_settled() const {
    return system_->value() == agreed_ && agent_->rows({"drifts"}).empty() && status().at("open").empty();
  }
  std::string everything() const {
    return agent_->cli({"operations"}).out + agent_->cli({"enforce", "status"}).out + agent_->cli({"drifts"}).out +
           "value " + system_->value() + "\n" + agent_->log();
  }
  nlohmann::json await_drift() const {
    EXPECT_TRUE(eventually([&] { return agent_->rows({"drifts"}).size() == 1; }, seconds(30))) << everything();
    const auto drifts = agent_->rows({"drifts"});
    return drifts.empty() ? nlohmann::json::object() : drifts.front();
  }
  /// The rounds of a test are many tries and look like a fight: goes on where a brake waits for a person or minutes.
  void lift_brakes() const {
    const nlohmann::json held = status().at("held");
    for (const auto& [drift, hold] : held.items()) {
      const std::string reason = hold.value("reason", "");
      if (reason == "stopped" || reason == "tries") (void)agent_->cli({"enforce", "resume", drift});
    }
  }
  /// Expects that the drift stays, and that `text` is said wherever a person looks.
  void expect_refused(const std::string& text) const {
    const auto said = [&] { return status().at("held").dump().find(text) != std::string::npos; };
    ASSERT_TRUE(eventually(said, seconds(30))) << everything();
    EXPECT_THAT(agent_->cli({"drifts"}).out, AllOf(HasSubstr("not put back (refused)"), HasSubstr(text)));
    EXPECT_THAT(states(), ElementsAre("refused"));
    EXPECT_THAT(verbs(), Contains("enforce refused").Times(1));
    EXPECT_EQ(agent_->ask({"audit", "verify"}).value("whole", false), true);
  }

  /// Each operation has one line that planned it and one about its end, and there is no line without an operation.
  void expect_exact_lines() const {
    std::map<std::string, int> named;
    for (const auto& line : agent_->rows({"audit", "--limit", "1000"})) {
      const std::string reason = line.value("reason", "");
      if (reason.starts_with("op-")) ++named[reason.substr(0, 19) + " " + line.value("verb", "")];
    }
    const auto operations = agent_->rows({"operations", "--limit", "1000"});
    int planned = 0;
    for (const auto& [line, count] : named) planned += line.ends_with(" enforce planned") ? count : 0;
    EXPECT_EQ(planned, static_cast<int>(operations.size()));
    for (const auto& one : operations) {
      const std::string id = one.value("id", ""), state = one.value("state", "");
      EXPECT_EQ(named[id + " enforce planned"], 1) << id;
      EXPECT_EQ(named[id + " enforce " + state], 1) << id;
    }
  }

  TempDir dir_;
  AtSync at_sync_{dir_};
  std::unique_ptr<System> system_;
  std::string agreed_;
  std::unique_ptr<Agent> agent_;
};

TEST_P(Enforced, PolicyPutsBackAndSaysSo) {
  system_->grant(true);
  const std::string names = system_->names();
  ASSERT_NO_FATAL_FAILURE(start());
  const std::string drifted = system_->set_value(1);
  ASSERT_NE(drifted, agreed_);
  ASSERT_TRUE(eventually([&] { return is_settled() && !states().empty(); }, seconds(30))) << everything();
  EXPECT_THAT(states(), ElementsAre("done"));
  const auto drifts = agent_->rows({"drifts", "--all"});
  ASSERT_THAT(drifts, SizeIs(1));
  EXPECT_EQ(drifts[0].value("status", ""), "enforced");
  for (const char* step : {"planned", "applying", "applied", "done"})
    EXPECT_THAT(verbs(), Contains("enforce " + std::string(step)).Times(1));
  EXPECT_EQ(agent_->ask({"audit", "verify"}).value("whole", false), true);
  EXPECT_EQ(system_->names(), names);
}

TEST_P(Enforced, APersonPutsBackWhatThePersonSaw) {
  system_->grant(true);
  ASSERT_NO_FATAL_FAILURE(start("manual"));
  const std::string drifted = system_->set_value(1);
  const std::string seen = await_drift().value("ref", "");
  const Output plan = agent_->cli({"enforce", seen, "--dry-run"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("would run: "));
  EXPECT_EQ(system_->value(), drifted);
  const std::string moved = system_->set_value(2);
  const Output stale = agent_->cli({"enforce", seen});
  EXPECT_NE(stale.code, 0);
  EXPECT_EQ(system_->value(), moved) << stale.out;
  ASSERT_TRUE(eventually([&] { return await_drift().value("ref", "") != seen; }, seconds(30)));
  const Output done = agent_->cli({"enforce", await_drift().value("ref", ""), "--reason", "agreed in May"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(system_->value(), agreed_);
  EXPECT_TRUE(eventually([&] { return is_settled(); }, seconds(30))) << everything();
  EXPECT_EQ(agent_->rows({"drifts", "--all"}).at(0).value("status", ""), "enforced");
}

TEST_P(Enforced, AMissingRightIsSaidAndNothingIsHalfDone) {
  const std::string names = system_->names();
  ASSERT_NO_FATAL_FAILURE(start());
  const std::string drifted = system_->set_value(1);
  ASSERT_NO_FATAL_FAILURE(expect_refused(system_->missing_right()));
  EXPECT_EQ(system_->value(), drifted);
  EXPECT_EQ(system_->names(), names);
  system_->grant(true);
  const std::string id = await_drift().value("id", "");
  ASSERT_EQ(agent_->cli({"enforce", "resume", id, "--reason", "granted"}).code, 0);
  EXPECT_TRUE(eventually([&] { return is_settled(); }, seconds(30))) << everything();
}

TEST_P(Enforced, WhatTheSystemRefusesIsSaidAndNothingIsHalfDone) {
  system_->grant(true);
  const std::string names = system_->names();
  ASSERT_NO_FATAL_FAILURE(start());
  system_->set_and_refuse();
  const std::string drifted = system_->value();
  ASSERT_NO_FATAL_FAILURE(expect_refused(system_->refusal()));
  EXPECT_EQ(system_->value(), drifted);
  EXPECT_EQ(system_->names(), names);
}

/// The agent is stopped after each of its commits in turn, another writer sets a third value, and the agent goes on.
TEST_P(Enforced, AValueThatMovesBetweenPlanAndWriteIsNotOverwritten) {
  system_->grant(true);
  ASSERT_NO_FATAL_FAILURE(start("manual"));
  int conflicts = 0;
  bool stopped = true;
  for (int number = 1; stopped; ++number) {
    ASSERT_LT(number, 12);
    SCOPED_TRACE("after commit " + std::to_string(number));
    (void)system_->set_value(1);
    const std::string seen = await_drift().value("ref", "");
    at_sync_.choose("stop_after", number);
    auto answer = std::async(std::launch::async, [&] { return agent_->cli({"enforce", seen}); });
    const auto answered = [&] { return answer.wait_for(seconds(0)) == std::future_status::ready; };
    ASSERT_TRUE(eventually([&] { return is_stopped() || answered(); }, seconds(30)));
    stopped = is_stopped();
    const bool before = stopped && system_->value() != agreed_;
    const std::string moved = stopped ? system_->set_value(1 + number) : std::string();
    at_sync_.forget();
    agent_->signal(SIGCONT);
    const Output said = answer.get();
    if (before) {
      EXPECT_NE(said.code, 0) << said.out;
      EXPECT_EQ(system_->value(), moved) << said.out << everything();
      EXPECT_FALSE(states().empty());
      conflicts += !states().empty() && states().front() == "conflict" ? 1 : 0;
    }
    ASSERT_TRUE(eventually([&] { return status().at("open").empty(); }, seconds(30))) << everything();
    (void)system_->set_value(0);
    ASSERT_TRUE(eventually([&] { return agent_->rows({"drifts"}).empty(); }, seconds(30))) << everything();
  }
  EXPECT_GE(conflicts, 1) << everything();
  EXPECT_EQ(agent_->ask({"audit", "verify"}).value("whole", false), true);
}

/// Stopped after the last commit before the write, which is not the same in each system and may have others before it.
TEST_P(Enforced, AResourceThatGoesBetweenPlanAndWriteIsNotMadeAgain) {
  system_->grant(true);
  ASSERT_NO_FATAL_FAILURE(start("manual"));
  std::future<Output> answer;
  for (int number = 4;; --number) {
    ASSERT_GT(number, 1) << "it was put back before an operation was planned";
    const std::string drifted = system_->set_value(1);
    const std::string seen = await_drift().value("ref", "");
    at_sync_.choose("stop_after", number);
    answer = std::async(std::launch::async, [&, seen] { return agent_->cli({"enforce", seen}); });
    const auto answered = [&] { return answer.wait_for(seconds(0)) == std::future_status::ready; };
    ASSERT_TRUE(eventually([&] { return is_stopped() || answered(); }, seconds(30)));
    at_sync_.forget();
    if (is_stopped() && system_->value() == drifted) break;
    agent_->signal(SIGCONT);
    (void)answer.get();
    ASSERT_TRUE(eventually([&] { return is_settled(); }, seconds(30))) << everything();
  }
  system_->remove();
  const std::string names = system_->names();
  agent_->signal(SIGCONT);
  EXPECT_NE(answer.get().code, 0);
  ASSERT_TRUE(eventually([&] { return status().at("open").empty() && !states().empty(); }, seconds(30)))
      << everything();
  EXPECT_THAT(states().front(), testing::AnyOf("failed", "conflict"));
  EXPECT_EQ(system_->value(), "");
  EXPECT_EQ(system_->names(), names);
}

/// SIGKILL before and after each commit of an operation, until one gets through all of them.
TEST_P(Enforced, AKillAtEveryCommitEndsInTheTruth) {
  system_->grant(true);
  const std::string names = system_->names();
  ASSERT_NO_FATAL_FAILURE(start());
  int kills = 0;
  for (const std::string word : {"kill_before", "kill_after"}) {
    bool killed = true;
    for (int number = 1; killed; ++number) {
      ASSERT_LT(number, 12);
      SCOPED_TRACE(word + " " + std::to_string(number));
      at_sync_.choose(word, number);
      (void)system_->set_value(number);
      const auto ended = [&] {
        lift_brakes();
        return !agent_->running() || is_settled();
      };
      ASSERT_TRUE(eventually(ended, seconds(30))) << everything();
      killed = !agent_->running();
      at_sync_.forget();
      if (!killed) break;
      ++kills;
      ASSERT_NO_FATAL_FAILURE(start_again());
      const auto settled = [&] {
        lift_brakes();
        return is_settled();
      };
      ASSERT_TRUE(eventually(settled, seconds(30))) << everything();
      const auto last = states();
      ASSERT_FALSE(last.empty());
      EXPECT_EQ(last.front(), "done") << everything();
      for (const auto& state : last) EXPECT_THAT(state, testing::AnyOf("done", "failed"));
      for (const auto& drift : agent_->rows({"drifts", "--all"})) EXPECT_EQ(drift.value("status", ""), "enforced");
    }
  }
  EXPECT_GE(kills, 8) << "plan, begin, answer and end have a commit each";
  expect_exact_lines();
  EXPECT_EQ(system_->names(), names);
  EXPECT_EQ(agent_->ask({"audit", "verify"}).value("whole", false), true);
}

INSTANTIATE_TEST_SUITE_P(Postgres, Enforced, testing::Values(make_postgres));
INSTANTIATE_TEST_SUITE_P(Kafka, Enforced, testing::Values(make_kafka));
INSTANTIATE_TEST_SUITE_P(Kube, Enforced, testing::Values(make_kube));

}  // namespace
}  // namespace driftd::test
