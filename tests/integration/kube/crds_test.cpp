// SPDX-License-Identifier: Apache-2.0
// The CRDs of packaging/kubernetes/crds on a real API server: what they accept, refuse, fill in and print.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "following.hpp"
#include "kube/object_client.hpp"

namespace driftd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;

const std::string kHere = DRIFTD_SOURCE_DIR "/tests/integration/kube/";
const std::string kExamples = DRIFTD_SOURCE_DIR "/examples/kubernetes/";
constexpr const char* kStrict = "?fieldValidation=Strict";

struct KubeCrds : KubeClient {
  KubeCrds() {
    const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (const char* name : {"prismbackends", "prismpatterns"}) {
      const std::string yaml = read_file(DRIFTD_SOURCE_DIR "/packaging/kubernetes/crds/" + std::string(name) + ".yaml");
      const auto made = kube().request("POST", definitions + kStrict, yaml, "application/yaml");
      if (made.status != 201 && made.status != 409) throw std::runtime_error(made.text);
      const std::string path = definitions + "/" + name + ".prism.io";
      const auto served = [&] { return kube().request("GET", std::string("/apis/prism.io/v1alpha1/") + name).status; };
      if (!eventually([&] { return condition(kube().get(path), "Established") == "True" && served() == 200; }))
        throw std::runtime_error(path + " is not served");
    }
    kube().request("POST", "/api/v1/namespaces", R"({"metadata":{"name":"applications"}})");
  }

  static std::string condition(const json& object, const std::string& type) {
    for (const auto& each : kube::list(object, {"status", "conditions"})) {
      if (each.at("type") == type) return each.at("status");
    }
    return {};
  }
  static std::string backends(const std::string& name = {}) {
    return "/apis/prism.io/v1alpha1/prismbackends" + (name.empty() ? "" : "/" + name);
  }
  static std::string patterns(const std::string& space, const std::string& name = {}) {
    return "/apis/prism.io/v1alpha1/namespaces/" + space + "/prismpatterns" + (name.empty() ? "" : "/" + name);
  }
  /// Where objects of the kind that the YAML names are created.
  static std::string collection_of(const std::string& yaml) {
    if (yaml.find("kind: PrismBackend") != std::string::npos) return backends();
    return patterns(yaml.find("namespace: applications") == std::string::npos ? "default" : "applications");
  }
  static KubeServer::Answer create(const std::string& yaml, const std::string& query = kStrict) {
    return kube().request("POST", collection_of(yaml) + query, yaml, "application/yaml");
  }
  /// Creates the object of a YAML file and returns it as it is stored.
  static json accepted(const std::string& file) {
    const auto answer = create(read_file(file));
    EXPECT_EQ(answer.status, 201) << file << ": " << answer.text;
    return answer.body;
  }
  static void remove(const std::string& path) { kube().request("DELETE", path); }
  static std::vector<std::string> yaml_files(const std::string& folder) {
    std::vector<std::string> out;
    for (const auto& each : std::filesystem::directory_iterator(folder)) {
      if (each.path().extension() == ".yaml") out.push_back(each.path());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
};

TEST_F(KubeCrds, AreEstablishedWithTheNamesOfTheRfcAndAStructuralSchema) {
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";
  for (const auto& [plural, kind, name, scope] :
       {std::tuple{"prismbackends", "PrismBackend", "pbackend", "Cluster"},
        std::tuple{"prismpatterns", "PrismPattern", "ppattern", "Namespaced"}}) {
    const json stored = kube().get(definitions + plural + ".prism.io");
    EXPECT_EQ(condition(stored, "NamesAccepted"), "True");
    EXPECT_EQ(condition(stored, "NonStructuralSchema"), "") << stored.at("status");
    EXPECT_EQ(stored["spec"]["names"]["kind"], kind);
    EXPECT_EQ(stored["spec"]["names"]["shortNames"], json({name}));
    EXPECT_EQ(stored["spec"]["scope"], scope);
    EXPECT_EQ(stored["spec"]["versions"][0]["name"], "v1alpha1");
  }
}

TEST_F(KubeCrds, TakeTheObjectsOfTheRfcAsTheyStandThere) {
  for (const auto& file : yaml_files(kHere + "seed")) {
    const json stored = accepted(file);
    remove(collection_of(read_file(file)) + "/" + stored.at("metadata").at("name").get<std::string>());
  }
}

TEST_F(KubeCrds, TakeAnExampleOfEachTypeOfBackend) {
  std::set<std::string> types;
  for (const auto& file : yaml_files(kExamples)) {
    const json stored = accepted(file);
    if (stored.at("kind") == "PrismBackend") types.insert(stored.at("spec").at("type").get<std::string>());
    remove(collection_of(read_file(file)) + "/" + stored.at("metadata").at("name").get<std::string>());
  }
  EXPECT_THAT(types, IsSupersetOf({"kafka", "nats", "redis", "postgresql", "mysql", "mongodb", "rabbitmq",
                                   "elasticsearch", "memcached"}));
}

TEST_F(KubeCrds, RefuseEachMistakeWithTheNameOfItsField) {
  const json table = json::parse(read_file(kHere + "invalid.json"));
  const json backend = accepted(kHere + "seed/redis-production.yaml");
  const json pattern = accepted(kHere + "seed/order-consumer.yaml");
  EXPECT_GE(table.size(), 50u);
  for (const auto& row : table) {
    const bool of_backend = row.at("of") == "backend";
    const json& good = of_backend ? backend : pattern;
    json object = {{"apiVersion", good.at("apiVersion")}, {"kind", good.at("kind")}, {"spec", good.at("spec")}};
    object["metadata"] = {{"name", "invalid"}};
    object.merge_patch(row.at("change"));
    const std::string path = (of_backend ? backends() : patterns("applications")) + kStrict;
    const auto answer = kube().request("POST", path, object.dump());
    EXPECT_TRUE(answer.status == 422 || answer.status == 400) << row.at("why") << ": HTTP status " << answer.status;
    EXPECT_THAT(answer.body.value("message", ""), HasSubstr(row.at("text").get<std::string>())) << row.at("why");
    if (answer.status == 201) remove((of_backend ? backends("invalid") : patterns("applications", "invalid")));
  }
  remove(backends("redis-production"));
  remove(patterns("applications", "order-consumer"));
}

TEST_F(KubeCrds, FillInTheirDefaults) {
  const json backend = accepted(kExamples + "nats.yaml");
  EXPECT_EQ(backend["spec"]["discovery"]["secret"]["usernameKey"], "username");
  EXPECT_EQ(backend["spec"]["discovery"]["secret"]["passwordKey"], "password");
  EXPECT_EQ(backend["status"]["phase"], "Pending");
  remove(backends("nats-production"));
  const json remote = accepted(kExamples + "other-cluster.yaml");
  EXPECT_EQ(remote["spec"]["discovery"]["cluster"]["key"], "kubeconfig");
  remove(backends("redis-emea"));
  const json pattern = accepted(kHere + "seed/order-consumer-by-name.yaml");
  EXPECT_EQ(pattern["spec"]["replicas"], 1);
  EXPECT_EQ(pattern["spec"]["rollout"]["onRotation"], "Keep");
  EXPECT_EQ(pattern["status"]["phase"], "Pending");
  remove(patterns("default", "order-consumer"));
  const json scaled = create(R"({apiVersion: prism.io/v1alpha1, kind: PrismPattern, metadata: {name: scaled},
    spec: {pattern: consumer, image: i, config: {brokers: "a:1"}, autoscaling: {triggers: [{type: cpu}]}}})")
                          .body;
  EXPECT_EQ(scaled["spec"]["autoscaling"], json::parse(R"({"enabled": true, "scaler": "keda", "minReplicas": 1,
    "maxReplicas": 10, "triggers": [{"type": "cpu"}]})"))
      << scaled;
  EXPECT_EQ(scaled["spec"]["config"]["brokers"], "a:1") << "the former style is kept as it is";
  remove(patterns("default", "scaled"));
}

TEST_F(KubeCrds, KeepTheStatusForThoseWhoMayWriteIt) {
  json object = accepted(kHere + "seed/redis-production.yaml");
  object["status"]["phase"] = "Discovered";
  const auto put = [&](const std::string& to, const json& what) { return kube().request("PUT", to, what.dump()); };
  EXPECT_EQ(put(backends("redis-production"), object).body["status"]["phase"], "Pending");
  object = kube().get(backends("redis-production"));
  object["status"] = {{"phase", "Found"}};
  EXPECT_THAT(put(backends("redis-production") + "/status", object).text, HasSubstr("status.phase: Unsupported value"));
  HostedCall hosted;
  sdk::Call call(hosted.handle());
  const kube::Connection admin = connection();
  kube::Api api(admin);
  kube::Resource resource = prism_backends();
  resource.namespaced = false;
  const auto apply = [&](const std::string& manager, const std::string& type, const json& status) {
    json mine = {
        {"apiVersion", "prism.io/v1alpha1"}, {"kind", "PrismBackend"}, {"metadata", {{"name", "redis-production"}}}};
    mine["status"] = status;
    mine["status"]["conditions"] = json::array({{{"type", type}, {"status", "True"}, {"reason", "Found"}}});
    return kube::ObjectClient(call, api, manager).apply_status(call, resource, mine, true);
  };
  apply("one", "ServiceFound", {{"phase", "Discovered"}, {"binding", {{"name", "redis-production"}}}});
  const json both = apply("two", "Ready", {{"observedGeneration", 1}});
  EXPECT_EQ(both["status"]["conditions"].size(), 2u) << "each manager has its own: " << both["status"];
  EXPECT_EQ(both["status"]["binding"]["name"], "redis-production");
  EXPECT_EQ(both["metadata"]["generation"], 1);
  remove(backends("redis-production"));
}

/// What `kubectl get` prints: the server makes the table, kubectl pads its columns.
struct KubeTable : KubeCrds {
  static std::string table(const std::string& path, bool wide) {
    HostedCall hosted;
    sdk::Call call(hosted.handle());
    const kube::Connection admin = connection();
    kube::Api api(admin);
    http::Client client(api.options(call));
    const auto response = kube::send_request(call, api, client, path, [](http::Request& request) {
      request.headers.at(0) = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io";
    });
    const json answer = json::parse(response.body);
    std::string out;
    const auto line = [&](const auto& cell_of) {
      std::string row;
      for (std::size_t i = 0; i < answer.at("columnDefinitions").size(); ++i) {
        const json& column = answer.at("columnDefinitions").at(i);
        if (wide || column.at("priority") == 0) row += (row.empty() ? "" : " ") + cell_of(i);
      }
      out += row + "\n";
    };
    line([&](std::size_t i) {
      std::string name = answer.at("columnDefinitions").at(i).at("name");
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
      return name;
    });
    for (const auto& row : answer.at("rows")) {
      line([&](std::size_t i) {
        const json& cell = row.at("cells").at(i);
        return cell.is_string() ? cell.get<std::string>() : cell.is_null() ? std::string("<none>") : cell.dump();
      });
    }
    return out;
  }
  /// Creates a PrismBackend whose status is that of a discovered one.
  static void discovered(const std::string& type, const std::string& endpoint) {
    const std::string name = type + "-infrastructure";
    json object = kube().create(
        backends(),
        {{"apiVersion", "prism.io/v1alpha1"},
         {"kind", "PrismBackend"},
         {"metadata", {{"name", name}}},
         {"spec",
          {{"type", type}, {"version", "7.2"}, {"discovery", {{"service", {{"name", type}, {"namespace", "i"}}}}}}}});
    object["status"] = {{"phase", "Discovered"},
                        {"resolvedEndpoint", endpoint},
                        {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}, {"reason", "Synced"}}})}};
    ASSERT_EQ(kube().request("PUT", backends(name) + "/status", object.dump()).status, 200);
  }
};

TEST_F(KubeTable, HasTheColumnsOfTheRfc) {
  discovered("redis", "redis-master.infrastructure.svc.cluster.local:6379");
  discovered("kafka", "kafka.infrastructure.svc.cluster.local:9092");
  EXPECT_THAT(table(backends(), false), MatchesRegex("NAME TYPE STATUS AGE\n"
                                                     "kafka-infrastructure kafka Discovered [0-9]+s\n"
                                                     "redis-infrastructure redis Discovered [0-9]+s\n"));
  EXPECT_THAT(table(backends("redis-infrastructure"), true),
              MatchesRegex("NAME TYPE STATUS AGE ENDPOINT VERSION REASON\n"
                           "redis-infrastructure redis Discovered [0-9]+s "
                           "redis-master.infrastructure.svc.cluster.local:6379 7.2 Synced\n"));
  remove(backends("redis-infrastructure"));
  remove(backends("kafka-infrastructure"));
}

TEST_F(KubeTable, ShowsANewObjectAsPending) {
  accepted(kExamples + "redis.yaml");
  accepted(kExamples + "order-consumer.yaml");
  EXPECT_THAT(table(backends(), false), MatchesRegex("NAME TYPE STATUS AGE\nredis-production redis Pending [0-9]+s\n"));
  EXPECT_THAT(table(patterns("applications"), false),
              MatchesRegex("NAME PATTERN STATUS READY AGE\norder-consumer consumer Pending <none> [0-9]+s\n"));
  remove(backends("redis-production"));
  remove(patterns("applications", "order-consumer"));
}

}  // namespace
}  // namespace driftd::test
