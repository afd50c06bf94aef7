// SPDX-License-Identifier: Apache-2.0
// The Deployments that the operator makes of PrismPatterns, and what it writes into their status.
#include "operator_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct OperatorPattern : OperatorWorld {
  static std::string patterns() { return "/apis/prism.io/v1alpha1/namespaces/infrastructure/prismpatterns"; }
  static std::string deployment() { return "/apis/apps/v1/namespaces/infrastructure/deployments/order-consumer"; }
  static json pattern(const json& bindings) {
    return {{"apiVersion", "prism.io/v1alpha1"},
            {"kind", "PrismPattern"},
            {"metadata", {{"name", "order-consumer"}}},
            {"spec",
             {{"pattern", "consumer"},
              {"image", "ghcr.io/prism/consumer-runner:latest"},
              {"replicas", 2},
              {"backendBindings", bindings},
              {"rollout", {{"onRotation", "Restart"}}}}}};
  }
  void make_redis() const {
    make_service("redis-master", 6379);
    kube.create_secret("infrastructure", "redis", {{"redis-password", "supersecret"}});
  }
  json pattern_status(const std::string& path = patterns() + "/order-consumer") const {
    const auto answer = kube.request("GET", path);
    return answer.status == 200 ? answer.body.value("status", json::object()) : json::object();
  }
  std::string is(const std::string& type, const std::string& member) const {
    for (const auto& each : pattern_status().value("conditions", json::array())) {
      if (each.at("type") == type) return each.value(member, "");
    }
    return {};
  }
  bool becomes(const std::string& type, const std::string& reason) const {
    return eventually([&] { return is(type, "reason") == reason; });
  }
  json container() const { return kube.get(deployment()).at("spec").at("template").at("spec").at("containers").at(0); }
  std::string credentials() const {
    return kube.get(deployment())
        .at("spec")
        .at("template")
        .at("metadata")
        .at("annotations")
        .value("prism.io/credentials", "");
  }
  json env(const std::string& name) const {
    const json list = container().at("env");
    for (const auto& each : list) {
      if (each.at("name") == name) return each;
    }
    return nullptr;
  }
};

TEST_F(OperatorPattern, ADeploymentIsMadeOnceEachSlotHasItsBackendAndIsKeptWhileOneIsAbsent) {
  const OperatorProcess op(kube, dir, "operator");
  kube.create(patterns(), pattern({{"state_store", {{"backendRef", "redis-production"}}}}));
  ASSERT_TRUE(becomes("BackendsBound", "Missing")) << op.log();
  EXPECT_THAT(is("BackendsBound", "message"),
              HasSubstr("state_store: PrismBackend redis-production does not exist; create it"));
  EXPECT_EQ(is("Deployed", "reason"), "WaitsForBackends");
  EXPECT_EQ(pattern_status().at("phase"), "Pending");
  EXPECT_EQ(kube.request("GET", deployment()).status, 404);

  kube.create(backends(), sample());
  ASSERT_TRUE(becomes("BackendsBound", "NotReady")) << op.log();
  EXPECT_THAT(is("BackendsBound", "message"), HasSubstr("services \"redis-master\" not found"));
  make_redis();
  ASSERT_TRUE(becomes("Deployed", "Applied")) << pattern_status().dump(2) << op.log();
  EXPECT_EQ(env("STATE_STORE_HOST").at("value"), "redis-master.infrastructure.svc.cluster.local");
  EXPECT_EQ(env("STATE_STORE_PORT").at("value"), "6379");
  EXPECT_EQ(env("STATE_STORE_PASSWORD"),
            json({{"name", "STATE_STORE_PASSWORD"},
                  {"valueFrom", {{"secretKeyRef", {{"name", "redis"}, {"key", "redis-password"}}}}}}));
  EXPECT_EQ(container().at("name"), "consumer-runner");
  const json made = kube.get(deployment());
  EXPECT_EQ(made.at("metadata").at("ownerReferences").at(0).at("uid"),
            kube.get(patterns() + "/order-consumer").at("metadata").at("uid"));
  EXPECT_EQ(made.dump().find("supersecret"), std::string::npos);
  EXPECT_EQ(is("Ready", "message"), "0 of 2 replicas are ready");

  kube.request("PATCH", deployment() + "/status",
               json({{"status", {{"replicas", 2}, {"readyReplicas", 2}, {"observedGeneration", 1}}}}).dump());
  ASSERT_TRUE(becomes("Ready", "Ready")) << pattern_status().dump(2);
  EXPECT_EQ(pattern_status().at("phase"), "Ready");

  kube.remove(backends() + "/redis-production");
  ASSERT_TRUE(becomes("BackendsBound", "Missing"));
  const json events = kube.get("/apis/events.k8s.io/v1/namespaces/infrastructure/events").at("items");
  EXPECT_THAT(events.dump(), HasSubstr("state_store: PrismBackend redis-production does not exist"));
  EXPECT_EQ(is("Deployed", "reason"), "Kept");
  EXPECT_EQ(kube.get(deployment()).at("spec"), made.at("spec"));
  EXPECT_EQ(op.log().find("supersecret"), std::string::npos);
}

TEST_F(OperatorPattern, ASecretOfAnotherNamespaceIsRefusedWithTheNextStepAndDiscoverWithACopyWorks) {
  kube.create_namespace("applications");
  const std::string path = "/apis/prism.io/v1alpha1/namespaces/applications/prismpatterns";
  const OperatorProcess op(kube, dir, "operator");
  make_redis();
  kube.create(backends(), sample());
  kube.create(path, pattern({{"state_store", {{"backendRef", "redis-production"}}}}));
  const auto phase = [&] { return pattern_status(path + "/order-consumer").value("phase", ""); };
  ASSERT_TRUE(eventually([&] { return phase() == "Error"; })) << op.log();
  const json refused = pattern_status(path + "/order-consumer").at("bindings").at(0);
  EXPECT_EQ(refused.at("state"), "Error");
  EXPECT_THAT(refused.at("message"), HasSubstr("copy the Secret into namespace applications"));
  const std::string deployed = "/apis/apps/v1/namespaces/applications/deployments/order-consumer";
  EXPECT_EQ(kube.request("GET", deployed).status, 404);

  kube.create_secret("applications", "redis-copy", {{"password", "supersecret"}});
  kube.patch(path + "/order-consumer", {{"spec",
                                         {{"backendBindings",
                                           {{"state_store",
                                             {{"backendRef", nullptr},
                                              {"discover",
                                               {{"service", "redis-master.infrastructure.svc.cluster.local"},
                                                {"port", 6379},
                                                {"secret", {{"name", "redis-copy"}}}}}}}}}}}});
  ASSERT_TRUE(eventually([&] { return kube.request("GET", deployed).status == 200; }))
      << pattern_status(path + "/order-consumer").dump(2) << op.log();
  EXPECT_THAT(kube.get(deployed).dump(), HasSubstr("redis-copy"));
}

TEST_F(OperatorPattern, ARotatedCredentialReplacesThePodsAndNothingIsWrittenWhileNothingHappens) {
  const OperatorProcess op(kube, dir, "operator", {"--scheduler-interval", "1s"});
  make_redis();
  kube.create(backends(), sample());
  kube.create(patterns(), pattern({{"state_store", {{"backendRef", "redis-production"}}}}));
  ASSERT_TRUE(becomes("Deployed", "Applied")) << op.log();
  const std::string before = credentials();
  EXPECT_THAT(before, HasSubstr("state_store="));
  const auto shows_version = [&] { return pattern_status().at("bindings").at(0).contains("secretVersion"); };
  ASSERT_TRUE(eventually(shows_version)) << pattern_status().dump(2);

  const auto versions = [&] {
    return kube.get(deployment()).at("metadata").at("resourceVersion").get<std::string>() + " " +
           kube.get(patterns() + "/order-consumer").at("metadata").at("resourceVersion").get<std::string>();
  };
  const std::string quiet = versions();
  const double cycles = op.metric("driftd_operator_scheduler_cycles_total");
  ASSERT_TRUE(eventually([&] { return op.metric("driftd_operator_scheduler_cycles_total") >= cycles + 3; }));
  EXPECT_EQ(versions(), quiet) << "three resyncs wrote nothing";

  // Another label is no rotation. The next change that is seen shows that this one was.
  kube.patch(in("infrastructure", "secrets") + "/redis", {{"metadata", {{"labels", {{"team", "data"}}}}}});
  kube.patch(patterns() + "/order-consumer", {{"spec", {{"image", "runner:2"}}}});
  ASSERT_TRUE(eventually([&] { return container().at("image") == "runner:2"; })) << op.log();
  EXPECT_EQ(credentials(), before);
  kube.patch(in("infrastructure", "secrets") + "/redis", {{"stringData", {{"redis-password", "rotated"}}}});
  EXPECT_TRUE(eventually([&] { return credentials() != before; })) << op.log();
}

TEST_F(OperatorPattern, ADeploymentOfSomebodyElseIsLeftAlone) {
  const OperatorProcess op(kube, dir, "operator");
  make_redis();
  kube.create(backends(), sample());
  const json labels = {{"app", "other"}};
  kube.create("/apis/apps/v1/namespaces/infrastructure/deployments",
              {{"metadata", {{"name", "order-consumer"}}},
               {"spec",
                {{"selector", {{"matchLabels", labels}}},
                 {"template",
                  {{"metadata", {{"labels", labels}}},
                   {"spec", {{"containers", json::array({{{"name", "c"}, {"image", "other"}}})}}}}}}}});
  kube.create(patterns(), pattern({{"state_store", {{"backendRef", "redis-production"}}}}));
  ASSERT_TRUE(becomes("Deployed", "NameTaken")) << op.log();
  EXPECT_EQ(pattern_status().at("phase"), "Error");
  EXPECT_EQ(container().at("image"), "other");
}

}  // namespace
}  // namespace driftd::test
