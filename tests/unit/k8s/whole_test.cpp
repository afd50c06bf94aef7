// SPDX-License-Identifier: Apache-2.0
// The provider sees the whole object: lists in the form that the API gives them, every field but the exceptions, and
// under which name what no attribute of old covers is compared.
#include <gmock/gmock.h>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"
#include "driftd/sdk/types.hpp"
#include "k8s/cron_jobs.hpp"
#include "k8s/exceptions.hpp"
#include "k8s/list_types.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json document() {
  std::ifstream in(std::string(DRIFTD_SOURCE_DIR) + "/plugins/k8s/schema.json");
  return json::parse(in);
}

Resource resource_of(const std::string& kind) {
  for (const auto& resource : known_resources(Settings())) {
    if (resource.kind == kind) return resource;
  }
  throw std::runtime_error("no kind " + kind);
}

sdk::Record record_of(const std::string& kind, const json& object) {
  return map_object(resource_of(kind), object, Settings());
}
json body_of(const std::string& kind, const json& object) { return json::parse(record_of(kind, object).body); }

json workload(const json& container, const json& pod = json::object(), const json& spec = json::object()) {
  json one = {{"name", "main"}, {"image", "shop/app:1"}};
  one.update(container);
  json whole_pod = {{"containers", json::array({one})}};
  whole_pod.update(pod);
  json whole = {{"template", {{"metadata", {{"labels", {{"app", "x"}}}}}, {"spec", whole_pod}}}};
  whole.update(spec);
  return {{"metadata", {{"name", "web"}, {"namespace", "n"}}}, {"spec", whole}};
}

/// The table is data: each kind that is read by default is in it, and each exception has a reason.
TEST(K8sExceptions, EachHasAReasonAndStandsInTheReadme) {
  std::ifstream in(std::string(DRIFTD_SOURCE_DIR) + "/plugins/k8s/README.md");
  std::stringstream readme;
  readme << in.rdbuf();
  for (const auto& each : exceptions()) {
    EXPECT_FALSE(each.reason.empty()) << each.path;
    const std::string path =
        std::string(each.path) + (each.member.empty() ? "" : "[\"" + std::string(each.member) + "\"]");
    EXPECT_THAT(readme.str(), HasSubstr("`" + path + "`")) << "plugins/k8s/README.md, Exceptions";
    EXPECT_THAT(readme.str(), HasSubstr(std::string(each.reason))) << path;
  }
  for (const auto& each : injectors()) EXPECT_THAT(readme.str(), HasSubstr("`" + std::string(each) + "`"));
}

TEST(K8sExceptions, WhatIsFilledInIsComputedInTheSchema) {
  const json kinds = document().at("kinds");
  const auto schema = [&](const char* kind) { return core::KindSchema::parse(kinds.at(kind).dump()).value(); };
  const auto computed = [&](const char* kind, const char* path) {
    return schema(kind)->rule(core::Path::parse(path).value()).computed;
  };
  for (const char* path : {"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.healthCheckNodePort"})
    EXPECT_TRUE(computed("service", path)) << path;
  EXPECT_TRUE(computed("service", "ports[0].node_port"));
  EXPECT_TRUE(computed("persistent_volume_claim", "spec.volumeName"));
  EXPECT_TRUE(computed("persistent_volume_claim", "spec.storageClassName"));
  const auto filled = std::count_if(exceptions().begin(), exceptions().end(),
                                    [](const auto& each) { return each.handling == Handling::filled_in; });
  EXPECT_EQ(filled, 7) << "one more is to be checked here";
}

TEST(K8sExceptions, AreTakenFromTheirKindAloneAndWhatAPersonDidIsCompared) {
  const json annotations = {{"deployment.kubernetes.io/revision", "3"},
                            {"kubectl.kubernetes.io/last-applied-configuration", "{}"},
                            {"owner", "shop"}};
  json object = workload(json::object());
  object["metadata"]["annotations"] = annotations;
  object["metadata"]["labels"] = {{"app", "x"}};
  object["metadata"]["finalizers"] = {"a/b"};
  object["spec"]["template"]["metadata"]["annotations"] = {{"kubectl.kubernetes.io/restartedAt", "2026-01-01"}};
  const json body = body_of("deployment", object);
  EXPECT_EQ(body.at("annotations"), json({{"owner", "shop"}}));
  EXPECT_EQ(body.at("labels"), json({{"app", "x"}}));
  EXPECT_EQ(body.at("pod_annotations"), json({{"kubectl.kubernetes.io/restartedAt", "2026-01-01"}}));
  EXPECT_FALSE(body.contains("metadata"));
  EXPECT_TRUE(body_of("daemon_set", object).at("annotations").contains("deployment.kubernetes.io/revision"));
}

/// An object without fields may mean something (`emptyDir: {}`, `podSelector: {}`), unless the table says otherwise.
TEST(K8sExceptions, AnEmptyObjectIsComparedUnlessItSaysNothing) {
  const json nothing = body_of("deployment", workload(json::object()));
  json object = workload({{"securityContext", {{"capabilities", json::object()}}}, {"lifecycle", json::object()}});
  json& pod = object["spec"]["template"]["spec"];
  pod["affinity"] = {{"nodeAffinity", json::object()}, {"podAffinity", json::object()}};
  pod["dnsConfig"] = pod["resources"] = json::object();
  EXPECT_EQ(body_of("deployment", object), nothing);
  object = workload({{"securityContext", {{"seLinuxOptions", json::object()}}}});
  EXPECT_NE(body_of("deployment", object), nothing);
  object = workload(json::object());
  object["spec"]["template"]["spec"]["volumes"] = json::array({{{"name", "v"}, {"emptyDir", json::object()}}});
  EXPECT_EQ(body_of("deployment", object).at("volumes").at("v"), json({{"emptyDir", json::object()}}));
  const json policy = {{"spec", {{"podSelector", json::object()}, {"ingress", json::array({json::object()})}}}};
  EXPECT_EQ(body_of("network_policy", policy).at("spec"), policy.at("spec"));
  Resource custom = resource_of("role");  // nothing is known of a custom kind
  custom.kind = kObject;
  const json thing = {{"spec", {{"affinity", json::object()}, {"dnsConfig", json::object()}}}};
  EXPECT_EQ(json::parse(map_object(custom, thing, Settings()).body), thing.at("spec"));
}

/// Who may write the object may set the annotation; so it is compared, and a caBundle without it, too.
TEST(K8sExceptions, ACaBundleIsLeftToItsInjectorOnlyWhileAnAnnotationNamesOne) {
  json object = {{"metadata", {{"name", "hook"}}},
                 {"webhooks", json::array({{{"name", "a.b"}, {"clientConfig", {{"caBundle", "Q0E="}}}}})}};
  const json without = body_of("validating_webhook_configuration", object);
  EXPECT_EQ(without.at("webhooks").at("a.b").at("clientConfig").at("caBundle"), "Q0E=");
  object["metadata"]["annotations"] = {{"cert-manager.io/inject-ca-from", "n/c"}};
  const json with = body_of("validating_webhook_configuration", object);
  EXPECT_EQ(with.at("webhooks"), json({{"a.b", {{"name", "a.b"}}}}));
  EXPECT_EQ(with.at("annotations"), json({{"cert-manager.io/inject-ca-from", "n/c"}}));
  Settings settings;
  settings.annotations = {};
  EXPECT_EQ(json::parse(map_object(resource_of("validating_webhook_configuration"), object, settings).body), with)
      << "whatever settings.annotations leave out";
  EXPECT_TRUE(body_of("custom_resource_definition",
                      {{"spec", {{"conversion", {{"webhook", {{"clientConfig", {{"caBundle", "Q0E="}}}}}}}}}})
                  .contains("spec"));
}

TEST(K8sWhole, WhatNamedAttributesOfAWorkloadLackIsComparedInTheNamesOfTheApi) {
  const json port = {{"containerPort", 80}, {"protocol", "TCP"}};
  json named = port;
  named["name"] = "web";
  const json container = {
      {"lifecycle", {{"preStop", {{"sleep", {{"seconds", 5}}}}}}},
      {"workingDir", "/srv"},
      {"ports", json::array({named})},
      {"env", json::array({{{"name", "IP"},
                            {"valueFrom", {{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", "status.podIP"}}}}}}})},
      {"newField", 7}};
  const json pod = {{"dnsPolicy", "Default"},
                    {"hostAliases", json::array({{{"ip", "10.0.0.1"}, {"hostnames", {"a"}}}})},
                    {"automountServiceAccountToken", false},
                    {"serviceAccount", "x"},
                    {"serviceAccountName", "x"}};
  const json body = body_of("deployment", workload(container, pod, {{"minReadySeconds", 3}, {"replicas", 2}}));
  const json main = body.at("containers").at("main");
  EXPECT_EQ(main.at("lifecycle"), container.at("lifecycle"));
  EXPECT_EQ(main.at("workingDir"), "/srv");
  EXPECT_EQ(main.at("newField"), 7) << "a field of a later Kubernetes";
  EXPECT_EQ(main.at("ports"), json::array({{{"port", 80}, {"protocol", "TCP"}}})) << "as it was before";
  EXPECT_EQ(main.at("more"), json({{"ports", {{"80/TCP", {{"name", "web"}}}}},
                                   {"env", {{"IP", {{"valueFrom", {{"fieldRef", {{"apiVersion", "v1"}}}}}}}}}}));
  EXPECT_EQ(body.at("pod"), json({{"dnsPolicy", "Default"},
                                  {"hostAliases", {{"10.0.0.1", {{"ip", "10.0.0.1"}, {"hostnames", {"a"}}}}}},
                                  {"automountServiceAccountToken", false}}));
  EXPECT_EQ(body.at("spec"), json({{"minReadySeconds", 3}}));
  EXPECT_EQ(body.at("replicas"), 2);
  EXPECT_FALSE(body.contains("more"));
}

/// A variable that stands twice: the attribute by name shows one of the two.
TEST(K8sWhole, WhatANamedAttributeWouldHideIsComparedWhole) {
  const auto twice = [](const char* first) {
    return workload({{"env", json::array({{{"name", "A"}, {"value", first}}, {{"name", "A"}, {"value", "2"}}})}});
  };
  EXPECT_NE(body_of("deployment", twice("1")), body_of("deployment", twice("9")));
  const auto sources = [](bool optional) {
    return workload(
        {{"envFrom", json::array({{{"prefix", "A"}, {"secretRef", {{"name", "s"}, {"optional", optional}}}},
                                  {{"prefix", "B"}, {"secretRef", {{"name", "s"}, {"optional", true}}}}})}});
  };
  EXPECT_NE(body_of("deployment", sources(true)), body_of("deployment", sources(false)));
  const auto first = [](const char* one, const char* two) {
    return workload(json::object(), {{"initContainers", json::array({{{"name", one}}, {{"name", two}}})}});
  };
  for (const char* kind : {"deployment", "job"})
    EXPECT_NE(body_of(kind, first("a", "b")), body_of(kind, first("b", "a"))) << kind << ": they run in this order";
  const auto cron = [&](const json& job) {
    return body_of("cron_job", {{"spec", {{"jobTemplate", {{"spec", job.at("spec")}}}}}});
  };
  EXPECT_NE(cron(first("a", "b")), cron(first("b", "a")));
  const auto hooks = [](const char* one, const char* two) {
    return json{{"webhooks", json::array({{{"name", one}}, {{"name", two}}})}};
  };
  const char* mutating = "mutating_webhook_configuration";
  EXPECT_NE(body_of(mutating, hooks("a", "b")), body_of(mutating, hooks("b", "a"))) << "they are called in this order";
}

TEST(K8sWhole, AClaimOfAStatefulSetIsComparedWhole) {
  const auto claim = [](json spec, json more = json::object()) {
    more["metadata"] = {{"name", "data"}, {"creationTimestamp", nullptr}};
    more["spec"] = std::move(spec);
    return workload(json::object(), json::object(), {{"volumeClaimTemplates", json::array({more})}});
  };
  const json named = {{"accessModes", {"ReadWriteOnce"}}, {"resources", {{"requests", {{"storage", "1Gi"}}}}}};
  const json plain = body_of("stateful_set", claim(named, {{"status", {{"phase", "Pending"}}}}));
  EXPECT_EQ(plain.at("volume_claims").at("data"),
            json({{"storage", "1Gi"}, {"class", nullptr}, {"access_modes", {"ReadWriteOnce"}}}));
  EXPECT_FALSE(plain.contains("spec"));
  json more = named;
  more["volumeMode"] = "Block";
  EXPECT_EQ(body_of("stateful_set", claim(more)).at("volume_claims").at("data").at("spec"),
            json({{"volumeMode", "Block"}}));
}

TEST(K8sWhole, AKindWithoutNamedAttributesIsTheObjectItself) {
  const json role = {{"apiVersion", "rbac.authorization.k8s.io/v1"},
                     {"kind", "Role"},
                     {"metadata", {{"name", "r"}, {"namespace", "n"}, {"uid", "u"}, {"labels", {{"a", "b"}}}}},
                     {"rules", json::array({{{"verbs", {"get"}}}})}};
  EXPECT_EQ(body_of("role", role), json({{"labels", {{"a", "b"}}}, {"rules", {{{"verbs", {"get"}}}}}}));
  EXPECT_EQ(record_of("role", role).id, "n/r");
  const json cluster_wide = {{"metadata", {{"name", "r"}}}};
  EXPECT_EQ(record_of("cluster_role", cluster_wide).id, "r");
}

TEST(K8sWhole, ServiceAndIngressKeepTheirAttributesAndGainTheRest) {
  const json service = {{"spec",
                         {{"type", "LoadBalancer"},
                          {"clusterIP", "10.96.0.9"},
                          {"loadBalancerClass", "x/y"},
                          {"publishNotReadyAddresses", true},
                          {"ports", json::array({{{"name", "web"}, {"port", 80}, {"protocol", "TCP"}}})}}}};
  EXPECT_EQ(body_of("service", service).at("spec"),
            json({{"clusterIP", "10.96.0.9"}, {"loadBalancerClass", "x/y"}, {"publishNotReadyAddresses", true}}));
  const json path = {{"path", "/"}, {"pathType", "Exact"}, {"backend", {{"service", {{"name", "a"}}}}}};
  const json rule = {{"host", "h"}, {"http", {{"paths", json::array({path})}}}};
  EXPECT_FALSE(body_of("ingress", {{"spec", {{"rules", json::array({rule})}}}}).contains("spec"));
}

TEST(K8sWhole, ASecretInWhatIsNewIsSensitive) {
  const json headers = json::array({{{"name", "X"}, {"value", "https://u:p@h/"}}});
  const json container = {{"lifecycle", {{"postStart", {{"httpGet", {{"httpHeaders", headers}}}}}}}};
  EXPECT_THAT(record_of("deployment", workload(container)).sensitive,
              Contains(HasSubstr(R"(containers["main"]["lifecycle"]["postStart"])")));
  const json env = json::array({{{"name", "DB_PASSWORD"}, {"value", "x"}}, {{"name", "MODE"}, {"value", "fast"}}});
  json job = workload({{"env", env}, {"args", {"--token=x"}}});
  const auto sensitive = record_of("job", job).sensitive;
  EXPECT_THAT(sensitive, Contains(HasSubstr(R"(["env"]["DB_PASSWORD"]["value"])")));
  EXPECT_THAT(sensitive, Contains(HasSubstr(R"(["args"])")));
  EXPECT_EQ(sensitive.size(), 2u);
  job["spec"]["template"]["spec"]["containers"][0].erase("args");
  EXPECT_THAT(record_of("service", {{"metadata", {{"annotations", {{"a", "postgres://u:p@h/x"}}}}}}).sensitive,
              Contains(R"(["annotations"]["a"])"));
}

TEST(K8sWhole, OnlyAJobSaysThatACronJobControlsIt) {
  const auto owned = [](const char* kind, bool controller) {
    return json{{"metadata",
                 {{"namespace", "prod"},
                  {"ownerReferences", json::array({{{"apiVersion", "batch/v1"},
                                                    {"kind", kind},
                                                    {"name", "x"},
                                                    {"uid", "1-2"},
                                                    {"controller", controller}}})}}}};
  };
  const auto owner = cron_job_of(resource_of("job"), owned("CronJob", true));
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->space + "/" + owner->name + "/" + owner->uid, "prod/x/1-2");
  EXPECT_FALSE(cron_job_of(resource_of("job"), owned("CronJob", false)));
  EXPECT_FALSE(cron_job_of(resource_of("job"), owned("Workflow", true)));
  EXPECT_FALSE(cron_job_of(resource_of("cron_job"), owned("CronJob", true)));
}

/// The Jobs of a CronJob that was deleted exist until the garbage collector gets to them.
TEST(K8sWhole, ACronJobIsKnownInItsNamespaceAndForTenMinutesAfterItWasShown) {
  CronJobs known;
  const auto at = CronJobs::Clock::now();
  known.note({{"metadata", {{"namespace", "prod"}, {"name", "x"}, {"uid", "1-2"}}}}, at);
  EXPECT_TRUE(known.knows({"prod", "x", "1-2"}, at + CronJobs::kRemembered));
  EXPECT_FALSE(known.knows({"prod", "x", "1-2"}, at + CronJobs::kRemembered + std::chrono::seconds(1)));
  EXPECT_FALSE(known.knows({"other", "x", "1-2"}, at));
  EXPECT_FALSE(known.knows({"prod", "x", ""}, at));
}

TEST(K8sWhole, KindsOfTheClusterAreReadWithoutNamespacesOrIfIncludeNamesThem) {
  const auto has = [](const Settings& settings, const std::string& kind) {
    const auto all = known_resources(settings);
    return std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.kind == kind; });
  };
  Settings settings;
  for (const auto& each : cluster_resources()) EXPECT_TRUE(has(settings, each.kind)) << each.kind;
  settings.namespaces = {"prod"};
  for (const auto& each : cluster_resources()) EXPECT_FALSE(has(settings, each.kind)) << each.kind;
  EXPECT_TRUE(has(settings, "role"));
  settings.scope.include = {"secret", "cluster_role"};
  EXPECT_TRUE(has(settings, "cluster_role"));
  EXPECT_FALSE(has(settings, "storage_class"));
}

/// Every kind has its schema, in the revision that its records name, and its lists are in the table.
TEST(K8sWhole, SchemaTableAndMappingSpeakOfTheSameKinds) {
  const json described = document().at("kinds"), listed = ListTypes::shipped().table().at("kinds");
  for (const auto& resource : known_resources(Settings())) {
    ASSERT_TRUE(described.contains(resource.kind)) << resource.kind;
    EXPECT_TRUE(listed.contains(resource.kind) || resource.kind == kHelmRelease) << resource.kind;
  }
  for (const auto& [kind, schema] : described.items()) {
    const auto parsed = core::KindSchema::parse(schema.dump());
    ASSERT_TRUE(parsed) << kind << ": " << parsed.error().message;
    EXPECT_EQ((*parsed)->revision(), revision_of(kind)) << kind;
    EXPECT_EQ((*parsed)->dialect(), kind == kRegistration ? 1 : 2) << kind;
  }
}

/// A baseline of the revision before has none of the new attributes: they are filled in, and a change of an attribute
/// of old beside them is seen.
TEST(K8sWhole, WhatANewerRevisionComparesIsFilledInAndAChangeOfOldIsSeen) {
  json object = workload({{"workingDir", "/srv"}, {"command", {"run"}}}, {{"dnsPolicy", "Default"}});
  object["metadata"]["labels"] = {{"a", "b"}};
  const json now = body_of("deployment", object);
  json before = now;
  for (const char* each : {"pod", "labels"}) ASSERT_EQ(before.erase(each), 1u) << each;
  before["containers"]["main"].erase("workingDir");
  const auto schema = core::KindSchema::parse(document().at("kinds").at("deployment").dump()).value();
  const auto changes = [&](const json& baseline, std::uint32_t revision) {
    core::DiffOptions options;
    options.old_revision = revision;
    return core::diff(core::parse(baseline.dump()).value(), core::parse(now.dump()).value(), *schema, options).changes;
  };
  EXPECT_THAT(changes(before, 3), IsEmpty());
  EXPECT_EQ(changes(before, 4).size(), 3u);
  before["containers"]["main"].erase("command");
  ASSERT_EQ(changes(before, 3).size(), 1u);
  EXPECT_EQ(changes(before, 3)[0].path, "containers.main.command");
}

}  // namespace
}  // namespace driftd::k8s
