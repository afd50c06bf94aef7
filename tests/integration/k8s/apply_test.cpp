// SPDX-License-Identifier: Apache-2.0
// Attributes are put back at a real API server: what was drifted reads as before, a dry run changes nothing, and what
// is refused leaves nothing half done.
#include "cluster.hpp"

#include "core/drift.hpp"
#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"
#include "core/value/value.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class K8sApply : public Cluster {
 protected:
  static ProviderProbe& provider() {
    static ProviderProbe made = probe(kube().settings({}));
    return made;
  }
  static sdk::Record read(const sdk::Identity& id) {
    const Collected got = provider().read({id});
    const auto* record = got.find(id.kind, id.id);
    return record == nullptr ? sdk::Record{} : *record;
  }
  /// Everything by which the object differs from `baseline` back to it, as the agent finds it by the kind's schema.
  static sdk::Apply back(const sdk::Identity& id, const sdk::Record& baseline) {
    const sdk::Record now = read(id);
    const auto schema = core::KindSchema::parse(provider().schema(id.kind));
    const auto found = core::diff(core::parse(now.body).value(), core::parse(baseline.body).value(), **schema, {});
    sdk::Apply out{false, id, now.version, "key of " + id.id + now.version, {}};
    for (const auto& change : found.changes) {
      out.changes.push_back({0, change.path, change.old_value.value_or(""), change.new_value.value_or("")});
    }
    return out;
  }
  static std::string outcome(const AppliedCall& got) {
    std::string out = std::to_string(got.status) + "/" + std::to_string(got.outcome.outcome) + " " + got.outcome.text;
    for (const auto& each : got.diagnostics) out += " | " + each.text;
    for (const auto& each : got.outcome.commands) out += "\n" + each;
    return out;
  }
  static AppliedCall dry(sdk::Apply request) {
    request.dry_run = true;
    return provider().apply(request);
  }
  /// Drifts `path` by this JSON Patch as `manager`.
  static void drift(const std::string& path, const std::string& patch, const std::string& manager = "kubectl-edit") {
    const auto answer =
        kube().request("PATCH", path + "?fieldManager=" + manager, patch, "application/json-patch+json");
    ASSERT_EQ(answer.status, 200) << answer.text;
  }
  static void make(const std::string& collection, const json& object, const std::string& manager = "kubectl-create") {
    const auto answer = kube().request("POST", collection + "?fieldManager=" + manager, object.dump());
    ASSERT_EQ(answer.status, 201) << answer.text;
  }
  /// Puts back what drifted and expects the reading of before: first dry, then really, then once more by the same key.
  static void expect_put_back(const sdk::Identity& id, const sdk::Record& baseline) {
    const sdk::Apply request = back(id, baseline);
    ASSERT_FALSE(request.changes.empty()) << "nothing was drifted";
    const AppliedCall tried = dry(request);
    ASSERT_EQ(tried.outcome.outcome, kSuccess) << outcome(tried);
    EXPECT_FALSE(tried.outcome.changed);
    EXPECT_EQ(read(id).version, request.expected_version) << "a dry run changes nothing";
    const AppliedCall done = provider().apply(request);
    ASSERT_EQ(done.outcome.outcome, kSuccess) << outcome(done);
    EXPECT_TRUE(done.outcome.changed);
    EXPECT_EQ(read(id).body, baseline.body);
    EXPECT_EQ(read(id).version, done.outcome.version);
    const AppliedCall again = provider().apply(request);
    EXPECT_EQ(again.outcome.outcome, kSuccess) << outcome(again);
    EXPECT_FALSE(again.outcome.changed);
  }
  static constexpr std::uint32_t kSuccess = DRIFTD_APPLY_SUCCESS, kFailed = DRIFTD_APPLY_FAILED;
};

json deployment() {
  return json::parse(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},
    "spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
      "spec":{"volumes":[{"name":"conf","configMap":{"name":"web"}}],
        "containers":[{"name":"app","image":"web:1","args":["-v"],"ports":[{"name":"http","containerPort":80}],
          "env":[{"name":"MODE","value":"fast"},{"name":"URL","valueFrom":{"configMapKeyRef":{"name":"web","key":"url"}}}],
          "resources":{"limits":{"memory":"1Gi"}},"volumeMounts":[{"name":"conf","mountPath":"/etc/web","readOnly":true}],
          "livenessProbe":{"httpGet":{"path":"/live","port":80}}},{"name":"side","image":"side:1"}]}}}})");
}

TEST_F(K8sApply, DriftOfADeploymentIsPutBack) {
  const std::string space = fresh_namespace(), all = "/apis/apps/v1/namespaces/" + space + "/deployments";
  make(all, deployment());
  const sdk::Identity id{"deployment", space + "/web"};
  const sdk::Record baseline = read(id);
  const std::string app = "/spec/template/spec/containers/0";
  for (
      const std::string& patch : std::vector<std::string>{
          R"([{"op":"replace","path":")" + app +
              R"(/image","value":"evil:9"},{"op":"replace","path":"/spec/replicas","value":0}])",
          R"([{"op":"remove","path":")" + app + R"(/env/1"},{"op":"add","path":")" + app +
              R"(/env/0","value":{"name":"X","value":"y"}}])",
          R"([{"op":"remove","path":"/spec/template/spec/containers/1"},{"op":"remove","path":")" + app +
              R"(/livenessProbe"}])",
          R"([{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"miner","image":"m:1"}}])",
          R"([{"op":"remove","path":")" + app + R"(/resources/limits"},{"op":"remove","path":")" + app +
              R"(/volumeMounts/0/readOnly"}])",
          R"([{"op":"replace","path":"/spec/strategy","value":{"type":"Recreate"}},{"op":"add","path":"/metadata/labels/x","value":"y"},
               {"op":"add","path":"/spec/template/spec/hostNetwork","value":true},{"op":"add","path":"/spec/minReadySeconds","value":5}])"}) {
    SCOPED_TRACE(patch);
    drift(all + "/web", patch);
    expect_put_back(id, baseline);
  }
}

TEST_F(K8sApply, DriftOfConfigMapsServicesIngressesAndRolesIsPutBack) {
  const std::string space = fresh_namespace(), core = "/api/v1/namespaces/" + space;
  make(core + "/configmaps",
       json::parse(R"({"metadata":{"name":"web"},"data":{"app.yaml":"a:   1 # why\n","b":"2"}})"));
  make(core + "/services", json::parse(R"({"metadata":{"name":"web"},"spec":{"selector":{"app":"web"},
    "ports":[{"name":"http","port":80,"targetPort":8080},{"name":"tls","port":443,"appProtocol":"https"}]}})"));
  make("/apis/networking.k8s.io/v1/namespaces/" + space + "/ingresses", json::parse(R"({"metadata":{"name":"web"},
    "spec":{"ingressClassName":"n","rules":[{"host":"a","http":{"paths":[{"path":"/","pathType":"Prefix",
    "backend":{"service":{"name":"web","port":{"name":"http"}}}}]}}]}})"));
  make("/apis/rbac.authorization.k8s.io/v1/namespaces/" + space + "/roles", json::parse(R"({"metadata":{"name":"web"},
    "rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})"));
  struct Case {
    std::string kind, path, patch;
  };
  for (
      const auto& each : std::vector<Case>{
          {"config_map", core + "/configmaps",
           R"([{"op":"replace","path":"/data/app.yaml","value":"a: 2\n"},{"op":"remove","path":"/data/b"},
             {"op":"add","path":"/data/new","value":"x"}])"},
          {"service", core + "/services",
           R"([{"op":"replace","path":"/spec/ports/0/port","value":81},{"op":"remove","path":"/spec/ports/1/appProtocol"},
             {"op":"replace","path":"/spec/selector/app","value":"evil"}])"},
          {"service", core + "/services", R"([{"op":"remove","path":"/spec/ports/1"}])"},
          {"ingress", "/apis/networking.k8s.io/v1/namespaces/" + space + "/ingresses",
           R"([{"op":"replace","path":"/spec/rules/0/http/paths/0/backend/service/name","value":"evil"},{"op":"remove","path":"/spec/ingressClassName"}])"},
          {"role", "/apis/rbac.authorization.k8s.io/v1/namespaces/" + space + "/roles",
           R"([{"op":"add","path":"/rules/0/verbs/-","value":"delete"}])"}}) {
    SCOPED_TRACE(each.kind + each.patch);
    const sdk::Identity id{each.kind, space + "/web"};
    const sdk::Record baseline = read(id);
    drift(each.path + "/web", each.patch);
    expect_put_back(id, baseline);
  }
}

TEST_F(K8sApply, FieldsOfAnotherManagerAreRespectedAndItIsNamed) {
  const std::string space = fresh_namespace(), all = "/apis/apps/v1/namespaces/" + space + "/deployments";
  make(all, deployment(), "helm");
  const sdk::Identity id{"deployment", space + "/web"};
  const sdk::Record baseline = read(id);
  drift(all + "/web", R"([{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:2"}])",
        "some-operator");
  const sdk::Apply request = back(id, baseline);
  for (const bool is_dry : {true, false}) {
    const AppliedCall got = is_dry ? dry(request) : provider().apply(request);
    EXPECT_EQ(got.status, DRIFTD_OK);
    EXPECT_EQ(got.outcome.outcome, kFailed);
    EXPECT_THAT(got.outcome.text,
                HasSubstr("some-operator (.spec.template.spec.containers[{\"name\":\"app\"}].image)"));
  }
  EXPECT_EQ(read(id).version, request.expected_version);
  ProviderProbe bold = probe(with(kube().settings({}), {{"apply", {{"take_over", {"some-*"}}}}}));
  const AppliedCall got = bold.apply(request);
  EXPECT_EQ(got.outcome.outcome, kSuccess) << outcome(got);
  EXPECT_EQ(read(id).body, baseline.body);
}

TEST_F(K8sApply, WithoutTheRightItIsNamedAndNothingIsHalfDone) {
  const std::string space = fresh_namespace(), core = "/api/v1/namespaces/" + space;
  make(core + "/configmaps", json::parse(R"({"metadata":{"name":"web"},"data":{"a":"1","b":"2"}})"));
  const sdk::Identity id{"config_map", space + "/web"};
  const sdk::Record baseline = read(id);
  drift(core + "/configmaps/web",
        R"([{"op":"replace","path":"/data/a","value":"9"},{"op":"replace","path":"/data/b","value":"9"}])");
  const TempDir dir;
  const json rules =
      json::array({{{"apiGroups", {""}}, {"resources", {"configmaps"}}, {"verbs", {"get", "list", "watch"}}}});
  const std::string token = kube().account(space, "reader", rules);
  ProviderProbe reader = probe(with(kube().settings({space}), {{"token_file", dir.write("token", token)}}));
  const sdk::Apply request = back(id, baseline);
  const AppliedCall got = reader.apply(request);
  EXPECT_EQ(got.outcome.outcome, kFailed) << outcome(got);
  EXPECT_EQ(got.outcome.details.at("right"), "patch configmaps in namespace " + space);
  EXPECT_EQ(read(id).version, request.expected_version);
}

TEST_F(K8sApply, RightsOfTheReadmeSuffice) {
  const std::string space = fresh_namespace(), core = "/api/v1/namespaces/" + space;
  make(core + "/configmaps", json::parse(R"({"metadata":{"name":"web"},"data":{"a":"1"}})"));
  const TempDir dir;
  const std::string token = kube().account(space, "driftd", json::array());
  std::string yaml = readme_block("k8s", "### To put values back", "yaml");
  for (const std::string from : {"namespace: prod", "namespace: driftd"}) {
    for (auto at = yaml.find(from); at != std::string::npos; at = yaml.find(from))
      yaml.replace(at, from.size(), "namespace: " + space);
  }
  kube().apply(yaml);
  ProviderProbe driftd = probe(with(kube().settings({space}), {{"token_file", dir.write("token", token)}}));
  const sdk::Identity id{"config_map", space + "/web"};
  AppliedCall got;
  EXPECT_TRUE(eventually([&] {
    got = driftd.apply({false, id, read(id).version, "k-readme", {{0, "data.a", "\"1\"", "\"2\""}}});
    return got.outcome.changed;
  })) << outcome(got);
}

TEST_F(K8sApply, GoneIsNotFoundAndChangedIsAConflictAndNothingIsCreated) {
  const std::string space = fresh_namespace(), core = "/api/v1/namespaces/" + space;
  make(core + "/configmaps", json::parse(R"({"metadata":{"name":"web"},"data":{"a":"1"}})"));
  const sdk::Identity id{"config_map", space + "/web"};
  sdk::Apply request{false, id, read(id).version, "k-gone", {{0, "data.a", "\"1\"", "\"2\""}}};
  drift(core + "/configmaps/web", R"([{"op":"add","path":"/data/other","value":"x"}])");
  EXPECT_EQ(provider().apply(request).status, DRIFTD_CONFLICT);
  request.expected_version.clear();
  request.changes[0].old_value = "\"0\"";
  EXPECT_EQ(provider().apply(request).status, DRIFTD_CONFLICT);
  EXPECT_EQ(read(id).body, R"({"data":{"a":"1","other":"x"}})");
  kube().remove(core + "/configmaps/web");
  EXPECT_EQ(provider().apply(request).status, DRIFTD_NOT_FOUND);
  EXPECT_EQ(dry(request).status, DRIFTD_NOT_FOUND);
  EXPECT_EQ(kube().request("GET", core + "/configmaps/web").status, 404);
}

TEST_F(K8sApply, ChangeBetweenReadingAndWritingIsAConflict) {
  const std::string space = fresh_namespace(), core = "/api/v1/namespaces/" + space;
  make(core + "/configmaps", json::parse(R"({"metadata":{"name":"web"},"data":{"a":"1"}})"));
  const sdk::Identity id{"config_map", space + "/web"};
  const std::string version = read(id).version;
  drift(core + "/configmaps/web", R"([{"op":"add","path":"/data/other","value":"x"}])");
  // What the provider sends if somebody was faster: its tests are those of the version that it read.
  const auto answer = kube().request("PATCH", core + "/configmaps/web",
                                     R"([{"op":"test","path":"/metadata/resourceVersion","value":")" + version +
                                         R"("},{"op":"replace","path":"/data/a","value":"2"}])",
                                     "application/json-patch+json");
  EXPECT_EQ(answer.status, 422) << answer.text;
  EXPECT_EQ(read(id).body, R"({"data":{"a":"1","other":"x"}})");
}

TEST_F(K8sApply, ValueThatTheServerRefusesFailsInTheDryRun) {
  const std::string space = fresh_namespace(), all = "/apis/apps/v1/namespaces/" + space + "/deployments";
  make(all, deployment());
  const sdk::Identity id{"deployment", space + "/web"};
  const sdk::Record now = read(id);
  const AppliedCall got =
      dry({true, id, now.version, "k-bad", {{0, "selector.matchLabels.app", "\"web\"", "\"other\""}}});
  EXPECT_EQ(got.status, DRIFTD_OK) << outcome(got);
  EXPECT_EQ(got.outcome.outcome, kFailed);
  EXPECT_THAT(got.outcome.text, HasSubstr("refuses the values"));
}

TEST_F(K8sApply, SecretsAreNeverSetAndTheirLabelsAre) {
  const std::string space = fresh_namespace(), core = "/api/v1/namespaces/" + space;
  make(core + "/secrets",
       json::parse(R"({"metadata":{"name":"db","labels":{"a":"b"}},"stringData":{"password":"hunter2"}})"));
  const sdk::Identity id{"secret", space + "/db"};
  const sdk::Record baseline = read(id);
  const AppliedCall got =
      dry({true, id, baseline.version, "k-secret", {{0, "data.password", "\"hunter2\"", "\"hunter3\""}}});
  EXPECT_EQ(got.outcome.outcome, kFailed) << outcome(got);
  EXPECT_THAT(got.outcome.text, HasSubstr("never put back"));
  drift(core + "/secrets/db", R"([{"op":"replace","path":"/metadata/labels/a","value":"c"}])");
  expect_put_back(id, baseline);
}

TEST_F(K8sApply, CommandNamesTheExactPatch) {
  const std::string space = fresh_namespace(), core = "/api/v1/namespaces/" + space;
  make(core + "/configmaps", json::parse(R"({"metadata":{"name":"web"},"data":{"a":"1"}})"));
  const sdk::Identity id{"config_map", space + "/web"};
  const AppliedCall got = dry({true, id, read(id).version, "k-command", {{0, "data.a", "\"1\"", "\"2\""}}});
  EXPECT_THAT(got.outcome.commands,
              ElementsAre("kubectl patch configmaps web -n " + space + " --type=json --field-manager=driftd -p '" +
                          R"([{"op":"replace","path":"/data/a","value":"2"}])" + "'"));
  EXPECT_THAT(got.outcome.undo, ElementsAre(HasSubstr(R"("value":"1")")));
}

/// A variable before a password was added: no position of the list is what the commands are about.
TEST_F(K8sApply, NeitherCommandsNorUndoTellASecretThatStandsBeside) {
  const std::string space = fresh_namespace(), all = "/apis/apps/v1/namespaces/" + space + "/deployments";
  json object = deployment();
  json& env = object["spec"]["template"]["spec"]["containers"][0]["env"];
  env.push_back({{"name", "DB_PASSWORD"}, {"value", "hunter2"}});
  make(all, object);
  const sdk::Identity id{"deployment", space + "/web"};
  const sdk::Record baseline = read(id);
  drift(all + "/web",
        R"([{"op":"add","path":"/spec/template/spec/containers/0/env/0","value":{"name":"EXTRA","value":"x"}},
          {"op":"move","from":"/spec/template/spec/containers/0/env/3","path":"/spec/template/spec/containers/0/env/1"}])");
  const AppliedCall got = dry(back(id, baseline));
  ASSERT_EQ(got.outcome.outcome, kSuccess) << outcome(got);
  EXPECT_THAT(got.outcome.commands, ElementsAre(HasSubstr(R"([{"op":"remove")")));
  EXPECT_THAT(got.outcome.undo, ElementsAre(HasSubstr(R"("name":"EXTRA")")));
  for (const auto& command : {got.outcome.commands[0], got.outcome.undo[0]})
    EXPECT_EQ(command.find("hunter2"), std::string::npos) << command;
  expect_put_back(id, baseline);
}

}  // namespace
}  // namespace driftd::test
