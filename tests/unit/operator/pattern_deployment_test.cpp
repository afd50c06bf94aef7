// SPDX-License-Identifier: Apache-2.0
#include "operator/pattern_deployment.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/pattern_reconciler.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

json pattern(json spec) {
  spec["pattern"] = "consumer";
  spec["image"] = "runner:1";
  return {{"metadata", {{"name", "orders"}, {"namespace", "apps"}, {"uid", "u-1"}}}, {"spec", std::move(spec)}};
}

Bindings redis(const std::string& version = "7") {
  Binding out;
  out.slot = "state-store";
  out.state = Binding::State::bound;
  out.backend = "redis-production";
  out.type = "redis";
  out.host = "redis.apps.svc.cluster.local";
  out.port = "6379";
  out.endpoint = out.host + ":" + out.port;
  out.secret = "redis";
  out.username_key = "user";
  out.password_key = "redis-password";
  out.secret_version = version;
  return {{out}, {}};
}

json env(const json& deployment, const std::string& name) {
  const json list = deployment.at("spec").at("template").at("spec").at("containers").at(0).at("env");
  for (const auto& each : list) {
    if (each.at("name") == name) return each;
  }
  return nullptr;
}

TEST(PatternDeployment, CredentialsAreReferencesAndABindingComesBeforeOwnEnvironment) {
  const json made = deployment_of(pattern({{"env", {{"STATE_STORE_HOST", "mine"}, {"LEVEL", "debug"}}}}), redis());
  EXPECT_EQ(env(made, "STATE_STORE_HOST").at("value"), "redis.apps.svc.cluster.local");
  EXPECT_EQ(env(made, "LEVEL").at("value"), "debug");
  const json password = env(made, "STATE_STORE_PASSWORD"), user = env(made, "STATE_STORE_USERNAME");
  EXPECT_EQ(password.at("valueFrom").at("secretKeyRef"), json({{"name", "redis"}, {"key", "redis-password"}}));
  EXPECT_EQ(user.at("valueFrom").at("secretKeyRef"), json({{"name", "redis"}, {"key", "user"}, {"optional", true}}));
  EXPECT_FALSE(password.contains("value"));
  EXPECT_EQ(made.at("spec").at("template").at("metadata").at("annotations").at(kBackendBindings),
            R"({"state-store":"redis-production"})");
}

TEST(PatternDeployment, OnlyWithRestartARotationChangesThePods) {
  const json keep = pattern({{"rollout", {{"onRotation", "Keep"}}}});
  EXPECT_EQ(deployment_of(keep, redis("7")), deployment_of(keep, redis("8")));
  const json restart = pattern({{"rollout", {{"onRotation", "Restart"}}}});
  EXPECT_NE(deployment_of(restart, redis("7")).at("spec").at("template"),
            deployment_of(restart, redis("8")).at("spec").at("template"));
}

TEST(PatternDeployment, TheFormerStyleIsPassedOnButForSlotsThatHaveABackend) {
  const json spec = {{"config", {{"state-store", "redis://old"}, {"topic", "$(orders)"}}},
                     {"backendBindings", {{"state-store", {{"backendRef", "redis-production"}}}}}};
  EXPECT_EQ(env(deployment_of(pattern(spec), redis()), "PATTERN_CONFIG").at("value"), "{\"topic\":\"$$(orders)\"}");
}

/// The kubelet makes one `$` of `$$` and replaces `$(NAME)`.
TEST(PatternDeployment, EachDollarOfAConfigurationArrives) {
  const json spec = {{"config", {{"topic", "a$b$$c$$(d)"}}}};
  EXPECT_EQ(env(deployment_of(pattern(spec), redis()), "PATTERN_CONFIG").at("value"),
            "{\"topic\":\"a$$b$$$$c$$$$(d)\"}");
}

TEST(PatternDeployment, WithAutoscalingWhatRunsStays) {
  const json current = {{"spec", {{"replicas", 5}}}}, none;
  const auto replicas = [&](const json& spec, const json& now) {
    json wanted = deployment_of(pattern(spec), redis());
    keep_scale(wanted, pattern(spec), now);
    return wanted.at("spec").at("replicas");
  };
  const json scaled = {{"replicas", 2}, {"autoscaling", {{"maxReplicas", 9}}}};
  EXPECT_EQ(replicas(scaled, none), 2);
  EXPECT_EQ(replicas(scaled, current), 5) << "or the operator and the autoscaler would undo each other for ever";
  EXPECT_EQ(replicas({{"replicas", 2}, {"autoscaling", {{"enabled", false}}}}, current), 2);
  EXPECT_EQ(replicas({{"replicas", 2}}, current), 2);
}

TEST(PatternDeployment, DefaultsOfTheServerAreNoDifferenceAndAForeignChangeIs) {
  const json wanted = deployment_of(pattern({{"resources", {{"limits", {{"cpu", "1000m"}}}}}}), redis());
  json stored = wanted;
  json& container = stored["spec"]["template"]["spec"]["containers"][0];
  container["terminationMessagePath"] = "/dev/termination-log";
  container["resources"]["limits"]["cpu"] = "1";
  EXPECT_TRUE(is_deployed(stored, wanted));
  container["image"] = "other";
  EXPECT_FALSE(is_deployed(stored, wanted));
  EXPECT_FALSE(is_deployed(nullptr, wanted));
  const json more = deployment_of(pattern({{"resources", {{"limits", {{"cpu", "2"}}}}}}), redis());
  EXPECT_FALSE(is_deployed(wanted, more)) << "resources are compared by the digest";
}

TEST(PatternStatus, ADeploymentIsKeptWhileABackendIsAbsentAndTheSlotIsNamed) {
  Bindings bindings = redis();
  bindings.slots[0].state = Binding::State::missing;
  bindings.slots[0].message = "it does not exist";
  const json object = pattern({{"replicas", 1}}), current = {{"status", {{"readyReplicas", 1}}}};
  const PatternState kept = judge(object, bindings, {unwritten(true), current, false});
  EXPECT_EQ(kept.phase, "Pending");
  EXPECT_EQ(kept.conditions.at(0).message, "state-store: it does not exist");
  EXPECT_EQ(kept.conditions.at(1).reason, "Missing");
  EXPECT_EQ(kept.conditions.at(2).reason, "Kept");
  const json none;
  EXPECT_EQ(judge(object, bindings, {unwritten(false), none, false}).conditions.at(2).truth, Truth::no);
  const Condition applied{"Deployed", Truth::yes, "Applied", {}};
  EXPECT_EQ(judge(object, redis(), {applied, current, false}).phase, "Ready");
}

TEST(PatternReference, LeadsBackToThePattern) {
  const controller::Key key{"apps", "orders"};
  EXPECT_EQ(pattern_of_reference(reference_of_pattern(key)), key);
  EXPECT_FALSE(pattern_of_reference("redis-production"));
  EXPECT_FALSE(pattern_of_reference("helm:apps/orders"));
}

TEST(PatternBindings, WhatIsWrongOfASlotIsSaid) {
  ClusterView view({});
  const auto message = [&](const json& slots) {
    return bindings_of(pattern({{"backendBindings", slots}}), view, {}).slots.back().message;
  };
  EXPECT_EQ(message({{"s", {{"backendRef", "r"}}}}), "PrismBackend r cannot be read: they have not been listed yet");
  EXPECT_EQ(message({{"s", {{"discover", {{"service", "a.b.c"}}}}}}),
            "discover.service: expected the DNS name of a Service, such as redis.infrastructure.svc.cluster.local, "
            "found a.b.c");
  EXPECT_EQ(message({{"a-b", {{"backendRef", "r"}}}, {"a_b", {{"backendRef", "r"}}}}),
            "another slot has the same environment variables, A_B_…; rename one of them");
}

}  // namespace
}  // namespace driftd::op
