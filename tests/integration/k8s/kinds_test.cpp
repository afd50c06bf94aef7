// SPDX-License-Identifier: Apache-2.0
// Objects of each kind on a real API server: they are listed, watched, read, recreated and deleted.
#include "cluster.hpp"

namespace driftd::test {
namespace {

/// An object of one kind, named `x`, and a patch that changes it.
struct Sample {
  std::string kind, path, id;
  json object, change;
  std::string attribute;  ///< the one that the change changes
};

/// The template of a pod with one container.
json pod(const std::string& image) {
  return {{"metadata", {{"labels", {{"app", "x"}}}}},
          {"spec",
           {{"containers", json::array({{{"name", "main"},
                                         {"image", image},
                                         {"env", json::array({{{"name", "DB_PASSWORD"}, {"value", "canary-env"}},
                                                              {{"name", "MODE"}, {"value", "fast"}}})},
                                         {"resources", {{"requests", {{"cpu", "1000m"}, {"memory", "2048Mi"}}}}}}})}}}};
}

/// An object for any kind that has a template of a pod.
json workload(const std::string& image) {
  return {{"metadata", {{"name", "x"}}},
          {"spec", {{"selector", {{"matchLabels", {{"app", "x"}}}}}, {"template", pod(image)}}}};
}

std::vector<Sample> samples(const std::string& space) {
  const std::string core = "/api/v1/namespaces/" + space + "/", apps = "/apis/apps/v1/namespaces/" + space + "/";
  const json image = {{"spec", {{"template", pod("example.org/x:2")}}}};
  const auto named = [](json more) {
    more["metadata"] = {{"name", "x"}};
    return more;
  };
  json stateful = workload("example.org/x:1");
  stateful["spec"]["serviceName"] = "x";
  const json port = {{"spec", {{"ports", json::array({{{"name", "web"}, {"port", 81}}})}}}};
  return {{"secret",
           core + "secrets",
           space + "/x",
           named({{"stringData", {{"password", "one"}}}}),
           {{"stringData", {{"password", "two"}}}},
           "data"},
          {"config_map",
           core + "configmaps",
           space + "/x",
           named({{"data", {{"a.yaml", "a: 1"}}}}),
           {{"data", {{"a.yaml", "a: 2"}}}},
           "data"},
          {"service", core + "services", space + "/x",
           named({{"spec", {{"ports", json::array({{{"name", "web"}, {"port", 80}}})}, {"selector", {{"app", "x"}}}}}}),
           port, "ports"},
          {"endpoint_slice",
           "/apis/discovery.k8s.io/v1/namespaces/" + space + "/endpointslices",
           space + "/x",
           named({{"addressType", "FQDN"}, {"endpoints", json::array({{{"addresses", {"db.example.org"}}}})}}),
           {{"endpoints", json::array({{{"addresses", {"db2.example.org"}}}})}},
           "addresses"},
          {"ingress",
           "/apis/networking.k8s.io/v1/namespaces/" + space + "/ingresses",
           space + "/x",
           named({{"spec", {{"defaultBackend", {{"service", {{"name", "x"}, {"port", {{"number", 80}}}}}}}}}}),
           {{"spec", {{"defaultBackend", {{"service", {{"name", "y"}}}}}}}},
           "default_backend"},
          {"deployment", apps + "deployments", space + "/x", workload("example.org/x:1"), image, "containers"},
          {"stateful_set", apps + "statefulsets", space + "/x", stateful, image, "containers"},
          {"daemon_set", apps + "daemonsets", space + "/x", workload("example.org/x:1"), image, "containers"},
          {"prism_backend",
           "/apis/prism.io/v1alpha1/namespaces/" + space + "/prismbackends",
           space + "/x",
           named({{"apiVersion", "prism.io/v1alpha1"},
                  {"kind", "PrismBackend"},
                  {"spec", {{"type", "redis"}, {"capabilities", {"a"}}}}}),
           {{"spec", {{"capabilities", {"b"}}}}},
           "capabilities"},
          {"object",
           "/apis/policy/v1/namespaces/" + space + "/poddisruptionbudgets",
           "PodDisruptionBudget.policy/" + space + "/x",
           named({{"spec", {{"minAvailable", 1}}}}),
           {{"spec", {{"minAvailable", 2}}}},
           "minAvailable"}};
}

struct K8sKinds : Cluster {
  static json settings_for(const std::string& space) {
    return with(kube().settings({space}),
                {{"objects", json::array({{{"group", "policy"}, {"kind", "PodDisruptionBudget"}}})}});
  }
};

TEST_F(K8sKinds, AreListedWatchedReadRecreatedAndDeleted) {
  kube().install_prism();
  const std::string space = fresh_namespace();
  auto all = samples(space);
  for (const auto& sample : all) kube().create(sample.path + "?fieldManager=author", sample.object);
  ProviderProbe k8s = probe(settings_for(space));
  const Collected listed = k8s.refresh();
  ASSERT_EQ(listed.status, DRIFTD_OK) << render(listed);
  std::vector<Step> steps;
  std::map<std::string, json> latest;
  for (const auto& sample : all) {
    ASSERT_NE(listed.find(sample.kind, sample.id), nullptr) << sample.kind << "\n" << render(listed);
    EXPECT_GE(listed.complete.at(sample.kind), 1u) << sample.kind;
    const std::string one = sample.path + "/x";
    const auto reached = [&latest, sample](const Collected& got) {
      return at_version(got, sample.kind, sample.id, text(latest[sample.kind], "resourceVersion")) != nullptr;
    };
    steps.push_back(
        {[&, one, sample] { latest[sample.kind] = kube().patch(one + "?fieldManager=editor", sample.change); },
         reached});
    steps.push_back({[&, one, sample] {
                       kube().remove(one);
                       latest[sample.kind] = kube().create(sample.path + "?fieldManager=author", sample.object);
                     },
                     reached});
    steps.push_back({[&, one] { kube().remove(one); },
                     [sample](const Collected& got) {
                       const auto& last = std::find_if(
                           got.records.rbegin(), got.records.rend(),
                           [&](const auto& record) { return record.kind == sample.kind && record.id == sample.id; });
                       return last != got.records.rend() && last->tombstone;
                     }});
  }
  const Collected watched = watch(k8s, "", steps);
  std::vector<sdk::Identity> ids;
  for (const auto& sample : all) {
    const sdk::Record& before = *listed.find(sample.kind, sample.id);
    const sdk::Record& changed = *watched.find(sample.kind, sample.id);
    EXPECT_EQ(changed.external_name, before.external_name) << sample.kind;
    EXPECT_NE(json::parse(changed.body).at(sample.attribute), json::parse(before.body).at(sample.attribute))
        << sample.kind;
    const sdk::Record* again =
        at_version(watched, sample.kind, sample.id, text(latest[sample.kind], "resourceVersion"));
    EXPECT_NE(again->external_name, before.external_name) << sample.kind;
    EXPECT_EQ(json::parse(again->body).at(sample.attribute), json::parse(before.body).at(sample.attribute))
        << sample.kind;
    EXPECT_EQ(changed.metadata.at("manager"), "editor") << sample.kind;
    ids.push_back({sample.kind, sample.id});
  }
  const Collected gone = k8s.read(ids);
  EXPECT_EQ(gone.records.size(), 0u);
  for (const auto& diagnostic : gone.diagnostics) EXPECT_EQ(diagnostic.code, DRIFTD_NOT_FOUND) << diagnostic.text;
  EXPECT_EQ(gone.diagnostics.size(), all.size());
}

TEST_F(K8sKinds, ASecretIsItsRawValuesAndNothingOfItIsElsewhere) {
  const std::string space = fresh_namespace();
  kube().create(secrets(space), {{"metadata", {{"name", "db"}, {"labels", {{"team", "a"}, {"other", "b"}}}}},
                                 {"immutable", true},
                                 {"data", {{"password", "Y2FuYXJ5LXZhbHVl"}, {"binary", "/w=="}}}});
  ProviderProbe k8s = probe(with(kube().settings({space}), {{"include", {"secret"}}, {"labels", {"te*"}}}));
  const Collected got = k8s.refresh();
  const sdk::Record* record = got.find("secret", space + "/db");
  ASSERT_NE(record, nullptr) << render(got);
  const json body = json::parse(record->body);
  EXPECT_EQ(body["data"]["password"], "canary-value");
  EXPECT_EQ(body["data"]["binary"], json({{"base64", "/w=="}}));
  EXPECT_EQ(body["labels"], json({{"team", "a"}}));
  EXPECT_EQ(body["immutable"], true);
  EXPECT_THAT(record->status + json(record->metadata).dump() + record->id,
              ::testing::Not(::testing::HasSubstr("canary")));
  const json schema = json::parse(k8s.schema("secret"));
  EXPECT_EQ(schema["attributes"]["data.*"]["sensitive"], true);
}

TEST_F(K8sKinds, ReplicasOfAnAutoscalerAreNotJudgedAndCredentialsInEnvAreSensitive) {
  const std::string space = fresh_namespace(), path = "/apis/apps/v1/namespaces/" + space + "/deployments";
  kube().create(path, workload("example.org/x:1"));
  ProviderProbe k8s = probe(with(kube().settings({space}), {{"include", {"deployment"}}}));
  const Collected before = k8s.refresh();
  EXPECT_EQ(before.body("deployment", space + "/x")["replicas"], 1);
  const sdk::Record& record = *before.find("deployment", space + "/x");
  EXPECT_EQ(record.sensitive, std::vector<std::string>{R"(containers["main"].env["DB_PASSWORD"].value)"});
  kube().request("PATCH", path + "/x/scale?fieldManager=kube-controller-manager", R"({"spec":{"replicas":5}})");
  const Collected after = k8s.refresh();
  const sdk::Record& scaled = *after.find("deployment", space + "/x");
  EXPECT_FALSE(json::parse(scaled.body).contains("replicas"));
  ASSERT_EQ(scaled.unread.size(), 1u);
  EXPECT_EQ(scaled.unread[0].path, "replicas");
  EXPECT_THAT(scaled.unread[0].reason, ::testing::HasSubstr("kube-controller-manager"));
}

TEST_F(K8sKinds, AnAbsentTypeIsUnsupportedAndAnObjectOfItIsNotGone) {
  const std::string space = fresh_namespace();
  ProviderProbe k8s = probe(
      with(kube().settings({space}),
           {{"include", {"object"}}, {"objects", json::array({{{"group", "none.example"}, {"kind", "Thing"}}})}}));
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.complete.count("object"), 0u);
  ASSERT_NE(got.diagnostic(DRIFTD_UNSUPPORTED), nullptr) << render(got);
  const Collected read = k8s.read({{"object", "Thing.none.example/" + space + "/x"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  EXPECT_NE(read.diagnostic(DRIFTD_UNSUPPORTED), nullptr);
}

}  // namespace
}  // namespace driftd::test
