// SPDX-License-Identifier: Apache-2.0
// Objects of each kind on a real API server: they are listed, watched, read, recreated and deleted.
#include "cluster.hpp"

namespace driftd::test {
namespace {

/// An object of one kind, and a patch that changes it.
struct Sample {
  std::string kind, path, id;
  json object, change;
  std::string attribute;  ///< the one that the change changes

  std::string place() const { return path + "/" + object.at("metadata").at("name").get<std::string>(); }
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

json named(json more, const std::string& name = "x") {
  more["metadata"]["name"] = name;
  return more;
}

/// The template of a job.
json job_spec() {
  json out = pod("example.org/x:1");
  out["spec"]["restartPolicy"] = "Never";
  out.erase("metadata");
  return {{"template", out}};
}

json rules(const char* verb) {
  return {{"rules", json::array({{{"apiGroups", {""}}, {"resources", {"pods"}}, {"verbs", {verb}}}})}};
}

json subjects(const char* name) {
  return {{"subjects", json::array({{{"kind", "User"}, {"apiGroup", "rbac.authorization.k8s.io"}, {"name", name}}})}};
}

json binding(const char* kind) {
  json out = subjects("somebody");
  out["roleRef"] = {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", kind}, {"name", "x"}};
  return named(out);
}

/// The kinds that are whole from the start.
std::vector<Sample> whole_samples(const std::string& space) {
  const std::string in = "/namespaces/" + space + "/", rbac = "/apis/rbac.authorization.k8s.io/v1", id = space + "/x";
  const json target = {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "x"}};
  const json claim = {{"accessModes", {"ReadWriteOnce"}}, {"resources", {{"requests", {{"storage", "1Gi"}}}}}};
  const auto limits = [](const char* cpu) -> json {
    return {{"spec", {{"limits", json::array({{{"type", "Container"}, {"max", {{"cpu", cpu}}}}})}}}};
  };
  return {{"network_policy", "/apis/networking.k8s.io/v1" + in + "networkpolicies", id,
           named({{"spec", {{"podSelector", json::object()}, {"policyTypes", {"Ingress"}}}}}),
           json{{"spec", {{"podSelector", {{"matchLabels", {{"a", "b"}}}}}}}}, "spec"},
          {"role", rbac + in + "roles", id, named(rules("get")), rules("list"), "rules"},
          {"role_binding", rbac + in + "rolebindings", id, binding("Role"), subjects("other"), "subjects"},
          {"horizontal_pod_autoscaler", "/apis/autoscaling/v2" + in + "horizontalpodautoscalers", id,
           named({{"spec", {{"scaleTargetRef", target}, {"maxReplicas", 3}}}}), json{{"spec", {{"maxReplicas", 4}}}},
           "spec"},
          {"pod_disruption_budget", "/apis/policy/v1" + in + "poddisruptionbudgets", space + "/y",
           named({{"spec", {{"minAvailable", 1}}}}, "y"), json{{"spec", {{"minAvailable", 2}}}}, "spec"},
          {"service_account", "/api/v1" + in + "serviceaccounts", id, named({{"automountServiceAccountToken", true}}),
           json{{"automountServiceAccountToken", false}}, "automountServiceAccountToken"},
          {"cron_job", "/apis/batch/v1" + in + "cronjobs", id,
           named({{"spec", {{"schedule", "0 1 * * *"}, {"jobTemplate", {{"spec", job_spec()}}}}}}),
           json{{"spec", {{"schedule", "0 2 * * *"}}}}, "spec"},
          {"job", "/apis/batch/v1" + in + "jobs", id, named({{"spec", job_spec()}}),
           json{{"spec", {{"parallelism", 2}}}}, "spec"},
          {"persistent_volume_claim", "/api/v1" + in + "persistentvolumeclaims", id,
           named({{"spec", claim}, {"metadata", {{"labels", {{"a", "b"}}}}}}),
           json{{"metadata", {{"labels", {{"a", "c"}}}}}}, "labels"},
          {"resource_quota", "/api/v1" + in + "resourcequotas", id, named({{"spec", {{"hard", {{"pods", "1"}}}}}}),
           json{{"spec", {{"hard", {{"pods", "2"}}}}}}, "spec"},
          {"limit_range", "/api/v1" + in + "limitranges", id, named(limits("1")), limits("2"), "spec"}};
}

/// The kinds of the cluster. Their names are those of no other test.
std::vector<Sample> cluster_samples() {
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/", admission = "/apis/admissionregistration.k8s.io/v1/";
  const auto webhooks = [](const char* url) -> json {
    return {{"webhooks", json::array({{{"name", "a.example.org"},
                                       {"clientConfig", {{"url", url}}},
                                       {"sideEffects", "None"},
                                       {"admissionReviewVersions", {"v1"}}}})}};
  };
  const json hooks = named(webhooks("https://a.example.org/")), moved = webhooks("https://b.example.org/");
  const auto definition = [](const char* short_name) -> json {
    const json version = {
        {"name", "v1"}, {"served", true}, {"storage", true}, {"schema", {{"openAPIV3Schema", {{"type", "object"}}}}}};
    return {
        {"spec",
         {{"group", "example.com"},
          {"scope", "Namespaced"},
          {"names", {{"kind", "Widget"}, {"plural", "widgets"}, {"singular", "widget"}, {"shortNames", {short_name}}}},
          {"versions", json::array({version})}}}};
  };
  return {
      {"cluster_role", rbac + "clusterroles", "x", named(rules("get")), rules("list"), "rules"},
      {"cluster_role_binding", rbac + "clusterrolebindings", "x", binding("ClusterRole"), subjects("other"),
       "subjects"},
      {"storage_class", "/apis/storage.k8s.io/v1/storageclasses", "x", named({{"provisioner", "example.org/x"}}),
       json{{"allowVolumeExpansion", true}}, "allowVolumeExpansion"},
      {"mutating_webhook_configuration", admission + "mutatingwebhookconfigurations", "x", hooks, moved, "webhooks"},
      {"validating_webhook_configuration", admission + "validatingwebhookconfigurations", "x", hooks, moved,
       "webhooks"},
      {"custom_resource_definition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "widgets.example.com",
       named(definition("w"), "widgets.example.com"), definition("wi"), "spec"},
      {"ingress_class", "/apis/networking.k8s.io/v1/ingressclasses", "x",
       named({{"spec", {{"controller", "example.org/x"}}}}),
       json{{"spec", {{"parameters", {{"kind", "Thing"}, {"name", "a"}}}}}}, "spec"},
      {"priority_class", "/apis/scheduling.k8s.io/v1/priorityclasses", "x",
       named({{"value", 10}, {"description", "a"}}), json{{"description", "b"}}, "description"}};
}

struct K8sKinds : Cluster {
  /// Reads all kinds of the samples, those of the cluster, too.
  static json settings_for(const std::string& space, const std::vector<Sample>& all) {
    json kinds = json::array();
    for (const auto& sample : all) kinds.push_back(sample.kind);
    return with(
        kube().settings({space}),
        {{"objects", json::array({{{"group", "policy"}, {"kind", "PodDisruptionBudget"}}})}, {"include", kinds}});
  }
  /// Deletes the object, without what controllers that do not run here would have to do first.
  static void remove(const Sample& sample) {
    kube().remove(sample.place() + "?propagationPolicy=Background");
    if (sample.kind == "persistent_volume_claim")
      kube().patch(sample.place(), {{"metadata", {{"finalizers", nullptr}}}});
    EXPECT_TRUE(eventually([&] { return kube().request("GET", sample.place()).status == 404; })) << sample.kind;
  }
};

TEST_F(K8sKinds, AreListedWatchedReadRecreatedAndDeleted) {
  kube().install_prism();
  const std::string space = fresh_namespace();
  auto all = samples(space);
  for (auto& more : {whole_samples(space), cluster_samples()}) all.insert(all.end(), more.begin(), more.end());
  for (const auto& sample : all) kube().create(sample.path + "?fieldManager=author", sample.object);
  ProviderProbe k8s = probe(settings_for(space, all));
  const Collected listed = k8s.refresh();
  ASSERT_EQ(listed.status, DRIFTD_OK) << render(listed);
  std::vector<Step> steps;
  std::map<std::string, json> patched, latest;
  for (const auto& sample : all) {
    ASSERT_NE(listed.find(sample.kind, sample.id), nullptr) << sample.kind << "\n" << render(listed);
    EXPECT_GE(listed.complete.at(sample.kind), 1u) << sample.kind;
    const auto reached = [sample](const std::map<std::string, json>& written) {
      return [&written, sample](const Collected& got) {
        return at_version(got, sample.kind, sample.id, text(written.at(sample.kind), "resourceVersion")) != nullptr;
      };
    };
    steps.push_back(
        {[&, sample] { patched[sample.kind] = kube().patch(sample.place() + "?fieldManager=editor", sample.change); },
         reached(patched)});
    steps.push_back({[&, sample] {
                       remove(sample);
                       latest[sample.kind] = kube().create(sample.path + "?fieldManager=author", sample.object);
                     },
                     reached(latest)});
    steps.push_back({[sample] { remove(sample); },
                     [sample](const Collected& got) {
                       const auto& last = std::find_if(
                           got.records.rbegin(), got.records.rend(),
                           [&](const auto& record) { return record.kind == sample.kind && record.id == sample.id; });
                       return last != got.records.rend() && last->tombstone;
                     }});
  }
  const Collected watched = watch(k8s, "", steps, std::chrono::seconds(120));
  std::vector<sdk::Identity> ids;
  const auto record_at = [&](const Sample& sample, const std::map<std::string, json>& written) {
    return at_version(watched, sample.kind, sample.id, text(written.at(sample.kind), "resourceVersion"));
  };
  for (const auto& sample : all) {
    const sdk::Record& before = *listed.find(sample.kind, sample.id);
    const sdk::Record& changed = *record_at(sample, patched);
    EXPECT_EQ(changed.external_name, before.external_name) << sample.kind;
    const json seen = json::parse(changed.body), first = json::parse(before.body);
    EXPECT_NE(seen.value(sample.attribute, json()), first.value(sample.attribute, json())) << sample.kind;
    const sdk::Record* again = record_at(sample, latest);
    EXPECT_NE(again->external_name, before.external_name) << sample.kind;
    EXPECT_EQ(json::parse(again->body).value(sample.attribute, json()), first.value(sample.attribute, json()))
        << sample.kind;
    EXPECT_EQ(changed.metadata.at("manager"), "editor") << sample.kind;
    ids.push_back({sample.kind, sample.id});
  }
  const Collected gone = k8s.read(ids);
  EXPECT_EQ(gone.records.size(), 0u);
  for (const auto& diagnostic : gone.diagnostics) EXPECT_EQ(diagnostic.code, DRIFTD_NOT_FOUND) << diagnostic.text;
  EXPECT_EQ(gone.diagnostics.size(), all.size());
}

/// Rights for one namespace are enough where `namespaces` is set; the cluster's kinds are then not asked for, and what
/// was known of them is not gone.
TEST_F(K8sKinds, OfTheClusterAreOutsideOfNamespacesUnlessIncludeNamesThem) {
  const std::string space = fresh_namespace();
  ProviderProbe all = probe(kube().settings({})), some = probe(kube().settings({space}));
  const Collected whole = all.refresh(), part = some.refresh();
  EXPECT_EQ(whole.status, DRIFTD_OK) << render(whole);
  EXPECT_NE(whole.find("cluster_role", "admin"), nullptr) << render(whole);
  EXPECT_EQ(part.complete.at("cluster_role"), 0u);
  EXPECT_EQ(part.find("cluster_role", "admin"), nullptr);
  const Collected read = some.read({{"cluster_role", "admin"}, {"cluster_role", "none"}});
  EXPECT_NE(read.find("cluster_role", "admin"), nullptr) << "it is still there: " << render(read);
  ASSERT_NE(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << render(read);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND)->id, "none");
}

/// After an upgrade the role may lack the rights of the new kinds.
TEST_F(K8sKinds, AKindWhoseRightIsMissingIsNamedWithItAndTheOthersAreRead) {
  const std::string space = fresh_namespace();
  const json rule = {{"apiGroups", {""}}, {"resources", {"configmaps"}}, {"verbs", {"get", "list", "watch"}}};
  const TempDir dir;
  const std::string token = dir.write("token", kube().account(space, "older", json::array({rule})));
  const Collected got = probe(with(kube().settings({space}),
                                   {{"token_file", token}, {"include", {"config_map", "cron_job", "cluster_role"}}}))
                            .refresh();
  EXPECT_EQ(got.complete.count("config_map"), 1u) << render(got);
  std::map<std::string, std::string> lacks;
  for (const auto& each : got.diagnostics) lacks[each.kind] = each.code == DRIFTD_DENIED ? each.right : each.text;
  EXPECT_EQ(lacks,
            (std::map<std::string, std::string>{{"cron_job", "list cronjobs.batch in namespace " + space},
                                                {"cluster_role", "list clusterroles.rbac.authorization.k8s.io"}}));
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

/// A type that is not served has no objects, so those of the other types are all there are. What is known of it from
/// another time is not gone by that.
TEST_F(K8sKinds, ATypeThatIsNotServedIsNamedAndTheOthersAreListedWhole) {
  const std::string space = fresh_namespace();
  kube().create("/apis/policy/v1/namespaces/" + space + "/poddisruptionbudgets",
                named({{"spec", {{"minAvailable", 1}}}}));
  const json types = json::array(
      {{{"group", "none.example"}, {"kind", "Thing"}}, {{"group", "policy"}, {"kind", "PodDisruptionBudget"}}});
  ProviderProbe k8s = probe(with(kube().settings({space}), {{"include", {"object"}}, {"objects", types}}));
  const Collected got = k8s.refresh();
  EXPECT_NE(got.find("object", "PodDisruptionBudget.policy/" + space + "/x"), nullptr) << render(got);
  EXPECT_EQ(got.complete, (std::map<std::string, std::uint64_t>{{"object", 1}}));
  ASSERT_NE(got.diagnostic(DRIFTD_UNSUPPORTED), nullptr) << render(got);
  EXPECT_EQ(got.diagnostic(DRIFTD_UNSUPPORTED)->text, "Thing.none.example is not served by this API server");
  EXPECT_EQ(got.diagnostic(DRIFTD_UNSUPPORTED)->kind, "object");
  const Collected read = k8s.read({{"object", "Thing.none.example/" + space + "/x"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  EXPECT_NE(read.diagnostic(DRIFTD_UNSUPPORTED), nullptr);
}

}  // namespace
}  // namespace driftd::test
