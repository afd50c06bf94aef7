// SPDX-License-Identifier: Apache-2.0
// Backends that a source discovers, and its reports on their registration.
#include "on_the_store.hpp"

#include "proto/codec.hpp"

namespace driftd::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kRegistration = R"({"schema":"driftd-schema/1","kind":"registration","attributes":{
  "config.**.password":{"class":"credential"},"discovery.**":{"class":"endpoint"}}})";

class SourceEngine : public EngineOnTheStore {
 protected:
  SourceEngine() {
    world().kinds.clear();
    world().extensions = {"driftd.discover"};
    world().schemas["registration"] = kRegistration;
    world().discovered.complete = true;
    line_->interval = std::chrono::milliseconds(1);  // the difference between two discoveries
    find("orders", "kafka");
  }
  ScriptedWorld& world() { return *line_->source; }
  void find(const std::string& name, const std::string& type) {
    core::Discovered out;
    out.name = name;
    out.type = type;
    out.endpoints = {name + ".prod.svc:9092"};
    out.labels = {{"team", "a"}};
    out.origin = "kubernetes-service";
    world().discovered.backends.push_back(out);
    say(name, R"({"config":{"kafka":{"password":"one"}},"discovery":{"service":{"port":9092}}})");
  }
  void say(const std::string& name, const std::string& body) {
    world().declared_kinds.insert({name, "registration"});
    world().declared[{name, {"registration", name}}] = body;
  }
  /// Runs a cycle of the source, then one of the backend, which lists what was reported.
  void look(const std::string& backend = "orders") {
    report_ = line_->refresh(true, "source");
    if (line_->on_core([&] { return line_->engine().find(backend) != nullptr; })) line_->refresh(true, backend);
  }
  void again(bool with_source = true) {
    const ScriptedWorld b = *line_->world, source = *line_->source;
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    *line_->world = b;
    if (with_source) *line_->source = source;
    line_->interval = std::chrono::milliseconds(1);
    line_->start(false);
  }
  /// Returns `what source changed_fields` of each event of a backend.
  std::vector<std::string> event_types(const std::string& backend = "orders") {
    std::vector<std::string> out;
    for (const auto& event : line_->events()) {
      if (event.backend != backend) continue;
      const auto json = core::parse(proto::to_json(event).value()).value();
      std::string fields;
      if (const auto* list = json.find("changed_fields")) {
        for (const auto& field : *list->array()) fields += " " + *field.string();
      }
      out.push_back(event.what + " " + event.source + fields);
    }
    return out;
  }
};

/// The caller must not be told that nothing was changed: the next start would run the change.
TEST_F(SourceEngine, WhatFollowsFromADurableChangeAndFailsIsDoneLater) {
  line_->start(false);
  look();
  ASSERT_TRUE(line_->on_core([&] { return line_->engine().find("orders") != nullptr; }));
  std::vector<engine::Engine::Change> one(1);
  one[0].spec = line_->on_core([&] { return line_->engine().find("source")->ledger().spec(); });
  one[0].spec.discover = false;
  one[0].spec.labels = {{"team", "b"}};
  one[0].spec.registration_json = R"({"labels":{"team":"b"},"name":"source","settings":{}})";
  one[0].edit = core::BackendEdit::in_place;
  const auto cut_after = [&](int commits) {
    line_->on_core([&] {
      line_->cut().commits_left = commits;
      return 0;
    });
  };
  cut_after(1);
  const Status changed = line_->wait(line_->engine().apply(std::move(one))).at(0);
  EXPECT_TRUE(changed) << changed.error().message;
  EXPECT_TRUE(line_->on_core([&] { return line_->engine().find("orders") != nullptr; })) << "the store is away";
  EXPECT_FALSE(line_->wait(line_->engine().restart_stopped())) << "it still is";
  cut_after(-1);
  ASSERT_TRUE(line_->wait(line_->engine().restart_stopped()));
  EXPECT_FALSE(line_->on_core([&] { return line_->engine().find("orders") != nullptr; }));
}

TEST_F(SourceEngine, DiscoveredBackendIsRegisteredAndNotRead) {
  line_->start(false);
  look();
  EXPECT_THAT(event_types(), ElementsAre("created scripted"));
  const auto views = line_->on_core([&] { return line_->engine().view(); });
  const auto seen = std::find_if(views.begin(), views.end(), [](const auto& v) { return v.name == "orders"; });
  ASSERT_NE(seen, views.end());
  EXPECT_EQ(seen->type, "kafka");
  EXPECT_EQ(seen->endpoint, "orders.prod.svc:9092");
  EXPECT_EQ(seen->state, "discovered");
  look();
  EXPECT_THAT(event_types(), SizeIs(1));
}

/// The watch of a source saw what defines a backend: that is not left to the next cycle.
TEST_F(SourceEngine, WhatASourceIsAskedForIsDiscoveredBetweenTwoCycles) {
  line_->interval = std::chrono::minutes(10);
  line_->start(true);
  const auto has = [&](const std::string& name) {
    return line_->on_core([&] { return line_->engine().find(name) != nullptr; });
  };
  ASSERT_TRUE(eventually([&] { return has("orders"); }));
  const auto cycles = [&] { return line_->on_core([&] { return line_->engine().find("source")->cycles(); }); };
  const auto before = cycles();
  line_->on_core([&] {
    find("late", "redis");
    line_->engine().find("source")->ask_discovery();
    return 0;
  });
  EXPECT_TRUE(eventually([&] { return has("late"); }));
  EXPECT_EQ(cycles(), before);
}

TEST_F(SourceEngine, AnEndpointThatCannotBeToldNowIsTheLastThatWas) {
  const auto endpoint = [&] {
    return line_->on_core([&] { return line_->engine().find("orders")->ledger().spec().endpoint; });
  };
  line_->start(false);
  look();
  world().discovered.backends[0].endpoints.clear();
  world().discovered.backends[0].metadata = {{"endpoint_unread", "the Service prod/orders is missing"}};
  look();
  EXPECT_EQ(endpoint(), "orders.prod.svc:9092");
  world().discovered.backends[0].metadata.clear();
  look();
  EXPECT_EQ(endpoint(), "") << "it has none any more, and says so";
}

TEST_F(SourceEngine, ItIsGoneAfterTwoCompleteDiscoveriesWithoutIt) {
  line_->start(false);
  look();
  const auto all = world().discovered.backends;
  world().discovered.backends.clear();
  world().discovered.complete = false;
  for (int i = 0; i < 3; ++i) line_->refresh(true, "source");
  EXPECT_THAT(event_types(), SizeIs(1)) << "nothing follows from an incomplete one";
  world().discovered.complete = true;
  line_->refresh(true, "source");
  world().discovered.backends = all;
  line_->refresh(true, "source");
  world().discovered.backends.clear();
  line_->refresh(true, "source");
  EXPECT_THAT(event_types(), SizeIs(1)) << "one of two, twice";
  ASSERT_TRUE(eventually([&] {  // discoveries within one interval count once
    line_->refresh(true, "source");
    return event_types().size() == 2;
  }));
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "deleted scripted"));
  EXPECT_FALSE(line_->on_core([&] { return line_->engine().find("orders") != nullptr; }));
}

TEST_F(SourceEngine, ASourceThatLeavesTakesItsBackendsAlongAndOneThatIsReopenedDoesNot) {
  line_->start(false);
  look();
  const auto source = [&] { return line_->on_core([&] { return line_->engine().find("source")->ledger().spec(); }); };
  const auto apply = [&](core::BackendSpec spec, bool leaves) {
    std::vector<engine::Engine::Change> changes;
    changes.push_back({std::move(spec), core::BackendEdit::reopen, leaves});
    return line_->wait(line_->engine().apply(std::move(changes))).at(0);
  };
  const auto uid = [&] { return line_->on_core([&] { return line_->engine().find("orders")->ledger().row().uid; }); };
  const std::string before = uid();
  ASSERT_TRUE(apply(source(), false));
  look();
  EXPECT_EQ(uid(), before);
  say("orders", R"({"config":{"kafka":{"password":"two"}},"discovery":{"service":{"port":9092}}})");
  look();
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "credentials.rotated scripted config.kafka.password"));
  ASSERT_TRUE(apply(source(), true));
  EXPECT_EQ(event_types().back(), "deleted scripted");
  EXPECT_EQ(line_->on_core([&] { return line_->engine().view().size(); }), 1u) << "the one of the configuration";
  again(false);
  EXPECT_EQ(event_types().back(), "deleted scripted");
}

/// A cycle that discovers waits for the registry while the registry waits for the cycle's end.
TEST_F(SourceEngine, ASourceIsReopenedInTheMiddleOfItsDiscoveries) {
  line_->start(true);
  const auto known = [&](const std::string& name) {
    return line_->on_core([&] { return line_->engine().find(name) != nullptr; });
  };
  ASSERT_TRUE(eventually([&] { return known("orders"); }));
  for (int round = 0; round < 40; ++round) {
    std::vector<engine::Engine::Change> changes;
    for (const char* name : {"source", "b"}) {
      changes.push_back(
          {line_->on_core([&] { return line_->engine().find(name)->ledger().spec(); }), core::BackendEdit::reopen});
    }
    for (const auto& done : line_->wait(line_->engine().apply(std::move(changes)))) {
      ASSERT_TRUE(done.has_value()) << done.error().message;
    }
  }
  EXPECT_TRUE(known("orders"));
  const auto cycles = [&] { return line_->on_core([&] { return line_->engine().find("source")->cycles(); }); };
  EXPECT_TRUE(eventually([&] { return cycles() > 1; })) << "its loop runs";
  EXPECT_EQ(event_types().front(), "created scripted");
}

/// Its loops have ended by then, so the backend that comes back has a new runner.
TEST_F(SourceEngine, OneThatCouldNotBeUnregisteredAndComesBackIsReadAndHeardAgain) {
  line_->start(false);
  look();
  const auto orders = [&] { return line_->on_core([&] { return line_->engine().find("orders"); }); };
  const auto is_stopping = [&] {
    return line_->on_core([&] { return line_->engine().find("orders")->is_stopping(); });
  };
  const auto all = world().discovered.backends;
  tamper(dir_.file("data/store.db"),
         "CREATE TRIGGER no BEFORE UPDATE ON backend BEGIN SELECT RAISE(ABORT, 'no more rows'); END");
  world().discovered.backends.clear();
  ASSERT_TRUE(eventually([&] {
    line_->refresh(true, "source");
    return orders() != nullptr && is_stopping();
  }));
  tamper(dir_.file("data/store.db"), "DROP TRIGGER no");
  world().discovered.backends = all;
  line_->refresh(true, "source");
  ASSERT_NE(orders(), nullptr);
  EXPECT_FALSE(is_stopping());
  say("orders", R"({"config":{"kafka":{"password":"two"}},"discovery":{"service":{"port":9092}}})");
  look();
  look();
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "credentials.rotated scripted config.kafka.password"));
}

TEST_F(SourceEngine, RotatedSecretIsTheBackendsEventUnderTheRegistrationsFieldName) {
  line_->start(false);
  look();
  say("orders", R"({"config":{"kafka":{"password":"two"}},"discovery":{"service":{"port":9092}}})");
  look();
  say("orders", R"({"config":{"kafka":{"password":"two"}},"discovery":{"service":{"port":9094}}})");
  look();
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "credentials.rotated scripted config.kafka.password",
                                         "endpoint.changed scripted discovery.service.port"));
}

TEST_F(SourceEngine, SourceSpeaksForTheBackendThatTheConfigNames) {
  world().discovered.backends.clear();
  world().declared.clear();
  world().declared_kinds.clear();
  find("b", "redis");
  line_->start(false);
  refresh();
  look("b");
  ASSERT_THAT(event_types("b"), ElementsAre("created manual"));
  say("b", R"({"config":{"kafka":{"password":"two"}},"discovery":{"service":{"port":9092}}})");
  look("b");
  EXPECT_THAT(event_types("b"), ElementsAre("created manual", "credentials.rotated scripted config.kafka.password"));
  world().discovered.backends.clear();
  for (int i = 0; i < 3; ++i) look("b");
  EXPECT_THAT(event_types("b"), SizeIs(2)) << "the config defines it still";
}

TEST_F(SourceEngine, RestartSaysNothingTwiceAndFindsWhatChangedMeanwhile) {
  line_->start(false);
  look();
  again();
  look();
  EXPECT_THAT(event_types(), SizeIs(1));
  again();
  say("orders", R"({"config":{"kafka":{"password":"two"}},"discovery":{"service":{"port":9092}}})");
  look();
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "credentials.rotated scripted config.kafka.password"));
}

TEST_F(SourceEngine, FirstWordAfterARestartIsReadByItsSchema) {
  line_->start(false);
  look();
  again();
  line_->refresh(true, "orders");  // its cycle ends before the source has reported
  say("orders", R"({"config":{"kafka":{"password":"one"}},"discovery":{"service":{"port":9094}}})");
  line_->refresh(true, "source");
  look();
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "endpoint.changed scripted discovery.service.port"));
}

TEST_F(SourceEngine, IncludeOfTheBackendDoesNotHideItsRegistration) {
  core::Scope scope = core::Scope::of_settings(R"({"include":["topic/*"]})");
  EXPECT_TRUE(scope.wants({"registration", "orders"}));
  EXPECT_TRUE(scope.wants_kind("registration"));
  EXPECT_FALSE(core::Scope::of_settings(R"({"exclude":["registration"]})").wants({"registration", "orders"}));
}

TEST_F(SourceEngine, OnlyTheFinderSpeaksAndOnlyOfThatBackend) {
  line_->start(false);
  look();
  world().declared[{"orders", {"registration", "somebody"}}] = R"({"config":{"kafka":{"password":"x"}}})";
  report_ = line_->refresh(true, "source");
  EXPECT_THAT(reasons(), HasSubstr("a registration's id must equal its backend: expected orders, found somebody"));
}

TEST_F(SourceEngine, DiscoveryThatIsTurnedOffForgetsWhatItFound) {
  line_->start(false);
  look();
  world().extensions = {"driftd.other"};
  again();
  look();
  ASSERT_TRUE(eventually([&] {
    line_->refresh(true, "source");
    return event_types().size() == 2;
  }));
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "deleted scripted"));
}

TEST_F(SourceEngine, BackendThatIsGoneEndsWhileItsCyclesRun) {
  line_->interval = std::chrono::milliseconds(5);
  line_->start(true);
  ASSERT_TRUE(eventually([&] { return event_types().size() == 1; }));
  for (int round = 0; round < 5; ++round) {  // its cycle must be running when the registry stops it
    const auto before = event_types().size();
    const auto all = line_->on_core([&] { return std::exchange(world().discovered.backends, {}); });
    ASSERT_TRUE(eventually([&] { return event_types().size() == before + 1; })) << "round " << round;
    line_->on_core([&] { return world().discovered.backends = all, 0; });
    ASSERT_TRUE(eventually([&] { return event_types().size() == before + 2; })) << "round " << round;
  }
}

TEST_F(SourceEngine, SourceThatLeavesTheConfigTakesItsBackendsAlong) {
  line_->start(false);
  look();
  again(false);
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "deleted scripted"));
}

TEST_F(SourceEngine, EditedRegistrationIsUpdated) {
  line_->start(false);
  look();
  world().discovered.backends[0].labels["team"] = "b";
  world().discovered.backends[0].capabilities = {"tls"};
  look();
  look();
  EXPECT_THAT(event_types(), ElementsAre("created scripted", "updated scripted capabilities metadata.team"));
}

TEST_F(SourceEngine, NameThatNoSubjectTakesLowersTheCoverage) {
  find("a/b", "kafka");
  find("source", "kafka");
  line_->start(false);
  look();
  const auto views = line_->on_core([&] { return line_->engine().view(); });
  std::string reasons;
  for (const auto& view : views) {
    for (const auto& line : view.coverage) {
      for (const auto& reason : line.reasons) reasons += reason + "\n";
    }
  }
  EXPECT_THAT(reasons, HasSubstr("a/b: invalid backend name: it contains '/'"));
}

TEST_F(SourceEngine, RegistrationThatIsGoneIsADriftOfThatBackend) {
  line_->start(false);
  look();
  world().declared.clear();
  look();
  const auto drifts = line_->drifts();
  ASSERT_THAT(drifts, SizeIs(1));
  EXPECT_EQ(drifts[0].operation, core::Operation::deleted);
  EXPECT_EQ(drifts[0].resource, (core::ResourceId{"registration", "orders"}));
}

}  // namespace
}  // namespace driftd::test
