// SPDX-License-Identifier: Apache-2.0
// The table "what happened | change_type | subject" and the addresses of events.
#include "core/event/event.hpp"

#include "core/redact.hpp"
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

EventContext orders() {
  EventContext context;
  context.backend_uid = "0123456789abcdef";
  context.provider = "postgres";
  context.agent = "edge-1";
  context.cluster = "default";
  context.cause = "cycle 7";
  context.backend = {"orders", "postgres", "db:5432", R"({"name":"orders"})", {{"team", "x"}}, {"watch"}};
  context.patterns = {"consumer"};
  return context;
}

struct Row {
  const char* happened;
  ChangeClass cls;
  std::optional<DriftStatus> from;
  DriftStatus to;
  bool moved;
  ChangeType type;
  const char* what;
};

constexpr auto kPending = DriftStatus::pending;
const Row kTable[] = {
    {"config deviates, pending",
     ChangeClass::config,
     {},
     kPending,
     false,
     ChangeType::config_drift_detected,
     "config.updated"},
    {"config deviates, ignored by policy",
     ChangeClass::config,
     {},
     DriftStatus::ignored,
     false,
     ChangeType::config_drift_detected,
     "config.updated"},
    {"config auto-applied",
     ChangeClass::config,
     {},
     DriftStatus::auto_applied,
     false,
     ChangeType::updated,
     "config.updated"},
    {"config approved", ChangeClass::config, kPending, DriftStatus::approved, false, ChangeType::updated,
     "config.updated"},
    {"credential pending",
     ChangeClass::credential,
     {},
     kPending,
     false,
     ChangeType::credential_rotated,
     "credentials.rotated"},
    {"credential ignored by policy",
     ChangeClass::credential,
     {},
     DriftStatus::ignored,
     false,
     ChangeType::credential_rotated,
     "credentials.rotated"},
    {"credential auto-applied",
     ChangeClass::credential,
     {},
     DriftStatus::auto_applied,
     false,
     ChangeType::credential_rotated,
     "credentials.rotated"},
    {"credential approved", ChangeClass::credential, kPending, DriftStatus::approved, false, ChangeType::unspecified,
     "drift.decided"},
    {"endpoint pending", ChangeClass::endpoint, {}, kPending, false, ChangeType::endpoint_changed, "endpoint.changed"},
    {"endpoint auto-applied",
     ChangeClass::endpoint,
     {},
     DriftStatus::auto_applied,
     false,
     ChangeType::endpoint_changed,
     "endpoint.changed"},
    {"endpoint approved", ChangeClass::endpoint, kPending, DriftStatus::approved, false, ChangeType::unspecified,
     "drift.decided"},
    {"value of an open config drift moved", ChangeClass::config, kPending, kPending, true,
     ChangeType::config_drift_detected, "config.updated"},
    {"value of a rejected credential drift moved", ChangeClass::credential, DriftStatus::rejected, kPending, true,
     ChangeType::credential_rotated, "credentials.rotated"},
    {"value of a drift ignored by policy moved", ChangeClass::config, DriftStatus::ignored, DriftStatus::ignored, true,
     ChangeType::config_drift_detected, "config.updated"},
    {"config reverted", ChangeClass::config, kPending, DriftStatus::reverted, false, ChangeType::config_drift_detected,
     "config.updated"},
    {"endpoint reverted", ChangeClass::endpoint, kPending, DriftStatus::reverted, false, ChangeType::endpoint_changed,
     "endpoint.changed"},
    {"config enforced", ChangeClass::config, kPending, DriftStatus::enforced, false, ChangeType::config_drift_detected,
     "config.updated"},
    {"rejected", ChangeClass::config, kPending, DriftStatus::rejected, false, ChangeType::unspecified, "drift.decided"},
    {"ignored by a person", ChangeClass::config, kPending, DriftStatus::ignored, false, ChangeType::unspecified,
     "drift.decided"},
    {"undone", ChangeClass::credential, DriftStatus::rejected, kPending, false, ChangeType::unspecified,
     "drift.decided"},
    {"superseded", ChangeClass::config, kPending, DriftStatus::superseded, false, ChangeType::unspecified,
     "drift.decided"},
    {"retired", ChangeClass::endpoint, kPending, DriftStatus::retired, false, ChangeType::unspecified, "drift.decided"},
};

struct WhatHappened : testing::TestWithParam<Row> {};

TEST_P(WhatHappened, HasItsChangeTypeAndSubject) {
  const Row& row = GetParam();
  Transition transition;
  transition.drift.cls = row.cls;
  transition.drift.status = row.to;
  transition.drift.resource = {"role", "app"};
  transition.from = row.from;
  transition.moved = row.moved;
  const BackendEvent event = drift_event(transition, {}, {}, orders());
  EXPECT_EQ(event.type, row.type) << row.happened;
  EXPECT_EQ(event.what, row.what) << row.happened;
  EXPECT_EQ(event.reconciliation_status, render(row.to));
}

INSTANTIATE_TEST_SUITE_P(Table, WhatHappened, testing::ValuesIn(kTable));

TEST(Event, RegistrationAndHealthHaveTheirChangeTypeAndSubject) {
  const EventContext context = orders();
  const auto created = registration_event(ChangeType::created, context, {}, {}, 1);
  EXPECT_EQ(created.what, "created");
  EXPECT_EQ(created.source, "manual");
  EXPECT_FALSE(created.old_state);
  const auto updated = registration_event(ChangeType::updated, context, context.backend, {"endpoint"}, 1);
  EXPECT_EQ(updated.what, "updated");
  EXPECT_THAT(updated.changed_fields, ElementsAre("endpoint"));
  const auto deleted = registration_event(ChangeType::deleted, context, {}, {}, 1);
  EXPECT_EQ(deleted.what, "deleted");
  EXPECT_TRUE(deleted.old_state);
  EXPECT_FALSE(deleted.new_state);
  const auto health =
      health_event(context, HealthReport::State::up, {HealthReport::State::down, 5, "refused", "", "", ""}, 9);
  EXPECT_EQ(health.type, ChangeType::health_changed);
  EXPECT_EQ(health.what, "health.changed");
  EXPECT_EQ(health.source, "health-check");
  EXPECT_EQ(health.metadata.at("reason"), "refused");
  EXPECT_EQ(health.old_state->metadata.at("health"), "up");
  EXPECT_EQ(health.new_state->metadata.at("health"), "down");
}

TEST(Event, DiscoveredBackendNamesItsSource) {
  EventContext context = orders();
  context.provider = "k8s";
  context.cause = "discovered by cluster-1";
  EXPECT_EQ(registration_event(ChangeType::created, context, {}, {}, 1).source, "kubernetes");
}

/// An established role `app` {"a":1,"verifier":…} and its next body.
struct EventOf : testing::Test, ResourceFixture {
  EventOf() {
    context.established = false;
    next.origin = "terraform-state";
    next.metadata = {{"serial", "4"}};
    sees(body("1", '0'));
    context.established = true;
  }
  static std::string body(const std::string& a, char v) {
    return R"({"a":)" + a + R"(,"verifier":)" + digest_value(v) + "}";
  }
  BackendEvent event(const std::string& text) {
    const StoredResource before = row;
    const Judgement out = sees(text);
    return drift_event(out.transitions.at(0), before, out.next, orders());
  }
};

TEST_F(EventOf, CarriesFieldsPolicyMetadataAndStates) {
  const BackendEvent out = event(body("5", '0'));
  EXPECT_THAT(out.changed_fields, ElementsAre("role/app:a"));
  EXPECT_EQ(out.policy, Action::manual);
  EXPECT_EQ(out.source, "terraform");
  EXPECT_EQ(out.metadata.at("origin"), "terraform-state");
  EXPECT_EQ(out.metadata.at("serial"), "4");
  EXPECT_THAT(out.affected_patterns, ElementsAre("consumer"));
  EXPECT_EQ(out.observed_ns, row.observed_ns);
  EXPECT_THAT(out.old_state->config_json, HasSubstr(R"("a":1)"));
  EXPECT_THAT(out.new_state->config_json, HasSubstr(R"("a":5)"));
  EXPECT_THAT(out.new_state->config_json, HasSubstr(R"("name":"orders")"));
}

TEST_F(EventOf, StatesAreRedacted) {
  const BackendEvent out = event(body("1", '7'));
  EXPECT_EQ(out.what, "credentials.rotated");
  EXPECT_TRUE(out.changes.at(0).redacted);
  EXPECT_THAT(out.new_state->config_json, Not(HasSubstr("7777")));
  EXPECT_THAT(out.new_state->config_json, HasSubstr("[REDACTED]"));
}

/// The stored body goes into the state as text, and the state must be as canonical as if it had been parsed.
TEST_F(EventOf, StateIsCanonicalJsonWithTheResourceAmongTheMembersOfTheConfig) {
  next.external_name = "o\"1";
  context.established = false;
  sees(R"({"a":1,"list":[{"verifier":)" + digest_value('1') + R"(},"\"$hmac\""]})");
  context.established = true;
  const StoredResource before = row;
  const Judgement out = sees(R"({"a":2,"list":[{"verifier":)" + digest_value('1') + R"(},"\"$hmac\""]})");
  EventContext orders_context = orders();
  orders_context.backend.config_json =
      R"({"z": {"$hmac":"0a:1:)" + std::string(64, '2') + R"("}, "a\u000a": 1, "resource": 5})";
  const BackendEvent event = drift_event(out.transitions.at(0), before, out.next, orders_context);
  EXPECT_EQ(event.new_state->config_json,
            R"({"a\n":1,"resource":{"body":{"a":2,"list":[{"verifier":"[REDACTED]"},"\"$hmac\""]},)"
            R"("external_name":"o\"1","id":"app","kind":"role"},"z":"[REDACTED]"})");
  EXPECT_EQ(presentable_json(event.old_state->config_json), event.old_state->config_json);
  EXPECT_THAT(event.old_state->config_json, HasSubstr(R"("resource":{"body":{"a":1,)"));
}

TEST_F(EventOf, RevertedSwapsTheStates) {
  event(body("5", '0'));
  const BackendEvent out = event(body("1", '0'));
  EXPECT_EQ(out.reconciliation_status, "reverted");
  EXPECT_THAT(out.old_state->config_json, HasSubstr(R"("a":5)"));
  EXPECT_THAT(out.new_state->config_json, HasSubstr(R"("a":1)"));
}

TEST_F(EventOf, ExpectationShowsTheExpectedValueAsTheOldState) {
  rules.expect.push_back(expectation("a", "9"));
  const BackendEvent out = event(body("1", '0'));
  EXPECT_EQ(out.metadata.at("against"), "expectation");
  EXPECT_THAT(out.old_state->config_json, HasSubstr(R"("a":9)"));
  EXPECT_THAT(out.new_state->config_json, HasSubstr(R"("a":1)"));
}

TEST_F(EventOf, DeletionNamesTheResourceAndLeavesItOutOfTheNewState) {
  const StoredResource before = row;
  const Judgement gone = is_gone();
  const BackendEvent out = drift_event(gone.transitions.at(0), before, gone.next, orders());
  EXPECT_EQ(out.operation, Operation::deleted);
  EXPECT_THAT(out.changed_fields, testing::Contains("role/app"));
  EXPECT_THAT(out.old_state->config_json, HasSubstr("\"resource\""));
  EXPECT_THAT(out.new_state->config_json, Not(HasSubstr("\"resource\"")));
}

TEST_F(EventOf, DecisionOfAPersonHasSourceManualAndNamesThem) {
  event(body("5", '0'));
  const StoredResource before = row;
  const auto rejected = decides(Decision::Verb::reject);
  ASSERT_TRUE(rejected);
  const BackendEvent out = drift_event(rejected->transitions.at(0), before, rejected->next, orders());
  EXPECT_EQ(out.source, "manual");
  EXPECT_EQ(out.metadata.at("actor"), "ann");
  EXPECT_EQ(event(body("1", '0')).source, "terraform") << "the system reverted, not the person";
}

StoredEvent stored(const std::string& backend, const std::string& what) {
  StoredEvent event;
  event.backend = backend;
  event.what = what;
  event.cluster = "default";
  event.provider = "kafka";
  return event;
}

TEST(Subject, NameIsOneTokenWithEveryOtherByteEscaped) {
  EXPECT_EQ(subject_of(stored("orders-1_A", "created")), "backend.orders-1_A.created");
  EXPECT_EQ(subject_of(stored("a.b*>c d", "config.updated")), "backend.a=2Eb=2A=3Ec=20d.config.updated");
  EXPECT_EQ(subject_token("é="), "=C3=A9=3D");
  EXPECT_EQ(subject_token(""), "=");
}

TEST(Subject, ReservedNamesCannotCollideWithTheViews) {
  EXPECT_TRUE(is_reserved_name("type"));
  EXPECT_TRUE(is_reserved_name("source"));
  EXPECT_FALSE(is_reserved_name("types"));
  EXPECT_EQ(subject_of(stored("type", "created")), "backend.=74ype.created");
}

TEST(Subject, AgentEventsHaveTheirOwnTree) {
  StoredEvent event = stored("edge 1", "dead_letter");
  event.agent_event = true;
  EXPECT_EQ(subject_of(event), "driftd.agent.edge=201.dead_letter");
  EXPECT_EQ(cloudevent_type(event), "io.driftd.agent.dead_letter.v1");
}

TEST(Subject, CloudEventsAttributes) {
  StoredEvent event = stored("orders", "credentials.rotated");
  EXPECT_EQ(cloudevent_source(event), "//default/driftd/kafka");
  EXPECT_EQ(cloudevent_type(event), "io.driftd.backend.credentials.rotated.v1");
  EXPECT_EQ(cloudevent_subject(event), "orders");
  event.resource = "role/app";
  EXPECT_EQ(cloudevent_subject(event), "orders/role/app");
}

TEST(Routes, EveryMatchingRouteAddsItsSinksOnce) {
  const std::vector<Route> routes = {{{"credentials.rotated"}, {}, {}, {}, {"bus", "ops"}},
                                     {{}, {}, {}, {}, {"desk", "bus"}}};
  EXPECT_THAT(resolve_routes(routes, "credentials.rotated", "b", {}, {}), ElementsAre("bus", "desk", "ops"));
  EXPECT_THAT(resolve_routes(routes, "config.updated", "b", {}, {}), ElementsAre("bus", "desk"));
}

TEST(Routes, AllMembersOfARouteMustMatch) {
  const std::vector<Route> routes = {{{}, {"orders-*"}, {"topic"}, {{"team", "x"}}, {"bus"}}};
  const ResourceId topic{"topic", "t"};
  const auto sinks = [&](const std::string& backend, std::optional<ResourceId> resource, const std::string& team) {
    return resolve_routes(routes, "config.updated", backend, resource, {{"team", team}});
  };
  EXPECT_THAT(sinks("orders-1", topic, "x"), ElementsAre("bus"));
  EXPECT_THAT(sinks("bills", topic, "x"), IsEmpty());
  EXPECT_THAT(sinks("orders-1", ResourceId{"role", "t"}, "x"), IsEmpty());
  EXPECT_THAT(sinks("orders-1", {}, "x"), IsEmpty());
  EXPECT_THAT(sinks("orders-1", topic, "y"), IsEmpty());
}

TEST(Routes, AgentEventsAreRoutedByGlob) {
  const std::vector<Route> routes = {{{"agent.*"}, {}, {}, {}, {"ops"}}};
  EXPECT_THAT(resolve_routes(routes, "agent.dead_letter", "", {}, {}), ElementsAre("ops"));
  EXPECT_THAT(resolve_routes(routes, "config.updated", "", {}, {}), IsEmpty());
}

}  // namespace
}  // namespace driftd::core
