// SPDX-License-Identifier: Apache-2.0
// Releases that the real Helm makes of charts that are called as the well-known ones, and the PrismBackends of them.
#include "helm_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct OperatorHelm : HelmWorld {
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    const json list = kube.get(backends());
    for (const auto& each : list.at("items")) out.push_back(each.at("metadata").at("name"));
    return out;
  }
  json spec(const std::string& name) const { return kube.get(backends() + "/" + name).at("spec"); }
  bool goes(const std::string& name) const {
    return eventually([&] { return kube.request("GET", backends() + "/" + name).status == 404; }, seconds(30));
  }
};

TEST_F(OperatorHelm, TheReleasesOfTheRfcAreDiscoveredAndGoWithTheirRelease) {
  const OperatorProcess op(kube, dir, "operator");
  install("redis", redis());
  install("postgresql", {"postgresql", "FULL", 5432, "FULL", "postgres-password"});
  install("kafka", {"kafka", "FULL", 9092});
  install("nats", {"nats", "FULL", 4222});
  install("website", {"nginx", "FULL", 80});
  for (const char* name : {"redis", "postgresql", "kafka", "nats"}) {
    EXPECT_TRUE(comes(std::string(name) + "-infrastructure", "Discovered", seconds(30))) << name << op.log();
  }
  EXPECT_THAT(names(), UnorderedElementsAre("redis-infrastructure", "postgresql-infrastructure", "kafka-infrastructure",
                                            "nats-infrastructure"));
  const json object = kube.get(backends() + "/redis-infrastructure");
  EXPECT_EQ(object.at("metadata").at("labels"), (json{{"prism.io/auto-discovered", "true"},
                                                      {"prism.io/helm-release", "redis"},
                                                      {"prism.io/helm-chart", "redis"}}));
  EXPECT_EQ(object.at("metadata").at("annotations").at("prism.io/helm-chart"), "bitnami/redis");
  EXPECT_EQ(object.at("spec"),
            (json{{"type", "redis"},
                  {"discovery",
                   {{"service", {{"name", "redis-master"}, {"namespace", "infrastructure"}, {"port", 6379}}},
                    {"secret",
                     {{"name", "redis"},
                      {"namespace", "infrastructure"},
                      {"usernameKey", "username"},
                      {"passwordKey", "redis-password"}}}}},
                  {"capabilities", {"keyvalue_basic", "keyvalue_scan", "keyvalue_ttl", "pubsub_basic"}},
                  {"metadata",
                   {{"helm_release", "redis"},
                    {"helm_chart", "bitnami/redis"},
                    {"helm_version", "19.0.0"},
                    {"namespace", "infrastructure"}}}}));
  EXPECT_FALSE(spec("kafka-infrastructure").at("discovery").contains("secret")) << "the chart made none";
  uninstall("redis");
  EXPECT_TRUE(goes("redis-infrastructure")) << op.log();
  EXPECT_EQ(names().size(), 3u);
  EXPECT_EQ(op.log().find("supersecret"), std::string::npos);
}

TEST_F(OperatorHelm, TheChartsRuleForNamesIsFollowed) {
  const OperatorProcess op(kube, dir, "operator");
  install("cache", redis());
  install("other", redis(), "infrastructure", {"--set", "fullnameOverride=queue"});
  ASSERT_TRUE(comes("cache-infrastructure", "Discovered", seconds(30))) << op.log();
  ASSERT_TRUE(comes("other-infrastructure", "Discovered", seconds(30))) << op.log();
  EXPECT_EQ(status("cache-infrastructure").at("resolvedEndpoint"),
            "cache-redis-master.infrastructure.svc.cluster.local:6379");
  EXPECT_EQ(status("other-infrastructure").at("resolvedEndpoint"),
            "queue-master.infrastructure.svc.cluster.local:6379");
}

TEST_F(OperatorHelm, WhatAPersonChangedStaysAndWhatGoesWhileNobodyLooksIsRemoved) {
  {
    OperatorProcess op(kube, dir, "first", {"--scheduler-interval", "1s"});
    install("redis", redis());
    ASSERT_TRUE(comes("redis-infrastructure", "Discovered", seconds(30))) << op.log();
    kube.patch(backends() + "/redis-infrastructure", {{"spec", {{"discovery", {{"service", {{"port", 6380}}}}}}}});
    install("redis", redis(), "infrastructure", {"--set", "x=1"});  // another revision, of the same chart
    const auto moved = [&] { return status("redis-infrastructure").value("resolvedEndpoint", "").ends_with(":6380"); };
    ASSERT_TRUE(eventually(moved)) << op.log();
    ASSERT_TRUE(eventually([&] { return op.logged("stays as a person has changed it"); })) << op.log();
    EXPECT_EQ(spec("redis-infrastructure").at("discovery").at("service").at("port"), 6380);
    const auto attempts = [&] {
      return kube.counted("apiserver_request_total", {"prismbackends\"", "verb=\"APPLY\""});
    };
    const double cycles = op.metric("driftd_operator_scheduler_cycles_total");
    const auto passed = [&](int more) {
      return eventually([&] { return op.metric("driftd_operator_scheduler_cycles_total") >= cycles + more; });
    };
    ASSERT_TRUE(passed(2));  // the status of the object that moved is written by then
    const int before = attempts();
    ASSERT_GT(before, 0) << "the counter counts";
    ASSERT_TRUE(passed(5));
    EXPECT_EQ(attempts(), before) << "what was refused is not asked for in each cycle";
    kube.remove(backends() + "/redis-infrastructure");
    EXPECT_TRUE(comes("redis-infrastructure", "Discovered", seconds(60))) << "made again; " << op.log();
    EXPECT_EQ(op.stop(), 0);
  }
  uninstall("redis");
  EXPECT_THAT(names(), ElementsAre("redis-infrastructure"));
  const OperatorProcess op(kube, dir, "second");
  EXPECT_TRUE(goes("redis-infrastructure")) << op.log();
}

TEST_F(OperatorHelm, TwoReleasesOfOneNameHaveTwoObjectsAndAHandWrittenOneStays) {
  for (const char* space : {"b", "a-b"}) kube.create_namespace(space);
  json by_hand = sample("mine-infrastructure");
  by_hand["spec"]["metadata"] = {{"owner", "team"}};
  kube.create(backends(), by_hand);
  const OperatorProcess op(kube, dir, "operator");
  install("redis-a", redis(), "b");
  ASSERT_TRUE(comes("redis-a-b", "Discovered", seconds(30))) << op.log();
  install("redis", redis(), "a-b");
  install("mine", redis());
  const auto starting = [&](const std::string& with) {
    std::vector<std::string> out;
    for (const auto& name : names()) {
      if (name.starts_with(with)) out.push_back(name);
    }
    return out;
  };
  ASSERT_TRUE(
      eventually([&] { return starting("redis-a-b").size() == 2 && starting("mine").size() == 2; }, seconds(30)))
      << ::testing::PrintToString(names()) << op.log();
  EXPECT_EQ(spec("mine-infrastructure").at("metadata"), (json{{"owner", "team"}}));
  uninstall("redis-a", "b");
  EXPECT_TRUE(goes("redis-a-b")) << op.log();
  EXPECT_EQ(starting("redis-a-b").size(), 1u) << "the other release's";
}

TEST_F(OperatorHelm, PatternsOfAnOrganisationAreReadAgainAndAMistakeIsToldOnTheConfigMap) {
  const std::string maps = in("driftd", "configmaps");
  const auto patterns = [](const std::string& service) {
    return "- chartName: my-org/custom-redis\n  backendType: redis\n  servicePattern: \"" + service +
           "\"\n  secretPattern: \"{{.Release}}-redis-secret\"\n  secretPasswordKey: \"password\"\n";
  };
  const OperatorProcess op(kube, dir, "operator");
  install("shop",
          {"custom-redis", "{{ .Release.Name }}-redis-primary", 6379, "{{ .Release.Name }}-redis-secret", "password"});
  kube.create(maps, {{"metadata", {{"name", "prism-helm-patterns"}}},
                     {"data", {{"patterns.yaml", patterns("{{.Release}}-redis-primary")}}}});
  ASSERT_TRUE(comes("shop-infrastructure", "Discovered", seconds(30))) << op.log();
  EXPECT_EQ(spec("shop-infrastructure").at("discovery").at("secret").at("name"), "shop-redis-secret");
  kube.patch(maps + "/prism-helm-patterns", {{"data", {{"patterns.yaml", "- chartName: x\n  backendType: []\n"}}}});
  ASSERT_TRUE(eventually([&] { return op.logged("patterns.yaml:2:16: backendType: expected a text"); })) << op.log();
  const auto told = [&] {
    const json list = kube.get("/apis/events.k8s.io/v1/namespaces/driftd/events");
    for (const auto& event : list.at("items")) {
      if (event.at("reason") == "InvalidPatterns" && event.at("regarding").at("name") == "prism-helm-patterns")
        return true;
    }
    return false;
  };
  EXPECT_TRUE(eventually(told)) << op.log();
  EXPECT_EQ(phase("shop-infrastructure"), "Discovered") << "the former patterns stay";
  kube.remove(maps + "/prism-helm-patterns");
  EXPECT_TRUE(goes("shop-infrastructure")) << "its chart is not known any more; " << op.log();
}

}  // namespace
}  // namespace driftd::test
