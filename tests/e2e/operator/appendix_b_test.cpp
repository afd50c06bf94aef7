// SPDX-License-Identifier: Apache-2.0
// Appendix B of the discovery RFC, with the real Helm, API server, controller-manager, Redis and Kafka. The kubelet is
// one of our own for tests: it runs containers as processes of this machine.
#include <iostream>

#include "helm_world.hpp"
#include "support/kafka.hpp"
#include "support/kube_pods.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

/// As the RFC has it.
constexpr const char* kOrderConsumer = R"({
  "apiVersion": "prism.io/v1alpha1", "kind": "PrismPattern",
  "metadata": {"name": "order-consumer", "namespace": "applications"},
  "spec": {
    "pattern": "consumer", "image": "ghcr.io/prism/consumer-runner:latest", "replicas": 2,
    "backendBindings": {"message_source": {"backendRef": "kafka-infrastructure"},
                        "state_store": {"backendRef": "redis-infrastructure"}},
    "autoscaling": {"enabled": true, "scaler": "keda", "minReplicas": 2, "maxReplicas": 50,
                    "triggers": [{"type": "kafka", "metadata": {"lagThreshold": "1000"}}]}}})";

struct AppendixB : HelmWorld {
  RedisServer redis;
  KafkaServer kafka;
  const std::string applications = "/apis/prism.io/v1alpha1/namespaces/applications/prismpatterns";

  AppendixB() {
    kube.create_namespace("applications");
    kube.apply(read_file(DRIFTD_SOURCE_DIR "/packaging/kubernetes/operator-share.yaml"));
    redis.command({"ACL", "SETUSER", "default", ">one"});
  }
  void rotate(const std::string& now, const std::string& rule) const {
    const Output done = run({"redis-cli", "-p", std::to_string(redis.port()), "--no-auth-warning", "-a", now, "ACL",
                             "SETUSER", "default", rule});
    ASSERT_EQ(done.out, "OK\n") << done.err;
  }
  Chart redis_chart(const std::string& password) const {
    return {"redis", "FULL-master", redis.port(), "FULL", "redis-password", password};
  }
  json deployment() const { return kube.get("/apis/apps/v1/namespaces/applications/deployments/order-consumer"); }
  bool is_rolled_out() const {
    const json now = deployment(), status = now.value("status", json::object());
    return status.value("observedGeneration", 0) == now.at("metadata").at("generation") &&
           status.value("updatedReplicas", 0) == 2 && status.value("replicas", 0) == 2 &&
           status.value("readyReplicas", 0) == 2;
  }
};

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

TEST_F(AppendixB, FromHelmInstallToARunningConsumerARotationAndAnUninstall) {
  const KubeControllers controllers(kube, dir);
  const TestKubelet kubelet(
      kube, dir, {{"ghcr.io/prism/consumer-runner:latest", {Agent::build("bin/appendix_b_consumer")}}},
      {"redis-master.infrastructure.svc.cluster.local", "kafka.infrastructure.svc.cluster.local"});
  const OperatorProcess op(kube, dir, "operator", {"--share-credentials-with", "applications"});
  const int broker = std::stoi(kafka.address().substr(kafka.address().rfind(':') + 1));

  // helm install redis, helm install kafka: kubectl get prismbackend shows them.
  const auto installed = Clock::now();
  install("redis", redis_chart("one"));
  install("kafka", {"kafka", "FULL", broker});
  ASSERT_TRUE(comes("redis-infrastructure", "Discovered", seconds(30))) << op.log();
  ASSERT_TRUE(comes("kafka-infrastructure", "Discovered", seconds(30))) << op.log();
  std::cout << "both PrismBackends were Discovered " << since(installed) << " s after helm install\n";
  EXPECT_LT(since(installed), 30);

  // kubectl apply of the PrismPattern: its program starts with working connections.
  const auto applied = Clock::now();
  kube.create(applications, json::parse(kOrderConsumer));
  const auto output = [&] { return kubelet.output("applications", "order-consumer-", "consumer-runner"); };
  const auto running = [&] {
    return kube.request("GET", "/apis/apps/v1/namespaces/applications/deployments/order-consumer").status == 200 &&
           is_rolled_out() && output().find("Starting message consumption...") != std::string::npos;
  };
  ASSERT_TRUE(eventually(running, seconds(60))) << kube.get(applications + "/order-consumer").dump(2) << op.log()
                                                << kubelet.log() << controllers.log() << output();
  std::cout << "two consumers ran " << since(applied) << " s after the PrismPattern\n";
  EXPECT_LT(since(applied), 30);
  EXPECT_THAT(output(), HasSubstr("[INFO] Fetching backend config for message_source: kafka-infrastructure"));
  EXPECT_THAT(output(), HasSubstr("[INFO] Connecting to Redis at redis-master.infrastructure.svc.cluster.local:" +
                                  std::to_string(redis.port())));
  EXPECT_THAT(output(), HasSubstr("[INFO] All backends connected"));
  EXPECT_THAT(deployment().dump(), Not(HasSubstr("\"one\""))) << "no clear password";

  // A rotation: both passwords work until the programs have the new one.
  kube.patch(applications + "/order-consumer", {{"spec", {{"rollout", {{"onRotation", "Restart"}}}}}});
  ASSERT_TRUE(eventually([&] { return deployment().dump().find("prism.io/credentials") != std::string::npos; }));
  ASSERT_TRUE(eventually([&] { return is_rolled_out(); }, seconds(60))) << op.log() << kubelet.log();
  const json before = deployment().at("metadata").at("generation");
  ASSERT_NO_FATAL_FAILURE(rotate("one", ">two"));
  install("redis", redis_chart("two"));
  ASSERT_TRUE(
      eventually([&] { return deployment().at("metadata").at("generation") > before && is_rolled_out(); }, seconds(60)))
      << op.log() << kubelet.log();
  ASSERT_NO_FATAL_FAILURE(rotate("two", "<one"));
  const std::size_t at = output().size();
  ASSERT_TRUE(eventually([&] { return output().size() > at + 500; })) << "they go on";
  EXPECT_THAT(output(), Not(HasSubstr("[ERROR]"))) << "no operation failed";

  // kubectl delete, helm uninstall: nothing is left.
  kube.remove(applications + "/order-consumer");
  const auto is_empty = [&](const std::string& path) { return kube.get(path).at("items").empty(); };
  EXPECT_TRUE(eventually([&] { return is_empty("/apis/apps/v1/namespaces/applications/deployments"); }, seconds(60)));
  EXPECT_TRUE(eventually([&] { return is_empty(in("applications", "pods")); }, seconds(60))) << kubelet.log();
  EXPECT_TRUE(eventually([&] { return is_empty(in("applications", "secrets")); }, seconds(60))) << "the shared copy";
  uninstall("redis");
  uninstall("kafka");
  EXPECT_TRUE(eventually([&] { return is_empty(backends()); }, seconds(60))) << op.log();
}

}  // namespace
}  // namespace driftd::test
