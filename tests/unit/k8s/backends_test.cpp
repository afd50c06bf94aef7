// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "k8s/mapping.hpp"
#include "k8s/registration.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Objects labelled(const char* type) {
  const json labels = {{"prism.io/backend", "true"}, {"prism.io/backend-name", "q"}};
  json service = {
      {"metadata", {{"name", "svc"}, {"namespace", "n"}, {"labels", labels}}},
      {"spec", {{"type", type}, {"externalName", "db.example"}, {"ports", json::array({{{"port", 5432}}})}}}};
  json secret = {{"metadata", {{"name", "sec"}, {"namespace", "n"}, {"labels", labels}}},
                 {"data", {{"password", "cHc="}}}};
  return {{{"Service", "n", "svc"}, service}, {{"Secret", "n", "sec"}, secret}};
}

TEST(K8sBackends, AMissingServiceIsSaidAndNoEndpointIsGuessed) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  const Objects all = labelled("ClusterIP");
  const auto found = definitions(all, settings, none);
  EXPECT_FALSE(backend_of(found.at({"q", "n"}), all, settings).metadata.contains("endpoint_unread"));
  Objects without = all;
  without.erase({"Service", "n", "svc"});
  const sdk::Backend backend = backend_of(found.at({"q", "n"}), without, settings);
  EXPECT_TRUE(backend.endpoints.empty());
  EXPECT_THAT(backend.metadata.at("endpoint_unread"), HasSubstr("the Service n/svc is missing"));
}

TEST(K8sBackends, ATypeIsNeverAPatternOverPaths) {
  const Settings settings;
  Definition definition;
  definition.name = "q";
  definition.type = "**.a.**.a.**";
  definition.service = Ref{"Service", "n", "svc"};
  const sdk::Record record = registration_of(definition, {}, settings, std::nullopt);
  EXPECT_THAT(record.sensitive, testing::Contains("config[\"**.a.**.a.**\"].password"));
  for (const auto& unread : record.unread) EXPECT_FALSE(unread.path.starts_with("config.**")) << unread.path;
}

TEST(K8sBackends, TakeTheirTypeFromTheUsualPortAndAnExternalNameIsTheEndpoint) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  const Objects objects = labelled("ExternalName");
  const auto found = definitions(objects, settings, none);
  ASSERT_EQ(found.count({"q", "n"}), 1u);
  const sdk::Backend backend = backend_of(found.at({"q", "n"}), objects, settings);
  EXPECT_EQ(backend.type, "postgres");
  EXPECT_TRUE(backend.external);
  EXPECT_EQ(backend.endpoints, std::vector<std::string>{"db.example:5432"});
}

TEST(K8sBackends, ASecretThatIsNotThereLeavesItsFieldsUnknown) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  const auto found = definitions(objects, settings, none);
  objects.erase({"Secret", "n", "sec"});
  const sdk::Record record = registration_of(found.at({"q", "n"}), objects, settings, std::nullopt);
  EXPECT_EQ(record.unread.size(), 2u);
  EXPECT_FALSE(json::parse(record.body)["config"]["postgres"].contains("password"));
}

/// A tenant chooses the type. Used as a path it would be a pattern, and some patterns take minutes to match.
TEST(K8sBackends, ATypeThatIsNoPlainNameStaysOneMember) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  for (auto& [ref, object] : objects) object["metadata"]["labels"]["prism.io/backend-type"] = "**.a.**.b";
  const auto found = definitions(objects, settings, none);
  ASSERT_EQ(found.count({"q", "n"}), 1u);
  ASSERT_EQ(found.at({"q", "n"}).type, "**.a.**.b");
  const sdk::Record record = registration_of(found.at({"q", "n"}), objects, settings, std::nullopt);
  ASSERT_FALSE(record.sensitive.empty());
  for (const auto& path : record.sensitive) EXPECT_TRUE(path.starts_with("config[\"**.a.**.b\"].")) << path;
}

/// Paths that could not be read, one after the other.
std::vector<std::string> unread_of(const sdk::Record& record) {
  std::vector<std::string> out;
  for (const auto& unread : record.unread) out.push_back(unread.path);
  return out;
}

TEST(K8sBackends, AServiceThatIsNotThereLeavesItsEndpointUnknownAndNoneIsInvented) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects{{{"PrismBackend", "n", "q"},
                   {{"metadata", {{"name", "q"}, {"namespace", "n"}}},
                    {"spec", {{"type", "redis"}, {"discovery", {{"service", {{"name", "db"}}}}}}}}}};
  const auto found = definitions(objects, settings, none);
  const sdk::Record record = registration_of(found.at({"q", "n"}), objects, settings, std::nullopt);
  const json body = json::parse(record.body);
  EXPECT_FALSE(body["config"]["redis"].contains("host"));
  EXPECT_FALSE(body["discovery"]["service"].contains("port"));
  EXPECT_EQ(body["discovery"]["service"]["name"], "db");
  EXPECT_THAT(unread_of(record),
              testing::ElementsAre("discovery.service.port", "config.redis.host", "config.redis.port"));
  EXPECT_TRUE(backend_of(found.at({"q", "n"}), objects, settings).endpoints.empty());
}

TEST(K8sBackends, AServiceThatLosesItsLabelLeavesTheEndpointUnknown) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  objects.erase({"Service", "n", "svc"});
  objects.begin()->second["metadata"]["labels"]["prism.io/backend-type"] = "kafka";
  const auto found = definitions(objects, settings, none);
  const sdk::Record record = registration_of(found.at({"q", "n"}), objects, settings, std::nullopt);
  EXPECT_THAT(unread_of(record), testing::ElementsAre("discovery.service", "config.kafka.brokers"));
}

TEST(K8sBackends, AValueThatHoldsASecretIsSensitiveWhereverItIsShown) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  const std::string url = "postgres://app:hunter2@db/app";
  const json spec{
      {"type", "redis"},
      {"metadata", {{"runbook", url}, {"team", "orders"}}},
      {"config", {{"sentinels", json::array({"a:1", url})}, {"deep", {{"a.b", url}}}}},
      {"discovery", {{"external", {{"endpoints", {"db.example"}}}}, {"configMap", {{"name", "c"}, {"key", "url"}}}}}};
  const Ref prism{"PrismBackend", "n", "q"};
  Objects objects{{prism, {{"metadata", {{"name", "q"}, {"namespace", "n"}}}, {"spec", spec}}},
                  {{"ConfigMap", "n", "c"}, {{"metadata", {{"name", "c"}}}, {"data", {{"url", url}}}}}};
  const auto found = definitions(objects, settings, none);
  const sdk::Record record = registration_of(found.at({"q", "n"}), objects, settings, std::nullopt);
  for (const char* path : {"[\"config\"][\"redis\"][\"data\"]", "[\"config\"][\"redis\"][\"sentinels\"][1]",
                           "[\"config\"][\"redis\"][\"deep\"][\"a.b\"]", "[\"metadata\"][\"runbook\"]"}) {
    EXPECT_THAT(record.sensitive, testing::Contains(path));
  }
  EXPECT_THAT(record.sensitive, testing::Not(testing::Contains("[\"metadata\"][\"team\"]")));
  EXPECT_EQ(backend_of(found.at({"q", "n"}), objects, settings).metadata.at("runbook"), "[REDACTED]");
  Resource resource;
  resource.kind = kPrismBackend;
  EXPECT_THAT(map_object(resource, objects.at(prism), settings).sensitive,
              testing::Contains("[\"metadata\"][\"runbook\"]"));
}

TEST(K8sBackends, WithoutALabelledSecretTheirCredentialsAreUnknownNotGone) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  objects.erase({"Secret", "n", "sec"});
  const auto found = definitions(objects, settings, none);
  EXPECT_EQ(registration_of(found.at({"q", "n"}), objects, settings, std::nullopt).unread.size(), 2u);
}

/// A user with rights in one namespace cannot put a Service of his own beside the Secret of another.
TEST(K8sBackends, ObjectsOfTwoNamespacesAreTwoDefinitionsAndSayWhereTheyAre) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  json forged = objects.at({"Service", "n", "svc"});
  forged["metadata"]["namespace"] = "a-tenant";
  objects[{"Service", "a-tenant", "svc"}] = forged;
  const auto found = definitions(objects, settings, none);
  ASSERT_EQ(found.size(), 2u);
  const sdk::Record own = registration_of(found.at({"q", "n"}), objects, settings, std::nullopt);
  const sdk::Record other = registration_of(found.at({"q", "a-tenant"}), objects, settings, std::nullopt);
  EXPECT_EQ(own.backend, "q");
  EXPECT_EQ(own.metadata.at("defined_in"), "n");
  EXPECT_EQ(json::parse(own.body)["config"]["postgres"]["host"], "svc.n.svc.cluster.local");
  EXPECT_EQ(other.backend, "q");
  EXPECT_EQ(other.metadata.at("defined_in"), "a-tenant");
  EXPECT_FALSE(json::parse(other.body)["config"]["postgres"].contains("password")) << "the Secret of another namespace";
  EXPECT_EQ(backend_of(found.at({"q", "a-tenant"}), objects, settings).metadata.at("defined_in"), "a-tenant");
}

/// Its author may write any metadata except the place where it is defined.
TEST(K8sBackends, APrismBackendIsDefinedWhereItStandsWhateverItSays) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  const json spec{
      {"type", "redis"},
      {"metadata", {{"defined_in", "prod"}, {"namespace", "prod"}}},
      {"discovery",
       {{"service", {{"name", "db"}, {"namespace", "prod"}}}, {"secret", {{"name", "s"}, {"namespace", "prod"}}}}}};
  const Objects objects{
      {{"PrismBackend", "tenant", "q"}, {{"metadata", {{"name", "q"}, {"namespace", "tenant"}}}, {"spec", spec}}}};
  const auto found = definitions(objects, settings, none);
  const Definition& definition = found.at({"q", "tenant"});
  EXPECT_EQ(registration_of(definition, objects, settings, std::nullopt).metadata.at("defined_in"), "tenant");
  EXPECT_EQ(backend_of(definition, objects, settings).metadata.at("defined_in"), "tenant");
}

TEST(K8sBackends, OneWithoutATypeIsTold) {
  const Settings settings;
  std::vector<sdk::Diagnostic> told;
  Objects objects = labelled("ClusterIP");
  objects.erase({"Service", "n", "svc"});
  EXPECT_TRUE(definitions(objects, settings, told).empty());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0].text, HasSubstr("prism.io/backend-type"));
}

/// A PrismBackend with this spec; outside of the cluster unless it names a Service.
Objects prism_alone(json spec) {
  if (!spec.contains("discovery")) spec["discovery"] = json::object();
  if (spec["discovery"].is_object() && !spec["discovery"].contains("service"))
    spec["discovery"]["external"]["endpoints"] = {"db.example"};
  return {{{"PrismBackend", "n", "q"}, {{"metadata", {{"name", "q"}, {"namespace", "n"}}}, {"spec", spec}}}};
}

/// Anybody may write a PrismBackend: no form of its members may end the reading of the others.
TEST(K8sBackends, AConfigOfAnyFormCostsNoOther) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  const std::vector<json> odd{nullptr,
                              "x",
                              1,
                              true,
                              json::array({1}),
                              json::object(),
                              {{"sasl", "x"}},
                              {{"sasl", json::array()}},
                              {{"sasl", nullptr}}};
  for (const char* type : {"kafka", "redis"}) {
    for (const auto& auth : odd) {
      Objects objects =
          prism_alone({{"type", type}, {"config", {{"auth", auth}}}, {"discovery", {{"secret", {{"name", "mine"}}}}}});
      objects[{"Secret", "n", "mine"}] = {{"data", {{"username", "dQ=="}, {"password", "cHc="}}}};
      const auto found = definitions(objects, settings, none);
      sdk::Record record;
      ASSERT_NO_THROW(record = registration_of(found.at({"q", "n"}), objects, settings, std::nullopt)) << type << auth;
      const json config = json::parse(record.body)["config"][type];
      EXPECT_EQ((type == std::string("kafka") ? config["auth"]["sasl"] : config)["password"], "pw") << type << auth;
    }
    for (const auto& member : odd) {  // each member in any form
      for (const char* name : {"type", "discovery", "config", "capabilities", "metadata"}) {
        json spec{{"type", type}, {"discovery", {{"service", {{"name", "db"}}}}}};
        spec[name] = member;
        const Objects objects = prism_alone(spec);
        for (const auto& [place, definition] : definitions(objects, settings, none)) {
          ASSERT_NO_THROW((void)registration_of(definition, objects, settings, std::nullopt)) << name << member;
          ASSERT_NO_THROW((void)backend_of(definition, objects, settings)) << name << member;
        }
      }
    }
  }
}

/// An object that a PrismBackend of another tenant refers to was read, too; only the label of its owner makes it part
/// of a backend.
TEST(K8sBackends, AnObjectIsPartByTheValueOfItsLabelAndNotByTheKeyAlone) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  json other = objects.at({"Secret", "n", "sec"});
  other["metadata"]["labels"]["prism.io/backend"] = "false";
  objects[{"Secret", "n", "a-first-by-name"}] = other;
  const auto found = definitions(objects, settings, none);
  EXPECT_EQ(found.at({"q", "n"}).secret->name, "sec");
}

TEST(K8sBackends, OneWithoutATypeSaysInWhichNamespace) {
  const Settings settings;
  std::vector<sdk::Diagnostic> told;
  Objects objects = labelled("ClusterIP");
  objects.erase({"Service", "n", "svc"});
  EXPECT_TRUE(definitions(objects, settings, told).empty());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id + " " + told[0].backend + " " + told[0].path, "q q n");
}

/// If there are more secrets than a record may name, or a name is longer than a path may be, whole members become
/// secret.
TEST(K8sBackends, SecretsOfAnyNumberAndUnderAnyNameAreNamedInWhatTheHostTakes) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  const std::string url = "postgres://app:hunter2@db/app";
  json many = json::array();
  for (int i = 0; i < 5000; ++i) many.push_back(url);
  for (const json& config : {json{{"urls", many}}, json{{std::string(5000, 'k'), url}}}) {
    const Objects objects = prism_alone({{"type", "redis"}, {"config", config}});
    const sdk::Record record =
        registration_of(definitions(objects, settings, none).at({"q", "n"}), objects, settings, std::nullopt);
    EXPECT_LE(record.sensitive.size(), 4096u);
    for (const auto& path : record.sensitive) EXPECT_LE(path.size(), 4096u);
    EXPECT_THAT(record.sensitive, testing::Contains("[\"config\"]"));
  }
}

/// The host accepts 4 MiB and 100,000 values: larger members are unread by name, and the rest is judged.
TEST(K8sBackends, AConfigThatIsTooLargeIsUnreadAlone) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  json values = json::array();
  for (int i = 0; i < 120'000; ++i) values.push_back(i);
  for (const json& config : {json{{"a", values}}, json{{"a", std::string(5u << 20, 'x')}}}) {
    const Objects objects = prism_alone({{"type", "redis"}, {"config", config}, {"capabilities", {"tls"}}});
    const sdk::Record record =
        registration_of(definitions(objects, settings, none).at({"q", "n"}), objects, settings, std::nullopt);
    const json body = json::parse(record.body);
    EXPECT_LE(record.body.size(), 4u << 20);
    EXPECT_FALSE(body.contains("config"));
    EXPECT_EQ(body["capabilities"], json({"tls"}));
    ASSERT_EQ(record.unread.size(), 1u);
    EXPECT_EQ(record.unread[0].path, "config");
  }
}

/// Bounds of the host: a backend beyond them would be refused as a whole, and each discovery be incomplete.
TEST(K8sBackends, WhatADiscoveredBackendSaysIsCutToWhatTheHostTakes) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  std::string wide;
  for (int i = 0; i < 5000; ++i) wide += "\u00e9";
  json spec{{"type", "redis"},
            {"metadata", {{"long", wide}, {std::string(5000, 'k'), "v"}, {"team", "orders"}}},
            {"capabilities", {"tls", std::string(5000, 'c')}},
            {"discovery", {{"service", {{"name", std::string(20'000, 's')}}}}}};
  for (int i = 0; i < 5000; ++i) spec["metadata"]["m" + std::to_string(i)] = "v";
  for (int i = 0; i < 5000; ++i) spec["capabilities"].push_back("c" + std::to_string(i));
  const Objects objects = prism_alone(spec);
  const Definition definition = definitions(objects, settings, none).at({"q", "n"});
  const sdk::Backend backend = backend_of(definition, objects, settings);
  std::size_t bytes = 0;
  EXPECT_LE(backend.metadata.size(), 4096u);
  for (const auto& [name, value] : backend.metadata) {
    EXPECT_LE(name.size(), 4096u);
    EXPECT_LE(value.size(), 8192u) << name;
    EXPECT_NO_THROW((void)json(value).dump()) << name << ": a character was cut in its middle";
    bytes += name.size() + value.size();
  }
  EXPECT_LE(bytes, 128u << 10) << "6 MiB are there for all of them";
  EXPECT_THAT(backend.metadata.at("long"), testing::EndsWith("[cut]"));
  EXPECT_EQ(backend.metadata.at("defined_in"), "n");
  EXPECT_LE(backend.capabilities.size(), 4096u);
  for (const auto& each : backend.capabilities) EXPECT_LE(each.size(), 4096u);
  const sdk::Record record = registration_of(definition, objects, settings, std::nullopt);
  for (const auto& [name, value] : record.metadata) EXPECT_LE(value.size(), 8192u) << name;
  EXPECT_EQ(record.metadata.at("defined_in"), "n");
}

TEST(K8sBackends, ATypeThatNoBackendCanHaveIsToldAndCostsNoOther) {
  const Settings settings;
  std::vector<sdk::Diagnostic> told;
  EXPECT_TRUE(definitions(prism_alone({{"type", std::string(5000, 't')}}), settings, told).empty());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].backend, "q");
  EXPECT_LT(told[0].text.size(), 1000u);
}

/// A second line of defence: a definition that cannot be read keeps its record with everything unread, and the others
/// are read.
TEST(K8sBackends, OneThatCannotBeReadIsUnreadAndTold) {
  const Settings settings;
  std::vector<sdk::Diagnostic> told;
  Definition definition;
  definition.name = "q";
  definition.space = "n";
  definition.type = "kafka";
  definition.service = Ref{"Service", "n", "svc"};
  definition.overrides = json::array({1});  // no form that from_prism() gives
  const sdk::Record record =
      registration_or_unreadable(definition, labelled("ClusterIP"), settings, std::nullopt, told);
  EXPECT_EQ(record.kind + " " + record.id + " " + record.backend + " " + record.metadata.at("defined_in"),
            "registration q q n");
  EXPECT_EQ(unread_of(record), std::vector<std::string>{"**"});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].backend + " " + told[0].path, "q n");
}

}  // namespace
}  // namespace driftd::k8s
