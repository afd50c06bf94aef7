// SPDX-License-Identifier: Apache-2.0
// Who is trusted about a backend's registration: anybody who may write a label in a cluster can write one.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kSchema = R"({"schema":"driftd-schema/1","kind":"registration","attributes":{
  "config.password":{"class":"credential"},"discovery.port":{"class":"endpoint"}}})";

std::string body(const std::string& password, int port) {
  return R"({"config":{"password":")" + password + R"("},"discovery":{"port":)" + std::to_string(port) + "}}";
}

/// A cluster `source`, whose owner writes in `prod` and a tenant in `tenant`, and the backend `b` of the config.
class ClaimsOfSources : public EngineOnTheStore {
 protected:
  ClaimsOfSources() { prepare(); }
  void prepare(std::vector<core::Registrar> spoken_by = {}) {
    source().kinds = {"registration", "object"};
    source().extensions = {"driftd.discover"};
    source().schemas["registration"] = kSchema;
    source().metadata = {{"defined_in", "prod"}};
    source().discovered.complete = true;
    line_->interval = std::chrono::milliseconds(1);
    line_->spoken_by = std::move(spoken_by);
  }
  ScriptedWorld& source() { return *line_->source; }
  void own(const std::string& password, int port, const std::string& backend = "b") {
    source().declared_kinds.insert({backend, "registration"});
    source().declared[{backend, {"registration", backend}}] = body(password, port);
  }
  void tenant(const std::string& password, int port, const std::string& backend = "b") {
    source().declared_kinds.insert({backend, "registration"});
    source().tenants = {{backend, "tenant", body(password, port)}};
  }
  void tamper(const std::string& sql) const { test::tamper(dir_.file("data/store.db"), sql); }
  void silence() {
    source().declared.clear();
    source().declared_kinds.clear();
    source().tenants.clear();
  }
  void look() {
    report_ = line_->refresh(true, "source");
    (void)line_->refresh(true, "b");
    report_ = line_->refresh(true, "source");
    (void)line_->refresh(true, "b");
  }
  void restart(std::vector<core::Registrar> spoken_by = {}) {
    const ScriptedWorld b = *line_->world, s = source();
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    *line_->world = b;
    *line_->source = s;
    prepare(std::move(spoken_by));
    line_->start(false);
  }
  std::vector<std::string> event_types(const std::string& backend = "b") {
    std::vector<std::string> out;
    for (const auto& event : line_->events()) {
      if (event.backend == backend && event.what != "created") out.push_back(event.what);
    }
    return out;
  }
  std::vector<core::Drift> claims() {
    auto out = line_->drifts();
    std::erase_if(out, [](const core::Drift& drift) { return drift.resource.kind != "claim"; });
    return out;
  }
  /// Waits for that many open claims, because the question is committed beside the cycle.
  bool asked(std::size_t many = 1) {
    return eventually([&] { return claims().size() == many; }, std::chrono::seconds(10));
  }
  void decide(Decision::Verb verb) { ASSERT_TRUE(line_->decide(claims().at(0).id, decision(verb))); }
};

TEST_F(ClaimsOfSources, AForgedRegistrationOfAConfiguredBackendIsADriftToDecideAndNothingOfItIsTold) {
  line_->start(false);
  tenant("one", 6379);
  look();
  tenant("two", 6666);
  look();
  ASSERT_TRUE(asked());
  const core::Drift drift = claims()[0];
  EXPECT_EQ(render(drift.resource), "claim/b");
  EXPECT_EQ(drift.status, core::DriftStatus::pending);
  EXPECT_EQ(drift.action, core::Action::manual);
  EXPECT_EQ(drift.changes.at(0).path, "claimed_by");
  EXPECT_EQ(drift.changes.at(0).new_value.value_or(""), R"(["source/tenant"])");
  EXPECT_THAT(reasons(),
              HasSubstr("denied: source/tenant reports on backend b, which does not name it in `spoken_by`"));
  EXPECT_THAT(event_types(), ElementsAre("config.updated")) << "the question, neither a rotation nor an endpoint";
}

TEST_F(ClaimsOfSources, WhomTheConfigNamesIsBelievedAndNobodyBesideThem) {
  prepare({{"source", "prod"}});
  line_->start(false);
  own("one", 6379);
  look();
  tenant("evil", 6666);  // listed after the owner's, as if the last report counted
  look();
  own("two", 6379);
  look();
  EXPECT_THAT(event_types(), testing::UnorderedElementsAre("credentials.rotated", "config.updated"));
  ASSERT_TRUE(asked());
  EXPECT_EQ(render(claims()[0].resource), "claim/b");
}

TEST_F(ClaimsOfSources, AnApprovalBelievesTheClaimantAlsoAfterARestart) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::approve);
  look();
  tenant("two", 6379);
  look();
  EXPECT_THAT(event_types(), Contains("credentials.rotated"));
  restart();
  look();
  tenant("three", 6379);
  look();
  EXPECT_THAT(reasons(), Not(HasSubstr("denied")));
  EXPECT_EQ(std::ranges::count(event_types(), "credentials.rotated"), 2);
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(ClaimsOfSources, AnApprovalLastsAsLongAsTheClaimIsMade) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::approve);
  look();
  silence();
  look();
  look();
  tenant("one", 6379);  // it may be another tenant that got the namespace later
  look();
  EXPECT_TRUE(asked());
}

TEST_F(ClaimsOfSources, ARejectedClaimIsNotAskedAgainAndOneThatIsTakenBackIsOver) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::reject);
  const std::size_t before = line_->events().size();
  tenant("two", 6666);
  look();
  EXPECT_EQ(line_->events().size(), before);
  restart();
  look();
  EXPECT_EQ(line_->events().size(), before) << "a restart asks nothing again";
  silence();
  look();
  EXPECT_TRUE(asked(0));
}

TEST_F(ClaimsOfSources, ATenantNeitherTakesBackNorKeepsAliveWhatTheOwnerSaid) {
  prepare({{"source", "prod"}});
  line_->start(false);
  own("one", 6379);
  look();
  tenant("evil", 6666);
  look();
  source().tenants.clear();
  look();
  EXPECT_THAT(event_types(), Not(Contains("deleted")));
  tenant("evil", 6666);
  source().declared.clear();  // the owner's objects are gone, but the tenant's still name the backend
  look();
  look();
  const auto gone = [&] {
    return std::ranges::any_of(line_->drifts(), [](const auto& d) {
      return d.resource.kind == "registration" && d.operation == core::Operation::deleted;
    });
  };
  EXPECT_TRUE(eventually(gone, std::chrono::seconds(10)));
}

TEST_F(ClaimsOfSources, WhoSpokeBeforeTheConfigurationSaidWhoMayIsForgottenWithTheirOpenDrifts) {
  prepare({{"source", ""}});
  line_->start(false);
  own("one", 6379);
  look();
  own("two", 6379);
  look();
  ASSERT_THAT(event_types(), ElementsAre("credentials.rotated"));
  restart();  // without spoken_by
  own("three", 6666);
  look();
  ASSERT_TRUE(asked());
  EXPECT_EQ(render(claims()[0].resource), "claim/b");
  EXPECT_THAT(event_types(), ElementsAre("credentials.rotated", "config.updated"));
}

TEST_F(ClaimsOfSources, AClaimOfASourceThatLeftTheConfigIsOver) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  const ScriptedWorld b = *line_->world;
  line_.reset();
  line_ = std::make_unique<EngineLine>(dir_);
  *line_->world = b;
  line_->start(false);
  EXPECT_TRUE(asked(0));
}

/// A read that still finds an object missing in the list confirms nothing of a registrar that is not trusted any more.
TEST_F(ClaimsOfSources, WhoIsBelievedNoMoreIsNotHeardThroughTheReadThatConfirms) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::approve);
  look();
  source().declared_kinds.clear();  // not listed, but a read still finds it
  look();
  tenant("evil", 6666);
  look();
  look();
  EXPECT_TRUE(asked());
  EXPECT_THAT(event_types(), Not(Contains("credentials.rotated")));
  EXPECT_THAT(event_types(), Not(Contains("endpoint.changed")));
}

/// Its record was rejected, so its namespace is unknown.
TEST_F(ClaimsOfSources, AWordWithoutAPlaceKeepsNobodyElsesAlive) {
  prepare({{"source", "prod"}});
  line_->start(false);
  own("one", 6379);
  look();
  source().tenants = {{"b", "", body("x", 1)}};
  source().declared.clear();
  const auto gone = [&] {
    look();
    return std::ranges::any_of(line_->drifts(), [](const auto& d) {
      return d.resource.kind == "registration" && d.operation == core::Operation::deleted;
    });
  };
  EXPECT_TRUE(eventually(gone, std::chrono::seconds(10)));
}

/// An unreadable definition of the same name makes the registration doubtful in its own namespace, but not in another.
TEST_F(ClaimsOfSources, WhatCannotBeReadElsewhereKeepsNoRegistrationFromBeingGone) {
  const auto unread = [](const std::string& place) {
    return core::Diagnostic{Code::invalid, "registration", "b", place, "it has no type", "", 0, "b"};
  };
  const auto is_gone = [&] {
    look();
    return std::ranges::any_of(line_->drifts(), [](const auto& d) {
      return d.resource.kind == "registration" && d.operation == core::Operation::deleted;
    });
  };
  prepare({{"source", "prod"}});
  line_->start(false);
  own("one", 6379);
  look();
  source().declared.clear();
  source().read_diagnostics = {unread("prod")};
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(is_gone()) << "nobody knows";
  source().read_diagnostics = {unread("tenant")};
  EXPECT_TRUE(eventually(is_gone, std::chrono::seconds(10)));
}

TEST_F(ClaimsOfSources, AQuestionThatCouldNotBeStoredIsAskedAgainByTheNextCycle) {
  line_->start(false);
  tamper("CREATE TRIGGER no BEFORE INSERT ON drift BEGIN SELECT RAISE(ABORT, 'no more rows'); END");
  tenant("evil", 6666);
  report_ = line_->refresh(true, "source");
  report_ = line_->refresh(true, "b");
  ASSERT_FALSE(report_.status) << "the cycle says that it could not ask";
  EXPECT_THAT(report_.status.error().message, HasSubstr("no more rows"));
  ASSERT_THAT(claims(), IsEmpty());
  tamper("DROP TRIGGER no");
  report_ = line_->refresh(true, "b");  // its source says nothing new
  EXPECT_TRUE(report_.status);
  EXPECT_THAT(claims(), SizeIs(1));
}

/// A discovered backend belongs to its discoverer and the namespace in which it was found.
class ClaimsOfNames : public ClaimsOfSources {
 protected:
  static core::Discovered found(const std::string& name_space) {
    core::Discovered out;
    out.name = "orders";
    out.type = "kafka";
    out.endpoints = {"orders." + name_space + ":9092"};
    out.metadata = {{"defined_in", name_space}};
    return out;
  }
  std::string endpoint() {
    const auto views = line_->on_core([&] { return line_->engine().view(); });
    for (const auto& view : views) {
      if (view.name == "orders") return view.endpoint;
    }
    return "none";
  }
};

TEST_F(ClaimsOfNames, ANameIsNotTakenOverFromAnotherNamespace) {
  source().discovered.backends = {found("prod")};
  own("one", 9092, "orders");
  line_->start(false);
  look();
  source().discovered.backends = {found("a-tenant"), found("prod")};
  tenant("evil", 6666, "orders");
  look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
  ASSERT_TRUE(asked());
  EXPECT_EQ(render(claims()[0].resource), "claim/orders");
  EXPECT_THAT(event_types("orders"), Each(std::string("config.updated")));
  decide(Decision::Verb::approve);  // accepted, but not the registrar while the first one is
  look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
  EXPECT_THAT(event_types("orders"), Each(std::string("config.updated")));
}

TEST_F(ClaimsOfNames, ATenantsObjectsDoNotKeepANameThatItsOwnerGaveUp) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  look();
  source().discovered.backends = {found("a-tenant")};
  EXPECT_TRUE(eventually([&] {  // discoveries within one interval count once
    look();
    return endpoint() == "orders.a-tenant:9092";
  })) << endpoint();
  EXPECT_THAT(event_types("orders"), Contains("deleted")) << "another backend, which was created";
}

TEST_F(ClaimsOfNames, WhatCannotBeReadElsewhereKeepsNoNameOfAnothers) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  look();
  source().discovered.backends.clear();
  source().discovered.diagnostics = {
      {Code::invalid, "registration", "orders", "tenant", "it has no type", "", 0, "orders"}};
  EXPECT_TRUE(eventually([&] {
    look();
    return endpoint() == "none";
  }));
}

TEST_F(ClaimsOfNames, WhatCannotBeReadInItsOwnPlaceStands) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  look();
  source().discovered.backends.clear();
  source().discovered.diagnostics = {
      {Code::invalid, "registration", "orders", "prod", "it has no type", "", 0, "orders"}};
  for (int i = 0; i < 5; ++i) look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
}

/// A row of an older store lacks the namespace of its backend.
TEST_F(ClaimsOfNames, OfAStoreThatDidNotNoteThePlaceTheFirstOfTheAlphabetGetsNothing) {
  core::Discovered old = found("prod");
  old.metadata.clear();
  source().discovered.backends = {old};
  line_->start(false);
  look();
  restart();
  source().discovered.backends = {found("a-tenant"), found("prod")};
  own("one", 9092, "orders");
  tenant("evil", 6666, "orders");
  for (int i = 0; i < 5; ++i) look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
  EXPECT_THAT(event_types("orders"), Not(Contains("deleted")));
  source().discovered.backends = {found("prod")};  // found in exactly one namespace
  look();
  source().discovered.backends = {found("a-tenant"), found("prod")};
  look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
}

TEST_F(ClaimsOfNames, AnApprovalEndsWithTheBackendThatItWasGivenFor) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  tenant("one", 1, "orders");
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::approve);
  look();
  source().discovered.backends.clear();
  ASSERT_TRUE(eventually([&] {
    look();
    return endpoint() == "none";
  }));
  source().discovered.backends = {found("zed")};
  look();
  EXPECT_TRUE(asked());
  EXPECT_EQ(endpoint(), "orders.zed:9092");
}

TEST_F(ClaimsOfNames, AClaimOfASourceThatSpeaksOfNoRegistrationIsOverWithItsDiscovery) {
  source().kinds = {"object"};
  source().discovered.backends = {found("prod"), found("a-tenant")};
  line_->start(false);
  look();
  ASSERT_TRUE(asked());
  source().discovered.backends = {found("prod")};
  look();
  EXPECT_TRUE(asked(0));
}

TEST_F(ClaimsOfNames, EndpointAndPlaceAreKnownAfterARestartBeforeTheNextDiscovery) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  look();
  restart();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
  source().discovered.backends = {found("a-tenant"), found("prod")};
  look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
}

TEST_F(ClaimsOfNames, NothingIsDecidedOfABackendThatEnds) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  tenant("one", 1, "orders");
  look();
  ASSERT_TRUE(asked());
  const std::string claim = claims().at(0).id;
  line_->wait(line_->on_core([&] { return line_->engine().find("orders")->stop(); }));
  const auto refused = line_->decide(claim, decision(Decision::Verb::approve));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("backend orders is ending"));
  source().discovered.backends.clear();
  EXPECT_TRUE(eventually([&] {
    look();
    return endpoint() == "none";
  }));
  EXPECT_THAT(claims(), IsEmpty()) << "it is retired with the backend";
}

}  // namespace
}  // namespace driftd::test
