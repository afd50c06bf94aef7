// SPDX-License-Identifier: Apache-2.0
// The manifests of packaging/kubernetes on a real API server: it accepts them in a namespace that enforces the Pod
// Security Standard `restricted`, and their service accounts have the rights that they need and no others.
#include <gmock/gmock.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <memory>
#include <set>

#include "support/kube.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

std::string packaged(const std::string& name) { return read_file(DRIFTD_SOURCE_DIR "/packaging/kubernetes/" + name); }

/// Returns YAML as the API server reads it: quoted scalars are text, and 0440 is octal.
json to_json(const YAML::Node& node) {
  if (node.IsMap()) {
    json out = json::object();
    for (const auto& member : node) out[member.first.as<std::string>()] = to_json(member.second);
    return out;
  }
  if (node.IsSequence()) {
    json out = json::array();
    for (const auto& item : node) out.push_back(to_json(item));
    return out;
  }
  if (node.IsNull()) return nullptr;
  const auto text = node.as<std::string>();
  if (node.Tag() == "!") return text;  // quoted
  const auto plain = json::parse(text, nullptr, false);
  const bool octal = text.size() > 1 && text[0] == '0' && text.find_first_not_of("01234567") == std::string::npos;
  if (octal) return std::stoi(text, nullptr, 8);
  return plain.is_discarded() ? json(text) : plain;
}

std::vector<json> documents(const std::string& name) {
  std::vector<json> out;
  for (const auto& document : YAML::LoadAll(packaged(name))) out.push_back(to_json(document));
  return out;
}

json document(const std::string& name, const std::string& kind) {
  for (auto& one : documents(name)) {
    if (one.at("kind") == kind) return one;
  }
  throw std::runtime_error(name + " has no " + kind);
}

class Manifests : public testing::Test {
 protected:
  Manifests() {
    if (kube_ != nullptr) return;
    auto kube = std::make_unique<KubeServer>();
    for (const char* file : {"namespace.yaml", "config.yaml", "rbac.yaml"}) {
      for (const auto& object : documents(file))
        kube->create(collection_of(object) + "?fieldValidation=Strict", object);
    }
    kube_ = std::move(kube);
  }
  /// Returns the path of the API at which objects of this kind are created.
  static std::string collection_of(const json& object) {
    static const std::map<std::string, std::string> kGroups = {
        {"Namespace", "/api/v1"},
        {"ConfigMap", "/api/v1"},
        {"ServiceAccount", "/api/v1"},
        {"PersistentVolumeClaim", "/api/v1"},
        {"Deployment", "/apis/apps/v1"},
        {"DaemonSet", "/apis/apps/v1"},
        {"Role", "/apis/rbac.authorization.k8s.io/v1"},
        {"RoleBinding", "/apis/rbac.authorization.k8s.io/v1"},
        {"ClusterRole", "/apis/rbac.authorization.k8s.io/v1"},
        {"ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1"}};
    const std::string kind = object.at("kind");
    std::string plural = kind + "s";
    std::transform(plural.begin(), plural.end(), plural.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const json& metadata = object.at("metadata");
    const std::string space =
        metadata.contains("namespace") ? "/namespaces/" + metadata.at("namespace").get<std::string>() : "";
    return kGroups.at(kind) + space + "/" + plural;
  }
  static KubeServer& kube() { return *kube_; }
  /// Returns what the owner of the token may do in a namespace: `get secrets`, or `get namespaces/kube-system` where
  /// the right is one object's. Without the rights that every service account has: to ask about its own rights, and to
  /// read paths that are not resources.
  static std::set<std::string> rights_of(const std::string& token, const std::string& space) {
    const json question = {{"apiVersion", "authorization.k8s.io/v1"},
                           {"kind", "SelfSubjectRulesReview"},
                           {"spec", {{"namespace", space}}}};
    const auto answer =
        kube().request_as(token, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", question.dump());
    EXPECT_EQ(answer.status, 201) << answer.text;
    EXPECT_FALSE(answer.body.at("status").at("incomplete").get<bool>()) << answer.text;
    std::set<std::string> out;
    for (const auto& rule : answer.body.at("status").at("resourceRules")) {
      for (const std::string verb : rule.at("verbs")) {
        for (const std::string resource : rule.at("resources")) {
          if (verb == "create" && resource.starts_with("selfsubject")) continue;
          const json names = rule.value("resourceNames", json::array());
          if (names.empty()) out.insert(verb + " " + resource);
          for (const std::string name : names) out.insert(verb + " " + resource + "/" + name);
        }
      }
    }
    return out;
  }
  /// Creates, as a dry run, a pod from the workload's template, as the controller would. `change` is merged into the
  /// container.
  static KubeServer::Answer dry_pod(const json& workload, const json& change = json::object()) {
    json pod = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", workload.at("spec").at("template").at("metadata")},
                {"spec", workload.at("spec").at("template").at("spec")}};
    pod["metadata"]["name"] = "probe";
    pod["spec"]["containers"][0].update(change);
    return kube().request("POST", "/api/v1/namespaces/driftd/pods?dryRun=All", pod.dump());
  }

 private:
  static inline std::unique_ptr<KubeServer> kube_;
};

TEST_F(Manifests, EveryObjectIsTakenByTheServerInANamespaceThatEnforcesRestricted) {
  for (const char* file : {"deployment.yaml", "daemonset.yaml", "change-logs.yaml"}) {
    for (const auto& object : documents(file)) {
      const std::string kind = object.at("kind");
      const auto answer =
          kube().request("POST", collection_of(object) + "?dryRun=All&fieldValidation=Strict", object.dump());
      EXPECT_EQ(answer.status, 201) << file << " " << kind << ": " << answer.body.dump();
    }
  }
}

TEST_F(Manifests, TheirPodsPassRestrictedAndOneRuleLessWouldNot) {
  for (const auto& workload : {document("deployment.yaml", "Deployment"), document("daemonset.yaml", "DaemonSet"),
                               document("change-logs.yaml", "Deployment")}) {
    const auto taken = dry_pod(workload);
    EXPECT_EQ(taken.status, 201) << taken.body.dump();
    const auto refused = dry_pod(workload, {{"securityContext", {{"allowPrivilegeEscalation", true}}}});
    EXPECT_EQ(refused.status, 403) << "the namespace does not enforce `restricted`";
    EXPECT_THAT(refused.body.dump(), HasSubstr("violates PodSecurity"));
  }
}

TEST_F(Manifests, ExactlyThatServiceAccountSeesItsNamespaceWholeAndNothingElse) {
  kube().create_secret("default", "packaged", {{"password", "canary-of-the-manifests"}});
  kube().create_namespace("elsewhere");
  const std::string token = kube().token_of("driftd", "driftd-cluster");
  const auto settings = [&](const std::string& space) {
    return json{{"server", kube().server()},
                {"token", "the-token"},
                {"tls", {{"ca_file", kube().ca_file()}}},
                {"namespaces", {space}}};
  };
  ProviderProbe probe("providers/k8s.so", settings("default"), {{"the-token", token}});
  const Collected got = probe.refresh();
  EXPECT_EQ(got.status, DRIFTD_OK);
  EXPECT_NE(got.find("secret", "default/packaged"), nullptr);
  for (const char* kind : {"secret", "config_map", "service", "endpoint_slice", "ingress", "deployment", "stateful_set",
                           "daemon_set", "helm_release", "network_policy", "role", "service_account", "cron_job"}) {
    EXPECT_TRUE(got.complete.contains(kind)) << kind;
  }
  EXPECT_EQ(got.diagnostic(DRIFTD_DENIED), nullptr) << got.diagnostic(DRIFTD_DENIED)->text;
  EXPECT_NE(probe.health().health.system_identity, "")
      << "the role driftd-identity does not allow to read the cluster's identity";

  ProviderProbe other("providers/k8s.so", settings("elsewhere"), {{"the-token", token}});
  const Collected nothing = other.refresh();
  ASSERT_NE(nothing.diagnostic(DRIFTD_DENIED), nullptr);
  for (const char* kind : {"secret", "config_map", "service", "deployment"})
    EXPECT_FALSE(nothing.complete.contains(kind)) << kind;
  EXPECT_THAT(nothing.records, IsEmpty());

  std::set<std::string> reads{"get namespaces/kube-system", "get prismbackends", "list prismbackends",
                              "watch prismbackends"};
  EXPECT_EQ(rights_of(token, "elsewhere"), reads);
  for (const char* resource : {"secrets",
                               "configmaps",
                               "services",
                               "serviceaccounts",
                               "persistentvolumeclaims",
                               "resourcequotas",
                               "limitranges",
                               "endpointslices",
                               "ingresses",
                               "networkpolicies",
                               "deployments",
                               "statefulsets",
                               "daemonsets",
                               "cronjobs",
                               "jobs",
                               "roles",
                               "rolebindings",
                               "horizontalpodautoscalers",
                               "poddisruptionbudgets",
                               "gateways",
                               "httproutes"}) {
    for (const char* verb : {"get ", "list ", "watch "}) reads.insert(std::string(verb) + resource);
  }
  EXPECT_EQ(rights_of(token, "default"), reads);
}

TEST_F(Manifests, AccountOfTheNodesMayDoNothing) {
  const std::string token = kube().token_of("driftd", "driftd-node");
  ProviderProbe probe("providers/k8s.so",
                      {{"server", kube().server()},
                       {"token", "t"},
                       {"tls", {{"ca_file", kube().ca_file()}}},
                       {"namespaces", {"default"}}},
                      {{"t", token}});
  const Collected got = probe.refresh();
  EXPECT_THAT(got.records, IsEmpty());
  EXPECT_NE(got.diagnostic(DRIFTD_DENIED), nullptr);
  for (const char* space : {"default", "driftd", "kube-system"})
    EXPECT_THAT(rights_of(token, space), IsEmpty()) << space;
}

TEST_F(Manifests, ConfigurationsAreValidOnANode) {
  const json data = document("config.yaml", "ConfigMap").at("data");
  TempDir dir;
  for (const auto& [name, text] : data.items()) {
    std::string config = text.get<std::string>();
    const std::string installed = "/usr/lib/driftd/providers";
    ASSERT_NE(config.find(installed), std::string::npos);
    config.replace(config.find(installed), installed.size(), DRIFTD_BINARY_DIR "/providers");
    dir.write(name, config);
    const Output checked =
        run({DRIFTD_BINARY_DIR "/bin/driftd", "validate", "--no-secrets", dir.file(name)}, {{"NODE_NAME", "worker-1"}});
    EXPECT_EQ(checked.code, 0) << name << ": " << checked.out << checked.err;
  }
}

/// It is applied in the place of the other one, so it must not fall behind it.
TEST_F(Manifests, TheOneWithAChangeLogIsTheDeploymentWithASidecarAndTheSeedsNames) {
  json workload = document("change-logs.yaml", "Deployment");
  json& pod = workload["spec"]["template"]["spec"];
  ASSERT_EQ(pod.at("containers").size(), 2u);
  const json sidecar = pod.at("containers").at(1);
  EXPECT_EQ(sidecar.at("name"), "change-log-sidecar");
  const json mount = {{"name", "change-log-vol"}, {"mountPath", "/var/run/change-logs"}};
  EXPECT_EQ(sidecar.at("volumeMounts"), json::array({mount}));
  EXPECT_EQ(pod.at("volumes").back(), json({{"name", "change-log-vol"}, {"emptyDir", json::object()}}));
  json& agent = pod["containers"][0];
  EXPECT_EQ(agent.at("volumeMounts").back(), mount);
  EXPECT_EQ(agent.at("args").back(), "--enable-change-logs");
  pod["containers"].erase(1);
  pod["volumes"].erase(pod["volumes"].size() - 1);
  agent["volumeMounts"].erase(agent["volumeMounts"].size() - 1);
  agent["args"].erase(agent["args"].size() - 1);
  EXPECT_EQ(workload, document("deployment.yaml", "Deployment"));
}

TEST_F(Manifests, TheSidecarListensWhereAnAgentOfThisBuildSends) {
  const json sidecar =
      document("change-logs.yaml", "Deployment").at("spec").at("template").at("spec").at("containers").at(1);
  const auto schema = json::parse(run({DRIFTD_BINARY_DIR "/bin/driftd", "schema"}).out);
  const std::string socket =
      schema.at("properties").at("change_log").at("properties").at("socket").at("default").get<std::string>();
  EXPECT_EQ(sidecar.at("args"), json({"changelog-sidecar", "--listen", "unix://" + socket}));
  TempDir dir;
  std::vector<std::string> command = sidecar.at("args");
  command.insert(command.begin(), DRIFTD_BINARY_DIR "/bin/driftd");
  command.back() = "unix://" + dir.file("s.sock");
  Child child(command, {dir.file("log"), {}, {}});
  EXPECT_TRUE(eventually([&] { return std::filesystem::is_socket(dir.file("s.sock")); })) << read_file(dir.file("log"));
}

TEST_F(Manifests, ProbesAreCommandsOfThisBuild) {
  for (const auto& workload : {document("deployment.yaml", "Deployment"), document("daemonset.yaml", "DaemonSet")}) {
    for (const char* name : {"startupProbe", "livenessProbe", "readinessProbe"}) {
      const json probe = workload.at("spec").at("template").at("spec").at("containers").at(0).at(name);
      std::vector<std::string> command = probe.at("exec").at("command");
      command[0] = DRIFTD_BINARY_DIR "/bin/driftd";
      for (auto& word : command) {
        if (word.find(".sock") != std::string::npos) word = "/nonexistent/driftd.sock";
      }
      EXPECT_EQ(run(command).code, 69) << name << ": the exit code without an agent";
    }
  }
}

}  // namespace
}  // namespace driftd::test
