// SPDX-License-Identifier: Apache-2.0
// PrismBackends that belong to the cluster, as the discovery RFC has them: what they define, what is wrong with them,
// and what happens without the right to list them.
#include <utility>

#include "cluster.hpp"

namespace driftd::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPrismBackends = "/apis/prism.io/v1alpha1/prismbackends";

struct K8sPrism : Cluster {
  K8sPrism() { kube().install_prism("Cluster"); }
  ~K8sPrism() override {
    kube().request("DELETE", kPrismBackends);  // each test has the cluster's for itself
  }

  static void service(const std::string& space, const std::string& name, int port,
                      const json& labels = json::object()) {
    kube().create(
        "/api/v1/namespaces/" + space + "/services",
        {{"metadata", {{"name", name}, {"labels", labels}}}, {"spec", {{"ports", json::array({{{"port", port}}})}}}});
  }
  static json labels(const std::string& name, const std::string& type) {
    return {{"prism.io/backend", "true"}, {"prism.io/backend-name", name}, {"prism.io/backend-type", type}};
  }
  static void define(const std::string& name, const json& spec) {
    kube().create(kPrismBackends, {{"apiVersion", "prism.io/v1alpha1"},
                                   {"kind", "PrismBackend"},
                                   {"metadata", {{"name", name}}},
                                   {"spec", spec}});
  }
  static json redis_in(const std::string& space) {
    return {{"type", "redis"},
            {"discovery",
             {{"service", {{"name", "redis-master"}, {"namespace", space}, {"port", 6379}}},
              {"secret", {{"name", "redis"}, {"namespace", space}, {"passwordKey", "redis-password"}}}}}};
  }
  /// A namespace with the Service and the Secret of redis_in().
  static std::string with_redis() {
    std::string space = fresh_namespace();
    service(space, "redis-master", 6379);
    kube().create_secret(space, "redis", {{"redis-password", "canary-one"}});
    return space;
  }
  static const sdk::Backend* find_backend(const Collected& got, const std::string& name) {
    for (const auto& backend : got.backends) {
      if (backend.name == name) return &backend;
    }
    return nullptr;
  }
  static std::vector<std::string> names(const Collected& got) {
    std::vector<std::string> out;
    for (const auto& backend : got.backends) out.push_back(backend.name);
    return out;
  }
  /// The texts of the diagnostics about one backend.
  static std::vector<std::string> faults_of(const Collected& got, const std::string& name) {
    std::vector<std::string> out;
    for (const auto& each : got.diagnostics) {
      if (each.backend == name) out.push_back(each.text);
    }
    return out;
  }
  static json rule(const std::string& group, const std::vector<std::string>& resources) {
    return {{"apiGroups", {group}}, {"resources", resources}, {"verbs", {"get", "list", "watch"}}};
  }
  /// Lets an account of a namespace list the PrismBackends of the cluster.
  static void grant_prism(const std::string& space, const std::string& account) {
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/", name = "prism-of-" + space;
    kube().create(rbac + "clusterroles",
                  {{"metadata", {{"name", name}}}, {"rules", json::array({rule("prism.io", {"prismbackends"})})}});
    kube().create(rbac + "clusterrolebindings",
                  {{"metadata", {{"name", name}}},
                   {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", name}}},
                   {"subjects", json::array({{{"kind", "ServiceAccount"}, {"name", account}, {"namespace", space}}})}});
  }
};

TEST_F(K8sPrism, OneOfTheClusterIsDiscoveredAndFollowed) {
  const std::string space = with_redis();
  define("redis-production", redis_in(space));
  ProviderProbe k8s = probe(kube().settings({space}));
  const Collected found = k8s.discover();
  EXPECT_TRUE(found.discovery_complete) << render(found);
  const sdk::Backend* backend = find_backend(found, "redis-production");
  ASSERT_NE(backend, nullptr) << render(found);
  EXPECT_THAT(backend->endpoints, ElementsAre("redis-master." + space + ".svc.cluster.local:6379"));
  EXPECT_EQ(backend->credentials.at("password"), "k8s:" + space + "/redis#redis-password");
  EXPECT_FALSE(backend->metadata.contains("defined_in")) << "it is in no namespace";

  const Collected listed = k8s.refresh();
  EXPECT_TRUE(listed.diagnostics.empty()) << render(listed);
  const sdk::Record* record = listed.find("registration", "redis-production");
  ASSERT_NE(record, nullptr) << render(listed);
  EXPECT_TRUE(record->unread.empty());
  EXPECT_EQ(record->metadata.at("kubernetes_secret"), "redis");
  EXPECT_EQ(record->metadata.at("kubernetes_namespace"), space);
  EXPECT_EQ(record->metadata.at("prism_backend"), "redis-production");
  EXPECT_EQ(json::parse(record->body)["config"]["redis"]["password"], "canary-one");
  const Collected rotated = watch(
      k8s, "",
      {{[&] {
          kube().patch(secrets(space) + "/redis", {{"stringData", {{"redis-password", "canary-two"}}}});
        },
        [&](const Collected& w) {
          return w.find("registration", "redis-production") != nullptr &&
                 w.body("registration", "redis-production")["config"]["redis"]["password"] == "canary-two";
        }},
       {[&] { kube().remove(std::string(kPrismBackends) + "/redis-production"); },
        [&](const Collected& w) { return w.records.back().kind == "registration" && w.records.back().tombstone; }}});
  EXPECT_TRUE(rotated.diagnostics.empty()) << render(rotated);
}

TEST_F(K8sPrism, EachMistakeIsToldOnItsBackendAloneAndStopsNoOther) {
  const std::string space = with_redis();
  define("good", redis_in(space));
  const auto with_port = [&](const json& port) {
    json spec = redis_in(space);
    spec["discovery"]["service"]["port"] = port;
    return spec;
  };
  json no_namespace = redis_in(space), no_name = redis_in(space), reddis = redis_in(space), both = redis_in(space);
  no_namespace["discovery"]["service"].erase("namespace");
  no_name["discovery"]["service"].erase("name");
  reddis["type"] = "reddis";
  both["discovery"]["external"] = {{"endpoints", {"a:1"}}};
  json no_key = redis_in(space), bad_external{{"type", "redis"}};
  no_key["discovery"]["secret"] = {{"passwordKey", "p"}};
  bad_external["discovery"]["external"]["endpoints"] = {"redis://user@host:1", "ok:1"};
  const std::string port = "spec.discovery.service.port: expected a whole number from 1 to 65535, found ";
  const std::vector<std::tuple<std::string, json, std::string>> table = {
      {"no-namespace", no_namespace,
       "spec.discovery.service.namespace: expected the namespace of the Service redis-master, found nothing; a "
       "PrismBackend that belongs to the cluster has none of its own"},
      {"no-name", no_name, "spec.discovery.service.name: expected the name of a Service, found nothing"},
      {"reddis", reddis,
       "spec.type: expected one of kafka, nats, redis, postgresql, mysql, mongodb, rabbitmq, elasticsearch, memcached, "
       "found the text \"reddis\""},
      {"port-text", with_port("6379"), port + "the text \"6379\""},
      {"port-zero", with_port(0), port + "0"},
      {"port-large", with_port(70000), port + "70000"},
      {"port-float", with_port(6379.5), port + "6379.5"},
      {"both", both,
       "spec.discovery: expected either service (of this cluster) or external (endpoints outside of it), found both"},
      {"neither",
       {{"type", "redis"}, {"discovery", json::object()}},
       "spec.discovery: expected either service (of this cluster) or external (endpoints outside of it), found "
       "neither"},
      {"no-secret", no_key, "spec.discovery.secret.name: expected the name of a Secret, found nothing"},
      {"bad-external", bad_external,
       "spec.discovery.external.endpoints[0]: expected host or host:port, found the text \"redis://user@host:1\""}};
  for (const auto& [name, spec, text] : table) define(name, spec);
  ProviderProbe k8s = probe(kube().settings({space}));
  const Collected found = k8s.discover(), listed = k8s.refresh();
  EXPECT_TRUE(found.discovery_complete) << render(found);
  EXPECT_THAT(names(found), ElementsAre("good"));
  EXPECT_NE(listed.find("registration", "good"), nullptr);
  for (const auto& [name, spec, text] : table) {
    const std::string whole = "backend " + name + " of the cluster: " + text;
    EXPECT_THAT(faults_of(found, name), ElementsAre(whole)) << name;
    EXPECT_THAT(faults_of(listed, name), ElementsAre(whole)) << name;
    EXPECT_EQ(listed.find("registration", name), nullptr) << name;
    const Collected read = k8s.read({{"registration", name, name}});
    EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << name << " is not gone: " << render(read);
  }
}

TEST_F(K8sPrism, WithoutTheRightToListThemLabelledBackendsAreStillDiscoveredAndFollowed) {
  const std::string space = with_redis();
  service(space, "cache", 6379, labels("cache", "redis"));
  kube().create_secret(space, "cache", {{"password", "canary-one"}}, labels("cache", "redis"));
  define("hidden", redis_in(space));
  const TempDir dir;
  const std::string token =
      kube().account(space, "in-one-namespace", json::array({rule("", {"secrets", "services", "configmaps"})}));
  ProviderProbe k8s =
      probe(with(kube().settings({space}), {{"token_file", dir.write("token", token)}, {"include", {"registration"}}}));
  const Collected found = k8s.discover();
  EXPECT_EQ(found.status, DRIFTD_OK) << render(found);
  EXPECT_THAT(names(found), ElementsAre("cache"));
  EXPECT_FALSE(found.discovery_complete) << "others may be hidden, and those are not gone";
  const auto* denied = found.diagnostic(DRIFTD_DENIED);
  ASSERT_NE(denied, nullptr) << render(found);
  EXPECT_EQ(denied->right, "list prismbackends.prism.io");
  EXPECT_THAT(denied->text, HasSubstr("backends that PrismBackends define are not seen until a ClusterRole grants it"));

  const Collected listed = k8s.refresh();
  EXPECT_NE(listed.find("registration", "cache"), nullptr) << render(listed);
  EXPECT_EQ((listed.complete_of.at({"cache", "registration"})), 1u);
  EXPECT_EQ(listed.complete.count("registration"), 0u);
  ASSERT_NE(listed.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(listed.diagnostic(DRIFTD_DENIED)->right, "list prismbackends.prism.io");
  const Collected read = k8s.read({{"registration", "hidden", "hidden"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << "hidden is not gone: " << render(read);

  const Collected watched =
      watch(k8s, "",
            {{[&] {
                kube().patch(secrets(space) + "/cache", {{"stringData", {{"password", "canary-two"}}}});
              },
              [&](const Collected& w) {
                return w.find("registration", "cache") != nullptr &&
                       w.body("registration", "cache")["config"]["redis"]["password"] == "canary-two";
              }}});
  EXPECT_EQ(watched.status, DRIFTD_OK) << render(watched);

  grant_prism(space, "in-one-namespace");
  EXPECT_TRUE(eventually([&] {
    const Collected now = k8s.discover();
    return now.discovery_complete && find_backend(now, "hidden") != nullptr;
  }));
  EXPECT_EQ(k8s.refresh().complete.count("registration"), 1u);
}

TEST_F(K8sPrism, OneDeniedKindHidesTheLabelledBackendsAndNotThoseOfPrismBackends) {
  const std::string space = with_redis();
  service(space, "cache", 6379, labels("cache", "redis"));
  kube().create_secret(space, "cache", {{"password", "canary-one"}}, labels("cache", "redis"));
  define("seen", redis_in(space));
  const TempDir dir;
  json get_secrets = rule("", {"secrets"});
  get_secrets["verbs"] = {"get"};
  const std::string token =
      kube().account(space, "no-list", json::array({rule("", {"services", "configmaps"}), get_secrets}));
  grant_prism(space, "no-list");
  ProviderProbe k8s =
      probe(with(kube().settings({space}), {{"token_file", dir.write("token", token)}, {"include", {"registration"}}}));
  ASSERT_TRUE(eventually([&] { return find_backend(k8s.discover(), "seen") != nullptr; }));
  const Collected found = k8s.discover();
  EXPECT_THAT(names(found), ElementsAre("seen")) << "half of the labelled one would look like a change";
  EXPECT_FALSE(found.discovery_complete);
  ASSERT_NE(found.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(found.diagnostic(DRIFTD_DENIED)->right, "list secrets in namespace " + space);
  const Collected listed = k8s.refresh();
  EXPECT_EQ(listed.body("registration", "seen")["config"]["redis"]["password"], "canary-one");
  EXPECT_EQ(listed.find("registration", "cache"), nullptr);
}

/// A ConfigMap may or may not belong to a labelled backend: without the right that is unknown, and the rest is seen.
TEST_F(K8sPrism, WithoutTheRightToListConfigMapsLabelledBackendsLackOnlyTheirs) {
  const std::string space = fresh_namespace();
  service(space, "cache", 6379, labels("cache", "redis"));
  kube().create_secret(space, "cache", {{"password", "canary-one"}}, labels("cache", "redis"));
  const TempDir dir;
  const std::string token = kube().account(space, "no-maps", json::array({rule("", {"services", "secrets"})}));
  grant_prism(space, "no-maps");
  ProviderProbe k8s =
      probe(with(kube().settings({space}), {{"token_file", dir.write("token", token)}, {"include", {"registration"}}}));
  ASSERT_TRUE(eventually([&] {
    const Collected found = k8s.discover();
    const auto* denied = found.diagnostic(DRIFTD_DENIED);
    return denied != nullptr && denied->right == "list configmaps in namespace " + space;
  }));
  EXPECT_THAT(names(k8s.discover()), ElementsAre("cache"));
  const Collected listed = k8s.refresh();
  const sdk::Record* record = listed.find("registration", "cache");
  ASSERT_NE(record, nullptr) << render(listed);
  EXPECT_EQ(json::parse(record->body)["config"]["redis"]["password"], "canary-one");
  std::vector<std::string> unread;
  for (const auto& each : record->unread) unread.push_back(each.path);
  EXPECT_THAT(unread, ElementsAre("discovery.config_map", "config.redis.data"));
}

TEST_F(K8sPrism, ManyThatNameObjectsOfOneNamespaceAreReadByListsAndNotOneByOne) {
  const std::string space = fresh_namespace();
  constexpr int kMany = 200;
  for (int i = 0; i < kMany; ++i) {
    const std::string name = "r-" + std::to_string(i);
    if (i != 7) service(space, name, 6379);
    kube().create_secret(space, name, {{"password", "canary-" + std::to_string(i)}});
    json spec{{"type", "redis"}};
    spec["discovery"] = {{"service", {{"name", name}, {"namespace", space}}}, {"secret", {{"name", name}}}};
    define(name, spec);
  }
  ProviderProbe k8s = probe(kube().settings({space}));
  const auto single = [] {
    return kube().counted("apiserver_request_total", {"verb=\"GET\"", "resource=\"services\""}) +
           kube().counted("apiserver_request_total", {"verb=\"GET\"", "resource=\"secrets\""});
  };
  const int before = single();
  const Collected found = k8s.discover();
  EXPECT_EQ(single(), before);
  ASSERT_EQ(found.backends.size(), static_cast<std::size_t>(kMany));
  EXPECT_TRUE(found.diagnostics.empty()) << render(found);
  for (const auto& backend : found.backends) {
    EXPECT_EQ(backend.endpoints.empty(), backend.name == "r-7") << backend.name;
    EXPECT_EQ(backend.credentials.count("password"), 1u) << backend.name;
  }
}

TEST_F(K8sPrism, OneWhoseNamespaceTheSettingsLeaveOutIsNotDiscovered) {
  const std::string mine = with_redis(), other = with_redis();
  define("mine", redis_in(mine));
  define("other", redis_in(other));
  json elsewhere{{"type", "postgresql"}};
  elsewhere["discovery"]["external"]["endpoints"] = {"db.example.org"};
  define("elsewhere", elsewhere);
  const Collected found = probe(kube().settings({mine})).discover();
  EXPECT_THAT(names(found), ::testing::UnorderedElementsAre("mine", "elsewhere"));
  EXPECT_TRUE(found.discovery_complete) << render(found);
  EXPECT_THAT(names(probe(kube().settings({mine, other})).discover()), Contains("other"));
}

TEST_F(K8sPrism, AnEndpointOutsideOfTheClusterNeedsNoService) {
  const std::string space = with_redis();
  const auto external = [&](const std::string& type, const json& endpoints) {
    json spec{{"type", type}};
    spec["discovery"]["external"]["endpoints"] = endpoints;
    spec["discovery"]["secret"] = {{"name", "redis"}, {"namespace", space}, {"passwordKey", "redis-password"}};
    return spec;
  };
  define("rds", external("postgresql", {"db.eu-west-1.rds.example.org"}));
  define("msk", external("kafka", {"b-1.msk.example.org:9098", "b-2.msk.example.org:9098", "[2001:db8::1]"}));
  ProviderProbe k8s = probe(kube().settings({space}));
  const Collected found = k8s.discover();
  const sdk::Backend *rds = find_backend(found, "rds"), *msk = find_backend(found, "msk");
  ASSERT_TRUE(rds != nullptr && msk != nullptr) << render(found);
  EXPECT_TRUE(rds->external);
  EXPECT_THAT(rds->endpoints, ElementsAre("db.eu-west-1.rds.example.org:5432"));
  EXPECT_THAT(msk->endpoints,
              ElementsAre("b-1.msk.example.org:9098", "b-2.msk.example.org:9098", "[2001:db8::1]:9092"));
  EXPECT_EQ(rds->credentials.at("password"), "k8s:" + space + "/redis#redis-password");
  const Collected listed = k8s.refresh();
  EXPECT_TRUE(listed.find("registration", "rds")->unread.empty());
  EXPECT_EQ(listed.body("registration", "rds")["config"]["postgres"]["host"], "db.eu-west-1.rds.example.org");
  EXPECT_EQ(listed.body("registration", "rds")["config"]["postgres"]["port"], 5432);
  EXPECT_EQ(listed.body("registration", "msk")["config"]["kafka"]["brokers"].size(), 3u);
  EXPECT_EQ(listed.body("registration", "msk")["discovery"]["external"]["endpoints"][2], "[2001:db8::1]:9092");
}

}  // namespace
}  // namespace driftd::test
