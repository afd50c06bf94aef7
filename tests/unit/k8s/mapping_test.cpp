// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "k8s/helm.hpp"
#include "k8s/mapping.hpp"
#include "k8s/prism.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(K8sMapping, TheLastWriterIsNotWhoTouchedTheStatus) {
  const json object = {{"metadata",
                        {{"managedFields", json::array({{{"manager", "helm"}, {"operation", "Apply"}, {"time", "2026-01-01T00:00:00Z"}},
                                                        {{"manager", "kubectl-edit"}, {"operation", "Update"}, {"time", "2026-01-02T00:00:00Z"}},
                                                        {{"manager", "kcm"}, {"subresource", "status"}, {"time", "2026-01-03T00:00:00Z"}}})}}}};
  EXPECT_EQ(last_writer(object).manager, "kubectl-edit");
}

TEST(K8sMapping, WhatLooksLikeACredentialIsOne) {
  EXPECT_TRUE(looks_secret("DB_PASSWORD", "x"));
  EXPECT_TRUE(looks_secret("URL", "postgres://app:pw@db/x"));
  EXPECT_TRUE(looks_secret("", "-----BEGIN EC PRIVATE KEY-----"));
  EXPECT_FALSE(looks_secret("URL", "https://example.org/a@b:c"));
  EXPECT_FALSE(looks_secret("LOG_LEVEL", "info"));
}

TEST(K8sMapping, BytesThatAreNoTextNeverEqualAText) {
  const json data = decoded_data({{"a", "/w=="}, {"b", "aGk="}});
  EXPECT_EQ(data["a"], json({{"base64", "/w=="}}));
  EXPECT_EQ(data["b"], "hi");
}

TEST(K8sMapping, FieldsOfACustomKindAreTakenByPath) {
  const Custom custom{"g", "v1", "K", {{"first", "spec.ports[0].port"}, {"none", "spec.missing"}}};
  json body = json::object(), status = json::object();
  sdk::Record record;
  map_custom({{"spec", {{"ports", json::array({{{"port", 80}}})}}}}, &custom, body, status, record);
  EXPECT_EQ(body, json({{"first", 80}}));
}

json revision(int number, const std::string& status) {
  // {"chart":{"metadata":{"name":"app"}},"info":{"status":"deployed"},"version":1,"config":{}} without gzip, as old Helm wrote it
  return {{"metadata",
           {{"name", "sh.helm.release.v1.shop.v" + std::to_string(number)},
            {"namespace", "prod"},
            {"labels", {{"owner", "helm"}, {"name", "shop"}, {"version", std::to_string(number)}, {"status", status}}}}},
          {"data", {{"release", "ZXlKamFHRnlkQ0k2ZXlKdFpYUmhaR0YwWVNJNmV5SnVZVzFsSWpvaVlYQndJbjE5TENKcGJtWnZJanA3SW5OMFlYUjFjeUk2SW1SbGNHeHZlV1ZrSW4wc0luWmxjbk5wYjI0aU9qRXNJbU52Ym1acFp5STZlMzE5"}}}};
}

std::vector<sdk::Record> releases(const std::vector<json>& secrets, std::vector<sdk::Diagnostic>& diagnostics) {
  HelmReleases all;
  for (const auto& secret : secrets) all.add(secret);
  return all.records(diagnostics);
}

TEST(K8sHelm, OnlyTheHighestDeployedRevisionCounts) {
  std::vector<sdk::Diagnostic> none;
  for (const auto& order : {std::vector{revision(1, "superseded"), revision(2, "deployed"), revision(3, "failed")},
                            std::vector{revision(3, "failed"), revision(2, "deployed"), revision(1, "superseded")}}) {
    const auto records = releases(order, none);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].id, "prod/shop");
    EXPECT_EQ(records[0].metadata.at("revision"), "2");
    EXPECT_TRUE(records[0].unread.empty());
  }
  EXPECT_TRUE(none.empty());
}

TEST(K8sHelm, APendingRevisionMakesTheReleaseUnknown) {
  std::vector<sdk::Diagnostic> none;
  const auto records = releases({revision(2, "deployed"), revision(3, "pending-upgrade")}, none);
  ASSERT_EQ(records.size(), 1u);
  ASSERT_EQ(records[0].unread.size(), 1u);
  EXPECT_THAT(records[0].unread[0].reason, HasSubstr("revision 3 is in flight"));
}

TEST(K8sHelm, WhatCannotBeUnpackedIsToldAndNotGone) {
  std::vector<sdk::Diagnostic> diagnostics;
  json broken = revision(1, "deployed");
  broken["data"]["release"] = "bm9uc2Vuc2U=";
  EXPECT_TRUE(releases({broken}, diagnostics).empty());
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].code, DRIFTD_CORRUPT);
  EXPECT_EQ(diagnostics[0].id, "prod/shop");
}

Objects labelled(const char* type) {
  const json labels = {{"prism.io/backend", "true"}, {"prism.io/backend-name", "q"}};
  json service = {{"metadata", {{"name", "svc"}, {"namespace", "n"}, {"labels", labels}}},
                  {"spec", {{"type", type}, {"externalName", "db.example"}, {"ports", json::array({{{"port", 5432}}})}}}};
  json secret = {{"metadata", {{"name", "sec"}, {"namespace", "n"}, {"labels", labels}}}, {"data", {{"password", "cHc="}}}};
  return {{{"Service", "n", "svc"}, service}, {{"Secret", "n", "sec"}, secret}};
}

TEST(K8sBackends, TakeTheirTypeFromTheUsualPortAndAnExternalNameIsTheEndpoint) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  const Objects objects = labelled("ExternalName");
  const auto found = definitions(objects, settings, none);
  ASSERT_EQ(found.count("q"), 1u);
  const sdk::Backend backend = backend_of(found.at("q"), objects, settings);
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
  const sdk::Record record = registration_of(found.at("q"), objects, settings, std::nullopt);
  EXPECT_EQ(record.unread.size(), 2u);
  EXPECT_FALSE(json::parse(record.body)["config"]["postgres"].contains("password"));
}

/// A tenant writes the type: as a path it would be a pattern, of which some take minutes to match.
TEST(K8sBackends, ATypeThatIsNoPlainNameStaysOneMember) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  for (auto& [ref, object] : objects) object["metadata"]["labels"]["prism.io/backend-type"] = "**.a.**.b";
  const auto found = definitions(objects, settings, none);
  ASSERT_EQ(found.count("q"), 1u);
  ASSERT_EQ(found.at("q").type, "**.a.**.b");
  const sdk::Record record = registration_of(found.at("q"), objects, settings, std::nullopt);
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
  const sdk::Record record = registration_of(found.at("q"), objects, settings, std::nullopt);
  const json body = json::parse(record.body);
  EXPECT_FALSE(body["config"]["redis"].contains("host"));
  EXPECT_FALSE(body["discovery"]["service"].contains("port"));
  EXPECT_EQ(body["discovery"]["service"]["name"], "db");
  EXPECT_THAT(unread_of(record), testing::ElementsAre("discovery.service.port", "config.redis.host", "config.redis.port"));
  EXPECT_TRUE(backend_of(found.at("q"), objects, settings).endpoints.empty());
}

TEST(K8sBackends, AServiceThatLosesItsLabelLeavesTheEndpointUnknown) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  objects.erase({"Service", "n", "svc"});
  objects.begin()->second["metadata"]["labels"]["prism.io/backend-type"] = "kafka";
  const auto found = definitions(objects, settings, none);
  const sdk::Record record = registration_of(found.at("q"), objects, settings, std::nullopt);
  EXPECT_THAT(unread_of(record), testing::ElementsAre("discovery.service", "config.kafka.brokers"));
}

TEST(K8sBackends, AValueThatHoldsASecretIsSensitiveWhereverItIsShown) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  const std::string url = "postgres://app:hunter2@db/app";
  const json spec{{"type", "redis"},
                  {"metadata", {{"runbook", url}, {"team", "orders"}}},
                  {"config", {{"sentinels", json::array({"a:1", url})}, {"deep", {{"a.b", url}}}}},
                  {"discovery", {{"configMap", {{"name", "c"}, {"key", "url"}}}}}};
  const Ref prism{"PrismBackend", "n", "q"};
  Objects objects{{prism, {{"metadata", {{"name", "q"}, {"namespace", "n"}}}, {"spec", spec}}},
                  {{"ConfigMap", "n", "c"}, {{"metadata", {{"name", "c"}}}, {"data", {{"url", url}}}}}};
  const auto found = definitions(objects, settings, none);
  const sdk::Record record = registration_of(found.at("q"), objects, settings, std::nullopt);
  for (const char* path : {"[\"config\"][\"redis\"][\"data\"]", "[\"config\"][\"redis\"][\"sentinels\"][1]",
                           "[\"config\"][\"redis\"][\"deep\"][\"a.b\"]", "[\"metadata\"][\"runbook\"]"}) {
    EXPECT_THAT(record.sensitive, testing::Contains(path));
  }
  EXPECT_THAT(record.sensitive, testing::Not(testing::Contains("[\"metadata\"][\"team\"]")));
  EXPECT_EQ(backend_of(found.at("q"), objects, settings).metadata.at("runbook"), "[REDACTED]");
  sdk::Record custom;
  json body, status;
  map_custom(objects.at(prism), nullptr, body, status, custom);
  EXPECT_THAT(custom.sensitive, testing::Contains("[\"metadata\"][\"runbook\"]"));
}

TEST(K8sSecretText, AnyUrlOfATextMayHoldThePassword) {
  EXPECT_TRUE(looks_secret({}, "http://a/b postgres://u:p@db"));
  EXPECT_TRUE(looks_secret({}, "amqp://a:5672,amqp://u:p@b"));
  EXPECT_FALSE(looks_secret({}, "http://a/b me@example.com http://c:80/x@y"));
  for (const char c : {'?', '#', '"', '<', '\''}) {  // a password that should have been written with %
    EXPECT_TRUE(looks_secret({}, std::string("postgres://u:p") + c + "w@db/x")) << c;
  }
}

TEST(K8sBackends, WithoutALabelledSecretTheirCredentialsAreUnknownNotGone) {
  const Settings settings;
  std::vector<sdk::Diagnostic> none;
  Objects objects = labelled("ClusterIP");
  objects.erase({"Secret", "n", "sec"});
  const auto found = definitions(objects, settings, none);
  EXPECT_EQ(registration_of(found.at("q"), objects, settings, std::nullopt).unread.size(), 2u);
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

}  // namespace
}  // namespace driftd::k8s
