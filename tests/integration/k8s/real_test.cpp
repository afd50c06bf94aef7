// SPDX-License-Identifier: Apache-2.0
// The provider with the README's rights, a Helm release that helm makes, and quantities in different notations.
#include "cluster.hpp"
#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"
#include "k8s/kinds.hpp"
#include "support/redis.hpp"  // readme_grants

namespace driftd::test {
namespace {

struct K8sReal : Cluster {
  /// Creates the namespaces of the README's rights, unless another test did.
  static void create_readme_namespaces() {
    for (const char* name : {"driftd", "prod"})
      kube().request("POST", "/api/v1/namespaces", json{{"metadata", {{"name", name}}}}.dump());
  }
};

TEST_F(K8sReal, TheRightsOfTheReadmeAreEnough) {
  kube().install_prism();
  create_readme_namespaces();
  kube().apply(readme_grants("k8s", "yaml"));
  kube().create_secret("prod", "db", {{"password", "x"}});
  const TempDir dir;
  ProviderProbe k8s =
      probe(with(kube().settings({"prod"}), {{"token_file", dir.write("token", kube().token_of("driftd", "driftd"))}}));
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.status, DRIFTD_OK);
  EXPECT_TRUE(got.diagnostics.empty()) << render(got);
  const json described = k8s.describe();
  for (const auto& kind : described.at("kinds")) EXPECT_EQ(got.complete.count(kind), 1u) << kind;
  EXPECT_EQ(k8s.health().health.system_identity.size(), 36u);
  const Collected watched = watch(k8s, "",
                                  {{[&] {
                                      kube().create_secret("prod", "new", {{"a", "b"}});
                                    },
                                    [&](const Collected& w) { return w.find("secret", "prod/new") != nullptr; }}});
  EXPECT_TRUE(watched.diagnostics.empty()) << render(watched);
}

TEST_F(K8sReal, TheRightsOfTheReadmeForTheClusterAreEnough) {
  create_readme_namespaces();
  kube().apply(readme_grants("k8s", "yaml"));
  kube().apply(readme_block("k8s", "### Rights for the cluster", "yaml"));
  const TempDir dir;
  json kinds = json::array();
  for (const auto& resource : k8s::cluster_resources()) kinds.push_back(resource.kind);
  ProviderProbe k8s =
      probe(with(kube().settings({"prod"}),
                 {{"token_file", dir.write("token", kube().token_of("driftd", "driftd"))}, {"include", kinds}}));
  const Collected got = k8s.refresh();
  EXPECT_TRUE(got.diagnostics.empty()) << render(got);
  for (const auto& kind : kinds) EXPECT_EQ(got.complete.count(kind), 1u) << kind;
  EXPECT_GT(got.complete.at("cluster_role"), 0u) << render(got);
}

TEST_F(K8sReal, AHelmReleaseIsItsHighestDeployedRevision) {
  const std::string space = fresh_namespace(), id = space + "/shop";
  const TempDir dir;
  const std::string chart = dir.file("app");
  ASSERT_EQ(kube().helm({"create", chart}).code, 0);
  const auto deploy = [&](const std::string& verb, const std::string& tag) {
    const Output done =
        kube().helm({verb, "shop", chart, "-n", space, "--set", "image.tag=" + tag, "--disable-openapi-validation"});
    ASSERT_EQ(done.code, 0) << done.err;
  };
  deploy("install", "canary-1");
  ProviderProbe k8s = probe(with(kube().settings({space}), {{"include", {"helm_release", "secret"}}}));
  const Collected first = k8s.refresh();
  const sdk::Record* record = first.find("helm_release", id);
  ASSERT_NE(record, nullptr) << render(first);
  const json body = json::parse(record->body);
  EXPECT_EQ(body["chart"], "app");
  EXPECT_EQ(body["chart_version"], "0.1.0");
  EXPECT_EQ(body["status"], "deployed");
  EXPECT_EQ(body["values"]["image"]["tag"], "canary-1");
  EXPECT_EQ(record->sensitive, std::vector<std::string>{"values"});
  EXPECT_EQ(first.complete.at("helm_release"), 1u);
  EXPECT_EQ(first.complete.at("secret"), 0u) << "the Secret that stores a release is not reported as a Secret";
  const Collected upgraded = watch(k8s, "",
                                   {{[&] { deploy("upgrade", "canary-2"); },
                                     [&](const Collected& got) {
                                       return std::any_of(got.records.begin(), got.records.end(), [&](const auto& r) {
                                         return r.unread.empty() && r.body.find("canary-2") != std::string::npos;
                                       });
                                     }},
                                    {[&] {
                                       ASSERT_EQ(kube().helm({"uninstall", "shop", "-n", space}).code, 0);
                                     },
                                     [&](const Collected& got) { return got.records.back().tombstone; }}});
  const bool in_flight = std::any_of(upgraded.records.begin(), upgraded.records.end(),
                                     [](const auto& r) { return !r.unread.empty() && r.unread[0].path == "**"; });
  for (const auto& r : upgraded.records) {
    const bool pending = !r.unread.empty() && r.unread[0].path == "**";
    const bool deployed = r.body.find("canary-1") != std::string::npos || r.body.find("canary-2") != std::string::npos;
    EXPECT_TRUE(r.tombstone || pending || deployed) << r.body;
  }
  for (const auto& r : upgraded.records) EXPECT_EQ(r.external_name, r.tombstone ? "" : record->external_name);
  std::cout << "records of the upgrade: " << upgraded.records.size() << ", in flight seen: " << in_flight << "\n";
  EXPECT_NE(k8s.read({{"helm_release", id}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(K8sReal, QuantitiesAreEqualHoweverTheyAreWritten) {
  const std::string space = fresh_namespace(), path = "/apis/apps/v1/namespaces/" + space + "/deployments";
  const auto deployment = [](const std::string& name, const std::string& cpu, const std::string& memory) -> json {
    const json pod = {
        {"metadata", {{"labels", {{"app", "x"}}}}},
        {"spec",
         {{"containers", json::array({{{"name", "main"},
                                       {"image", "x"},
                                       {"resources", {{"limits", {{"cpu", cpu}, {"memory", memory}}}}}}})}}}};
    return {{"metadata", {{"name", name}}},
            {"spec", {{"selector", {{"matchLabels", {{"app", "x"}}}}}, {"template", pod}}}};
  };
  ProviderProbe k8s = probe(with(kube().settings({space}), {{"include", {"deployment"}}}));
  const auto schema = core::KindSchema::parse(k8s.schema("deployment"));
  ASSERT_TRUE(schema) << schema.error().message;
  const auto body_of_new = [&](const std::string& name, const std::string& cpu, const std::string& memory) {
    kube().create(path, deployment(name, cpu, memory));
    return k8s.read({{"deployment", space + "/" + name}}).body("deployment", space + "/" + name);
  };
  const json base = body_of_new("a", "1", "2Gi"), same = body_of_new("b", "1000m", "2048Mi"),
             other = body_of_new("c", "1001m", "2Gi");
  const auto differences = [&](const json& one, const json& two) {
    return core::diff(core::parse(one.dump()).value(), core::parse(two.dump()).value(), *schema.value(), {})
        .changes.size();
  };
  EXPECT_EQ(differences(base, same), 0u);
  EXPECT_EQ(differences(base, other), 1u);
  json literal = base;
  literal["containers"]["main"]["resources"]["limits"] = {{"cpu", "1000m"}, {"memory", "2147483648"}};
  EXPECT_EQ(differences(base, literal), 0u) << "in the notation of a manifest";
}

}  // namespace
}  // namespace driftd::test
