// SPDX-License-Identifier: Apache-2.0
// What lists mean on a real API server: the plugin's table is that of the server's documents, and a custom kind is read
// as its own document says, or not at all.
#include "cluster.hpp"
#include "k8s/kinds.hpp"
#include "k8s/list_types.hpp"
#include "k8s/openapi.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;

struct K8sListTypes : Cluster {
  static std::string document(const std::string& base) {
    const auto answer = kube().request("GET", "/openapi/v3" + base);
    EXPECT_EQ(answer.status, 200) << base;
    return answer.text;
  }
  /// A namespaced type in the version v1, its plural and singular as its kind.
  struct Type {
    std::string group, kind, plural;
    std::string path() const { return "/apis/" + group + "/v1"; }
  };
  /// Creates the CRD with this schema of its spec and waits until it is served and documented.
  static void install(const Type& type, const json& spec) {
    const json schema = {{"type", "object"}, {"properties", {{"spec", spec}}}};
    const json version = {
        {"name", "v1"}, {"served", true}, {"storage", true}, {"schema", {{"openAPIV3Schema", schema}}}};
    kube().create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                  {{"metadata",
                    {{"name", type.plural + "." + type.group},
                     {"annotations", {{"api-approved.kubernetes.io", "unapproved, a test"}}}}},
                   {"spec",
                    {{"group", type.group},
                     {"scope", "Namespaced"},
                     {"names", {{"kind", type.kind}, {"plural", type.plural}}},
                     {"versions", json::array({version})}}}});
    ASSERT_TRUE(eventually([&] {
      return kube().request("GET", type.path() + "/" + type.plural).status == 200 &&
             kube().request("GET", "/apis/" + type.group).status == 200 &&
             kube().request("GET", "/openapi/v3" + type.path()).text.find(type.kind) != std::string::npos;
    }));
  }
  static json list(const char* type, json items, json more = json::object()) {
    more["type"] = "array";
    more["items"] = std::move(items);
    more["x-kubernetes-list-type"] = type;
    return more;
  }
};

TEST_F(K8sListTypes, TheTableOfThePluginIsThatOfTheServersDocuments) {
  std::map<std::string, json> documents;
  json kinds = json::object(), types = json::object();
  for (const auto& resource : k8s::known_resources(k8s::Settings())) {
    if (resource.kind == k8s::kHelmRelease) continue;
    auto& parsed = documents[resource.base];
    if (parsed.is_null()) parsed = k8s::parse_openapi(document(resource.base));
    const std::string version = resource.base.substr(resource.base.rfind('/') + 1);
    const bool core = resource.base.starts_with("/api/");
    const std::string group = core ? "" : resource.base.substr(6, resource.base.rfind('/') - 6);
    const std::string name = k8s::type_name(parsed, {group, version, resource.object});
    ASSERT_NE(name, "") << resource.kind;
    kinds[resource.kind] = name;
    types.update(k8s::list_types_of(parsed, {name}));
  }
  const json& table = k8s::ListTypes::shipped().table();
  EXPECT_EQ(table.at("kinds"), kinds);
  EXPECT_EQ(table.at("types"), types) << "make plugins/k8s/list_types.json again: list_types.py, "
                                      << json::diff(table.at("types"), types).dump();
}

TEST_F(K8sListTypes, ACustomKindIsReadAsItsDocumentSays) {
  const json port = {{"type", "object"},
                     {"required", {"port"}},
                     {"properties", {{"port", {{"type", "integer"}}}, {"name", {{"type", "string"}}}}}};
  const json text = {{"type", "string"}};
  install({"example.org", "Thing", "things"},
          {{"type", "object"},
           {"properties",
            {{"ports", list("map", port, {{"x-kubernetes-list-map-keys", {"port"}}})},
             {"zones", list("set", text)},
             {"order", list("atomic", text)}}}});
  const std::string space = fresh_namespace(), path = "/apis/example.org/v1/namespaces/" + space + "/things";
  const auto thing = [](json ports, json zones, json order) -> json {
    return {{"apiVersion", "example.org/v1"},
            {"kind", "Thing"},
            {"metadata", {{"name", "a"}, {"annotations", {{"note", "x"}}}}},
            {"spec", {{"ports", std::move(ports)}, {"zones", std::move(zones)}, {"order", std::move(order)}}}};
  };
  const json one = {{"port", 80}, {"name", "web"}}, two = {{"port", 81}, {"name", "admin"}};
  kube().create(path, thing(json::array({one, two}), {"b", "a"}, {"z", "y"}));
  const json objects = json::array({{{"group", "example.org"}, {"kind", "Thing"}}});
  ProviderProbe k8s = probe(with(kube().settings({space}), {{"include", {"object"}}, {"objects", objects}}));
  const std::string id = "Thing.example.org/" + space + "/a";
  const Collected got = k8s.refresh();
  const json expected = {{"annotations", {{"note", "x"}}},
                         {"ports", {{"80", one}, {"81", two}}},
                         {"zones", {"a", "b"}},
                         {"order", {"z", "y"}}};
  EXPECT_EQ(got.body("object", id), expected) << render(got);
  EXPECT_EQ(k8s.read({{"object", id}}).body("object", id), expected);
  const json fields = json::array(
      {{{"group", "example.org"}, {"kind", "Thing"}, {"fields", {{"all", "spec.ports"}, {"first", "spec.ports[0]"}}}}});
  ProviderProbe some = probe(with(kube().settings({space}), {{"include", {"object"}}, {"objects", fields}}));
  EXPECT_EQ(some.refresh().body("object", id),
            json({{"all", expected.at("ports")}, {"first", one}, {"annotations", {{"note", "x"}}}}));
}

/// A cluster without the Gateway API has none of its objects, which is no error; one with it is read by default.
TEST_F(K8sListTypes, OfTheGatewayApiIsReadWhatTheServerServes) {
  const std::string space = fresh_namespace(), id = space + "/public";
  const json settings = with(kube().settings({space}), {{"include", {"gateway", "http_route"}}});
  const Collected none = probe(settings).refresh();
  EXPECT_TRUE(none.diagnostics.empty()) << render(none);
  EXPECT_EQ(none.complete.at("gateway"), 0u);
  EXPECT_EQ(none.complete.at("http_route"), 0u);
  const json listener = {{"type", "object"}, {"required", {"name"}}, {"properties", {{"name", {{"type", "string"}}}}}};
  const Type type{"gateway.networking.k8s.io", "Gateway", "gateways"};
  install(type, {{"type", "object"},
                 {"properties", {{"listeners", list("map", listener, {{"x-kubernetes-list-map-keys", {"name"}}})}}}});
  const json listeners = json::array({{{"name", "web"}}});
  kube().create(type.path() + "/namespaces/" + space + "/gateways", {{"apiVersion", "gateway.networking.k8s.io/v1"},
                                                                     {"kind", "Gateway"},
                                                                     {"metadata", {{"name", "public"}}},
                                                                     {"spec", {{"listeners", listeners}}}});
  ProviderProbe k8s = probe(settings);
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.body("gateway", id), json({{"spec", {{"listeners", {{"web", {{"name", "web"}}}}}}}})) << render(got);
  EXPECT_EQ(got.complete.at("http_route"), 0u);
  const Collected read = k8s.read({{"http_route", space + "/x"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << "a type that is not served deletes nothing";
}

/// A CRD that is deleted and made again takes its objects along and may bring them back; until then nothing is judged
/// about what is missing.
TEST_F(K8sListTypes, ATypeThatIsNoLongerServedLeavesItsKindIncomplete) {
  const std::string space = fresh_namespace();
  const Type type{"lost.example", "Lost", "losts"};
  install(type, {{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}});
  const json types = json::array({{{"group", type.group}, {"kind", type.kind}}});
  ProviderProbe k8s = probe(with(kube().settings({space}), {{"include", {"object"}}, {"objects", types}}));
  EXPECT_EQ(k8s.refresh().complete.count("object"), 1u);
  ASSERT_TRUE(kube().remove_wholly("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/losts.lost.example"));
  ASSERT_TRUE(eventually([&] { return kube().request("GET", "/apis/" + type.group).status == 404; }));
  const Collected lost = k8s.refresh();
  EXPECT_EQ(lost.complete.count("object"), 0u) << render(lost);
  ASSERT_NE(lost.diagnostic(DRIFTD_UNSUPPORTED), nullptr) << render(lost);
}

/// Without the document nobody knows which form the lists have, and a wrong one would look like a change.
TEST_F(K8sListTypes, WithoutItsDocumentAnObjectIsUnreadWithTheReason) {
  const std::string space = fresh_namespace(),
                    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:discovery";
  kube().create("/apis/policy/v1/namespaces/" + space + "/poddisruptionbudgets",
                {{"metadata", {{"name", "x"}}}, {"spec", {{"minAvailable", 1}}}});
  // A role that may ask for the types, but not for the documents.
  kube().create(
      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
      {{"metadata", {{"name", "types-only"}}},
       {"rules",
        json::array({{{"nonResourceURLs", {"/api", "/api/*", "/apis", "/apis/*", "/version"}}, {"verbs", {"get"}}}})}});
  kube().create(
      "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
      {{"metadata", {{"name", "types-only"}}},
       {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "types-only"}}},
       {"subjects",
        json::array(
            {{{"kind", "Group"}, {"apiGroup", "rbac.authorization.k8s.io"}, {"name", "system:authenticated"}}})}});
  const TempDir dir;
  const json rule = {
      {"apiGroups", {"policy"}}, {"resources", {"poddisruptionbudgets"}}, {"verbs", {"get", "list", "watch"}}};
  const std::string token = kube().account(space, "blind", json::array({rule}));
  const json settings = with(kube().settings({space}),
                             {{"include", {"object"}},
                              {"objects", json::array({{{"group", "policy"}, {"kind", "PodDisruptionBudget"}}})},
                              {"token_file", dir.write("token", token)}});
  const json kept = kube().get(binding).at("subjects");
  kube().patch(binding, {{"subjects", nullptr}});
  EXPECT_TRUE(eventually([&] {
    return kube().request_as(token, "GET", "/openapi/v3/apis/policy/v1").status == 403 &&
           kube().request_as(token, "GET", "/apis/policy/v1").status == 200;
  }));
  ProviderProbe k8s = probe(settings);
  const std::string id = "PodDisruptionBudget.policy/" + space + "/x";
  const Collected blind = k8s.refresh();
  kube().patch(binding, {{"subjects", kept}});
  const sdk::Record* record = blind.find("object", id);
  ASSERT_NE(record, nullptr) << render(blind);
  ASSERT_EQ(record->unread.size(), 1u);
  EXPECT_EQ(record->unread[0].path, "**");
  EXPECT_THAT(record->unread[0].reason, HasSubstr("/openapi/v3/apis/policy/v1: HTTP status 403"));
  EXPECT_EQ(blind.complete.at("object"), 1u);
  ASSERT_NE(blind.diagnostic(DRIFTD_UNSUPPORTED), nullptr);
  EXPECT_THAT(blind.diagnostic(DRIFTD_UNSUPPORTED)->text, HasSubstr("HTTP status 403"));
  EXPECT_TRUE(eventually([&] {
    return k8s.refresh().body("object", id) == json({{"minAvailable", 1}});
  })) << "the right was granted again";
}

}  // namespace
}  // namespace driftd::test
