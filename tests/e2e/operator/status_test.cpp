// SPDX-License-Identifier: Apache-2.0
// What the operator writes into PrismBackends.
#include "operator_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

struct OperatorStatus : OperatorWorld {};

TEST_F(OperatorStatus, WhatIsMissingIsSaidInTheWordsOfTheRfcUntilAllIsThere) {
  const OperatorProcess op(kube, dir, "operator");
  kube.create(backends(), sample());
  ASSERT_TRUE(comes("redis-production", "Error")) << op.log();
  EXPECT_EQ(message("redis-production"),
            "Service not found: services \"redis-master\" not found in namespace infrastructure");
  EXPECT_EQ(condition("redis-production", "ServiceFound"), "False NotFound");
  EXPECT_EQ(condition("redis-production", "Ready"), "False NotFound");
  EXPECT_FALSE(status("redis-production").contains("resolvedEndpoint"));

  make_service("redis-master", 6379);
  const auto secret_is_missing = [&] {
    return message("redis-production") == "Secret not found: secrets \"redis\" not found in namespace infrastructure";
  };
  ASSERT_TRUE(eventually(secret_is_missing)) << status("redis-production").dump(2) << op.log();
  EXPECT_EQ(status("redis-production").at("resolvedEndpoint"), "redis-master.infrastructure.svc.cluster.local:6379");

  kube.create_secret("infrastructure", "redis", {{"password", "other"}});
  ASSERT_TRUE(eventually([&] { return condition("redis-production", "SecretFound") == "False KeyMissing"; }));
  EXPECT_EQ(message("redis-production"),
            "Secret not found: secrets \"redis\" in namespace infrastructure has no value under the key "
            "'redis-password'; found password");

  kube.patch(in("infrastructure", "secrets") + "/redis", {{"stringData", {{"redis-password", "supersecret"}}}});
  ASSERT_TRUE(comes("redis-production", "Discovered")) << status("redis-production").dump(2) << op.log();
  EXPECT_EQ(message("redis-production"), "");
  EXPECT_EQ(condition("redis-production", "Ready"), "True Discovered");
  EXPECT_EQ(condition("redis-production", "Synced"), "Unknown NoAgent");
  EXPECT_EQ(status("redis-production").at("observedGeneration"), 1);

  kube.remove(in("infrastructure", "secrets") + "/redis");
  ASSERT_TRUE(comes("redis-production", "Error"));
  EXPECT_EQ(op.log().find("supersecret"), std::string::npos);
  EXPECT_EQ(op.log().find("c3VwZXJzZWNyZXQ"), std::string::npos) << "nor as base64";
}

TEST_F(OperatorStatus, PeopleSeeEventsAndNothingIsWrittenWhileNothingHappens) {
  const OperatorProcess op(kube, dir, "operator", {"--scheduler-interval", "1s"});
  make_service("redis-master", 6379);
  kube.create_secret("infrastructure", "redis", {{"redis-password", "x"}});
  kube.create(backends(), sample());
  ASSERT_TRUE(comes("redis-production", "Discovered")) << op.log();
  const auto events = [&] {
    std::vector<std::string> out;
    const json list = kube.get("/apis/events.k8s.io/v1/namespaces/default/events");
    for (const auto& event : list.at("items")) {
      out.push_back(event.at("type").get<std::string>() + " " + event.at("reason").get<std::string>() + " " +
                    event.at("regarding").at("name").get<std::string>() + ": " + event.at("note").get<std::string>());
    }
    return out;
  };
  EXPECT_TRUE(eventually([&] {
    const auto seen = events();
    return std::find(seen.begin(), seen.end(),
                     "Normal Discovered redis-production: resolved to "
                     "redis-master.infrastructure.svc.cluster.local:6379") != seen.end();
  })) << ::testing::PrintToString(events())
      << op.log();
  const std::string version = kube.get(backends() + "/redis-production").at("metadata").at("resourceVersion");
  const double before = op.metric("driftd_operator_scheduler_cycles_total");
  ASSERT_GE(before, 0) << op.log();
  ASSERT_TRUE(eventually([&] { return op.metric("driftd_operator_scheduler_cycles_total") >= before + 3; }));
  EXPECT_EQ(kube.get(backends() + "/redis-production").at("metadata").at("resourceVersion"), version)
      << "three resyncs wrote nothing";
}

TEST_F(OperatorStatus, ANamespaceThatIsNotAllowedIsNotLookedInto) {
  kube.create_namespace("other");
  const OperatorProcess op(kube, dir, "operator", {"--watch-namespaces", "other,applications"});
  make_service("redis-master", 6379);
  kube.create(backends(), sample());
  ASSERT_TRUE(comes("redis-production", "Error")) << op.log();
  EXPECT_THAT(message("redis-production"), HasSubstr("namespace infrastructure is not one of those"));
}

TEST_F(OperatorStatus, ARightThatIsTakenAwayIsNamedInStatusAndLogAndNothingIsLost) {
  const OperatorProcess op(kube, dir, "operator", {"--lease-duration", "60s", "--renew-deadline", "40s"});
  make_service("redis-master", 6379);
  kube.create_secret("infrastructure", "redis", {{"redis-password", "x"}});
  kube.create(backends(), sample());
  ASSERT_TRUE(comes("redis-production", "Discovered")) << op.log();
  const std::string role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/driftd-operator";
  const json rules = kube.get(role).at("rules");
  json fewer = rules;
  for (auto& rule : fewer) {
    if (rule.at("resources").at(0) == "services") rule["resources"] = {"services", "configmaps"};
  }
  kube.patch(role, {{"rules", fewer}});
  kube.stop();  // a watch that stands is not cut when a right goes
  kube.start();
  ASSERT_TRUE(
      eventually([&] { return condition("redis-production", "SecretFound") == "Unknown Unreadable"; }, seconds(60)))
      << status("redis-production").dump(2) << op.log();
  EXPECT_THAT(message("redis-production"), HasSubstr("list secrets"));
  EXPECT_THAT(op.log(), HasSubstr("the operator needs the right: list secrets"));
  EXPECT_EQ(phase("redis-production"), "Pending") << "what cannot be seen is not an error of the object";
  EXPECT_EQ(op.metric("driftd_operator_unreadable{type=\"Secret\"}"), 1);
  kube.patch(role, {{"rules", rules}});
  EXPECT_TRUE(comes("redis-production", "Discovered", seconds(90))) << op.log();
}

}  // namespace
}  // namespace driftd::test
