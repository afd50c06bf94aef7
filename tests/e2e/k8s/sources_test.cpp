// SPDX-License-Identifier: Apache-2.0
// A cluster as a source: labelled objects define a backend. What changes in them is an event of that backend, under the
// field names of its registration.
#include <gmock/gmock.h>

#include "driftd/v1/event.pb.h"
#include "support/agent.hpp"
#include "support/kube.hpp"
#include "support/nats.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kLabels =
    R"({"prism.io/backend":"true","prism.io/backend-name":"orders","prism.io/backend-type":"kafka"})";

struct K8sSource : testing::Test {
  KubeServer kube;
  NatsServer nats;
  TempDir dir;

  K8sSource() { kube.create_namespace("prod"); }
  json service(int port) const {
    return {{"metadata", {{"name", "orders-kafka"}, {"labels", json::parse(kLabels)}}},
            {"spec", {{"ports", {{{"name", "client"}, {"port", port}}}}}}};
  }
  void define() {
    kube.create("/api/v1/namespaces/prod/services", service(9092));
    kube.create_secret("prod", "orders-login", {{"username", "app"}, {"password", "canary-one"}}, json::parse(kLabels));
  }
  Agent agent(const std::string& more = "") const {
    const std::string settings = "{ server: \"" + kube.server() + "\", tls: { ca_file: \"" + kube.ca_file() +
                                 "\" }, token_file: \"" + kube.file("token") +
                                 "\", namespaces: [prod], exclude: [endpoint_slice] }";
    return Agent(
        dir, "defaults: { interval: 1s }\nbackends:\n  - name: cluster\n    provider: k8s\n    settings: " + settings +
                 "\n" + more + "sinks:\n  bus: { type: nats, servers: [\"" + nats.url() + "\"], views: false }\n");
  }
  static v1::BackendChangeEvent event_of(const NatsReceived& message) {
    v1::BackendChangeEvent out;
    EXPECT_TRUE(out.ParseFromString(message.body));
    return out;
  }
  /// Returns the events of that NATS subject so far.
  static std::vector<v1::BackendChangeEvent> published(const NatsSubscriber& events, const std::string& subject) {
    std::vector<v1::BackendChangeEvent> out;
    for (const auto& message : events.received()) {
      if (message.subject == subject) out.push_back(event_of(message));
    }
    return out;
  }
  static std::vector<std::string> fields(const v1::BackendChangeEvent& event) {
    return {event.changed_fields().begin(), event.changed_fields().end()};
  }
};

TEST_F(K8sSource, LabelledBackendIsRegisteredRotatedMovedAndGone) {
  define();
  const NatsSubscriber events(nats.url(), "backend.orders.>");
  Agent a = agent();
  a.start();
  ASSERT_TRUE(eventually(
      [&] {
        return a.established({"cluster", "orders"});
      },
      seconds(60)))
      << a.log() << a.cli({"backends"}).out;
  ASSERT_TRUE(eventually([&] { return published(events, "backend.orders.created").size() == 1; })) << a.log();
  const auto created = published(events, "backend.orders.created")[0];
  EXPECT_EQ(created.change_type(), v1::BACKEND_CHANGE_TYPE_CREATED);
  EXPECT_EQ(created.source(), "kubernetes");
  EXPECT_EQ(created.new_state().type(), "kafka");
  EXPECT_EQ(created.new_state().endpoint(), "orders-kafka.prod.svc.cluster.local:9092");
  EXPECT_THAT(created.new_state().config_json(), HasSubstr("k8s:prod/orders-login#password"));
  EXPECT_EQ(a.backend("orders")->at("state"), "discovered");

  kube.patch("/api/v1/namespaces/prod/secrets/orders-login", {{"stringData", {{"password", "canary-two"}}}});
  ASSERT_TRUE(eventually([&] { return !published(events, "backend.orders.credentials.rotated").empty(); })) << a.log();
  const auto rotated = published(events, "backend.orders.credentials.rotated")[0];
  EXPECT_THAT(fields(rotated), ElementsAre("config.kafka.auth.sasl.password"));
  EXPECT_EQ(rotated.source(), "kubernetes");
  EXPECT_EQ(rotated.metadata().at("namespace"), "prod");
  EXPECT_EQ(rotated.metadata().at("kubernetes_secret"), "orders-login");
  EXPECT_EQ(rotated.metadata().at("origin"), "kubernetes-secret");
  EXPECT_TRUE(rotated.metadata().contains("secret_version"));

  kube.patch("/api/v1/namespaces/prod/services/orders-kafka", {{"spec", service(9094).at("spec")}});
  ASSERT_TRUE(eventually([&] { return !published(events, "backend.orders.endpoint.changed").empty(); })) << a.log();
  EXPECT_THAT(fields(published(events, "backend.orders.endpoint.changed")[0]),
              testing::Contains("discovery.service.port"));

  kube.patch("/api/v1/namespaces/prod/secrets/orders-login",
             {{"metadata", {{"annotations", {{"note", "a label is no rotation"}}}}}});
  kube.patch("/api/v1/namespaces/prod/services/orders-kafka",
             {{"metadata", {{"labels", {{"prism.io/backend", nullptr}}}}}});
  kube.patch("/api/v1/namespaces/prod/secrets/orders-login",
             {{"metadata", {{"labels", {{"prism.io/backend", nullptr}}}}}});
  ASSERT_TRUE(eventually([&] { return published(events, "backend.orders.deleted").size() == 1; }, seconds(30)))
      << a.log();
  EXPECT_EQ(published(events, "backend.orders.credentials.rotated").size(), 1u);
  EXPECT_FALSE(a.backend("orders"));

  std::string everything =
      a.log() + a.cli({"backends", "-o", "json"}).out + a.cli({"resources", "orders", "--bodies"}).out;
  for (const auto& each : events.received()) everything += each.body + json(each.headers).dump();
  EXPECT_EQ(everything.find("canary-"), std::string::npos) << "a secret left the worker";
}

TEST_F(K8sSource, SpeaksForTheBackendThatTheConfigReads) {
  define();
  const std::string state =
      dir.write("empty.tfstate",
                R"({"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"l","outputs":{},"resources":[]})");
  const NatsSubscriber events(nats.url(), "backend.orders.>");
  Agent a = agent(
      "  - name: orders\n    provider: terraform\n    spoken_by: [{ source: cluster, namespace: prod }]\n    settings: "
      "{ path: \"" +
      state + "\" }\n");
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"cluster", "orders"}); }, seconds(60))) << a.log();
  const auto registered = [&] { return a.cli({"resources", "orders"}).out.find("registration") != std::string::npos; };
  ASSERT_TRUE(eventually([&] { return registered() && a.established({"orders"}); }))
      << a.cli({"resources", "orders"}).out << a.log();
  kube.patch("/api/v1/namespaces/prod/secrets/orders-login", {{"stringData", {{"password", "canary-two"}}}});
  ASSERT_TRUE(eventually([&] { return !published(events, "backend.orders.credentials.rotated").empty(); })) << a.log();
  EXPECT_THAT(fields(published(events, "backend.orders.credentials.rotated")[0]),
              ElementsAre("config.kafka.auth.sasl.password"));
  EXPECT_EQ(a.backend("orders")->at("type"), "terraform") << "the configured provider still reads the backend";

  for (const char* defining : {"services/orders-kafka", "secrets/orders-login"}) {
    kube.patch("/api/v1/namespaces/prod/" + std::string(defining),
               {{"metadata", {{"labels", {{"prism.io/backend", nullptr}}}}}});
  }
  const auto updates = [&] { return published(events, "backend.orders.config.updated"); };
  ASSERT_TRUE(eventually([&] { return updates().size() == 1; }, seconds(30)))
      << a.log() << a.cli({"backends", "-o", "json"}).out;
  EXPECT_EQ(updates()[0].operation(), "deleted");
  EXPECT_EQ(updates()[0].resource_kind(), "registration");
  kube.patch("/api/v1/namespaces/prod/services/orders-kafka",
             {{"metadata", {{"labels", {{"prism.io/backend", "true"}}}}}});
  EXPECT_TRUE(eventually([&] { return updates().size() == 2; }, seconds(30)))
      << "the backend is defined again, which reverts the drift\n"
      << a.log();
}

/// As the discovery RFC has it: the shipped CRD, which belongs to the cluster, and objects without any label.
TEST_F(K8sSource, APrismBackendOfTheClusterIsRegisteredRotatedAndGone) {
  kube.apply(read_file(DRIFTD_SOURCE_DIR "/packaging/kubernetes/crds/prismbackends.yaml"));
  const std::string prism = "/apis/prism.io/v1alpha1/prismbackends";
  ASSERT_TRUE(eventually(
      [&] { return kube.request("GET", "/apis/prism.io").status == 200 && kube.request("GET", prism).status == 200; }));
  kube.create("/api/v1/namespaces/prod/services",
              {{"metadata", {{"name", "redis-master"}}}, {"spec", {{"ports", json::array({{{"port", 6379}}})}}}});
  kube.create_secret("prod", "redis", {{"redis-password", "canary-one"}});
  json spec{{"type", "redis"}, {"capabilities", {"keyvalue_basic"}}};
  spec["discovery"]["service"] = {{"name", "redis-master"}, {"namespace", "prod"}};
  spec["discovery"]["secret"] = {{"name", "redis"}, {"passwordKey", "redis-password"}};
  kube.create(prism, {{"apiVersion", "prism.io/v1alpha1"},
                      {"kind", "PrismBackend"},
                      {"metadata", {{"name", "redis-production"}}},
                      {"spec", spec}});
  const NatsSubscriber events(nats.url(), "backend.redis-production.>");
  Agent a = agent();
  a.start();
  const std::string subject = "backend.redis-production.";
  ASSERT_TRUE(eventually([&] { return a.established({"cluster", "redis-production"}); }, seconds(60))) << a.log();
  ASSERT_TRUE(eventually([&] { return published(events, subject + "created").size() == 1; })) << a.log();
  const auto created = published(events, subject + "created")[0];
  EXPECT_EQ(created.new_state().endpoint(), "redis-master.prod.svc.cluster.local:6379");
  EXPECT_THAT(created.new_state().capabilities(), ElementsAre("keyvalue_basic"));

  kube.patch("/api/v1/namespaces/prod/secrets/redis", {{"stringData", {{"redis-password", "canary-two"}}}});
  ASSERT_TRUE(eventually([&] { return !published(events, subject + "credentials.rotated").empty(); })) << a.log();
  const auto rotated = published(events, subject + "credentials.rotated")[0];
  EXPECT_THAT(fields(rotated), ElementsAre("config.redis.password"));
  EXPECT_EQ(rotated.metadata().at("kubernetes_secret"), "redis");
  EXPECT_EQ(rotated.metadata().at("kubernetes_namespace"), "prod");

  kube.remove(prism + "/redis-production");
  ASSERT_TRUE(eventually([&] { return published(events, subject + "deleted").size() == 1; }, seconds(30))) << a.log();
  EXPECT_EQ((a.log() + a.cli({"backends", "-o", "json"}).out).find("canary-"), std::string::npos);
}

}  // namespace
}  // namespace driftd::test
