// SPDX-License-Identifier: Apache-2.0
// The way back from attributes to an object, and whose fields that touches.
#include <gmock/gmock.h>

#include "common/apply_steps.hpp"
#include "k8s/attribute_edit.hpp"
#include "k8s/field_owners.hpp"
#include "k8s/json_access.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Settings kSettings;

Resource resource_of(const std::string& kind, const std::string& object) {
  return {kind, "/apis/apps/v1", kind + "s", object, true, {}, {}, nullptr, {}};
}

json body(const Resource& resource, const json& object) {
  return json::parse(map_object(resource, object, kSettings).body);
}

/// What a host reports of two bodies: members are entered, anything else is one change.
void add_changes(const json& from, const json& to, const std::string& path, std::vector<sdk::Change>& out) {
  if (from == to) return;
  if (from.is_object() && to.is_object()) {
    json names = from;
    names.update(to);
    for (const auto& [name, unused] : names.items())
      add_changes(from.value(name, json()), to.value(name, json()), member_path(path, name), out);
    return;
  }
  out.push_back({0, path, from.is_null() ? "" : from.dump(), to.is_null() ? "" : to.dump()});
}

/// The object of `drifted` with every attribute back at what `baseline` has.
json put_back(const Resource& resource, const json& drifted, const json& baseline) {
  std::vector<sdk::Change> changes;
  add_changes(body(resource, drifted), body(resource, baseline), "", changes);
  return wanted_object(resource, drifted, kSettings, changes);
}

std::string refusal(const Resource& resource, const json& object, const std::vector<sdk::Change>& changes) {
  try {
    wanted_object(resource, object, kSettings, changes);
  } catch (const common::CannotSet& why) {
    return why.what();
  }
  return {};
}

const json kDeployment = json::parse(R"({"apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {"name": "web", "namespace": "prod", "uid": "u1", "resourceVersion": "7", "labels": {"app": "web"}},
  "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "strategy": {"type": "Recreate"},
    "template": {"metadata": {"labels": {"app": "web"}, "annotations": {"checked": "yes"}},
      "spec": {"serviceAccountName": "web", "nodeSelector": {"disk": "ssd"}, "hostNetwork": true,
        "terminationGracePeriodSeconds": 30,
        "volumes": [{"name": "conf", "configMap": {"name": "web"}}, {"name": "tmp", "emptyDir": {}}],
        "initContainers": [{"name": "one", "image": "i:1"}, {"name": "two", "image": "i:2"}],
        "containers": [
          {"name": "app", "image": "web:1", "imagePullPolicy": "Always", "args": ["-v"],
           "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
           "env": [{"name": "A", "value": "1"},
                   {"name": "B", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}},
                   {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
           "envFrom": [{"configMapRef": {"name": "web", "optional": true}}, {"prefix": "X_", "secretRef": {"name": "s"}}],
           "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
           "volumeMounts": [{"name": "conf", "mountPath": "/etc/web", "readOnly": true, "subPath": "a"},
                            {"name": "tmp", "mountPath": "/tmp"}],
           "livenessProbe": {"httpGet": {"path": "/live", "port": 80}}, "tty": true},
          {"name": "side", "image": "side:1", "resources": {}}]}}}})");

/// What a person did to the Deployment, as a JSON Patch.
struct Drift {
  const char *name, *patch;
};
void PrintTo(const Drift& drift, std::ostream* to) { *to << drift.name; }

class WayBack : public testing::TestWithParam<Drift> {};

TEST_P(WayBack, OfADeploymentLeadsToTheSameObject) {
  const Resource resource = resource_of("deployment", "Deployment");
  const json drifted = kDeployment.patch(json::parse(GetParam().patch));
  ASSERT_NE(body(resource, drifted), body(resource, kDeployment)) << "the case shows nothing";
  const json wanted = put_back(resource, drifted, kDeployment);
  EXPECT_EQ(body(resource, wanted), body(resource, kDeployment));
}

INSTANTIATE_TEST_SUITE_P(
    K8s, WayBack,
    testing::Values(
        Drift{"image", R"([{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"evil:9"}])"},
        Drift{"replicas", R"([{"op":"replace","path":"/spec/replicas","value":0}])"},
        Drift{"env", R"([{"op":"replace","path":"/spec/template/spec/containers/0/env/0/value","value":"2"}])"},
        Drift{"env_gone", R"([{"op":"remove","path":"/spec/template/spec/containers/0/env/1"}])"},
        Drift{"env_added",
              R"([{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"D","value":"x"}}])"},
        Drift{
            "env_source",
            R"([{"op":"replace","path":"/spec/template/spec/containers/0/env/1/valueFrom/secretKeyRef/key","value":"other"}])"},
        Drift{"env_source_to_value",
              R"([{"op":"replace","path":"/spec/template/spec/containers/0/env/2","value":{"name":"C","value":"x"}}])"},
        Drift{"env_from", R"([{"op":"remove","path":"/spec/template/spec/containers/0/envFrom/1"}])"},
        Drift{"limits_gone", R"([{"op":"remove","path":"/spec/template/spec/containers/0/resources/limits/memory"}])"},
        Drift{"resources_gone", R"([{"op":"replace","path":"/spec/template/spec/containers/0/resources","value":{}}])"},
        Drift{"limit_added",
              R"([{"op":"add","path":"/spec/template/spec/containers/0/resources/limits/cpu","value":"2"}])"},
        Drift{
            "port",
            R"([{"op":"add","path":"/spec/template/spec/containers/0/ports/-","value":{"containerPort":9,"protocol":"UDP"}}])"},
        Drift{"mount_writable",
              R"([{"op":"remove","path":"/spec/template/spec/containers/0/volumeMounts/0/readOnly"}])"},
        Drift{"mount_gone", R"([{"op":"remove","path":"/spec/template/spec/containers/0/volumeMounts/1"}])"},
        Drift{"probe",
              R"([{"op":"replace","path":"/spec/template/spec/containers/0/livenessProbe/httpGet/path","value":"/"}])"},
        Drift{"probe_gone", R"([{"op":"remove","path":"/spec/template/spec/containers/0/livenessProbe"}])"},
        Drift{"args", R"([{"op":"replace","path":"/spec/template/spec/containers/0/args","value":["-x","y"]}])"},
        Drift{"rest_of_container", R"([{"op":"remove","path":"/spec/template/spec/containers/0/tty"}])"},
        Drift{"container_added",
              R"([{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"miner","image":"m:1"}}])"},
        Drift{"container_gone", R"([{"op":"remove","path":"/spec/template/spec/containers/1"}])"},
        Drift{
            "init_order",
            R"([{"op":"move","from":"/spec/template/spec/initContainers/0","path":"/spec/template/spec/initContainers/1"}])"},
        Drift{"volume", R"([{"op":"replace","path":"/spec/template/spec/volumes/0/configMap/name","value":"other"}])"},
        Drift{"volume_gone", R"([{"op":"remove","path":"/spec/template/spec/volumes/1"}])"},
        Drift{"account", R"([{"op":"replace","path":"/spec/template/spec/serviceAccountName","value":"admin"}])"},
        Drift{"host_network_gone", R"([{"op":"remove","path":"/spec/template/spec/hostNetwork"}])"},
        Drift{
            "strategy",
            R"([{"op":"replace","path":"/spec/strategy","value":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}])"},
        Drift{"pod_label", R"([{"op":"add","path":"/spec/template/metadata/labels/x","value":"y"}])"},
        Drift{"pod_annotation", R"([{"op":"remove","path":"/spec/template/metadata/annotations/checked"}])"},
        Drift{"pod_rest", R"([{"op":"replace","path":"/spec/template/spec/terminationGracePeriodSeconds","value":1}])"},
        Drift{"label", R"([{"op":"replace","path":"/metadata/labels/app","value":"x"}])"},
        Drift{
            "several",
            R"([{"op":"replace","path":"/spec/replicas","value":9},{"op":"add","path":"/metadata/labels/b","value":"c"},
           {"op":"remove","path":"/spec/template/spec/containers/0/imagePullPolicy"}])"}),
    [](const auto& info) { return info.param.name; });

TEST(K8sApply, WhatAnAttributeDoesNotShowStays) {
  const Resource resource = resource_of("deployment", "Deployment");
  const json drifted = kDeployment.patch(json::parse(
      R"([{"op":"remove","path":"/spec/template/spec/containers/0/volumeMounts/0/readOnly"},
          {"op":"add","path":"/spec/template/spec/containers/0/ports/-","value":{"containerPort":9,"protocol":"UDP"}},
          {"op":"add","path":"/spec/template/spec/containers/0/envFrom/-","value":{"secretRef":{"name":"z"}}}])"));
  EXPECT_EQ(put_back(resource, drifted, kDeployment), kDeployment) << "subPath, the port's name, optional";
}

TEST(K8sApply, ConfigMapGetsTheExactTextAgain) {
  const Resource resource = resource_of("config_map", "ConfigMap");
  const json map = json::parse(R"({"metadata":{"name":"c"},"data":{"app.yaml":"a:   1 # why\n","b":"2"}})");
  json drifted = map;
  drifted["data"]["app.yaml"] = "a: 2\n";
  drifted["data"]["new"] = "x";
  drifted["data"].erase("b");
  EXPECT_EQ(put_back(resource, drifted, map), map);
}

TEST(K8sApply, ServicePortsAreFoundByTheirName) {
  const Resource resource = resource_of("service", "Service");
  const json service =
      json::parse(R"({"metadata":{"name":"s","namespace":"n"},"spec":{"type":"ClusterIP","clusterIP":"10.0.0.1",
    "selector":{"app":"a"},"ports":[{"name":"http","port":80,"targetPort":8080,"protocol":"TCP"},
    {"name":"tls","port":443,"targetPort":"tls","protocol":"TCP","appProtocol":"https"}]}})");
  json drifted = service;
  drifted["spec"]["ports"][0]["port"] = 81;
  drifted["spec"]["ports"][1].erase("appProtocol");
  const json wanted = wanted_object(resource, drifted, kSettings,
                                    std::vector<sdk::Change>{{0, "ports[name=http].port", "81", "80"},
                                                             {1, "ports[name=tls].app_protocol", "", "\"https\""}});
  EXPECT_EQ(wanted, service);
  drifted = service;
  drifted["spec"]["ports"].erase(1);
  drifted["spec"]["ports"].push_back({{"name", "debug"}, {"port", 5005}, {"protocol", "TCP"}});
  const json ports = body(resource, service).at("ports");
  EXPECT_EQ(wanted_object(resource, drifted, kSettings,
                          std::vector<sdk::Change>{{0, "ports[name=debug]", "{}", ""},
                                                   {1, "ports[name=tls]", "", ports[1].dump()}}),
            service);
}

TEST(K8sApply, IngressRulesAndPoliciesAreSetAsAWhole) {
  const Resource ingress = resource_of("ingress", "Ingress");
  const json object = json::parse(R"({"metadata":{"name":"i"},"spec":{"ingressClassName":"nginx",
    "defaultBackend":{"service":{"name":"d","port":{"number":80}}},"tls":[{"hosts":["a"],"secretName":"t"}],
    "rules":[{"host":"a","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"name":"http"}}}}]}}]}})");
  json drifted = object;
  drifted["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] = "evil";
  drifted["spec"]["defaultBackend"]["service"]["port"]["number"] = 81;
  drifted["spec"]["tls"] = json::array();
  drifted["spec"]["ingressClassName"] = "other";
  EXPECT_EQ(put_back(ingress, drifted, object), object);
  const Resource policy = resource_of("network_policy", "NetworkPolicy");
  const json net = json::parse(R"({"metadata":{"name":"p"},"spec":{"podSelector":{"matchLabels":{"a":"b"}},
    "ingress":[{"from":[{"podSelector":{}}]}],"policyTypes":["Ingress"]}})");
  drifted = net;
  drifted["spec"]["ingress"] = json::array({json::object()});
  EXPECT_EQ(put_back(policy, drifted, net), net);
}

TEST(K8sApply, CustomObjectIsSetInItsSpecAndByTheFieldsOfTheSettings) {
  Custom custom{"x.org", "v1", "Budget", {}};
  Resource resource{kObject, "/apis/x.org/v1", "budgets", "Budget", true, {}, {}, &custom, "v1"};
  const json object =
      json::parse(R"({"metadata":{"name":"b"},"spec":{"limit":5,"labels":{"a":"b"}},"beside":{"x":1}})");
  json drifted = object;
  drifted["spec"]["limit"] = 6;
  drifted["spec"]["labels"]["a"] = "c";
  drifted["beside"]["x"] = 2;
  EXPECT_EQ(put_back(resource, drifted, object), object);
  custom.fields = {{"max", "spec.limit"}};
  EXPECT_EQ(put_back(resource, drifted, object).at("spec").at("limit"), 5);
}

TEST(K8sApply, PartOfTheSpecThatCameIsTakenAwayWithoutTheRest) {
  const Resource resource = resource_of("deployment", "Deployment");
  json drifted = kDeployment;
  drifted["spec"]["minReadySeconds"] = 5;
  EXPECT_EQ(wanted_object(resource, drifted, kSettings,
                          std::vector<sdk::Change>{{0, "spec", R"({"minReadySeconds":5})", ""}}),
            kDeployment);
}

TEST(K8sApply, WhatIsNotOursToSetIsRefusedWithAReason) {
  const json secret = json::parse(R"({"metadata":{"name":"s"},"data":{"p":"eA=="}})");
  EXPECT_THAT(refusal(resource_of("secret", "Secret"), secret, {{0, "data.p", "\"x\"", "\"y\""}}),
              HasSubstr("credential"));
  const json service = json::parse(R"({"metadata":{"name":"s"},"spec":{"clusterIP":"10.0.0.1","ports":[]}})");
  const Resource services = resource_of("service", "Service");
  EXPECT_THAT(refusal(services, service, {{0, "spec.clusterIP", "\"10.0.0.1\"", "\"10.0.0.2\""}}),
              HasSubstr("the cluster assigns it"));
  EXPECT_THAT(refusal(services, service, {{0, "dns", "\"a\"", "\"b\""}}), HasSubstr("it follows from"));
  EXPECT_THAT(refusal(resource_of("prism_backend", "PrismBackend"), {{"spec", {{"a", 1}}}}, {{0, "a", "1", "2"}}),
              HasSubstr("its owner's"));
  EXPECT_THAT(refusal(resource_of("endpoint_slice", "EndpointSlice"), json::object(), {{0, "service", "", "\"x\""}}),
              HasSubstr("a controller"));
  const Resource deployment = resource_of("deployment", "Deployment");
  EXPECT_THAT(refusal(deployment, kDeployment, {{0, "containers.app.args[0]", "\"-v\"", "\"-x\""}}),
              HasSubstr("containers.app.args[0] cannot be set: it is a part of a list"));
  EXPECT_THAT(refusal(deployment, kDeployment, {{0, "containers.app.mount_options", "{}", ""}}),
              HasSubstr("no way back"));
  EXPECT_THAT(refusal(deployment, kDeployment, {{0, "pod.more", "", R"([{"a":{"$hmac":"k:1:00"}}])"}}),
              HasSubstr("only the digest"));
  EXPECT_THAT(refusal(deployment, kDeployment, {{0, "containers.gone.image", "\"a\"", "\"b\""}}),
              HasSubstr("no element 'gone'"));
  EXPECT_THAT(refusal(deployment, kDeployment, {{0, "containers.app.mounts[\"/tmp\"]", "\"tmp\"", "7"}}),
              HasSubstr("does not have the form"));
}

TEST(K8sApply, PlaceThatShowsSomethingElseIsARefusalAndNotAWrongValue) {
  const Resource deployment = resource_of("deployment", "Deployment");
  EXPECT_THAT(refusal(deployment, kDeployment, {{0, "spec.replicas", "3", "5"}}), HasSubstr("does not lead back"));
}

const json kManaged = json::parse(R"([
  {"manager":"helm","operation":"Update","fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{
     "k:{\"name\":\"app\"}":{".":{},"f:name":{},"f:args":{}}}}}}}},
  {"manager":"kubectl-edit","operation":"Update","fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:containers":{
     "k:{\"name\":\"app\"}":{"f:image":{}},"k:{\"name\":\"side\"}":{".":{},"f:name":{},"f:image":{}}}}}}}},
  {"manager":"labeler","operation":"Apply","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}},"f:finalizers":{".":{},"v:\"x\"":{}}}}}])");

std::vector<std::string> owners(const std::string& patch) {
  json now = kDeployment;
  now["metadata"]["managedFields"] = kManaged;
  now["metadata"]["finalizers"] = {"x", "y"};
  std::vector<std::string> out;
  for (const auto& owner : owners_of_change(now, now.patch(json::parse(patch))))
    out.push_back(owner.manager + owner.field);
  return out;
}

TEST(K8sApply, FieldManagersThatMayBeOverruledAreASetting) {
  EXPECT_THAT(parse_settings(R"({"server":"https://k:6443"})").take_over, ElementsAre("kubectl*"));
  EXPECT_THAT(parse_settings(R"({"server":"https://k:6443","apply":{"take_over":["helm"]}})").take_over,
              ElementsAre("helm"));
  EXPECT_THAT(parse_settings(R"({"server":"https://k:6443","apply":{"take_over":[]}})").take_over, IsEmpty());
  EXPECT_THROW(parse_settings(R"({"server":"https://k:6443","apply":{"force":true}})"), sdk::Failure);
}

TEST(K8sFieldOwners, OwnerOfExactlyWhatChangesIsNamed) {
  EXPECT_THAT(owners(R"([{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"x"}])"),
              ElementsAre("kubectl-edit.spec.template.spec.containers[{\"name\":\"app\"}].image"));
  EXPECT_THAT(owners(R"([{"op":"replace","path":"/spec/replicas","value":1}])"), ElementsAre("helm.spec.replicas"));
  EXPECT_THAT(owners(R"([{"op":"replace","path":"/spec/template/spec/containers/0/args/0","value":"x"}])"),
              ElementsAre("helm.spec.template.spec.containers[{\"name\":\"app\"}].args"))
      << "an atomic list is one field";
  EXPECT_THAT(owners(R"([{"op":"remove","path":"/metadata/labels/app"}])"), ElementsAre("labeler.metadata.labels.app"));
  EXPECT_THAT(owners(R"([{"op":"remove","path":"/metadata/finalizers/0"}])"),
              ElementsAre("labeler.metadata.finalizers[=\"x\"]"));
}

TEST(K8sFieldOwners, RemovedElementIsOfEverybodyWhoHasAFieldInIt) {
  EXPECT_THAT(owners(R"([{"op":"remove","path":"/spec/template/spec/containers/0"}])"),
              ElementsAre(HasSubstr("helm"), HasSubstr("kubectl-edit")));
}

TEST(K8sFieldOwners, WhatNobodyOwnsIsEverybodys) {
  EXPECT_THAT(owners(R"([{"op":"add","path":"/metadata/labels/new","value":"x"}])"), IsEmpty());
  EXPECT_THAT(owners(R"([{"op":"remove","path":"/metadata/finalizers/1"}])"), IsEmpty());
  EXPECT_THAT(owners(R"([{"op":"add","path":"/spec/template/spec/containers/0/tty","value":false}])"), IsEmpty());
}

}  // namespace
}  // namespace driftd::k8s
