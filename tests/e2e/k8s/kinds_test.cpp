// SPDX-License-Identifier: Apache-2.0
// Every kind of the k8s provider in a running agent: changed on a real API server (a Helm release by Helm), changed
// back, deleted and created again under a new identity. Each step is read as an event with its field from JetStream.
#include <gmock/gmock.h>

#include "support/agent.hpp"
#include "support/kube.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kConfig = "config.updated";
constexpr const char* kEndpoint = "endpoint.changed";

/// One object of a kind, the event that its change causes, and the functions that change it.
struct Sample {
  std::string resource, what, field;
  std::function<void()> make, change, back, remove;
  std::function<std::string()> identity;  ///< the current UID; empty if the kind has none
};

json pod(const std::string& image, const std::string& mode = "fast") {
  const json env =
      json::array({{{"name", "DB_PASSWORD"}, {"value", "canary-env"}}, {{"name", "MODE"}, {"value", mode}}});
  const json container = {{"name", "main"}, {"image", image}, {"env", env}};
  return {{"metadata", {{"labels", {{"app", "x"}}}}}, {"spec", {{"containers", json::array({container})}}}};
}

json templated(const json& pod, json spec = json::object()) {
  spec["template"] = pod;
  return {{"spec", spec}};
}

json workload(const std::string& kind, json spec = json::object()) {
  spec["selector"] = {{"matchLabels", {{"app", "x"}}}};
  json out = templated(pod("example.org/x:1"), spec);
  out["kind"] = kind;
  return out;
}

json ports(int port) { return {{"spec", {{"ports", json::array({{{"name", "web"}, {"port", port}}})}}}}; }
json addresses(const std::string& name) {
  return {{"addressType", "FQDN"}, {"endpoints", json::array({{{"addresses", {name}}}})}};
}
json to_service(const std::string& name) {
  return {{"spec", {{"defaultBackend", {{"service", {{"name", name}, {"port", {{"number", 80}}}}}}}}}};
}
json prism(const std::string& capability) {
  return {{"apiVersion", "prism.io/v1alpha1"},
          {"kind", "PrismBackend"},
          {"spec", {{"type", "redis"}, {"capabilities", {capability}}}}};
}
json budget(int available) { return {{"spec", {{"minAvailable", available}}}}; }

struct K8sKindsLine : testing::Test {
  KubeServer kube;
  NatsServer nats;
  TempDir dir;
  const std::string chart = dir.file("app");

  K8sKindsLine() {
    kube.create_namespace("prod");
    kube.install_prism();
    const Output made = kube.helm({"create", chart});
    if (made.code != 0) throw std::runtime_error("helm create: " + made.err);
  }

  /// Of the types of `objects` one is never served, which must not keep the other from being judged.
  Agent agent() const {
    const std::string settings = "{ server: \"" + kube.server() + "\", tls: { ca_file: \"" + kube.ca_file() +
                                 "\" }, token_file: \"" + kube.file("token") +
                                 "\", namespaces: [prod], exclude: [registration, \"service/prod/web*\", "
                                 "\"deployment/prod/web*\"], objects: [ { group: policy, kind: PodDisruptionBudget }, "
                                 "{ group: none.example, kind: Thing } ] }";
    return Agent(dir,
                 "backends:\n  - name: cluster\n    provider: k8s\n    discover: false\n    settings: " + settings +
                     "\n    policy: { config: manual, credential: manual, endpoint: manual }\n"
                     "sinks:\n  bus: { type: nats, servers: [\"" +
                     nats.url() + "\"], views: false }\n");
  }
  /// An object `x` at `path` of the API. `before` and `after` are merge patches; the object is created from `before`.
  Sample object(const std::string& resource, const std::string& what, const std::string& field, const std::string& path,
                json before, json after) {
    json whole = before;
    whole["metadata"] = {{"name", "x"}};
    const std::string one = path + "/x";
    return {resource,
            what,
            field,
            [this, path, whole] { kube.create(path, whole); },
            [this, one, after] { kube.patch(one, after); },
            [this, one, before] { kube.patch(one, before); },
            [this, one] { kube.remove(one); },
            [this, one] { return kube.get(one).at("metadata").at("uid").get<std::string>(); }};
  }
  void helm(std::vector<std::string> words) const {
    const Output done = kube.helm(std::move(words));
    EXPECT_EQ(done.code, 0) << done.err;
  }
  Sample release() {
    const auto deploy = [this](const std::string& verb, const std::string& tag) {
      helm({verb, "web", chart, "-n", "prod", "--set", "image.tag=" + tag, "--disable-openapi-validation"});
    };
    return {"helm_release/prod/web",
            kConfig,
            "values",
            [deploy] { deploy("install", "canary-1"); },
            [deploy] { deploy("upgrade", "canary-2"); },
            [this] {
              helm({"rollback", "web", "1", "-n", "prod"});
            },
            [this] {
              helm({"uninstall", "web", "-n", "prod"});
            },
            [] { return std::string(); }};
  }
  std::vector<Sample> samples() {
    const std::string core = "/api/v1/namespaces/prod/", apps = "/apis/apps/v1/namespaces/prod/";
    const std::string image = "containers.main.image", mode = "containers.main.env.MODE.value";
    return {
        object("secret/prod/x", "credentials.rotated", "data.password", core + "secrets",
               {{"stringData", {{"password", "canary-one"}}}}, {{"stringData", {{"password", "canary-two"}}}}),
        object("config_map/prod/x", kConfig, "data.level", core + "configmaps", {{"data", {{"level", "info"}}}},
               {{"data", {{"level", "debug"}}}}),
        object("service/prod/x", kEndpoint, "ports", core + "services", ports(80), ports(81)),
        object("endpoint_slice/prod/x", kEndpoint, "addresses",
               "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices", addresses("db.example.org"),
               addresses("db2.example.org")),
        object("ingress/prod/x", kEndpoint, "default_backend.service",
               "/apis/networking.k8s.io/v1/namespaces/prod/ingresses", to_service("x"), to_service("y")),
        object("deployment/prod/x", kConfig, image, apps + "deployments", workload("Deployment"),
               templated(pod("example.org/x:2"))),
        object("stateful_set/prod/x", kConfig, image, apps + "statefulsets",
               workload("StatefulSet", {{"serviceName", "x"}}), templated(pod("example.org/x:2"))),
        object("daemon_set/prod/x", kConfig, mode, apps + "daemonsets", workload("DaemonSet"),
               templated(pod("example.org/x:1", "slow"))),
        release(),
        object("prism_backend/prod/x", kConfig, "capabilities", "/apis/prism.io/v1alpha1/namespaces/prod/prismbackends",
               prism("sql_basic"), prism("sql_full")),
        object("object/PodDisruptionBudget.policy/prod/x", kConfig, "minAvailable",
               "/apis/policy/v1/namespaces/prod/poddisruptionbudgets", budget(1), budget(2)),
    };
  }
  testing::AssertionResult arrives(const Sample& sample, const std::string& status, const std::string& operation,
                                   const std::string& field = {}) const {
    return test::arrives(nats, {"cluster", sample.resource, sample.what, status, operation, field});
  }
  /// Returns `operation status` of the events of the sample's object, in the stream's order.
  std::vector<std::string> published(const Sample& sample) const {
    std::vector<std::string> out;
    for (const auto& event : stream_events(nats)) {
      if (event.resource_kind() + "/" + event.resource_id() == sample.resource) {
        out.push_back(event.operation() + " " + event.reconciliation_status());
      }
    }
    return out;
  }
  /// Expects the former and the current identity in the `recreated` events of the sample's object.
  void expect_identities(const Sample& sample, const std::string& before) const {
    for (const auto& event : stream_events(nats)) {
      if (event.resource_kind() + "/" + event.resource_id() != sample.resource || event.operation() != "recreated")
        continue;
      EXPECT_THAT(event.old_state().config_json(), HasSubstr(before)) << sample.resource;
      EXPECT_THAT(event.new_state().config_json(), HasSubstr(sample.identity())) << sample.resource;
    }
  }
};

TEST_F(K8sKindsLine, EveryKindChangesRevertsGoesAndComesBackAsAnother) {
  const auto all = samples();
  for (const auto& sample : all) sample.make();
  Agent a = agent();
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"cluster"}); }, seconds(60))) << a.log();
  std::map<std::string, std::string> identities;
  for (const auto& sample : all) identities[sample.resource] = sample.identity();

  for (const auto& sample : all) sample.change();
  for (const auto& sample : all) EXPECT_TRUE(arrives(sample, "pending", "changed", sample.field)) << a.log();
  for (const auto& sample : all) sample.back();
  for (const auto& sample : all) EXPECT_TRUE(arrives(sample, "reverted", {}, sample.field));
  for (const auto& sample : all) sample.remove();
  for (const auto& sample : all)
    EXPECT_TRUE(test::arrives(nats, {"cluster", sample.resource, {}, "pending", "deleted", {}}));
  for (const auto& sample : all) sample.make();
  for (const auto& sample : all)
    EXPECT_TRUE(test::arrives(nats, {"cluster", sample.resource, {}, "pending", "recreated", {}}));

  for (const auto& sample : all) {
    EXPECT_THAT(published(sample),
                ElementsAre("changed pending", "changed reverted", "deleted pending", "recreated pending"))
        << sample.resource;
    if (!identities[sample.resource].empty()) expect_identities(sample, identities[sample.resource]);
  }
  std::string everything = a.log();
  for (const auto& message : stream_contents(nats.url(), "DRIFT")) everything += message.body;
  EXPECT_THAT(everything, Not(HasSubstr("canary"))) << "a secret left the worker";
}

}  // namespace
}  // namespace driftd::test
