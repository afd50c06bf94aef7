// SPDX-License-Identifier: Apache-2.0
// A marker in every free-form value of every kind: none is left after the provider's mapping and the host's redaction.
#include <gmock/gmock.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/disclosure.hpp"
#include "k8s/kinds.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const json& document() {
  static const json kDocument = [] {
    std::ifstream in(std::string(DRIFTD_SOURCE_DIR) + "/plugins/k8s/schema.json");
    return json::parse(in);
  }();
  return kDocument;
}

core::Disclosure disclosure() {
  std::vector<core::FreeForm> free;
  for (const auto& [kind, paths] : document().at("free_form").items()) {
    for (const auto& path : paths) free.push_back({kind, "", path.get<std::string>()});
  }
  return core::Disclosure(free, {});
}

Settings everything() {
  Settings out;
  out.labels = out.annotations = {"*"};
  return out;
}

/// Body and status as they leave the worker.
std::string leaving(const std::string& kind, json object) {
  Resource resource;
  resource.kind = kind;
  object["metadata"] = {
      {"namespace", "prod"},
      {"name", "app"},
      {"annotations",
       {{"note", "canary note"},
        {"kubectl.kubernetes.io/last-applied-configuration", R"({"data":{"p":"Y2FuYXJ5"},"x":"canary"})"}}}};
  const sdk::Record record = map_object(resource, object, everything());
  const auto schema = core::KindSchema::parse(document().at("kinds").at(kind).dump()).value();
  const core::Disclosure rules = disclosure();
  const core::ResourceId id{kind, record.id};
  return core::redact(record.body, id, *schema, record.sensitive, {"aaaa1111", {1}}, &rules).value() +
         core::render(rules.status(id, core::parse(record.status).value()));
}

json workload() {
  json env = json::array();
  for (const char* name : {"DB_PASS", "MYSQL_PWD", "PASSPHRASE", "REDIS_AUTH", "ENCRYPTION_KEY", "SIGNING_KEY",
                           "API-KEY", "CONN", "JDBC", "AZURE", "X"}) {
    env.push_back({{"name", name}, {"value", "canary"}});
  }
  env.push_back({{"name", "DB_HOST"}, {"value", "db?password=canary"}});
  env.push_back({{"name", "LOG_LEVEL"}, {"value", "shown-level"}});
  const json probe = {{"exec", {{"command", {"check", "canary"}}}},
                      {"httpGet", {{"httpHeaders", json::array({{{"name", "X"}, {"value", "canary"}}})}}}};
  const json container = {{"name", "keycloak"},
                          {"image", "shop/app:1.2"},
                          {"env", env},
                          {"command", {"run", "canary"}},
                          {"args", {"-pcanary", "--auth=canary", "--log-level=debug"}},
                          {"livenessProbe", probe},
                          {"readinessProbe", probe}};
  const json volume = {{"name", "v"}, {"csi", {{"driver", "d"}, {"volumeAttributes", {{"x", "canary"}}}}}};
  return {{"spec",
           {{"replicas", 3},
            {"template",
             {{"spec",
               {{"containers", json::array({container})},
                {"initContainers", json::array({container})},
                {"volumes", json::array({volume})}}}}}}}};
}

TEST(K8sCanary, NoFreeFormValueOfAWorkloadLeaves) {
  for (const char* kind : {"deployment", "stateful_set", "daemon_set"}) {
    const std::string out = leaving(kind, workload());
    EXPECT_THAT(out, Not(HasSubstr("canary"))) << kind;
    EXPECT_THAT(out, Not(HasSubstr("Y2FuYXJ5"))) << kind;
    for (const char* shown : {"shop/app:1.2", "shown-level", "--log-level=debug", R"("replicas":3)"})
      EXPECT_THAT(out, HasSubstr(shown)) << kind;
  }
}

/// What the rest of an object brought: hooks, annotations of pods and claims, variables that stand twice, and pods of
/// kinds that are whole.
TEST(K8sCanary, NoFreeFormValueOfWhatIsNewLeaves) {
  const json hook = {{"exec", {{"command", {"run", "canary"}}}},
                     {"httpGet", {{"httpHeaders", json::array({{{"name", "X"}, {"value", "canary"}}})}}}};
  json object = workload();
  json& pod = object["spec"]["template"]["spec"];
  pod["containers"][0]["lifecycle"] = {{"preStop", hook}, {"postStart", hook}};
  object["spec"]["template"]["metadata"] = {{"annotations", {{"note", "canary note"}}},
                                            {"labels", {{"app", "shown-label"}}}};
  object["spec"]["volumeClaimTemplates"] =
      json::array({{{"metadata", {{"name", "d"}, {"annotations", {{"note", "canary note"}}}}}}});
  for (const char* kind : {"deployment", "stateful_set", "daemon_set", "job"}) {
    const std::string out = leaving(kind, object);
    EXPECT_THAT(out, Not(HasSubstr("canary"))) << kind;
    for (const char* shown : {"shop/app:1.2", "shown-label"}) EXPECT_THAT(out, HasSubstr(shown)) << kind;
  }
  EXPECT_THAT(leaving("cron_job", {{"spec", {{"jobTemplate", {{"spec", object.at("spec")}}}}}}),
              Not(HasSubstr("canary")));
  pod["containers"][0]["env"].push_back({{"name", "X"}, {"value", "canary"}});
  for (const char* kind : {"deployment", "job"})
    EXPECT_THAT(leaving(kind, object), Not(HasSubstr("canary"))) << kind << ": X stands twice";
  pod["containers"][0]["env"].push_back({{"name", "X#2"}, {"value", "canary"}});
  for (const char* kind : {"deployment", "job"})
    EXPECT_THAT(leaving(kind, object), Not(HasSubstr("canary"))) << kind << ": X#2 is the name of a variable, too";
  EXPECT_THAT(leaving("storage_class", {{"parameters", {{"x", "canary"}}}}), Not(HasSubstr("canary")));
  const json header = {{"set", json::array({{{"name", "X"}, {"value", "canary"}}})}};
  const json filter = {{"type", "RequestHeaderModifier"}, {"requestHeaderModifier", header}};
  EXPECT_THAT(leaving("http_route", {{"spec", {{"rules", json::array({{{"filters", json::array({filter})}}})}}}}),
              Not(HasSubstr("canary")));
}

TEST(K8sCanary, NoValueOfACustomResourceOrItsStatusLeaves) {
  const json object = {
      {"spec",
       {{"password", "canary"},
        {"auth", {{"token", "canary"}, {"user", "canary"}}},
        {"list", {"canary"}},
        {"replicas", 3}}},
      {"status", {{"adminPassword", "canary"}, {"uri", "postgres://u:canary@h/x"}, {"phase", "Ready"}}}};
  const std::string out = leaving("object", object);
  EXPECT_THAT(out, Not(HasSubstr("canary")));
  for (const char* shown : {R"("replicas":3)", R"("phase":"Ready")"}) EXPECT_THAT(out, HasSubstr(shown));
}

TEST(K8sCanary, OfAConfigMapLeavesWhatHoldsNoSecretByItsForm) {
  const json object = {{"data", {{"app.properties", "db.password=canary\n"}, {"plain", "some words"}}},
                       {"binaryData", {{"keystore", "Y2FuYXJ5"}}}};
  const std::string out = leaving("config_map", object);
  EXPECT_THAT(out, Not(HasSubstr("canary")));
  EXPECT_THAT(out, Not(HasSubstr("Y2FuYXJ5")));
  EXPECT_THAT(out, HasSubstr("some words"));
}

TEST(K8sCanary, NoAnnotationLeavesWithASecret) {
  for (const auto& [kind, schema] : document().at("kinds").items()) {
    if (kind == kRegistration || kind == kHelmRelease) continue;
    EXPECT_THAT(leaving(kind, json::object()), Not(HasSubstr("canary"))) << kind;
  }
}

}  // namespace
}  // namespace driftd::k8s
