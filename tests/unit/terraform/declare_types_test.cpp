// SPDX-License-Identifier: Apache-2.0
// What further resource types declare; attributes as cyrilgdn/postgresql 1.26, hashicorp/kubernetes 3.2 (2.38 the
// same), Linero/redis and B3ns44d/redisacl write them.
#include <gmock/gmock.h>

#include "states.hpp"
#include "terraform/declare.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Returns what one resource declares under a rule that matches everything.
struct OfOne final : StateVisitor {
  std::optional<Declaration> declared;
  std::string why;

  OfOne(const std::string& type, const std::string& attributes, std::string database = "*",
        const std::string& provider = "p") {
    rule_.database = std::move(database);
    std::string state = of_type(type, attributes);
    const std::string plain = R"("provider":"p")";
    state.replace(state.find(plain), plain.size(), "\"provider\":" + json(provider).dump());
    const Spool spool = spool_of(state);
    read_contents(spool, read_head(spool), *this);
  }
  bool instance(const Instance& instance) override {
    declared = declare(instance, rule_, why);
    return true;
  }
  bool output(const std::string&, const json&) override { return true; }
  std::string id() const { return declared ? declared->kind + " " + declared->id : "nothing: " + why; }
  json body() const { return declared ? declared->body : json(); }

 private:
  DeclarationRule rule_{"*", "", "b", ""};
};

TEST(TerraformDeclares, APublicationsOperationsAndOwnerButNotItsTables) {
  const std::string attributes =
      R"({"name":"pub","database":"app","owner":"postgres","all_tables":false,"tables":["public.t"],
    "publish_param":["insert","update"],"publish_via_partition_root_param":true,"drop_cascade":false,"id":"app.pub"})";
  const OfOne seen("postgresql_publication", attributes);
  EXPECT_EQ(seen.id(), "publication app.pub");
  EXPECT_EQ(seen.body(),
            json::parse(R"({"owner":"postgres","all_tables":false,"via_root":true,"operations":["insert","update"]})"));
  EXPECT_THAT(OfOne("postgresql_publication", attributes, "").why, HasSubstr("declares[].database"));
  EXPECT_FALSE(OfOne("postgresql_publication", attributes, "other").declared);
}

TEST(TerraformDeclares, ASubscriptionInWhateverDatabaseAndSlotsOfBothTypes) {
  const OfOne subscription(
      "postgresql_subscription",
      R"({"name":"sub","database":"app","conninfo":"canary","publications":["a","b"],"create_slot":false,"slot_name":"s"})",
      "");
  EXPECT_EQ(subscription.id(), "subscription app.sub");
  EXPECT_EQ(subscription.body(), json::parse(R"({"slot":"s","publications":["a","b"]})"));
  const OfOne logical("postgresql_replication_slot", R"({"name":"cdc","database":"app","plugin":"pgoutput"})");
  EXPECT_EQ(logical.id(), "slot cdc");
  EXPECT_EQ(logical.body(), json::parse(R"({"type":"logical","plugin":"pgoutput","database":"app"})"));
  EXPECT_EQ(OfOne("postgresql_physical_replication_slot", R"({"name":"standby"})").body(),
            json::parse(R"({"type":"physical"})"));
}

TEST(TerraformDeclares, AServiceWithItsPortsAsTheApiHasThem) {
  const OfOne seen(
      "kubernetes_service_v1",
      R"({"metadata":[{"name":"web","namespace":"prod"}],"spec":[{"type":"NodePort","cluster_ip":"10.96.0.9",
    "selector":{"app":"web"},"session_affinity":"None","external_name":"","external_ips":[],"external_traffic_policy":"Cluster","internal_traffic_policy":"Cluster",
    "port":[{"name":"http","port":80,"target_port":"8080","protocol":"TCP","node_port":30080,"app_protocol":""},
            {"name":"metrics","port":9100,"target_port":"metrics","protocol":"TCP","node_port":0,"app_protocol":null}]}]})");
  EXPECT_EQ(seen.id(), "service prod/web");
  EXPECT_EQ(seen.body(),
            json::parse(R"({"type":"NodePort","headless":false,"selector":{"app":"web"},"session_affinity":"None",
    "external_traffic_policy":"Cluster","internal_traffic_policy":"Cluster",
    "ports":[{"name":"http","port":80,"target_port":8080,"protocol":"TCP","node_port":30080},{"name":"metrics","port":9100,"target_port":"metrics","protocol":"TCP"}]})"));
}

TEST(TerraformDeclares, AWorkloadsReplicasImagesAndResourcesButNoEnvironment) {
  const std::string attributes =
      R"({"metadata":[{"name":"web","namespace":"prod"}],"spec":[{"replicas":"3","paused":false,"template":[{"spec":[{
    "service_account_name":"web","container":[{"name":"app","image":"web:1","image_pull_policy":"IfNotPresent","env":[{"name":"PASSWORD","value":"canary"}],
    "resources":[{"limits":{"memory":"1Gi"},"requests":{}}]}],"init_container":[]}]}]}]})";
  const json body = json::parse(R"({"replicas":3,"paused":false,"service_account":"web",
    "containers":{"app":{"image":"web:1","image_pull_policy":"IfNotPresent","resources":{"limits":{"memory":"1Gi"}}}}})");
  for (const auto& [type, kind] : {std::pair("kubernetes_deployment", "deployment"),
                                   {"kubernetes_deployment_v1", "deployment"},
                                   {"kubernetes_stateful_set_v1", "stateful_set"},
                                   {"kubernetes_daemonset", "daemon_set"}}) {
    const OfOne seen(type, attributes);
    EXPECT_EQ(seen.id(), std::string(kind) + " prod/web");
    EXPECT_EQ(seen.body(), body);
  }
  EXPECT_FALSE(OfOne("kubernetes_deployment", R"({"metadata":[],"spec":[]})").declared);
  EXPECT_FALSE(OfOne("kubernetes_deployment", R"({"metadata":[{"name":"x"}],"spec":[{"replicas":null,"template":[]}]})")
                   .body()
                   .contains("replicas"));
}

TEST(TerraformDeclares, AnAclUsersPatternsInTheNormalFormOfRedis) {
  const std::string linero = R"(provider["registry.terraform.io/linero/redis"])";
  const OfOne seen("redis_acl_user",
                   R"({"name":"app","enabled":true,"password_wo":null,"password_wo_version":"2","commands":["read"],
    "keys":["app:*"],"readonly_keys":["r:*","both"],"writeonly_keys":["both"],"channels":["n:*"],"acl_save":true})",
                   "", linero);
  EXPECT_EQ(seen.id(), "acl_user app");
  EXPECT_EQ(seen.body(), json::parse(R"({"enabled":true,"keys":["~app:*","~both","%R~r:*"],"channels":["&n:*"]})"));
  EXPECT_THAT(seen.declared->sensitive, IsEmpty());
  const OfOne all("redis_acl_user",
                  R"({"name":"app","enabled":false,"keys":["*"],"readonly_keys":["r"],"channels":["*","n"]})", "",
                  linero);
  EXPECT_EQ(all.body(), json::parse(R"({"enabled":false,"keys":["~*"],"channels":["&*"]})"));
  EXPECT_EQ(OfOne("redis_acl_user", R"({"name":"app","keys":null,"readonly_keys":["r"]})", "", linero).body(),
            json::object());
  EXPECT_THAT(OfOne("redis_acl_user", R"({"name":"app"})", "", R"(provider["registry.terraform.io/others/redis"])").why,
              HasSubstr("only as linero/redis writes it"));
}

TEST(TerraformDeclares, AnAclUserInWordsAndItsPasswordsAsAclListShowsThem) {
  const OfOne seen(
      "redisacl_user",
      R"({"name":"app","enabled":true,"passwords":["canary"],"keys":"~app:* %R~r %W~w %RW~b","channels":"&n:*","commands":"+@read"})");
  EXPECT_EQ(seen.body(), json::parse(R"({"enabled":true,"keys":["~app:*","~b","%R~r","%W~w"],"channels":["&n:*"],
    "passwords":["e100fbce008c04ec40637af0af91fb2f05aeedc23f856a2d3c0b1580625d755e"]})"));
  EXPECT_THAT(seen.declared->sensitive, ElementsAre("passwords"));
  // as Redis 6 answers
  const OfOne old("redisacl_user", R"({"name":"app","enabled":null,"passwords":[],"keys":"app:*","channels":null})");
  EXPECT_EQ(old.body(), json::object());
}

TEST(TerraformDeclares, WhatHasNoExactMeaningIsNamedAndNotGuessed) {
  for (const auto& type : {"postgresql_grant", "postgresql_grant_role", "postgresql_default_privileges", "kafka_quota",
                           "kafka_user_scram_credential", "kubernetes_manifest"}) {
    const OfOne seen(type, R"({"name":"x"})");
    EXPECT_FALSE(seen.declared);
    EXPECT_THAT(seen.why, HasSubstr(std::string("does not know what a ") + type));
  }
}

}  // namespace
}  // namespace driftd::terraform
