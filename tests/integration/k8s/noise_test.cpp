// SPDX-License-Identifier: Apache-2.0
// What happens to an object of a cluster without anybody changing its meaning (noise.json): none of it may be seen.
// Each noise has a twin, a real change of the same thing, which must be seen. And an upgrade of the API server.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>

#include "cluster.hpp"
#include "judged.hpp"
#include "leaf_table.hpp"

namespace driftd::test {
namespace {

using ::testing::PrintToString;

/// An object of noise.json on the API server.
struct NoisyObject {
  json what;  ///< its member of noise.json
  const LeafKind* kind = nullptr;
  std::string name, id;
  std::string version_before, version_after;  ///< resourceVersion before and after the noise
};

/// A Deployment's `apis/apps/v1` is `apps/v1`, a Service's `api/v1` is `v1`.
std::string api_version(const LeafKind& kind) {
  const std::string& document = kind.document;
  return document.substr(document.find('/') + 1);
}

std::string api_kind(const LeafKind& kind) { return kind.type.substr(kind.type.rfind('.') + 1); }

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

struct K8sNoise : ::testing::Test {
  static constexpr const char* kSpace = "noise";

  K8sNoise() : table(read_file(DRIFTD_SOURCE_DIR "/tests/integration/k8s/leaves.json")) {}

  const LeafKind& kind_of(const std::string& kind) const {
    const auto& all = table.kinds();
    const auto found = std::find_if(all.begin(), all.end(), [&](const LeafKind& each) { return each.kind == kind; });
    if (found == all.end()) throw std::runtime_error("leaves.json has no kind " + kind);
    return *found;
  }

  /// A provider that reads every kind of leaves.json in all namespaces.
  ProviderProbe probe_of(const KubeServer& kube) const {
    json settings = kube.settings({});
    settings.erase("namespaces");
    settings["include"] = json::array();
    for (const auto& kind : table.kinds()) settings["include"].push_back(kind.kind);
    return ProviderProbe("providers/k8s.so", settings);
  }

  /// The latest record of each object, by kind and id. The test fails if a kind was not read completely.
  std::map<std::string, sdk::Record> records(ProviderProbe& k8s) const {
    const Collected got = k8s.refresh({}, std::chrono::minutes(2));
    EXPECT_EQ(got.status, DRIFTD_OK);
    for (const auto& kind : table.kinds()) EXPECT_EQ(got.complete.count(kind.kind), 1u) << kind.kind;
    std::map<std::string, sdk::Record> out;
    for (const auto& record : got.records) out[record.kind + "/" + record.id] = record;
    return out;
  }

  std::shared_ptr<const core::KindSchema> schema_of(const ProviderProbe& k8s, const std::string& kind) const {
    const auto schema = core::KindSchema::parse(k8s.schema(kind));
    if (!schema) throw std::runtime_error(kind + ": " + schema.error().message);
    return schema.value();
  }

  const LeafTable table;
};

/// Does to an object what a step of noise.json says: {"put": …}, {"text": …}, {"merge": …, "at": "/status"},
/// {"apply": …, "as": manager}, {"replace": …} (deletes it and creates this), {"create": path, "body": …}. NAME and
/// SPACE stand for its name and namespace.
class Steps {
 public:
  Steps(const KubeServer& kube, const NoisyObject& object) : kube_(kube), object_(object) {}

  void create(json body) const { sent("POST", path(), named(std::move(body))); }
  std::string version() const { return kube_.get(one()).at("metadata").at("resourceVersion"); }
  void run(const json& steps) const {
    for (const auto& raw : steps) {
      const std::string text = replaced(replaced(raw.dump(), "NAME", object_.name), "SPACE", K8sNoise::kSpace);
      step(json::parse(text));
    }
  }

 private:
  std::string path() const { return object_.kind->path(K8sNoise::kSpace); }
  std::string one() const { return path() + "/" + name(); }
  std::string name() const {
    const json& group = object_.what;
    return group.at("kind") == "custom_resource_definition" ? "things." + object_.name + ".example" : object_.name;
  }
  json named(json body) const {
    body["metadata"]["name"] = name();
    if (body.contains(json::json_pointer("/spec/names/plural"))) body["spec"]["group"] = object_.name + ".example";
    return body;
  }
  void step(const json& step) const {
    const std::string as = "?fieldManager=" + step.value("as", "person");
    if (step.contains("merge")) return sent("PATCH", one() + step.value("at", "") + as, step.at("merge"));
    if (step.contains("text")) return sent_text("PUT", one() + as, step.at("text"), {});
    if (step.contains("create")) return sent("POST", step.at("create"), step.at("body"));
    if (step.contains("apply")) {
      json body = named(step.at("apply"));
      body["apiVersion"] = api_version(*object_.kind);
      body["kind"] = api_kind(*object_.kind);
      return sent_text("PATCH", one() + as + "&force=true", body.dump(), "application/apply-patch+yaml");
    }
    if (step.contains("replace")) {
      kube_.request("DELETE", one() + "?propagationPolicy=Background");
      if (!eventually([&] { return kube_.request("GET", one()).status == 404; }))
        throw std::runtime_error(one() + " stays");
      return create(step.at("replace"));
    }
    json body = named(step.at("put"));
    body["metadata"]["resourceVersion"] = version();
    sent("PUT", one() + as, body);
  }
  void sent(const std::string& method, const std::string& to, const json& body) const {
    sent_text(method, to, body.dump(), {});
  }
  void sent_text(const std::string& method, const std::string& to, const std::string& text,
                 const std::string& type) const {
    const auto answer = kube_.request(method, to, text, type);
    if (answer.status != 200 && answer.status != 201)
      ADD_FAILURE() << object_.what.at("name") << ": " << method << " " << to << ": " << answer.text;
  }

  const KubeServer& kube_;
  const NoisyObject& object_;
};

TEST_F(K8sNoise, IsNotSeenAndItsTwinIs) {
  KubeServer kube({"--disable-admission-plugins", "StorageObjectInUseProtection"});
  kube.create_namespace(kSpace);
  std::vector<NoisyObject> objects;
  for (const auto& what : json::parse(read_file(DRIFTD_SOURCE_DIR "/tests/integration/k8s/noise.json"))) {
    NoisyObject object{what, &kind_of(what.at("kind")), "case-" + std::to_string(objects.size()), {}, {}, {}};
    const bool definition = object.kind->kind == "custom_resource_definition";
    const std::string name = definition ? "things." + object.name + ".example" : object.name;
    object.id = object.kind->kind + "/" + (object.kind->namespaced ? kSpace + ("/" + name) : name);
    const Steps steps(kube, object);
    steps.create(what.value("object", object.kind->base));
    if (what.contains("before")) steps.run(what.at("before"));
    if (definition) {  // the API server itself writes to it
      ASSERT_TRUE(eventually([&] {
        return kube.get(object.kind->path(kSpace) + "/" + name).dump().find("\"Established\"") != std::string::npos;
      }));
    }
    object.version_before = steps.version();
    objects.push_back(std::move(object));
  }
  ProviderProbe k8s = probe_of(kube);
  const auto before = records(k8s);
  for (auto& object : objects) {
    const Steps steps(kube, object);
    steps.run(object.what.at("noise"));
    object.version_after = steps.version();
  }
  kube.stop();
  kube.start();
  const auto after = records(k8s);
  for (const auto& object : objects) Steps(kube, object).run(object.what.at("twin"));
  const auto then = records(k8s);
  std::size_t cried = 0, missed = 0;
  for (const auto& object : objects) {
    const auto schema = schema_of(k8s, object.kind->kind);
    const std::string name = object.what.at("name").get<std::string>() + " (" + object.kind->kind + ")";
    ASSERT_EQ(before.count(object.id) + after.count(object.id) + then.count(object.id), 3u) << name;
    const Verdict noise = judged(schema, before.at(object.id), after.at(object.id));
    const Verdict twin = judged(schema, after.at(object.id), then.at(object.id));
    EXPECT_TRUE(noise.silent()) << name << ": " << PrintToString(noise.changes) << PrintToString(noise.unknown);
    EXPECT_FALSE(twin.changes.empty()) << "the twin of: " << name << PrintToString(twin.unknown);
    if (object.kind->kind != "custom_resource_definition") {  // to those the API server itself writes at any time
      EXPECT_EQ(object.version_before != object.version_after, object.what.value("written", true))
          << name << ": whether the API server stored anything";
    }
    cried += noise.silent() ? 0 : 1;
    missed += twin.changes.empty() ? 1 : 0;
    std::cout << (noise.silent() ? "  silent " : "  CRIES  ") << (twin.changes.empty() ? "MISSED " : "seen ") << name
              << ": " << PrintToString(twin.changes) << "\n";
  }
  std::cout << objects.size() << " noises, " << cried << " cried; " << missed << " twins missed" << std::endl;
}

/// Every kind is written to a server that behaves like 1.33, which then starts as what it is.
TEST_F(K8sNoise, AnUpgradeOfTheApiServerIsNotSeen) {
  KubeServer kube({"--emulated-version=1.33"});
  kube.create_namespace(kSpace);
  std::vector<NoisyObject> objects;
  for (const auto& kind : table.kinds()) {
    if (kind.custom) continue;
    NoisyObject object{{{"kind", kind.kind}, {"name", "upgrade"}}, &kind, "upgraded", {}, {}, {}};
    Steps(kube, object).create(kind.base);
    const std::string name = kind.kind == "custom_resource_definition" ? "things.upgraded.example" : object.name;
    object.id = kind.kind + "/" + (kind.namespaced ? kSpace + ("/" + name) : name);
    objects.push_back(std::move(object));
  }
  ProviderProbe k8s = probe_of(kube);
  const auto before = records(k8s);
  kube.restart_with({});
  ASSERT_NE(kube.get("/version").value("emulationMinor", ""), "33");
  const auto after = records(k8s);
  for (const auto& object : objects) {
    ASSERT_EQ(before.count(object.id) + after.count(object.id), 2u) << object.id;
    const sdk::Record &old = before.at(object.id), &now = after.at(object.id);
    const Verdict verdict = judged(schema_of(k8s, object.kind->kind), old, now);
    EXPECT_TRUE(verdict.silent()) << object.id << PrintToString(verdict.changes) << PrintToString(verdict.unknown);
    std::cout << (old.body == now.body ? "  same body " : "  other body ")
              << (old.version == now.version ? "same version " : "other version ") << object.id << "\n";
  }
  for (const auto& [id, now] : after) {
    const auto old = before.find(id);
    const bool own = std::any_of(objects.begin(), objects.end(), [&, &id = id](const auto& o) { return o.id == id; });
    if (own) continue;
    const Verdict verdict =
        old == before.end() ? Verdict{{"new"}, {}} : judged(schema_of(k8s, now.kind), old->second, now);
    if (!verdict.silent()) std::cout << "  the server's own " << id << PrintToString(verdict.changes) << "\n";
  }
}

/// A new version of an operator adds a default to its CRD, as a new Kubernetes does to its own types: every object
/// reads differently, and nobody wrote one.
TEST_F(K8sNoise, ADefaultThatAnUpgradeAddsIsNotSeenAndAValueIs) {
  KubeServer kube;
  kube.create_namespace(kSpace);
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                    things = "/apis/noise.example/v1/namespaces/noise/things";
  const auto schema = [](const json& mode) -> json {
    const json properties = {{"size", {{"type", "integer"}}}, {"mode", mode}};
    const json spec = {{"type", "object"}, {"properties", properties}};
    return {{"openAPIV3Schema", {{"type", "object"}, {"properties", {{"spec", spec}}}}}};
  };
  const auto version = [&](const json& mode) -> json {
    return {{"name", "v1"}, {"served", true}, {"storage", true}, {"schema", schema(mode)}};
  };
  const json names = {{"plural", "things"}, {"singular", "thing"}, {"kind", "Thing"}, {"listKind", "ThingList"}};
  kube.create(definitions, {{"metadata", {{"name", "things.noise.example"}}},
                            {"spec",
                             {{"group", "noise.example"},
                              {"scope", "Namespaced"},
                              {"names", names},
                              {"versions", json::array({version({{"type", "string"}})})}}}});
  const json thing = {
      {"apiVersion", "noise.example/v1"}, {"kind", "Thing"}, {"metadata", {{"name", "x"}}}, {"spec", {{"size", 1}}}};
  ASSERT_TRUE(eventually([&] { return kube.request("POST", things, thing.dump()).status == 201; }));
  json settings = kube.settings({kSpace});
  settings["include"] = {"object"};
  settings["objects"] = json::array({{{"group", "noise.example"}, {"kind", "Thing"}}});
  ProviderProbe k8s("providers/k8s.so", settings);
  const std::string id = "Thing.noise.example/noise/x";
  const auto record = [&] {
    const Collected got = k8s.refresh_ok();
    const sdk::Record* found = got.find("object", id);
    if (found == nullptr) throw std::runtime_error("no record of " + id);
    return *found;
  };
  const sdk::Record before = record();
  kube.patch(definitions + "/things.noise.example",
             {{"spec", {{"versions", json::array({version({{"type", "string"}, {"default", "fast"}})})}}}});
  ASSERT_TRUE(eventually([&] { return kube.get(things + "/x").at("spec").contains("mode"); }));
  const sdk::Record after = record();
  ASSERT_NE(before.body, after.body) << "the default is not in the provider's reading";
  ASSERT_EQ(before.version, after.version);
  const auto packaged = schema_of(k8s, "object");
  EXPECT_TRUE(judged(packaged, before, after).silent());
  kube.patch(things + "/x", {{"spec", {{"mode", "slow"}}}});
  EXPECT_FALSE(judged(packaged, after, record()).changes.empty());
  EXPECT_FALSE(judged(packaged, before, record()).changes.empty());
}

}  // namespace
}  // namespace driftd::test
