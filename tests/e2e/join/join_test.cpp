// SPDX-License-Identifier: Apache-2.0
// A Terraform state declares resources of PostgreSQL, Kafka and Kubernetes. What somebody changes in those systems is a
// drift of the declared resource, without a run of terraform. The attributes are those that the Terraform providers
// cyrilgdn/postgresql 1.25, Mongey/kafka 0.12 and hashicorp/kubernetes 2.38 write.
#include <gmock/gmock.h>

#include <filesystem>

#include "support/agent.hpp"
#include "support/kafka.hpp"
#include "support/kube.hpp"
#include "support/nats.hpp"
#include "support/postgres.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

json resource(const std::string& provider, const std::string& type, const std::string& name, const json& attributes,
              const json& sensitive = json::array()) {
  return {{"mode", "managed"},
          {"type", type},
          {"name", name},
          {"provider", "provider[\"registry.opentofu.org/" + provider + "\"]"},
          {"instances", {{{"schema_version", 0}, {"attributes", attributes}, {"sensitive_attributes", sensitive}}}}};
}

json state_of(int serial, const json& resources) {
  return {{"version", 4},
          {"terraform_version", "1.10.6"},
          {"serial", serial},
          {"lineage", "3b1f0c6e-join"},
          {"outputs", json::object()},
          {"resources", resources}};
}

json role(bool create_db) {
  return resource("cyrilgdn/postgresql", "postgresql_role", "app",
                  {{"name", "app"},
                   {"login", true},
                   {"superuser", false},
                   {"create_database", create_db},
                   {"create_role", false},
                   {"inherit", true},
                   {"replication", false},
                   {"connection_limit", 20},
                   {"password", nullptr}});
}

json topic(const std::string& retention) {
  return resource(
      "mongey/kafka", "kafka_topic", "orders",
      {{"name", "orders"}, {"partitions", 3}, {"replication_factor", 1}, {"config", {{"retention.ms", retention}}}});
}

json secret(const std::string& password) {
  return resource(
      "hashicorp/kubernetes", "kubernetes_secret", "db",
      {{"type", "Opaque"}, {"data", {{"password", password}}}, {"metadata", {{{"name", "db"}, {"namespace", "prod"}}}}},
      json::array({json::array({{{"type", "get_attr"}, {"value", "data"}}})}));
}

class Join : public testing::Test {
 protected:
  Join() {
    postgres_.sql("create role app login connection limit 20");
    kafka_.topics({"--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=3600000"});
    kube_.create_namespace("prod");
    kube_.create_secret("prod", "db", {{"password", "canary-one"}});
  }
  void write(int serial, const json& resources) const {
    dir_.write("infra/new", state_of(serial, resources).dump());
    std::filesystem::rename(dir_.path() / "infra/new", dir_.path() / "infra/terraform.tfstate");
  }
  Agent agent() const {
    const std::string state = (dir_.path() / "infra/terraform.tfstate").string();
    const std::string kube = "{ server: \"" + kube_.server() + "\", tls: { ca_file: \"" + kube_.ca_file() +
                             "\" }, token_file: \"" + kube_.file("token") +
                             "\", namespaces: [prod], include: [secret] }";
    return Agent(dir_,
                 "defaults: { interval: 1s }\nbackends:\n"
                 "  - name: infra\n    provider: terraform\n    settings:\n      path: " +
                     state +
                     "\n      declares:\n"
                     "        - { resources: \"postgresql_*\", backend: db }\n        - { resources: \"kafka_*\", "
                     "backend: bus }\n"
                     "        - { resources: \"kubernetes_*\", backend: cluster }\n"
                     "  - name: db\n    provider: postgres\n    settings: { socket: \"" +
                     postgres_.socket_file() +
                     "\", user: postgres, password: \"${env:PG}\", include: [\"role/*\"] }\n"
                     "  - name: bus\n    provider: kafka\n    settings: { bootstrap_servers: \"" +
                     kafka_.address() +
                     "\", include: [\"topic/*\"] }\n"
                     "  - name: cluster\n    provider: k8s\n    settings: " +
                     kube +
                     "\n"
                     "sinks:\n  bus: { type: nats, servers: [\"" +
                     nats_.url() + "\"], views: false }\n",
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
  /// Waits until the open drifts from what is declared are exactly these.
  static bool become(const Agent& a, std::vector<std::string> wanted) {
    return eventually([&] { return declared(a) == wanted; }, seconds(30));
  }

  TempDir dir_;
  NatsServer nats_;
  PostgresServer postgres_;
  KafkaServer kafka_;
  KubeServer kube_;
};

TEST_F(Join, WhatAnotherHandChangesIsADriftOfTheDeclaredResourceAndGoesWithIt) {
  std::filesystem::create_directories(dir_.path() / "infra");
  write(7, {role(false), topic("3600000"), secret("canary-one")});
  Agent a = agent();
  a.start();
  ASSERT_TRUE(eventually(
      [&] {
        return a.established({"infra", "db", "bus", "cluster"});
      },
      seconds(90)))
      << a.log() << a.cli({"backends"}).out;
  const auto judged = [&] {  // every declaration was compared with its live resource
    return a.backend("infra")->dump().find("declared:cluster/secret") != std::string::npos;
  };
  ASSERT_TRUE(eventually(judged)) << a.cli({"backends"}).out;
  EXPECT_THAT(declared(a), IsEmpty()) << a.cli({"drifts"}).out;

  postgres_.sql("alter role app createdb");
  kafka_.configs(
      {"--alter", "--entity-type", "topics", "--entity-name", "orders", "--add-config", "retention.ms=60000"});
  kube_.patch("/api/v1/namespaces/prod/secrets/db", {{"stringData", {{"password", "canary-two"}}}});
  ASSERT_TRUE(become(a, {"bus topic/orders config[\"retention.ms\"]", "cluster secret/prod/db data.password",
                         "db role/app create_db"}))
      << a.cli({"drifts"}).out << a.cli({"backends"}).out << a.log();
  EXPECT_THAT(a.cli({"drifts", "-o", "json"}).out,
              HasSubstr("declared by infra (postgresql_role.app, since serial 7)"));
  EXPECT_THAT(a.cli({"explain", "bus", "topic/orders"}).out, HasSubstr("declared by infra (kafka_topic.orders"));

  postgres_.sql("alter role app nocreatedb");
  kafka_.configs(
      {"--alter", "--entity-type", "topics", "--entity-name", "orders", "--add-config", "retention.ms=3600000"});
  kube_.patch("/api/v1/namespaces/prod/secrets/db", {{"stringData", {{"password", "canary-one"}}}});
  EXPECT_TRUE(become(a, {})) << a.cli({"drifts"}).out;

  // The new state declares createdb, which PostgreSQL does not have, and no longer declares the Secret.
  write(8, {role(true), topic("3600000")});
  EXPECT_TRUE(become(a, {"db role/app create_db"})) << a.cli({"drifts"}).out;
  kube_.patch("/api/v1/namespaces/prod/secrets/db", {{"stringData", {{"password", "canary-three"}}}});
  postgres_.sql("alter role app createdb");
  EXPECT_TRUE(become(a, {})) << a.cli({"drifts"}).out;

  postgres_.sql("drop role app");
  ASSERT_TRUE(eventually(
      [&] {
        for (const auto& drift : a.rows({"drifts"})) {
          if (drift.value("resource", "") == "role/app" && drift.value("operation", "") == "deleted") return true;
        }
        return false;
      },
      seconds(30)))
      << a.cli({"drifts"}).out;

  std::string everything = a.log();
  ASSERT_TRUE(eventually([&] { return !stream_contents(nats_.url(), "DRIFT").empty(); }))
      << "the stream has no events that could contain a secret";
  for (const auto& message : stream_contents(nats_.url(), "DRIFT")) everything += message.body;
  a.stop();
  for (const auto& file : std::filesystem::recursive_directory_iterator(a.data_dir())) {
    if (file.is_regular_file()) everything += read_file(file.path().string());
  }
  EXPECT_EQ(everything.find("canary-"), std::string::npos) << "a secret left the worker";
}

}  // namespace
}  // namespace driftd::test
