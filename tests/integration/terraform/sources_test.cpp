// SPDX-License-Identifier: Apache-2.0
// What a state says of other backends, through the plugin: declarations, registrations and discovery. And the state
// backend `kubernetes`.
#include <gmock/gmock.h>
#include <fstream>

#include "support/kube.hpp"
#include "support/provider_probe.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kDeclared = DRIFTD_SOURCE_DIR "/tests/unit/terraform/testdata/declared.tfstate";

const sdk::Record* find(const Collected& seen, const std::string& backend, const std::string& kind,
                        const std::string& id) {
  for (const auto& record : seen.records) {
    if (record.backend == backend && record.kind == kind && record.id == id) return &record;
  }
  return nullptr;
}

TEST(TerraformSources, RulesMakeRecordsOfOtherBackendsAndTellTheirKindsWhole) {
  ProviderProbe probe("providers/terraform.so",
                      {{"path", kDeclared},
                       {"declares",
                        {{{"resources", "postgresql_*"}, {"backend", "orders-db"}, {"database", "app"}},
                         {{"resources", "kafka_topic"}, {"backend", "bus"}},
                         {{"resources", "kubernetes_secret*"}, {"backend", "prod"}}}}});
  const auto seen = probe.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  EXPECT_EQ(seen.complete.at("instance"), 16u) << "declared records count for the backend that they declare";
  EXPECT_EQ(seen.complete_of,
            (std::map<std::pair<std::string, std::string>, std::uint64_t>{{{"orders-db", "role"}, 2},
                                                                          {{"orders-db", "database"}, 1},
                                                                          {{"orders-db", "extension"}, 1},
                                                                          {{"orders-db", "schema"}, 0},
                                                                          {{"orders-db", "publication"}, 0},
                                                                          {{"orders-db", "subscription"}, 0},
                                                                          {{"orders-db", "slot"}, 0},
                                                                          {{"orders-db", "registration"}, 1},
                                                                          {{"cache", "registration"}, 1},
                                                                          {{"bus", "topic"}, 1},
                                                                          {{"prod", "secret"}, 2}}));
  const auto* role = find(seen, "orders-db", "role", "app");
  ASSERT_NE(role, nullptr);
  EXPECT_EQ(role->metadata.at("address"), "module.db.postgresql_role.app");
  EXPECT_EQ(role->metadata.at("serial"), "12");
  EXPECT_EQ(role->origin, "terraform-state");
  EXPECT_THAT(find(seen, "prod", "secret", "prod/db")->sensitive,
              ElementsAre(R"(data["password"])", R"(data["username"])"));
  const auto* unknown = seen.diagnostic(DRIFTD_UNSUPPORTED);
  ASSERT_NE(unknown, nullptr);
  EXPECT_EQ(unknown->id, "postgresql_grant.read");
  EXPECT_EQ(probe.read({{"role", "app", "orders-db"}, {"role", "nobody", "orders-db"}, {"role", "app", "bus"}})
                .records.size(),
            1u);
}

TEST(TerraformSources, RegistrationsComeWithTheRefreshAndABackendThatIsNotThereAnyMoreIsToldSo) {
  const TempDir dir;
  const std::string path = dir.file("t.tfstate");
  const auto labelled = [](const std::string& name, const std::string& type) {
    return R"({"mode":"managed","type":"kubernetes_secret","name":")" + name +
           R"(","provider":"p","instances":[{"attributes":{"data":{"password":"canary"},)" +
           R"("metadata":[{"name":")" + name + R"(","namespace":"prod","labels":{"prism.io/backend":"true")" +
           (type.empty() ? "" : R"(,"prism.io/backend-type":")" + type + "\"") + "}}]}}]}";
  };
  const auto write = [&](int serial, const std::string& resources) {
    dir.write("t.tfstate", R"({"version":4,"serial":)" + std::to_string(serial) +
                               R"(,"lineage":"abc","outputs":{},"resources":[)" + resources + "]}");
  };
  write(1, labelled("one", "redis") + "," + labelled("two", "kafka"));
  ProviderProbe probe("providers/terraform.so", {{"path", path}});
  const auto first = probe.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK);
  ASSERT_NE(find(first, "one", "registration", "one"), nullptr);
  EXPECT_EQ(json::parse(find(first, "two", "registration", "two")->body)["config"]["kafka"]["auth"]["sasl"]["password"],
            "canary");
  EXPECT_EQ(first.complete.at("registration"), 0u) << "the state's own backend has no registration";
  const auto known = probe.read({{"registration", "one", "one"}, {"registration", "nobody", "nobody"}});
  EXPECT_EQ(known.records.size(), 1u);
  EXPECT_NE(known.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  EXPECT_EQ(probe.discover().backends.size(), 2u);

  write(2, labelled("one", "redis") + "," + labelled("two", ""));  // a missing label must not unregister a backend
  const auto unsure = probe.refresh(first.cursor);
  EXPECT_EQ(unsure.complete.count("registration"), 0u);
  EXPECT_EQ(unsure.complete_of,
            (std::map<std::pair<std::string, std::string>, std::uint64_t>{{{"one", "registration"}, 1}}));
  const auto* without_type = unsure.diagnostic(DRIFTD_INVALID);
  ASSERT_NE(without_type, nullptr);
  EXPECT_EQ(without_type->kind, "registration");
  EXPECT_THAT(without_type->text, HasSubstr("backend two has no type"));
  EXPECT_EQ(probe.read({{"registration", "two", "two"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);

  write(3, labelled("one", "redis"));
  // a worker that was started later knows from the cursor which backends were registered
  ProviderProbe fresh("providers/terraform.so", {{"path", path}});
  for (auto* each : {&probe, &fresh}) {
    EXPECT_EQ(each->refresh(unsure.cursor).complete_of,
              (std::map<std::pair<std::string, std::string>, std::uint64_t>{{{"one", "registration"}, 1},
                                                                            {{"two", "registration"}, 0}}));
  }
  ProviderProbe without_registrations("providers/terraform.so", {{"path", path}, {"exclude", {"registration/*"}}});
  EXPECT_TRUE(without_registrations.refresh().complete_of.empty());
}

TEST(TerraformSources, AfterALossTheHostIsAskedToLookAgainSoon) {
  const TempDir dir;
  const auto write = [&](int serial, const std::string& resources) {
    dir.write("t.tfstate", R"({"version":4,"serial":)" + std::to_string(serial) +
                               R"(,"lineage":"abc","outputs":{},"resources":[)" + resources + "]}");
  };
  write(
      1,
      R"({"mode":"managed","type":"kubernetes_secret","name":"one","provider":"p","instances":[{"attributes":{"metadata":[{"name":"one",)"
      R"("labels":{"prism.io/backend":"true","prism.io/backend-type":"redis"}}]}}]})");
  ProviderProbe probe("providers/terraform.so", {{"path", dir.file("t.tfstate")}});
  EXPECT_EQ(probe.discover().next_ms, 60'000);
  write(2, "");
  const auto gone = probe.discover();
  EXPECT_TRUE(gone.discovery_complete && gone.backends.empty());
  EXPECT_EQ(gone.next_ms, 0);
  std::int64_t next = 0;
  for (int i = 0; i < 5; ++i) next = probe.discover().next_ms;
  EXPECT_EQ(next, 60'000);
}

TEST(TerraformSources, ARuleWhoseResourcesAreGoneStillTellsItsKindsWhole) {
  const TempDir dir;
  const std::string path =
      dir.write("t.tfstate", R"({"version":4,"serial":13,"lineage":"abc","outputs":{},"resources":[]})");
  ProviderProbe probe("providers/terraform.so",
                      {{"path", path}, {"declares", {{{"resources", "kafka_topic"}, {"backend", "bus"}}}}});
  EXPECT_EQ(probe.refresh().complete_of.at({"bus", "topic"}), 0u);
}

TEST(TerraformSources, LabelledResourcesAreDiscoveredAndAnUntypedOneKeepsTheRestFromVanishing) {
  ProviderProbe probe("providers/terraform.so", {{"path", kDeclared}});
  const auto seen = probe.discover();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  EXPECT_EQ(seen.backends.size(), 2u);
  EXPECT_FALSE(seen.discovery_complete);
  ASSERT_EQ(seen.diagnostics.size(), 1u);
  EXPECT_EQ(seen.diagnostics[0].id, "kubernetes_secret.untyped");
  EXPECT_EQ(probe.discover().backends.size(), 2u) << "a second discovery finds the same";
  for (const auto& backend : seen.backends) {
    for (const auto& [path, reference] : backend.credentials) EXPECT_THAT(reference, HasSubstr("k8s:prod/"));
  }
}

TEST(TerraformKubernetes, WhatOpenTofuWritesIsReadWithTheRightsOfTheReadme) {
  KubeServer kube;
  kube.create_namespace("tf");
  const std::string token = kube.account(
      "tf", "driftd", json::parse(R"([{"apiGroups":[""],"resources":["secrets"],"verbs":["get","list","watch"]}])"));
  const std::string without_right =
      kube.account("tf", "nobody", json::parse(R"([{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}])"));
  const std::string lines =
      "backend \"kubernetes\" {\n secret_suffix = \"platform\"\n namespace = \"tf\"\n config_path = \"" +
      kube.kubeconfig() + "\"\n}";
  const auto resource = [](int value) {
    return "resource \"terraform_data\" \"a\" { input = " + std::to_string(value) + " }\n";
  };
  const json backend = {{"type", "kubernetes"},      {"secret_suffix", "platform"},
                        {"namespace", "tf"},         {"host", kube.server()},
                        {"token", "token-of-token"}, {"cluster_ca_certificate_file", kube.ca_file()}};
  const auto probe_as = [&](const std::string& who, const std::string& workspace = "default") {
    return ProviderProbe("providers/terraform.so", {{"backend", backend}, {"workspace", workspace}},
                         {{"token-of-token", who}});
  };
  const auto input = [](const Collected& seen) { return seen.body("instance", "terraform_data.a")["input"]["value"]; };
  auto probe = probe_as(token);
  EXPECT_EQ(probe.refresh().status, DRIFTD_UNAVAILABLE);
  Tofu tofu;
  tofu.configure(resource(1), lines);
  tofu.apply();
  const auto first = probe.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  EXPECT_EQ(input(first), 1);
  const auto lists = [&] { return kube.counted("apiserver_request_total", {"resource=\"secrets\"", "verb=\"LIST\""}); };
  const int before = lists();
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  EXPECT_EQ(lists() - before, 1) << "one list of metadata, and none of the state";
  tofu.configure(resource(2), lines);
  bool applied = false;
  const auto watched = probe.watch(
      {}, [](const Collected& c) { return c.marks > 1; }, std::chrono::seconds(30),
      [&] {
        if (!std::exchange(applied, true)) tofu.apply();
      });
  EXPECT_GT(watched.marks, 1);
  const auto second = probe.refresh(first.cursor);
  EXPECT_EQ(input(second), 2);
  tofu.run({"workspace", "new", "prod"});
  tofu.apply();
  EXPECT_EQ(input(probe_as(token, "prod").refresh()), 2);

  // Terraform writes a long state in parts: part 2 exists now, but part 1 does not
  const json whole = kube.get("/api/v1/namespaces/tf/secrets/tfstate-default-platform");
  json part = {{"apiVersion", "v1"},
               {"kind", "Secret"},
               {"metadata", {{"name", "tfstate-default-platform-part-2"}, {"labels", whole["metadata"]["labels"]}}},
               {"data", whole["data"]}};
  kube.create("/api/v1/namespaces/tf/secrets", part);
  const auto torn = probe.refresh(second.cursor);
  EXPECT_EQ(torn.status, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(torn.complete.empty());
  EXPECT_THAT(torn.diagnostics[0].text, HasSubstr("part 1 is not there"));
  kube.remove("/api/v1/namespaces/tf/secrets/tfstate-default-platform-part-2");
  EXPECT_EQ(probe.refresh(second.cursor).status, DRIFTD_OK);

  const auto denied = probe_as(without_right).refresh();
  EXPECT_EQ(denied.status, DRIFTD_DENIED);
  EXPECT_EQ(denied.diagnostics.at(0).right, "get, list, watch on secrets in namespace tf");
  EXPECT_EQ(probe_as("wrong-canary").refresh().status, DRIFTD_UNAUTHENTICATED);
  EXPECT_EQ(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  kube.stop();
  const auto down = probe.refresh(second.cursor);
  EXPECT_EQ(down.status, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(down.complete.empty());
  EXPECT_THAT(down.diagnostics[0].text, Not(HasSubstr(token)));
}

}  // namespace
}  // namespace driftd::test
