// SPDX-License-Identifier: Apache-2.0
// Further resource types that a Terraform state declares: as applied they are no drift, and what somebody changes is
// one. The attributes are those that the Terraform providers cyrilgdn/postgresql 1.26, hashicorp/kubernetes 3.2,
// linero/redis and b3ns44d/redisacl write.
#include <gmock/gmock.h>

#include <filesystem>

#include "support/agent.hpp"
#include "support/kube.hpp"
#include "support/nats.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

json resource(const std::string& provider, const std::string& type, const std::string& attributes) {
  return {
      {"mode", "managed"},
      {"type", type},
      {"name", "it"},
      {"provider", "provider[\"registry.terraform.io/" + provider + "\"]"},
      {"instances",
       {{{"schema_version", 0}, {"attributes", json::parse(attributes)}, {"sensitive_attributes", json::array()}}}}};
}

/// Attributes of a Service at their defaults.
const std::string kServiceDefaults =
    R"("session_affinity":"None","external_name":"","external_ips":[],"external_traffic_policy":"","internal_traffic_policy":"Cluster")";

class JoinTypes : public testing::Test {
 protected:
  JoinTypes() : postgres_({{"wal_level = logical"}, false, nullptr}) {
    postgres_.sql("CREATE TABLE t (id int PRIMARY KEY)");
    postgres_.sql("CREATE PUBLICATION pub FOR TABLE t WITH (publish = 'insert, update')");
    postgres_.sql("SELECT pg_create_logical_replication_slot('cdc', 'pgoutput')");
    postgres_.sql("SELECT pg_create_physical_replication_slot('standby')");
    postgres_.sql(
        "CREATE SUBSCRIPTION sub CONNECTION 'dbname=nowhere' PUBLICATION a, b WITH (connect = false, slot_name = 's')");
    redis_.command({"ACL", "SETUSER", "app", "on", "#" + std::string(64, 'a'), "~app:*", "%R~r:*", "resetchannels",
                    "&n:*", "+@read"});
    redis_.command({"ACL", "SETUSER", "words", "on", ">canary-one", "~w:*", "resetchannels", "-@all", "+get"});
    kube_.create_namespace("prod");
    kube_.create("/api/v1/namespaces/prod/services",
                 json::parse(R"({"metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[
      {"name":"http","port":80,"targetPort":8080},{"name":"metrics","port":9100,"targetPort":"metrics"}]}})"));
    kube_.create(
        "/apis/apps/v1/namespaces/prod/deployments",
        json::parse(R"({"metadata":{"name":"web"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},
      "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"web:1","resources":{"limits":{"memory":"1Gi"}},
      "env":[{"name":"PASSWORD","value":"canary-one"}]}]}}}})"));
  }
  static json resources() {
    return {
        resource("cyrilgdn/postgresql", "postgresql_publication",
                 R"({"name":"pub","database":"postgres","owner":"postgres","all_tables":false,
              "tables":["public.t"],"publish_param":["insert","update"],"publish_via_partition_root_param":false,"drop_cascade":false})"),
        resource("cyrilgdn/postgresql", "postgresql_replication_slot",
                 R"({"name":"cdc","database":"postgres","plugin":"pgoutput"})"),
        resource("cyrilgdn/postgresql", "postgresql_physical_replication_slot", R"({"name":"standby"})"),
        resource("cyrilgdn/postgresql", "postgresql_subscription",
                 R"({"name":"sub","database":"postgres","conninfo":"dbname=nowhere",
              "publications":["b","a"],"create_slot":false,"slot_name":"s"})"),
        resource("linero/redis", "redis_acl_user",
                 R"({"name":"app","enabled":true,"keys":["app:*"],"readonly_keys":["r:*"],"writeonly_keys":null,
              "channels":["n:*"],"commands":["read"],"password_wo_version":"1"})"),
        resource(
            "b3ns44d/redisacl", "redisacl_user",
            R"({"name":"words","enabled":true,"passwords":["canary-one"],"keys":"~w:*","channels":"","commands":"+get"})"),
        resource(
            "hashicorp/kubernetes", "kubernetes_service_v1",
            R"({"metadata":[{"name":"web","namespace":"prod"}],"spec":[{"type":"ClusterIP","cluster_ip":"10.96.0.9",
              "selector":{"app":"web"},)" +
                kServiceDefaults +
                R"(,"port":[{"name":"http","port":80,"target_port":"8080","protocol":"TCP","node_port":0,"app_protocol":""},
              {"name":"metrics","port":9100,"target_port":"metrics","protocol":"TCP","node_port":0,"app_protocol":""}]}]})"),
        resource("hashicorp/kubernetes", "kubernetes_deployment_v1",
                 R"({"metadata":[{"name":"web","namespace":"prod"}],"spec":[{"replicas":"3","paused":false,
              "template":[{"spec":[{"service_account_name":"","container":[{"name":"app","image":"web:1","image_pull_policy":"IfNotPresent",
              "resources":[{"limits":{"memory":"1024Mi"},"requests":{}}]}],"init_container":[]}]}]}]})")};
  }
  Agent agent() const {
    const json state = {{"version", 4},
                        {"terraform_version", "1.10.6"},
                        {"serial", 7},
                        {"lineage", "3b1f0c6e-types"},
                        {"outputs", json::object()},
                        {"resources", resources()}};
    const std::string kube = "{ server: \"" + kube_.server() + "\", tls: { ca_file: \"" + kube_.ca_file() +
                             "\" }, token_file: \"" + kube_.file("token") +
                             "\", namespaces: [prod], include: [service, deployment] }";
    return Agent(
        dir_,
        "defaults: { interval: 1s }\nbackends:\n  - name: infra\n    provider: terraform\n    settings:\n      path: " +
            files_.write("terraform.tfstate", state.dump()) +
            "\n      declares:\n        - { resources: \"postgresql_*\", backend: db, database: postgres }\n" +
            "        - { resources: \"redis*\", backend: cache }\n        - { resources: \"kubernetes_*\", backend: "
            "cluster }\n" +
            "  - name: db\n    provider: postgres\n    settings: { socket: \"" + postgres_.socket_file() +
            "\", user: postgres, password: \"${env:PG}\", include: [\"publication/*\", \"slot/*\", \"subscription/*\"] "
            "}\n" +
            "  - name: cache\n    provider: redis\n    settings: { address: \"" + redis_.address() +
            "\", include: [\"acl_user/*\"] }\n" + "  - name: cluster\n    provider: k8s\n    settings: " + kube +
            "\nsinks:\n  bus: { type: nats, servers: [\"" + nats_.url() + "\"], views: false }\n",
        {{"PG", postgres_.password()}});
  }
  /// Returns the open drifts from what the state declares, each as `backend kind/id paths`, sorted.
  static std::vector<std::string> declared(const Agent& a) {
    std::vector<std::string> out;
    for (const auto& drift : a.rows({"drifts"})) {
      if (drift.value("against", "") != "expectation") continue;
      std::string text = drift.at("backend").get<std::string>() + " " + drift.at("resource").get<std::string>();
      for (const auto& change : drift.at("changes")) text += " " + change.at("path").get<std::string>();
      out.push_back(text);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  TempDir dir_, files_;
  NatsServer nats_;
  PostgresServer postgres_;
  RedisServer redis_;
  KubeServer kube_;
};

TEST_F(JoinTypes, AreEqualAsAppliedAndDriftAsAnotherHandChangesThem) {
  Agent a = agent();
  a.start();
  ASSERT_TRUE(eventually(
      [&] {
        return a.established({"infra", "db", "cache", "cluster"});
      },
      seconds(90)))
      << a.log() << a.cli({"backends"}).out;
  for (const auto& kind :
       {"db/publication", "db/slot", "db/subscription", "cache/acl_user", "cluster/service", "cluster/deployment"}) {
    ASSERT_TRUE(eventually([&] {
      return a.backend("infra")->dump().find(std::string("declared:") + kind) != std::string::npos;
    })) << kind;
  }
  // Each of the eight declarations has found its live resource.
  for (const auto& [backend, id] : {std::pair("db", "publication/postgres.pub"),
                                    {"db", "slot/cdc"},
                                    {"db", "slot/standby"},
                                    {"db", "subscription/postgres.sub"},
                                    {"cache", "acl_user/app"},
                                    {"cache", "acl_user/words"},
                                    {"cluster", "service/prod/web"},
                                    {"cluster", "deployment/prod/web"}}) {
    EXPECT_TRUE(eventually([&] {
      return a.cli({"explain", backend, id, "--all"}).out.find("declared by infra") != std::string::npos;
    })) << id
        << "\n"
        << a.cli({"explain", backend, id, "--all"}).out;
  }
  EXPECT_THAT(declared(a), IsEmpty()) << a.cli({"drifts"}).out;

  postgres_.sql("ALTER PUBLICATION pub SET (publish = 'insert')");
  postgres_.sql("ALTER SUBSCRIPTION sub SET PUBLICATION a WITH (refresh = false)");
  postgres_.sql("SELECT pg_drop_replication_slot('cdc')");
  postgres_.sql("SELECT pg_create_logical_replication_slot('cdc', 'test_decoding')");
  redis_.command({"ACL", "SETUSER", "app", "~other:*"});
  redis_.command({"ACL", "SETUSER", "words", ">canary-two", "off"});
  kube_.patch("/api/v1/namespaces/prod/services/web", json::parse(R"({"spec":{"selector":{"app":"evil"},"ports":[
    {"name":"http","port":80,"targetPort":8081,"protocol":"TCP"},{"name":"metrics","port":9100,"targetPort":"metrics","protocol":"TCP"}]}})"));
  kube_.patch("/apis/apps/v1/namespaces/prod/deployments/web",
              json::parse(R"({"spec":{"replicas":1,"template":{"spec":{"containers":[
    {"name":"app","image":"web:2","resources":{"limits":{"memory":"2Gi"}}}]}}}})"));
  const auto drifted = [&](const std::string& start) {
    return eventually(
        [&] {
          for (const auto& text : declared(a)) {
            if (text.starts_with(start)) return true;
          }
          return false;
        },
        seconds(30));
  };
  for (const auto& start :
       {"db publication/postgres.pub operations", "db subscription/postgres.sub publications", "db slot/cdc plugin",
        "cache acl_user/app keys", "cache acl_user/words enabled", "cache acl_user/words passwords",
        "cluster service/prod/web ports", "cluster deployment/prod/web"}) {
    EXPECT_TRUE(drifted(start)) << start << "\n" << json(declared(a)).dump(1) << a.cli({"drifts"}).out;
  }
  const std::string all = json(declared(a)).dump();
  for (const auto& path :
       {"replicas", "containers.app.image", "containers.app.resources.limits.memory", "selector.app"})
    EXPECT_THAT(all, HasSubstr(path));
  EXPECT_EQ(all.find("slot/standby"), std::string::npos) << "nobody changed this slot";
  EXPECT_THAT(a.cli({"drifts", "-o", "json"}).out,
              HasSubstr("declared by infra (kubernetes_deployment_v1.it, since serial 7)"));
  std::string everything = a.log() + a.cli({"drifts", "-o", "json"}).out;
  ASSERT_TRUE(eventually([&] { return !stream_contents(nats_.url(), "DRIFT").empty(); }))
      << "the stream has no events that could contain a secret";
  for (const auto& message : stream_contents(nats_.url(), "DRIFT")) everything += message.body;
  EXPECT_EQ(everything.find("canary-"), std::string::npos) << "a secret left the worker";
  EXPECT_EQ(a.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
