// SPDX-License-Identifier: Apache-2.0
// The backends that a cluster describes are discovered and registered, and they change when their Secret or Service
// does.
#include "cluster.hpp"

namespace driftd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct K8sBackends : Cluster {
  static json labels(const std::string& name, const std::string& type) {
    return {{"prism.io/backend", "true"}, {"prism.io/backend-name", name}, {"prism.io/backend-type", type}};
  }
  static void service(const std::string& space, const std::string& name, int port,
                      const json& labels = json::object()) {
    kube().create(
        "/api/v1/namespaces/" + space + "/services",
        {{"metadata", {{"name", name}, {"labels", labels}}}, {"spec", {{"ports", json::array({{{"port", port}}})}}}});
  }
  static const sdk::Backend* find_backend(const Collected& got, const std::string& name) {
    for (const auto& backend : got.backends) {
      if (backend.name == name) return &backend;
    }
    return nullptr;
  }
};

TEST_F(K8sBackends, ByLabelAreDiscoveredAndRegisteredUnderTheirFieldNames) {
  const std::string space = fresh_namespace();
  service(space, "kafka", 9092, labels("orders-kafka", "kafka"));
  kube().create_secret(space, "kafka-credentials", {{"username", "app"}, {"password", "canary-one"}},
                       labels("orders-kafka", "kafka"));
  ProviderProbe k8s = probe(kube().settings({space}));
  const Collected found = k8s.discover();
  EXPECT_TRUE(found.discovery_complete) << render(found);
  const sdk::Backend* backend = find_backend(found, "orders-kafka");
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(backend->type, "kafka");
  EXPECT_THAT(backend->endpoints, ElementsAre("kafka." + space + ".svc.cluster.local:9092"));
  EXPECT_EQ(backend->credentials.at("password"), "k8s:" + space + "/kafka-credentials#password");

  const Collected got = k8s.refresh();
  const sdk::Record* record = got.find("registration", "orders-kafka");
  ASSERT_NE(record, nullptr) << render(got);
  EXPECT_EQ(record->backend, "orders-kafka");
  const json body = json::parse(record->body);
  EXPECT_EQ(body["config"]["kafka"]["brokers"], json({"kafka." + space + ".svc.cluster.local:9092"}));
  EXPECT_EQ(body["config"]["kafka"]["auth"]["sasl"]["password"], "canary-one");
  EXPECT_EQ(body["discovery"]["service"]["port"], 9092);
  EXPECT_THAT(record->sensitive, ::testing::Contains("config.kafka.auth.sasl.password"));
  EXPECT_EQ(record->metadata.at("kubernetes_secret"), "kafka-credentials");
  EXPECT_EQ(record->metadata.at("namespace"), space);
  EXPECT_THAT(json(record->metadata).dump() + record->status, Not(HasSubstr("canary")));
  EXPECT_EQ((got.complete_of.at({"orders-kafka", "registration"})), 1u);
  EXPECT_EQ(got.complete.at("registration"), 0u);
}

TEST_F(K8sBackends, AChangedSecretOrServiceIsTheBackendsChange) {
  const std::string space = fresh_namespace();
  service(space, "cache", 6379, labels("cache", "redis"));
  kube().create_secret(space, "cache", {{"password", "canary-one"}}, labels("cache", "redis"));
  ProviderProbe k8s = probe(kube().settings({space}));
  ASSERT_EQ(k8s.refresh().status, DRIFTD_OK);
  const auto registered = [](const Collected& got, const std::string& origin) -> const sdk::Record* {
    for (const auto& record : got.records) {
      if (record.kind == "registration" && record.id == "cache" && record.origin == origin && !record.tombstone)
        return &record;
    }
    return nullptr;
  };
  json secret;
  const Collected got = watch(
      k8s, "",
      {{[&] {
          secret = kube().patch(secrets(space) + "/cache", {{"stringData", {{"password", "canary-two"}}}});
        },
        [&](const Collected& w) { return registered(w, "kubernetes-secret") != nullptr; }},
       {[&] {
          kube().request("PATCH", "/api/v1/namespaces/" + space + "/services/cache",
                         R"([{"op":"replace","path":"/spec/ports/0/port","value":6380}])",
                         "application/json-patch+json");
        },
        [&](const Collected& w) { return registered(w, "kubernetes-service") != nullptr; }},
       {[&] {
          kube().remove(secrets(space) + "/cache");
          kube().remove("/api/v1/namespaces/" + space + "/services/cache");
        },
        [&](const Collected& w) { return w.records.back().kind == "registration" && w.records.back().tombstone; }}});
  const sdk::Record* rotated = registered(got, "kubernetes-secret");
  const sdk::Record* moved = registered(got, "kubernetes-service");
  ASSERT_TRUE(rotated != nullptr && moved != nullptr);
  EXPECT_EQ(json::parse(rotated->body)["config"]["redis"]["password"], "canary-two");
  EXPECT_EQ(rotated->metadata.at("secret_version"), text(secret, "resourceVersion"));
  EXPECT_EQ(json::parse(moved->body)["discovery"]["service"]["port"], 6380);
  const Collected gone = k8s.read({{"registration", "cache", "cache"}});
  EXPECT_NE(gone.diagnostic(DRIFTD_NOT_FOUND), nullptr) << render(gone);
}

TEST_F(K8sBackends, APrismBackendNamesItsServiceSecretAndKeys) {
  kube().install_prism();
  const std::string space = fresh_namespace();
  service(space, "pg-rw", 5432);
  kube().create_secret(space, "pg", {{"user", "app"}, {"postgres-password", "canary-pg"}});
  const std::string path = "/apis/prism.io/v1alpha1/namespaces/" + space + "/prismbackends";
  kube().create(path,
                {{"apiVersion", "prism.io/v1alpha1"},
                 {"kind", "PrismBackend"},
                 {"metadata", {{"name", "orders-db"}}},
                 {"spec",
                  {{"type", "postgresql"},
                   {"discovery",
                    {{"service", {{"name", "pg-rw"}}},
                     {"secret", {{"name", "pg"}, {"usernameKey", "user"}, {"passwordKey", "postgres-password"}}}}},
                   {"config", {{"sslmode", "verify-full"}}},
                   {"capabilities", {"sql_basic"}},
                   {"metadata", {{"region", "eu"}}}}}});
  ProviderProbe k8s = probe(kube().settings({space}));
  const Collected found = k8s.discover();
  const sdk::Backend* backend = find_backend(found, "orders-db");
  ASSERT_NE(backend, nullptr) << render(found);
  EXPECT_EQ(backend->type, "postgres");
  EXPECT_EQ(backend->origin, "prism-backend");
  EXPECT_THAT(backend->capabilities, ElementsAre("sql_basic"));
  EXPECT_EQ(backend->metadata.at("region"), "eu");
  EXPECT_EQ(backend->credentials.at("username"), "k8s:" + space + "/pg#user");
  const json body = k8s.refresh().body("registration", "orders-db");
  EXPECT_EQ(body["config"]["postgres"]["password"], "canary-pg");
  EXPECT_EQ(body["config"]["postgres"]["sslmode"], "verify-full");
  // a Secret without labels is followed, too
  const Collected got =
      watch(k8s, "",
            {{[&] {
                kube().patch(secrets(space) + "/pg", {{"stringData", {{"postgres-password", "canary-new"}}}});
              },
              [&](const Collected& w) {
                return w.find("registration", "orders-db") != nullptr &&
                       w.body("registration", "orders-db")["config"]["postgres"]["password"] == "canary-new";
              }},
             {[&] { kube().remove(secrets(space) + "/pg"); },
              [&](const Collected& w) { return !w.records.back().unread.empty(); }}});
  EXPECT_EQ(got.records.back().unread.front().path, "config.postgres.username");
}

TEST_F(K8sBackends, ADeniedListRegistersNothingRatherThanHalf) {
  const std::string space = fresh_namespace();
  service(space, "cache", 6379, labels("cache", "redis"));
  const TempDir dir;
  const json services = {
      {"apiGroups", {""}}, {"resources", {"services", "configmaps"}}, {"verbs", {"get", "list", "watch"}}};
  const std::string token = kube().account(space, "half", json::array({services}));
  ProviderProbe k8s = probe(with(
      kube().settings({space}), {{"include", {"service", "registration"}}, {"token_file", dir.write("token", token)}}));
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.find("registration", "cache"), nullptr);
  EXPECT_EQ(got.complete.count("registration"), 0u);
  ASSERT_NE(got.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(got.diagnostic(DRIFTD_DENIED)->right, "list secrets in namespace " + space);
  const Collected found = k8s.discover();
  EXPECT_TRUE(found.backends.empty()) << render(found);
  EXPECT_FALSE(found.discovery_complete) << "what is hidden is not gone";
}

}  // namespace
}  // namespace driftd::test
