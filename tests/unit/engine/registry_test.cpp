// SPDX-License-Identifier: Apache-2.0
// The registry changes while the engine runs, and a kill behind any commit of a change leaves a store from which the
// next start makes either what was before or what was asked for, with each event once.
#include <random>

#include "engine/backend_rows.hpp"
#include "on_the_store.hpp"
#include "proto/codec.hpp"

namespace driftd::test {
namespace {

using core::BackendEdit;
using engine::Engine;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

core::BackendSpec manual(const std::string& name, const std::string& team) {
  core::BackendSpec out;
  out.name = name;
  out.provider = "scripted";
  out.settings_json = "{}";
  out.registration_json = R"({"labels":{"team":")" + team + R"("},"name":")" + name + R"(","settings":{}})";
  out.labels = {{"team", team}};
  out.definition = R"({"name":")" + name + R"(","labels":")" + team + "\"}";
  out.defined_at = "ops";
  core::Rules rules;
  rules.generation = 1;
  out.rules = std::make_shared<const core::Rules>(rules);
  return out;
}

class EngineRegistry : public EngineOnTheStore {
 protected:
  static Engine::Change put(core::BackendSpec spec, BackendEdit edit = BackendEdit::reopen) {
    Engine::Change out{std::move(spec), edit};
    out.audit.push_back(line("changed " + out.spec.name));
    return out;
  }
  static Engine::Change leave(const std::string& name) {
    Engine::Change out{manual(name, "")};
    out.leaves = true;
    out.cause = "unregistered by ops";
    out.audit.push_back(line("left " + name));
    return out;
  }
  static core::AuditEntry line(std::string verb) {
    core::AuditEntry out;
    out.actor = "ops";
    out.verb = std::move(verb);
    return out;
  }
  Status apply(Engine::Change change) {
    std::vector<Engine::Change> one;
    one.push_back(std::move(change));
    return line_->wait(line_->engine().apply(std::move(one))).at(0);
  }
  void fresh() {  ///< another store
    line_.reset();
    std::filesystem::remove_all(dir_.path() / "data");
    open();
  }
  std::vector<core::BackendRow> rows() { return *line_->wait(line_->store().backends()); }
  /// The next process, which reads the manual backends from the store as the agent does.
  void next_process() {
    another_process();
    line_->start_from([](const std::vector<core::BackendRow>& rows) {
      std::vector<core::BackendSpec> specs;
      for (const auto& row : rows) {
        const auto definition = row.notes.find(engine::kDefinitionNote);
        if (row.deleted_ns || definition == row.notes.end()) continue;
        const auto parsed = core::parse(definition->second);
        specs.push_back(manual(row.name, *parsed->find("labels")->string()));
      }
      return specs;
    });
  }
  /// Returns name → team of all backends that run.
  std::map<std::string, std::string> registry() {
    return line_->on_core([&] {
      std::map<std::string, std::string> out;
      for (const auto& view : line_->engine().view()) out[view.name] = view.labels.at("team");
      return out;
    });
  }
  /// Returns `created`, `updated`, `deleted` of a backend, in order.
  std::vector<std::string> events_of(const std::string& name) {
    std::vector<std::string> out;
    for (const auto& event : line_->events()) {
      if (event.backend == name && event.resource.empty() && event.what != "drift.decided") out.push_back(event.what);
    }
    return out;
  }
  void cut_after(int commits) {
    line_->on_core([&] {
      line_->cut().commits_left = commits;
      return 0;
    });
  }
  /// A backend `m` of team a with five pending drifts.
  void with_drifts() {
    ASSERT_TRUE(apply(put(manual("m", "a"))));
    ASSERT_TRUE(line_->refresh(true, "m").complete());
    for (int i = 0; i < 5; ++i) line_->world->resources[thing(i)] = R"({"partitions":4})";
    ASSERT_TRUE(line_->refresh(true, "m").status);
    ASSERT_THAT(line_->drifts(), SizeIs(5));
  }
};

TEST_F(EngineRegistry, AChangeIsOneEventAndNoChangeIsNone) {
  line_->start_with({});
  ASSERT_TRUE(apply(put(manual("m", "a"))));
  ASSERT_TRUE(apply(put(manual("m", "b"), BackendEdit::in_place)));
  ASSERT_TRUE(apply(put(manual("m", "b"), BackendEdit::in_place)));
  ASSERT_TRUE(apply(put(manual("m", "c"))));
  ASSERT_TRUE(apply(put(manual("m", "c"))));
  EXPECT_THAT(registry(), ElementsAre(std::pair("m", "c")));
  ASSERT_TRUE(apply(leave("m")));
  ASSERT_TRUE(apply(leave("m"))) << "it has gone already";
  EXPECT_THAT(events_of("m"), ElementsAre("created", "updated", "updated", "deleted"));
  EXPECT_THAT(registry(), IsEmpty());
  for (const auto& event : line_->events()) {
    if (event.what != "updated") continue;
    const auto json = core::parse(proto::to_json(event).value());
    ASSERT_TRUE(json && json->find("changed_fields") != nullptr);
    EXPECT_EQ(core::render(*json->find("changed_fields")), R"(["metadata.team"])");
  }
  EXPECT_THAT(line_->audit(), SizeIs(4)) << "one line for each event";
}

TEST_F(EngineRegistry, AnEtagNeverComesBack) {
  line_->start_with({});
  std::set<std::string> etags;
  const auto note = [&] {
    const auto all = line_->on_core([&] { return line_->engine().registrations(); });
    EXPECT_TRUE(etags.insert(all.at(0).etag).second) << all.at(0).etag;
  };
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(apply(put(manual("m", "a"))));
    note();
    ASSERT_TRUE(apply(put(manual("m", "b"), BackendEdit::in_place)));
    note();
    ASSERT_TRUE(apply(put(manual("m", "a"))));
    note();
    ASSERT_TRUE(apply(leave("m")));
  }
}

TEST_F(EngineRegistry, AKillBehindAnyCommitOfADeletionLosesNothingAndDoublesNothing) {
  bool whole = false;
  for (int commits = 0; !whole && commits < 50; ++commits) {
    fresh();
    line_->start_with({});
    ASSERT_NO_FATAL_FAILURE(with_drifts());
    cut_after(commits);
    whole = apply(leave("m")).has_value();
    next_process();
    if (commits == 0) {
      EXPECT_THAT(registry(), ElementsAre(std::pair("m", "a")));
      EXPECT_THAT(line_->drifts(), SizeIs(5)) << "nothing had been decided";
      continue;
    }
    EXPECT_THAT(registry(), IsEmpty()) << commits;
    EXPECT_THAT(line_->drifts(), IsEmpty());
    EXPECT_THAT(events_of("m"), ElementsAre("created", "deleted")) << commits;
    std::map<std::string, int> retired;
    for (const auto& event : line_->events()) retired[event.resource] += event.what == "drift.decided" ? 1 : 0;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(retired[core::render(thing(i))], 1) << commits;
  }
  EXPECT_TRUE(whole);
}

TEST_F(EngineRegistry, AKillBehindAnyCommitOfAChangeLeavesTheOldOrTheNew) {
  for (const auto edit : {BackendEdit::in_place, BackendEdit::reopen}) {
    for (int commits = 0; commits < 3; ++commits) {
      fresh();
      line_->start_with({});
      ASSERT_NO_FATAL_FAILURE(with_drifts());
      cut_after(commits);
      const bool done = apply(put(manual("m", "b"), edit)).has_value();
      EXPECT_EQ(done, commits > 0);
      EXPECT_THAT(registry(), ElementsAre(std::pair("m", done ? "b" : "a"))) << "it runs as the store has it";
      EXPECT_FALSE(line_->on_core([&] { return line_->engine().find("m")->is_stopping(); }));
      next_process();
      EXPECT_THAT(registry(), ElementsAre(std::pair("m", done ? "b" : "a")));
      ASSERT_TRUE(apply(put(manual("m", "b"), edit))) << "the caller tries again";
      EXPECT_THAT(events_of("m"), ElementsAre("created", "updated"));
      EXPECT_THAT(line_->drifts(), SizeIs(5));
    }
  }
}

TEST_F(EngineRegistry, AnUnregistrationThatFailsBeforeItIsDurableLeavesTheBackendRunning) {
  line_->start_with({});
  ASSERT_NO_FATAL_FAILURE(with_drifts());
  cut_after(0);
  ASSERT_FALSE(apply(leave("m")));
  cut_after(-1);
  ASSERT_TRUE(line_->wait(line_->engine().restart_stopped()));
  EXPECT_THAT(registry(), ElementsAre(std::pair("m", "a")));
  EXPECT_TRUE(line_->refresh(true, "m").status) << "it is read again";
  EXPECT_EQ(rows().at(0).notes.count(engine::kDefinitionNote), 1u);
  next_process();
  EXPECT_THAT(registry(), ElementsAre(std::pair("m", "a")));
  EXPECT_THAT(events_of("m"), ElementsAre("created"));
}

/// The answer of the change says that it is stored. Only the same change again may start the backend, or end it.
TEST_F(EngineRegistry, WhatIsDurableAndDoesNotRunIsNotTakenBackByARestart) {
  for (const bool leaves : {true, false}) {
    fresh();
    line_->start_with({});
    ASSERT_NO_FATAL_FAILURE(with_drifts());
    core::BackendSpec narrower = manual("m", "b");  // registers first, and ends drifts then
    narrower.settings_json = R"({"exclude":["thing/*"]})";
    const auto ask = [&] { return apply(leaves ? leave("m") : put(narrower)); };
    cut_after(1);
    ASSERT_FALSE(ask());
    cut_after(-1);
    ASSERT_TRUE(line_->wait(line_->engine().restart_stopped()));
    EXPECT_TRUE(line_->on_core([&] { return line_->engine().find("m")->is_stopping(); })) << leaves;
    std::vector<std::string> events{"created"};
    if (!leaves) events.emplace_back("updated");
    EXPECT_EQ(events_of("m"), events);
    ASSERT_TRUE(ask());
    EXPECT_EQ(registry().count("m"), leaves ? 0u : 1u);
    if (leaves) events.emplace_back("deleted");
    EXPECT_EQ(events_of("m"), events);
    if (!leaves) {
      EXPECT_EQ(registry().at("m"), "b");
      EXPECT_THAT(line_->drifts(), IsEmpty());
    }
  }
}

TEST_F(EngineRegistry, WhatCannotGoOnKeepsNothingElseStopped) {
  core::BackendSpec source = manual("source", "a");
  source.discover = true;
  line_->source->extensions = {"driftd.discover"};
  line_->source->discovered.complete = true;
  line_->source->discovered.backends.resize(1);
  line_->source->discovered.backends[0].name = "found";
  line_->source->discovered.backends[0].type = "kafka";
  line_->start_with({source, manual("m", "a"), manual("n", "a")});
  ASSERT_TRUE(line_->refresh(true, "source").status);
  std::map<std::string, std::string> uids;
  for (const auto& row : rows()) uids[row.name] = row.uid;
  ASSERT_EQ(uids.count("found"), 1u);
  const auto cannot_read = [&](std::set<std::string> names) {
    line_->on_core([&] {
      line_->cut().unreadable.clear();
      for (const auto& name : names) line_->cut().unreadable.insert(uids.at(name));
      return 0;
    });
  };
  const auto stopped = [&](const std::string& name) {
    return line_->on_core([&] { return line_->engine().find(name)->is_stopping(); });
  };
  cannot_read({"found", "m", "n"});
  source.discover = false;
  ASSERT_TRUE(apply(put(source, BackendEdit::in_place))) << "what follows from it fails";
  ASSERT_FALSE(apply(leave("m")));
  ASSERT_FALSE(apply(leave("n")));
  ASSERT_TRUE(stopped("m") && stopped("n"));
  cannot_read({"found", "m"});
  (void)line_->wait(line_->engine().restart_stopped());
  EXPECT_TRUE(stopped("m"));
  EXPECT_FALSE(stopped("n"));
  EXPECT_TRUE(line_->refresh(true, "n").status);
  cannot_read({});
  ASSERT_TRUE(line_->wait(line_->engine().restart_stopped()));
  EXPECT_FALSE(stopped("m"));
  EXPECT_EQ(events_of("found"), (std::vector<std::string>{"created", "deleted"})) << "and the rest was done";
}

TEST_F(EngineRegistry, AStartThatKnowsNothingOfManualBackendsLeavesThemRegistered) {
  line_->start_with({});
  ASSERT_NO_FATAL_FAILURE(with_drifts());
  another_process();
  line_->start_with({});  // as `driftd once` does
  EXPECT_THAT(registry(), IsEmpty());
  EXPECT_THAT(line_->drifts(), SizeIs(5));
  next_process();
  EXPECT_THAT(registry(), ElementsAre(std::pair("m", "a")));
  EXPECT_THAT(events_of("m"), ElementsAre("created"));
}

TEST_F(EngineRegistry, ABackendWhoseDefinitionCannotBeUsedIsShownAndCanGo) {
  line_->start_with({});
  core::BackendSpec broken = manual("m", "a");
  broken.fault = "its file is gone";
  ASSERT_TRUE(apply(put(broken)));
  EXPECT_FALSE(line_->refresh(true, "m").status);
  EXPECT_EQ(line_->view().state, "failed");
  EXPECT_EQ(line_->view().last_error, "its file is gone");
  ASSERT_TRUE(apply(put(manual("m", "a"))));
  EXPECT_TRUE(line_->refresh(true, "m").status);
  ASSERT_TRUE(apply(leave("m")));
  EXPECT_THAT(events_of("m"), ElementsAre("created", "deleted"));
}

/// Random changes, each cut off at a random commit and made again by the next process, against a model of its own.
TEST_F(EngineRegistry, RandomChangesAndKillsEndAsTheModelSays) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::minstd_rand random(seed);
    const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    fresh();
    line_->start_with({});
    std::map<std::string, std::string> model;
    std::map<std::string, std::vector<std::string>> ledger;
    for (int step = 0; step < 40; ++step) {
      const std::string name = std::string("b") + std::to_string(pick(4)), team(1, static_cast<char>('a' + pick(3)));
      const auto edit = pick(2) == 0 ? BackendEdit::in_place : BackendEdit::reopen;
      const bool leaves = pick(3) == 0, killed = pick(3) == 0;
      const auto ask = [&] { return apply(leaves ? leave(name) : put(manual(name, team), edit)); };
      if (leaves && model.erase(name) == 1) ledger[name].push_back("deleted");
      if (!leaves && (!model.contains(name) || model[name] != team)) {
        ledger[name].push_back(model.contains(name) ? "updated" : "created");
        model[name] = team;
      }
      if (killed) {
        cut_after(pick(4));
        const bool answered = ask().has_value();
        next_process();
        if (answered) {
          EXPECT_EQ(registry(), model) << "what was answered is durable";
        }
      }
      ASSERT_TRUE(ask()) << step;
      ASSERT_EQ(registry(), model) << step;
      if (model.contains(name) && pick(2) == 0) {
        EXPECT_TRUE(line_->refresh(true, name).status);
      }
    }
    next_process();
    EXPECT_EQ(registry(), model);
    for (const auto& [name, events] : ledger) EXPECT_EQ(events_of(name), events) << name;
  }
}

}  // namespace
}  // namespace driftd::test
