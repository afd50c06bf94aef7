// SPDX-License-Identifier: Apache-2.0
// driftd-check of the providers that we ship, against real servers, with the rights that their READMEs ask for and no
// others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/kafka.hpp"
#include "support/keycloak.hpp"
#include "support/kube.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

/// The names of the checks of level `must` that the table calls broken.
std::vector<std::string> broken_musts(const std::string& table) {
  std::vector<std::string> out;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, level, result;
    if (words >> name >> level >> result && level == "must" && result == "broken") out.push_back(name);
  }
  return out;
}

/// The groups of driftd-check: what stands before the dot of a check's name.
std::set<std::string> groups_of_checks() {
  std::set<std::string> out;
  std::istringstream lines(run({DRIFTD_BINARY_DIR "/bin/driftd-check", "--list"}).out);
  for (std::string line; std::getline(lines, line);) {
    if (const auto dot = line.find('.'); dot < line.find(' ')) out.insert(line.substr(0, dot));
  }
  return out;
}

/// Expects that no check of level `must` is broken and that each was made: else driftd-check does not exit with 0.
/// `groups`: only these; empty: all.
void expect_every_rule_kept(const std::string& so, const json& settings, const std::vector<std::string>& groups = {}) {
  const TempDir dir;
  const std::string settings_file = dir.write("settings.json", settings.dump());
  std::vector<std::string> command{DRIFTD_BINARY_DIR "/bin/driftd-check", DRIFTD_BINARY_DIR "/" + so, "--settings",
                                   settings_file};
  for (const auto& group : groups) command.insert(command.end(), {"--only", group});
  const Output out = run(command, {}, std::chrono::minutes(9));
#ifdef __SANITIZE_THREAD__  // it remembers each thread and mutex that ever was, and librdkafka makes many of them
  if (broken_musts(out.out) == std::vector<std::string>{"memory.refresh_flat"}) return;
#endif
  EXPECT_THAT(broken_musts(out.out), testing::IsEmpty());
  EXPECT_EQ(out.code, 0) << out.out << out.err;
}

TEST(DriftdCheckOfOurOwn, RedisKeepsEveryRule) {
  const RedisServer server;
  server.grant_readme("password-of-the-check");
  server.command({"ACL", "SETUSER", "app", "on", ">one", "~app:*", "+get"});
  expect_every_rule_kept(
      "providers/redis.so",
      {{"address", server.address()}, {"username", "driftd"}, {"password", "password-of-the-check"}});
}

TEST(DriftdCheckOfOurOwn, KeycloakKeepsEveryRule) {
  KeycloakServer server;
  server.make_realm("orders");
  server.make_account("orders", "secret-of-the-check",
                      {"view-realm", "view-clients", "view-users", "view-identity-providers", "view-events"});
  json settings = {{"url", server.url()},
                   {"realms", {"orders"}},
                   {"auth", {{"realm", "orders"}, {"client_id", "driftd"}, {"client_secret", "secret-of-the-check"}}}};
  const std::vector<std::string> about_kinds{"binary", "negotiation", "refresh", "schema", "secrets"};
  const std::vector<std::string> about_calls{"memory", "threads", "deadline", "chaos"};
  std::set<std::string> both(about_kinds.begin(), about_kinds.end());
  both.insert(about_calls.begin(), about_calls.end());
  ASSERT_EQ(both, groups_of_checks()) << "a group is in neither part";
  expect_every_rule_kept("providers/keycloak.so", settings, about_kinds);
  // These list hundreds of times what a new realm has, and say nothing of single kinds: a fifth of the requests will
  // do.
  settings["include"] = {"realm", "client", "component"};
  expect_every_rule_kept("providers/keycloak.so", settings, about_calls);
}

TEST(DriftdCheckOfOurOwn, PostgresKeepsEveryRule) {
  const PostgresServer server;
  server.sql(readme_grants("postgres", "sql"));
  server.sql("CREATE ROLE app LOGIN PASSWORD 'secret-of-app'; GRANT pg_monitor TO app");
  expect_every_rule_kept("providers/postgres.so",
                         {{"endpoints", server.endpoint()}, {"user", "driftd"}, {"password", "CHANGE-ME"}});
}

TEST(DriftdCheckOfOurOwn, KafkaKeepsEveryRule) {
  KafkaServer::Options options;
  options.secure = true;
  options.plain_users = {{"driftd", "password-of-the-check"}};
  const KafkaServer server(options);
  server.acls({"--add", "--allow-principal", "User:driftd", "--operation", "Describe", "--operation", "DescribeConfigs",
               "--cluster"});
  server.acls({"--add", "--allow-principal", "User:driftd", "--operation", "Describe", "--operation", "DescribeConfigs",
               "--topic", "*"});
  for (const char* topic : {"orders", "bills"})
    server.topics({"--create", "--topic", topic, "--config", "retention.ms=60000"});
  server.await_topic("bills", true);
  server.scram_user("app", "secret-of-app");
  expect_every_rule_kept(
      "providers/kafka.so",
      {{"bootstrap_servers", server.sasl_address()},
       {"scram_hello", {{"users", {{{"name", "app"}, {"mechanism", "SCRAM-SHA-256"}}}}}},
       {"sasl", {{"mechanism", "PLAIN"}, {"username", "driftd"}, {"password", "password-of-the-check"}}}});
}

TEST(DriftdCheckOfOurOwn, TerraformKeepsEveryRule) {
  const TempDir dir;
  const std::string state = dir.write("terraform.tfstate", R"({"version":4,"terraform_version":"1.9.0","serial":7,
    "lineage":"abc","outputs":{"url":{"value":"https://db.example","type":"string"},
    "token":{"value":"hidden-by-terraform","type":"string","sensitive":true}},"resources":[
    {"mode":"managed","type":"kafka_topic","name":"orders","provider":"p","instances":[{"attributes":{"partitions":3}}]},
    {"mode":"managed","type":"kafka_topic","name":"bills","provider":"p","instances":[{"attributes":{"partitions":6}}]},
    {"mode":"managed","type":"kubernetes_secret","name":"login","provider":"p","instances":[{"attributes":{"data":{"password":"hidden-by-terraform"},
     "metadata":[{"name":"login","namespace":"prod","labels":{"prism.io/backend":"true","prism.io/backend-name":"bus","prism.io/backend-type":"kafka"}}]}}]}]})");
  expect_every_rule_kept("providers/terraform.so", {{"path", state}});
}

TEST(DriftdCheckOfOurOwn, KubernetesKeepsEveryRule) {
  const KubeServer kube;
  kube.create_namespace("driftd");
  kube.create_namespace("prod");
  kube.apply(readme_grants("k8s", "yaml"));
  kube.apply(readme_block("k8s", "### Rights for the cluster", "yaml"));
  for (int i = 0; i < 20; ++i)
    kube.create_secret("prod", "s-" + std::to_string(i), {{"password", "secret-of-s-" + std::to_string(i)}});
  const TempDir dir;
  const json tls = {{"ca_file", kube.ca_file()}};
  expect_every_rule_kept("providers/k8s.so", {{"server", kube.server()},
                                              {"tls", tls},
                                              {"token_file", dir.write("token", kube.token_of("driftd", "driftd"))},
                                              {"namespaces", {"prod"}}});
}

TEST(DriftdCheckOfOurOwn, TheTestProviderWithAllExtensionsKeepsEveryRule) {
  expect_every_rule_kept("tests/providers/tester.so", {{"count", 2500}, {"secret", "secret-of-the-tester"}});
}

}  // namespace
}  // namespace driftd::test
