// SPDX-License-Identifier: Apache-2.0
// The mapping of a Kubernetes object to a record: what is compared, who wrote it last, what counts as a credential, and
// that an object that cannot be read costs only itself.
#include <gmock/gmock.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"
#include "k8s/mapping.hpp"
#include "kube/outline.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(K8sMapping, TheLastWriterIsNotWhoTouchedTheStatus) {
  const json object = {
      {"metadata",
       {{"managedFields",
         json::array({{{"manager", "helm"}, {"operation", "Apply"}, {"time", "2026-01-01T00:00:00Z"}},
                      {{"manager", "kubectl-edit"}, {"operation", "Update"}, {"time", "2026-01-02T00:00:00Z"}},
                      {{"manager", "kcm"}, {"subresource", "status"}, {"time", "2026-01-03T00:00:00Z"}}})}}}};
  EXPECT_EQ(last_writer(object).manager, "kubectl-edit");
}

TEST(K8sMapping, WhatLooksLikeACredentialIsOne) {
  EXPECT_TRUE(looks_secret("DB_PASSWORD", "x"));
  EXPECT_TRUE(looks_secret("URL", "postgres://app:pw@db/x"));
  EXPECT_TRUE(looks_secret("", "-----BEGIN EC PRIVATE KEY-----"));
  EXPECT_FALSE(looks_secret("URL", "https://example.org/a@b:c"));
  EXPECT_FALSE(looks_secret("LOG_LEVEL", "info"));
}

TEST(K8sMapping, BytesThatAreNoTextNeverEqualAText) {
  const json data = decoded_data({{"a", "/w=="}, {"b", "aGk="}});
  EXPECT_EQ(data["a"], json({{"base64", "/w=="}}));
  EXPECT_EQ(data["b"], "hi");
}

TEST(K8sMapping, FieldsOfACustomKindAreTakenByPath) {
  const Custom custom{"g", "v1", "K", {{"first", "spec.ports[0].port"}, {"none", "spec.missing"}}};
  const Resource resource{"object", "/apis/g/v1", "ks", "K", true, {}, {}, &custom, "v1"};
  const json object = {{"spec", {{"ports", json::array({{{"port", 80}}})}}}};
  EXPECT_EQ(json::parse(map_object(resource, object, Settings()).body), json({{"first", 80}}));
}

/// Two objects without any compared part are not equal, because it is not known.
TEST(K8sMapping, ACustomObjectWithoutWhatIsComparedIsUnknownAndNotEqual) {
  const Custom whole{"g", "v1", "K", {}},
      fields{"g", "v1", "K", {{"port", "data.port"}, {"first", "rules[0]"}, {"gone", "spec.gone"}}};
  Settings settings;
  const auto record = [&](const Custom& custom, json object) {
    const Resource resource{"object", "/apis/g/v1", "ks", "K", true, {}, {}, &custom, "v1"};
    object["metadata"] = {{"name", "a"}, {"namespace", "prod"}};
    return map_or_unreadable(resource, object, {}, settings);
  };
  const auto unknown = record(whole, {{"status", {{"phase", "Ready"}}}});
  ASSERT_EQ(unknown.unread.size(), 1u);
  EXPECT_EQ(unknown.unread[0].path, "**");
  EXPECT_THAT(unknown.unread[0].reason, HasSubstr("nothing but metadata and status"));
  EXPECT_TRUE(record(whole, {{"spec", json::object()}}).unread.empty()) << "a spec of nothing is one";
  const auto some = record(fields, {{"spec", {{"a", 1}}}, {"rules", json::array({7})}});
  ASSERT_EQ(some.unread.size(), 1u);
  EXPECT_EQ(some.unread[0].path, "port");
  EXPECT_THAT(some.unread[0].reason, HasSubstr("no `data`"));
  EXPECT_EQ(json::parse(some.body), json({{"first", 7}})) << "and a field that is gone from what is there is no fault";
}

/// Its body is its spec; what stands beside the spec is compared, too, and a name of the spec hides none of it.
TEST(K8sMapping, OfACustomObjectWhatIsBesideItsSpecIsComparedToo) {
  const Custom custom{"g", "v1", "K", {}};
  const Resource resource{"object", "/apis/g/v1", "ks", "K", true, {}, {}, &custom, "v1"};
  const auto body = [&](const json& object) { return json::parse(map_object(resource, object, Settings()).body); };
  EXPECT_EQ(body({{"rules", {1}}}), json({{"rules", {1}}}));
  EXPECT_EQ(body({{"spec", {{"a", 1}, {"data", 2}, {"labels", 3}}},
                  {"data", {{"b", 4}}},
                  {"metadata", {{"labels", {{"team", "x"}}}, {"annotations", {{"note", "y"}}}}}}),
            json({{"a", 1},
                  {"data", 2},
                  {"labels", 3},
                  {"annotations", {{"note", "y"}}},
                  {"more", {{"data", {{"b", 4}}}, {"labels", {{"team", "x"}}}}}}));
}

json deployment(const std::string& manager) {
  return {{"metadata",
           {{"name", "web"},
            {"namespace", "n"},
            {"managedFields",
             json::array({{{"manager", manager}, {"fieldsV1", {{"f:spec", {{"f:replicas", json::object()}}}}}}})}}},
          {"spec", {{"replicas", 3}}}};
}

/// After `kubectl scale --field-manager=keda-x` the number is hidden, and who hides it is a change.
TEST(K8sReplicas, WhoseTheNumberIsIsItselfJudged) {
  Settings settings;
  settings.replica_owners = {"kube-controller-manager", "keda*"};
  Resource resource;
  resource.kind = "deployment";
  const auto body = [&](const char* manager) {
    return json::parse(map_object(resource, deployment(manager), settings).body);
  };
  EXPECT_EQ(body("kubectl")["replicas"], 3);
  EXPECT_FALSE(body("kubectl").contains("replicas_owner"));
  EXPECT_EQ(body("keda-x")["replicas_owner"], "keda-x");
  EXPECT_FALSE(body("keda-x").contains("replicas"));
  EXPECT_EQ(body("kube-controller-manager")["replicas_owner"], "kube-controller-manager");
}

json body_of(const std::string& kind, const json& object) {
  Resource resource;
  resource.kind = kind;
  return json::parse(map_object(resource, object, Settings()).body);
}

json with_container(const json& more) {
  json container = {{"name", "app"}, {"image", "shop/app:1"}};
  container.update(more);
  return {{"metadata", {{"name", "web"}, {"namespace", "n"}}},
          {"spec", {{"template", {{"spec", {{"containers", json::array({container})}}}}}}}};
}

/// If a member inside a compared attribute were dropped, nobody would see its change.
TEST(K8sMapping, EveryMemberOfWhatIsComparedIsCompared) {
  const json port = {{"containerPort", 80}, {"protocol", "TCP"}};
  const json mount = {{"name", "v"}, {"mountPath", "/data"}};
  const json secret = {{"name", "s"}, {"key", "k"}}, field = {{"resource", "limits.cpu"}};
  const auto variable = [](const char* type, const json& source) {
    return json{{"env", json::array({{{"name", "X"}, {"valueFrom", {{type, source}}}}})}};
  };
  const auto with = [](json to, const char* name, const json& value) { return to[name] = value, to; };
  const auto ports = [](const json& each) { return json{{"ports", json::array({each})}}; };
  const auto mounts = [](const json& each) { return json{{"volumeMounts", json::array({each})}}; };
  const auto from = [](const char* type, const json& each) { return json{{"envFrom", json::array({{{type, each}}})}}; };
  const std::vector<std::pair<json, json>> changes{
      {ports(port), ports(with(port, "hostPort", 80))},
      {ports(with(port, "hostPort", 80)), ports(with(with(port, "hostPort", 80), "hostIP", "0.0.0.0"))},
      {mounts(mount), mounts(with(mount, "subPath", "etc"))},
      {mounts(mount), mounts(with(mount, "subPathExpr", "$(POD)"))},
      {mounts(mount), mounts(with(mount, "mountPropagation", "Bidirectional"))},
      {mounts(mount), mounts(with(mount, "recursiveReadOnly", "Enabled"))},
      {variable("secretKeyRef", secret), variable("secretKeyRef", with(secret, "optional", true))},
      {variable("configMapKeyRef", secret), variable("configMapKeyRef", with(secret, "optional", true))},
      {variable("resourceFieldRef", field), variable("resourceFieldRef", with(field, "divisor", "1m"))},
      {variable("resourceFieldRef", field), variable("resourceFieldRef", with(field, "containerName", "other"))},
      {from("secretRef", {{"name", "s"}}), from("secretRef", {{"name", "s"}, {"optional", true}})},
      {from("configMapRef", {{"name", "s"}}), from("configMapRef", {{"name", "s"}, {"optional", true}})},
      {{{"resources", json::object()}}, {{"resources", {{"claims", json::array({{{"name", "gpu"}}})}}}}}};
  for (const auto& [before, after] : changes) {
    const json one = body_of("deployment", with_container(before)),
               other = body_of("deployment", with_container(after));
    EXPECT_NE(one, other) << after;
    for (const char* named : {"ports", "mounts", "env", "env_from"}) {  // of old baselines: an upgrade must not report
                                                                        // drift
      const auto at = [&](const json& body) { return body["containers"]["app"].value(named, json()); };
      EXPECT_EQ(at(one), at(other)) << after;
    }
  }
  json pod = with_container(json::object());
  for (const char* member : {"hostPID", "hostIPC", "hostNetwork"}) {
    json opened = pod;
    opened["spec"]["template"]["spec"][member] = true;
    EXPECT_NE(body_of("daemon_set", pod), body_of("daemon_set", opened)) << member;
  }
  const json service = {{"metadata", {{"name", "web"}, {"namespace", "n"}}}, {"spec", {{"type", "LoadBalancer"}}}};
  for (const auto& [member, value] : {std::pair{"loadBalancerSourceRanges", json{"10.0.0.0/8"}},
                                      {"sessionAffinityConfig", json{{"clientIP", {{"timeoutSeconds", 10}}}}}}) {
    json other = service;
    other["spec"][member] = value;
    EXPECT_NE(body_of("service", service), body_of("service", other)) << member;
  }
}

/// Members that an older baseline could not hold are filled in silently, and a later change of them is reported.
TEST(K8sMapping, WhatANewerRevisionComparesIsNoDriftOfAnUpgrade) {
  std::ifstream in(std::string(DRIFTD_SOURCE_DIR) + "/plugins/k8s/schema.json");
  const json kinds = json::parse(in).at("kinds");
  const json container = {{"ports", json::array({{{"containerPort", 80}, {"protocol", "TCP"}, {"hostPort", 80}}})},
                          {"volumeMounts", json::array({{{"name", "v"}, {"mountPath", "/data"}, {"subPath", "etc"}}})}};
  json object = with_container(container);
  object["spec"]["template"]["spec"]["hostPID"] = true;
  const json now = body_of("deployment", object);
  json before = now;
  before.erase("host_pid");
  for (const char* each : {"host_ports", "mount_options"})
    ASSERT_EQ(before["containers"]["app"].erase(each), 1u) << each;
  const auto schema = core::KindSchema::parse(kinds.at("deployment").dump()).value();
  const auto changes = [&](const json& baseline, std::uint32_t revision) {
    core::DiffOptions options;
    options.old_revision = revision;
    return core::diff(core::parse(baseline.dump()).value(), core::parse(now.dump()).value(), *schema, options)
        .changes.size();
  };
  EXPECT_EQ(changes(before, 2), 0u);
  EXPECT_EQ(changes(before, 3), 3u);
}

TEST(K8sMapping, AnObjectThatIsNotOfItsFormOrTooDeepCostsItselfOnly) {
  const Settings settings;
  Resource resource;
  resource.kind = "deployment";
  json odd = deployment("kubectl");
  odd["spec"]["template"]["spec"]["volumes"] = {"no object"};
  const sdk::Record record = map_or_unreadable(resource, odd, {}, settings);
  EXPECT_EQ(record.id, "n/web");
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].path, "**");
  EXPECT_EQ(map_or_unreadable(resource, deployment("kubectl"), "too deep", settings).unread.at(0).path, "**");
  EXPECT_TRUE(map_or_unreadable(resource, deployment("kubectl"), {}, settings).unread.empty());
}

TEST(K8sOutline, AnObjectThatNestsTooDeepIsCutAndKeepsItsName) {
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  const auto parsed = kube::parse_object(R"({"kind":"Thing","metadata":{"name":"web"},"spec":)" + deep + "}");
  ASSERT_TRUE(parsed.cut);
  EXPECT_EQ(parsed.value.at("metadata").at("name"), "web");
  EXPECT_FALSE(kube::parse_object(R"({"metadata":{"name":"web"},"spec":[[]]})").cut);
}

/// An object that is too large is still identified, even if its metadata comes after the part that is too large.
TEST(K8sOutline, AnObjectOfTooManyValuesIsUnreadByItsName) {
  std::string list = "[{}";
  for (int i = 0; i < 300'000; ++i) list += ",{}";
  list += "]";
  const std::string metadata =
      R"({"labels":{"a":"b"},"managedFields":[{"fieldsV1":{"f:spec":)" + list +
      R"(},"manager":"m","operation":"Apply","time":"t"},)" +
      R"({"manager":"n","operation":"Update","time":"u"}],"name":"web","namespace":"n","uid":"1"})";
  Resource resource;
  resource.kind = "deployment";
  const std::string object =
      R"({"data":)" + list + R"(,"kind":"Thing","metadata":)" + metadata + R"(,"spec":{"a":)" + list + "}}";
  for (const bool event : {false, true}) {
    const auto parsed = kube::parse_object(event ? R"({"type":"ADDED","object":)" + object + "}" : object);
    ASSERT_TRUE(parsed.cut);
    ASSERT_TRUE(parsed.value.is_object());
    const json& found = event ? parsed.value.at("object") : parsed.value;
    EXPECT_EQ(event ? parsed.value.at("type") : "ADDED", "ADDED");
    EXPECT_LT(found.dump().size(), 400u);
    const sdk::Record record = map_or_unreadable(resource, found, parsed.why, Settings());
    EXPECT_EQ(record.id, "n/web");
    EXPECT_EQ(record.external_name, "1");
    EXPECT_EQ(record.metadata.at("manager"), "n");
    EXPECT_EQ(record.unread.at(0).path, "**");
    EXPECT_THAT(record.unread.at(0).reason, HasSubstr("more than 270000 values"));
  }
  EXPECT_TRUE(kube::parse_object(object + "}").value.is_discarded());
}

TEST(K8sSecretText, AnyUrlOfATextMayHoldThePassword) {
  EXPECT_TRUE(looks_secret({}, "http://a/b postgres://u:p@db"));
  EXPECT_TRUE(looks_secret({}, "amqp://a:5672,amqp://u:p@b"));
  EXPECT_FALSE(looks_secret({}, "http://a/b me@example.com http://c:80/x@v1.2"));
  for (const char c : {'?', '#', '"', '<', '\''}) {  // a password that should have been written with %
    EXPECT_TRUE(looks_secret({}, std::string("postgres://u:p") + c + "w@db/x")) << c;
  }
}

}  // namespace
}  // namespace driftd::k8s
