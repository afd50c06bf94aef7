// SPDX-License-Identifier: Apache-2.0
// The shipped CRD of PrismBackend and the provider: what the schema takes, the provider understands.
#include <filesystem>

#include "cluster.hpp"

namespace driftd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct K8sShippedCrd : Cluster {
  K8sShippedCrd() {
    kube().apply(read_file(DRIFTD_SOURCE_DIR "/packaging/kubernetes/crds/prismbackends.yaml"));
    const auto served = [] {
      return kube().request("GET", "/apis/prism.io").status == 200 &&
             kube().request("GET", "/apis/prism.io/v1alpha1/prismbackends").status == 200;
    };
    if (!eventually(served)) throw std::runtime_error("the CRD is not served");
  }
  ~K8sShippedCrd() override {  // other tests of the process install a CRD that takes any spec
    kube().request("DELETE", "/apis/prism.io/v1alpha1/prismbackends");
    kube().remove_wholly("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/prismbackends.prism.io");
  }
};

TEST_F(K8sShippedCrd, EachExampleIsDiscoveredUnderItsTypeWithoutAFault) {
  std::map<std::string, std::string> types;  // by name
  for (const auto& file : std::filesystem::directory_iterator(DRIFTD_SOURCE_DIR "/examples/kubernetes")) {
    const std::string yaml = read_file(file.path());
    if (yaml.find("kind: PrismBackend") == std::string::npos) continue;
    const auto made = kube().request("POST", "/apis/prism.io/v1alpha1/prismbackends", yaml, "application/yaml");
    ASSERT_EQ(made.status, 201) << file.path() << made.text;
    types[text(made.body, "name")] = made.body.at("spec").at("type");
  }
  EXPECT_GE(types.size(), 11u);
  ProviderProbe k8s = probe(kube().settings({}));
  const Collected found = k8s.discover();
  EXPECT_TRUE(found.discovery_complete) << render(found);
  ASSERT_EQ(found.diagnostics.size(), 1u) << render(found);
  EXPECT_EQ(found.diagnostics[0].backend, "redis-emea");
  EXPECT_THAT(found.diagnostics[0].text, HasSubstr("it is in another cluster"));
  types.erase("redis-emea");
  for (const auto& backend : found.backends) {
    const std::string type = backend.type == "postgres" ? "postgresql" : backend.type;
    EXPECT_EQ(types[backend.name], type) << backend.name;
    types.erase(backend.name);
  }
  EXPECT_TRUE(types.empty()) << types.begin()->first << " was not discovered";
  EXPECT_THAT(k8s.refresh().body("registration", "reports-db")["config"]["postgres"]["host"],
              "reports.eu-west-1.rds.example.org");
}

}  // namespace
}  // namespace driftd::test
