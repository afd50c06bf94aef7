// SPDX-License-Identifier: Apache-2.0
// The Helm chart (packaging/helm/driftd), by the real Helm on the real API server.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "operator_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The CRD that the Prometheus operator has for ServiceMonitors, as far as the chart fills it.
constexpr const char* kServiceMonitors = R"({"metadata": {"name": "servicemonitors.monitoring.coreos.com"}, "spec": {
  "group": "monitoring.coreos.com", "scope": "Namespaced",
  "names": {"kind": "ServiceMonitor", "plural": "servicemonitors", "singular": "servicemonitor"},
  "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
    "required": ["spec"], "properties": {"spec": {"type": "object", "required": ["selector", "endpoints"], "properties": {
      "selector": {"type": "object", "properties": {"matchLabels": {"type": "object",
        "additionalProperties": {"type": "string"}}}},
      "endpoints": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "string"},
        "path": {"type": "string"}, "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"}}}}}}}}}}]}})";

struct Chart : testing::Test {
  KubeServer kube;
  TempDir dir;
  const std::string chart = DRIFTD_SOURCE_DIR "/packaging/helm/driftd";

  Chart() { kube.create_namespace("driftd"); }

  Output helm(const std::string& verb, const std::vector<std::string>& values = {}) const {
    std::vector<std::string> words = {verb, "driftd"};
    if (verb != "uninstall") words.push_back(chart);
    words.insert(words.end(), {"-n", "driftd"});
    for (const auto& value : values) words.insert(words.end(), {"--set", value});
    return kube.helm(words);
  }
  /// The names of what exists of this release, as `deployments/driftd-operator`.
  std::set<std::string> objects() const {
    std::set<std::string> out;
    for (const char* path :
         {"/api/v1/configmaps", "/api/v1/services", "/api/v1/serviceaccounts", "/api/v1/persistentvolumeclaims",
          "/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets", "/apis/policy/v1/poddisruptionbudgets",
          "/apis/networking.k8s.io/v1/networkpolicies", "/apis/rbac.authorization.k8s.io/v1/roles",
          "/apis/rbac.authorization.k8s.io/v1/rolebindings", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
          "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"}) {
      const json list = kube.get(std::string(path) + "?labelSelector=app.kubernetes.io/instance%3Ddriftd");
      const std::string plural = std::string(path).substr(std::string(path).rfind('/') + 1);
      for (const auto& item : list.at("items")) {
        if (item.at("metadata").contains("deletionTimestamp")) continue;  // a claim waits for a controller
        out.insert(plural + "/" + item.at("metadata").at("name").get<std::string>());
      }
    }
    return out;
  }
  json rules(const std::string& path) const {
    return kube.get("/apis/rbac.authorization.k8s.io/v1/" + path).at("rules");
  }
};

/// The rules of a role of a plain manifest, sorted members and all.
json plain_rules(const std::string& file, const std::string& kind, const std::string& name) {
  for (const auto& document : YAML::LoadAll(read_file(DRIFTD_SOURCE_DIR "/packaging/kubernetes/" + file))) {
    if (document["kind"].as<std::string>() != kind || document["metadata"]["name"].as<std::string>() != name) continue;
    json out = json::array();
    for (const auto& rule : document["rules"]) {
      json one;
      for (const auto& member : rule)
        one[member.first.as<std::string>()] = member.second.as<std::vector<std::string>>();
      out.push_back(one);
    }
    return out;
  }
  throw std::runtime_error(file + " has no " + kind + " " + name);
}

TEST_F(Chart, AnInstallWithItsDefaultsRunsTheOperatorAndAValidAgent) {
  const Output installed = helm("install");
  ASSERT_EQ(installed.code, 0) << installed.err;
  EXPECT_THAT(installed.out, HasSubstr("No sink is configured"));
  EXPECT_THAT(installed.out, HasSubstr("exec deploy/driftd-cluster"));
  // What the chart grants is what the plain manifests grant.
  EXPECT_EQ(rules("namespaces/default/roles/driftd"), plain_rules("rbac.yaml", "Role", "driftd"));
  EXPECT_EQ(rules("clusterroles/driftd-identity"), plain_rules("rbac.yaml", "ClusterRole", "driftd-identity"));
  EXPECT_EQ(rules("clusterroles/driftd-prism-backends"),
            plain_rules("rbac.yaml", "ClusterRole", "driftd-prism-backends"));
  EXPECT_EQ(rules("clusterroles/driftd-operator"), plain_rules("operator.yaml", "ClusterRole", "driftd-operator"));
  EXPECT_EQ(rules("namespaces/driftd/roles/driftd-operator"), plain_rules("operator.yaml", "Role", "driftd-operator"));
  // The operator does its work with them.
  const OperatorProcess op(kube, dir, "operator");
  kube.create("/apis/prism.io/v1alpha1/prismbackends",
              {{"apiVersion", "prism.io/v1alpha1"},
               {"kind", "PrismBackend"},
               {"metadata", {{"name", "cache"}}},
               {"spec", {{"type", "redis"}, {"discovery", {{"external", {{"endpoints", {"10.1.2.3:6379"}}}}}}}}});
  const auto phase = [&] {
    return kube.get("/apis/prism.io/v1alpha1/prismbackends/cache").at("status").value("phase", "");
  };
  EXPECT_TRUE(eventually([&] { return phase() == "Discovered"; }, seconds(30))) << op.log();
  EXPECT_EQ(op.probe("/readyz"), 200) << op.log();
  // The agent would accept its configuration.
  const json map = kube.get("/api/v1/namespaces/driftd/configmaps/driftd-cluster");
  std::string config = map.at("data").at("cluster.yaml");
  const std::string folder = "/usr/lib/driftd/providers";
  ASSERT_NE(config.find(folder), std::string::npos);
  config.replace(config.find(folder), folder.size(), Agent::build("providers"));
  const Output valid = run({Agent::binary(), "validate", "--config", dir.write("cluster.yaml", config)});
  EXPECT_EQ(valid.code, 0) << valid.err << config;
  EXPECT_THAT(valid.out, HasSubstr("valid, 1 backend"));
}

TEST_F(Chart, WithEverythingOnItIsAcceptedUpgradedAndGoesWithoutALeftover) {
  kube.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json::parse(kServiceMonitors));
  const std::string monitors = "/apis/monitoring.coreos.com/v1/namespaces/driftd/servicemonitors";
  ASSERT_TRUE(eventually([&] { return kube.request("GET", monitors).status == 200; }));
  std::vector<std::string> all = {"node.enabled=true",
                                  "cluster.grpc.enabled=true",
                                  "cluster.grpc.tlsSecret=tls",
                                  "operator.agent.tlsSecret=tls",
                                  "networkPolicy.enabled=true",
                                  "serviceMonitor.enabled=true",
                                  "cluster.secrets={redis,db}",
                                  "cluster.persistence.keep=false",
                                  "crds.keep=false"};
  const Output installed = helm("install", all);
  ASSERT_EQ(installed.code, 0) << installed.err;
  const auto before = objects();
  EXPECT_TRUE(before.contains("daemonsets/driftd-node"));
  EXPECT_TRUE(before.contains("poddisruptionbudgets/driftd-operator"));
  EXPECT_TRUE(before.contains("networkpolicies/driftd-cluster"));
  EXPECT_EQ(kube.request("GET", monitors + "/driftd-operator").status, 200);
  const std::string deployment = "/apis/apps/v1/namespaces/driftd/deployments/driftd-cluster";
  const auto config = [&] {
    return kube.get(deployment).at("spec").at("template").at("metadata").at("annotations").at("driftd.io/config");
  };
  const json first = config();
  all.insert(all.end(), {"cluster.config.sinks.bus.type=nats", "cluster.config.sinks.bus.servers={nats://nats:4222}",
                         "operator.replicas=1"});
  const Output upgraded = helm("upgrade", all);
  ASSERT_EQ(upgraded.code, 0) << upgraded.err;
  EXPECT_NE(config(), first) << "another configuration replaces the Pod";
  EXPECT_FALSE(objects().contains("poddisruptionbudgets/driftd-operator")) << "of one replica it would hold up a drain";
  const Output gone = helm("uninstall");
  ASSERT_EQ(gone.code, 0) << gone.err;
  EXPECT_TRUE(eventually([&] { return objects().empty(); })) << ::testing::PrintToString(objects());
  EXPECT_THAT(kube.get(monitors).at("items"), IsEmpty());
  EXPECT_TRUE(eventually([&] { return kube.request("GET", "/apis/prism.io/v1alpha1/prismbackends").status == 404; }));
}

TEST_F(Chart, AnUninstallKeepsTheStoreAndTheObjectsUnlessToldOtherwise) {
  ASSERT_EQ(helm("install").code, 0);
  kube.create("/apis/prism.io/v1alpha1/prismbackends",
              {{"apiVersion", "prism.io/v1alpha1"},
               {"kind", "PrismBackend"},
               {"metadata", {{"name", "cache"}}},
               {"spec", {{"type", "redis"}, {"discovery", {{"external", {{"endpoints", {"10.1.2.3:6379"}}}}}}}}});
  const Output gone = helm("uninstall");
  ASSERT_EQ(gone.code, 0) << gone.err;
  EXPECT_EQ(objects(), std::set<std::string>{"persistentvolumeclaims/driftd-cluster"});
  EXPECT_EQ(kube.request("GET", "/apis/prism.io/v1alpha1/prismbackends/cache").status, 200);
  const Output again = helm("install");
  EXPECT_EQ(again.code, 0) << "what was kept belongs to the release of this name: " << again.err;
}

TEST_F(Chart, WithoutRbacItMakesNoRights) {
  ASSERT_EQ(helm("install", {"rbac.create=false", "operator.shareCredentialsWith={default}",
                             "operator.shareCredentialsFrom={default}"})
                .code,
            0);
  for (const auto& name : objects()) EXPECT_EQ(name.find("role"), std::string::npos) << name;
}

TEST_F(Chart, AWrongValueIsRefusedWithItsName) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"clutser.enabled=true", "clutser"},
      {"operator.replica=2", "replica"},
      {"operator.replicas=0", "/operator/replicas"},
      {"operator.replicas=two", "/operator/replicas"},
      {"image.pullPolicy=always", "/image/pullPolicy"},
      {"image.repository=", "/image/repository"},
      {"rbac.namespaces={}", "/rbac/namespaces"},
      {"rbac.namespaces={Default}", "/rbac/namespaces/0"},
      {"cluster.grpc.port=80", "/cluster/grpc/port"},
      {"cluster.persistence.size=big", "/cluster/persistence/size"},
      {"cluster.enabled=yes", "/cluster/enabled"},
      {"operator.agent.address=agent", "/operator/agent/address"},
      {"operator.extraArgs={workers}", "/operator/extraArgs/0"},
      {"cluster.secrets={my\\.secret}", "/cluster/secrets/0"},
      {"serviceMonitor.interval=30", "/serviceMonitor/interval"},
      {"networkPolicy.from=all", "/networkPolicy/from"},
      {"cluster.grpc.enabled=true", "tlsSecret: expected the name of a Secret"}};
  for (const auto& [value, named] : wrong) {
    const Output refused = helm("install", {value});
    EXPECT_NE(refused.code, 0) << value;
    std::string text = refused.err;
    std::replace(text.begin(), text.end(), '.', '/');  // both ways in which Helm names a value
    std::string name = named;
    std::replace(name.begin(), name.end(), '.', '/');
    EXPECT_THAT(text, HasSubstr(name[0] == '/' ? name.substr(1) : name)) << value;
  }
  EXPECT_THAT(objects(), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
