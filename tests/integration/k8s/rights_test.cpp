// SPDX-License-Identifier: Apache-2.0
// Rights that are missing: of a kind, of a namespace, to ask for types. Each stalls nothing else.
#include "failure.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;

TEST_F(K8sFailure, ADeniedKindIsNamedWithItsRightAndStallsNoOther) {
  const std::string space = fresh_namespace();
  fill(space, 1);
  const TempDir dir;
  const std::string token = kube().account(space, "half", json::array({rule("configmaps", {"get", "list", "watch"})}));
  ProviderProbe k8s = probe(with(kube().settings({space}),
                                 {{"include", {"secret", "config_map"}}, {"token_file", dir.write("token", token)}}));
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.status, DRIFTD_OK);
  EXPECT_EQ(got.complete.count("config_map"), 1u) << render(got);
  EXPECT_EQ(got.complete.count("secret"), 0u);
  const auto* denied = got.diagnostic(DRIFTD_DENIED);
  ASSERT_NE(denied, nullptr);
  EXPECT_EQ(denied->kind, "secret");
  EXPECT_EQ(denied->right, "list secrets in namespace " + space);
  const Collected read = k8s.read({{"secret", space + "/s-0"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  ASSERT_NE(read.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(read.diagnostic(DRIFTD_DENIED)->right, "get secrets in namespace " + space);
  const Collected watched =
      watch(k8s, "",
            {{[&] {
                kube().create("/api/v1/namespaces/" + space + "/configmaps", {{"metadata", {{"name", "c"}}}});
              },
              [&](const Collected& w) { return w.find("config_map", space + "/c") != nullptr; }}});
  EXPECT_NE(watched.diagnostic(DRIFTD_DENIED), nullptr);
}

TEST_F(K8sFailure, ADeniedNamespaceStallsNoOther) {
  const std::string first = fresh_namespace(), denied = fresh_namespace(), last = fresh_namespace();
  for (const auto& space : {first, denied, last}) fill(space, 2);
  const TempDir dir;
  const std::string token = kube().account(first, "some", json::array({rule("secrets", {"get", "list", "watch"})}));
  kube().create(
      "/apis/rbac.authorization.k8s.io/v1/namespaces/" + last + "/roles",
      {{"metadata", {{"name", "some"}}}, {"rules", json::array({rule("secrets", {"get", "list", "watch"})})}});
  kube().create("/apis/rbac.authorization.k8s.io/v1/namespaces/" + last + "/rolebindings",
                {{"metadata", {{"name", "some"}}},
                 {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", "some"}}},
                 {"subjects", json::array({{{"kind", "ServiceAccount"}, {"name", "some"}, {"namespace", first}}})}});
  ProviderProbe k8s = probe(with(kube().settings({first, denied, last}),
                                 {{"include", {"secret"}}, {"token_file", dir.write("token", token)}}));
  EXPECT_TRUE(eventually([&] { return k8s.refresh().find("secret", last + "/s-0") != nullptr; }));
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.status, DRIFTD_OK);
  for (const auto& space : {first, last}) {
    EXPECT_NE(got.find("secret", space + "/s-0"), nullptr) << render(got);
    EXPECT_NE(got.find("secret", space + "/s-1"), nullptr) << render(got);
  }
  EXPECT_EQ(got.complete.count("secret"), 0u) << "a part of the kind is not known";
  ASSERT_NE(got.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(got.diagnostic(DRIFTD_DENIED)->right, "list secrets in namespace " + denied);
  const Collected watched = watch(k8s, "",
                                  {{[&] {
                                      kube().create_secret(last, "new", {{"value", "x"}});
                                    },
                                    [&](const Collected& w) { return w.find("secret", last + "/new") != nullptr; }}});
  EXPECT_NE(watched.find("secret", last + "/new"), nullptr) << "the namespaces behind the denied one are watched";
}

TEST_F(K8sFailure, WithoutTheRightToAskForTypesAllOtherKindsAreStillSeen) {
  const std::string space = fresh_namespace(),
                    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:discovery";
  const TempDir dir;
  const json prism = {{"apiGroups", {"prism.io"}}, {"resources", {"*"}}, {"verbs", {"get", "list", "watch"}}};
  const std::string token =
      kube().account(space, "blind", json::array({rule("configmaps", {"get", "list", "watch"}), prism}));
  const json settings = with(kube().settings({space}),
                             {{"include", {"config_map", "prism_backend"}}, {"token_file", dir.write("token", token)}});
  const json kept = kube().get(binding).at("subjects");
  kube().patch(binding, {{"subjects", nullptr}});
  EXPECT_TRUE(eventually([&] { return probe(settings).refresh().diagnostic(DRIFTD_DENIED) != nullptr; }));
  ProviderProbe k8s = probe(settings);
  const Collected got = k8s.refresh();
  kube().patch(binding, {{"subjects", kept}});
  EXPECT_EQ(got.complete.count("config_map"), 1u) << render(got);
  EXPECT_EQ(got.complete.count("prism_backend"), 0u);
  ASSERT_NE(got.diagnostic(DRIFTD_DENIED), nullptr) << render(got);
  EXPECT_EQ(got.diagnostic(DRIFTD_DENIED)->kind, "prism_backend");
  EXPECT_THAT(got.diagnostic(DRIFTD_DENIED)->right, HasSubstr("get /apis/prism.io"));
  EXPECT_TRUE(eventually([&] { return k8s.refresh().diagnostic(DRIFTD_DENIED) == nullptr; }))
      << "the right was granted again";
}

}  // namespace
}  // namespace driftd::test
