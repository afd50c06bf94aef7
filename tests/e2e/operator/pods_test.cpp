// SPDX-License-Identifier: Apache-2.0
// That Deployments become processes in the tests: the real kube-controller-manager, and the kubelet of the tests.
#include "operator_world.hpp"
#include "support/kube_pods.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

struct Pods : OperatorWorld {
  const std::string deployments = "/apis/apps/v1/namespaces/infrastructure/deployments";

  int ready() const { return kube.get(deployments + "/app").value("status", json::object()).value("readyReplicas", 0); }
};

TEST_F(Pods, ADeploymentBecomesProcessesWithTheirEnvironmentAndEndsWithThem) {
  const KubeControllers controllers(kube, dir);
  const TestKubelet kubelet(kube, dir,
                            {{"app:1", {"sh", "-c", "echo \"I am $WHO of $SPACE\"; exec tail -f /dev/null"}}});
  kube.create(
      deployments,
      json::parse(R"({"metadata": {"name": "app"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
      "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
        "initContainers": [{"name": "before", "image": "none", "command": ["sh", "-c", "echo first"]}],
        "containers": [{"name": "app", "image": "app:1", "env": [
          {"name": "WHO", "valueFrom": {"secretKeyRef": {"name": "who", "key": "name"}}},
          {"name": "SPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]}]}}}})"));
  const auto waits_for_the_secret = [&] {
    return kube.get(in("infrastructure", "pods")).dump().find("has no key") != std::string::npos;
  };
  ASSERT_TRUE(eventually(waits_for_the_secret, seconds(60))) << controllers.log() << kubelet.log();
  EXPECT_EQ(ready(), 0);
  kube.create_secret("infrastructure", "who", {{"name", "alice"}});
  ASSERT_TRUE(eventually([&] { return ready() == 2; }, seconds(60))) << controllers.log() << kubelet.log();
  EXPECT_THAT(kubelet.output("infrastructure", "app-", "app"), HasSubstr("I am alice of infrastructure"));
  EXPECT_THAT(kubelet.output("infrastructure", "app-", "before"), HasSubstr("first"));
  kube.remove(deployments + "/app");
  EXPECT_TRUE(eventually([&] { return kube.get(in("infrastructure", "pods")).at("items").empty(); }, seconds(60)))
      << kubelet.log() << controllers.log();
}

}  // namespace
}  // namespace driftd::test
