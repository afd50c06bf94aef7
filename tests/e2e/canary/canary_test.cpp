// SPDX-License-Identifier: Apache-2.0
// Secrets in settings, in servers and in a state contain a marker. The agent logs at level trace, and nothing that it
// writes or answers contains the marker. tests/unit/k8s/canary_test.cpp and tests/unit/host test single attributes and
// settings.
#include <gmock/gmock.h>
#include <filesystem>

#include "support/agent.hpp"
#include "support/kafka.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

/// A state that does not mark attributes as sensitive, with each attribute that is known to contain a secret. The
/// serial never rises, so a change counts as made by hand and waits for a decision.
std::string state(const std::string& canary) {
  const auto resource = [](const std::string& type, const json& attributes) {
    return json{{"mode", "managed"},
                {"type", type},
                {"name", "a"},
                {"provider", "p"},
                {"instances", {{{"schema_version", 0}, {"attributes", attributes}}}}};
  };
  const json resources = {
      resource("azurerm_kubernetes_cluster",
               {{"id", "cluster-1"}, {"kube_admin_config_raw", canary}, {"location", "westeurope"}}),
      resource("digitalocean_kubernetes_cluster", {{"kube_config", {{{"raw_config", canary}}}}}),
      resource("linode_lke_cluster", {{"kubeconfig", canary}}),
      resource("vault_kv_secret_v2", {{"data", {{"user", canary}}}}),
      resource("aws_vpn_connection", {{"tunnel1_preshared_key", canary}, {"customer_gateway_configuration", canary}}),
      resource("azurerm_servicebus_namespace",
               {{"default_primary_key", canary}, {"primary_shared_key", canary}, {"primary_readonly_key", canary}}),
      resource("github_actions_secret", {{"plaintext_value", canary}}),
      resource("gitlab_project_variable", {{"value", canary}}),
      resource("aws_lambda_function",
               {{"environment", {{{"variables", {{"DB_PASS", canary}, {"URL", "redis://h/?x=" + canary}}}}}},
                {"memory_size", 128}}),
      resource("null_resource",
               {{"triggers",
                 {{"pem", "-----BEGIN PRIVATE KEY-----\n" + canary}, {"url", "postgres://u:" + canary + "@h/x"}}}})};
  return json{{"version", 4},
              {"terraform_version", "1.9.0"},
              {"serial", 1},
              {"lineage", "one"},
              {"outputs",
               {{"url", {{"value", "https://u:" + canary + "@h/x"}, {"type", "string"}}},
                {"words", {{"value", canary}, {"type", "string"}}}}},
              {"resources", resources}}
      .dump();
}

/// A broker with secrets in each place that can contain one: logins, URLs of its static configuration, the key of a
/// plugin that Kafka does not know.
KafkaServer::Options kafka_with_secrets() {
  KafkaServer::Options out;
  out.secure = true;
  out.plain_users = {{"driftd", "canary-kafka-password"}, {"app", "canary-kafka-app"}};
  out.conf = {
      "sasl.oauthbearer.token.endpoint.url=https://app:canary-kafka-url@idp.example/"
      "token?client_secret=canary-kafka-query",
      "sasl.oauthbearer.jwks.endpoint.url=https://idp.example/keys?access_token=canary-kafka-jwks",
      "sasl.oauthbearer.client.credentials.client.secret=canary-kafka-client",
      "reporter.api.key=canary-kafka-reporter"};
  return out;
}

class CanaryLine : public testing::Test {
 protected:
  CanaryLine() : postgres_({{}, false, nullptr}), kafka_(kafka_with_secrets()) {
    kafka_.topics({"--create", "--topic", "orders"});
    kafka_.await_topic("orders", true);
    for (const auto& where : {std::vector<std::string>{"--cluster"}, {"--topic", "*"}}) {
      std::vector<std::string> words{"--add",    "--allow-principal", "User:driftd",    "--operation",
                                     "Describe", "--operation",       "DescribeConfigs"};
      words.insert(words.end(), where.begin(), where.end());
      kafka_.acls(words);
    }
    redis_.grant_readme("canary-requirepass");
    std::string grants = readme_grants("postgres", "sql");
    postgres_.sql(grants.replace(grants.find("CHANGE-ME"), 9, "canary-pg-password"));
    postgres_.sql("CREATE ROLE app LOGIN PASSWORD 'canary-role'");
    set_secrets("one");
    agent_ = std::make_unique<Agent>(
        dir_,
        "log: { level: trace }\ndefaults: { interval: 300ms }\nbackends:\n"
        "  - { name: cache, provider: redis, settings: { address: \"" +
            redis_.address() +
            "\", username: driftd, password: \"${env:REDIS}\" } }\n"
            "  - { name: db, provider: postgres, settings: { endpoints: [\"" +
            postgres_.endpoint() +
            "\"], user: driftd, password: \"${env:PG}\", sslmode: disable } }\n"
            "  - { name: platform, provider: terraform, settings: { backend: { type: local, path: \"" +
            dir_.file("terraform.tfstate") +
            "\" } } }\n"
            "  - { name: bus, provider: kafka, settings: { bootstrap_servers: \"" +
            kafka_.sasl_address() +
            "\", sasl: { mechanism: PLAIN, username: driftd, password: \"${env:KAFKA}\" }, exclude: [quota], "
            "scram_hello: { users: [{ name: app, mechanism: SCRAM-SHA-512 }], interval_s: 1 } } }\n"
            "  - { name: wrong-kafka, provider: kafka, settings: { bootstrap_servers: \"127.0.0.1:1\", sasl: { "
            "mechanism: PLAIN, username: \"${env:WORD}\", "
            "password: \"${env:KAFKA}\" } } }\n"
            "  - { name: wrong-redis, provider: redis, settings: { address: \"${env:REDIS_URL}\", password: "
            "\"${env:REDIS}\" } }\n"
            "  - { name: wrong-pg, provider: postgres, settings: { endpoints: [\"127.0.0.1:1\"], user: "
            "\"${env:WORD}\", password: \"${env:PG}\" } }\n"
            "  - { name: wrong-tf, provider: terraform, settings: { backend: { type: http, address: \"${env:TF_URL}\" "
            "} } }\n"
            "  - { name: literal-tf, provider: terraform, settings: { backend: { type: http, address: "
            "\"http://127.0.0.1:1/s?private_token=canary-literal-token\" } } }\n"
            "sinks:\n  file: { type: file, path: \"" +
            dir_.file("events.jsonl") +
            "\" }\n"
            "  bare: { type: file, path: \"" +
            dir_.file("bare.jsonl") + "\", events: digests_only }\n",
        std::map<std::string, std::string>{
            {"REDIS", "canary-requirepass"},
            {"PG", "canary-pg-password"},
            {"WORD", "canary-word"},
            {"KAFKA", "canary-kafka-password"},
            {"REDIS_URL", "redis://app:canary-redis-url@127.0.0.1:1/0?token=canary-redis-query"},
            {"TF_URL", "http://app:canary%2Dtf@127.0.0.1:1/state?private_token=canary-tf-query"}});
  }
  /// Sets the secrets of all systems to new values that contain the marker and `word`. The second time this is a drift
  /// of each.
  void set_secrets(const std::string& word) {
    const std::string canary = "canary" + word;
    redis_.command({"CONFIG", "SET", "masterauth", canary});
    redis_.command({"ACL", "SETUSER", "app", "on", "resetpass", ">" + canary, "~*", "+@read"});
    postgres_.sql("ALTER ROLE app SET myapp.pwd = '" + canary + "'");
    postgres_.sql("ALTER ROLE app SET myapp.encryption_key = '" + canary + "'");
    postgres_.sql("ALTER ROLE app SET myapp.motto = '" + canary + "'");
    postgres_.sql("ALTER SYSTEM SET archive_cleanup_command = 'x " + canary + "'");
    postgres_.sql("ALTER SYSTEM SET recovery_end_command = 'x " + canary + "'");
    postgres_.sql("ALTER SYSTEM SET ssl_passphrase_command = 'x " + canary + "'");
    postgres_.sql("SELECT pg_reload_conf()");
    dir_.write("terraform.tfstate", state(canary));
    kafka_.scram_user("app", canary, "SCRAM-SHA-512");
    const auto alter = [&](std::vector<std::string> entity, const std::string& what) {
      entity.insert(entity.begin(), "--alter");
      entity.insert(entity.end(), {"--add-config", what});
      kafka_.configs(entity);
    };
    alter({"--entity-type", "topics", "--entity-name", "orders"},
          "retention.ms=" + std::to_string(100'000 + word.size() * 1'000 + static_cast<unsigned char>(word[0])));
    alter({"--entity-type", "brokers", "--entity-default"}, "reporter.api.token=" + canary);
    alter({"--entity-type", "brokers", "--entity-name", "1"}, "listener.name.sasl.ssl.truststore.password=" + canary);
    kafka_.acls({"--add", "--allow-principal", "User:" + word, "--operation", "Read", "--topic", "orders"});
  }
  std::size_t count_of_drifts(const std::string& backend) const {
    std::size_t out = 0;
    for (const auto& drift : agent_->rows({"drifts"})) out += drift.value("backend", "") == backend ? 1 : 0;
    return out;
  }
  /// Returns everything that the agent wrote or answers.
  std::string everything() const {
    std::string out = agent_->log() + read_file(dir_.file("events.jsonl")) + read_file(dir_.file("bare.jsonl"));
    const std::vector<std::vector<std::string>> questions = {{"status"},
                                                             {"drifts"},
                                                             {"backends"},
                                                             {"queue"},
                                                             {"plugin", "ls"},
                                                             {"events"},
                                                             {"audit"},
                                                             {"resources", "cache"},
                                                             {"resources", "db"},
                                                             {"resources", "platform"},
                                                             {"resources", "bus", "--bodies"},
                                                             {"explain", "bus", "broker/1", "--all"}};
    for (const auto& words : questions) {
      std::vector<std::string> as_json = words;
      as_json.insert(as_json.end(), {"-o", "json"});
      out += agent_->cli(words).out + agent_->cli(words).err + agent_->cli(as_json).out;
    }
    for (const char* path : {"/metrics", "/readyz"}) {
      out += run({"curl", "-s", "http://127.0.0.1:" + std::to_string(agent_->admin_port()) + path}).out;
    }
    for (const auto* path : {"/v1/backends", "/v1/drifts", "/v1/drifts?whole=true", "/v1/events",
                             "/v1/resources?backend=platform&whole=true", "/v1/resources?backend=db&whole=true",
                             "/v1/resources?backend=bus&whole=true", "/v1/resources?limit=10000"}) {
      out += run({"curl", "-s", "--unix-socket", agent_->socket(), std::string("http://localhost") + path}).out;
    }
    for (const auto& file : std::filesystem::directory_iterator(agent_->data_dir())) {
      if (file.is_regular_file()) out += read_file(file.path().string());
    }
    return out;
  }

  TempDir dir_;
  RedisServer redis_;
  PostgresServer postgres_;
  KafkaServer kafka_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(CanaryLine, NoMarkerIsInAnythingThatTheAgentWritesOrAnswers) {
  agent_->start();
  ASSERT_TRUE(eventually(
      [&] {
        return agent_->established({"cache", "db", "platform"}) &&
               agent_->backend("bus")->dump().find("\"established\":true") != std::string::npos;
      },
      seconds(60)))
      << agent_->log();
  set_secrets("two");
  ASSERT_TRUE(eventually(
      [&] { return count_of_drifts("platform") >= 1 && count_of_drifts("db") >= 1 && count_of_drifts("bus") >= 2; },
      seconds(60)))
      << agent_->cli({"drifts"}).out;
  ASSERT_TRUE(eventually([&] { return agent_->log().find("wrong-tf") != std::string::npos; }, seconds(30)));
  const std::string all = everything();
  ASSERT_GT(all.size(), 100'000u);
  for (auto at = all.find("canary"); at != std::string::npos; at = all.find("canary", at + 1)) {
    ADD_FAILURE() << "…" << all.substr(at < 160 ? 0 : at - 160, 240);
    if (testing::Test::HasFatalFailure() || at > 4'000'000) break;
  }
  for (const char* harmless : {"westeurope", "retention.ms", "acl/User:two|*|Read|Allow|Topic|orders|Literal"}) {
    EXPECT_THAT(all, HasSubstr(harmless)) << "a harmless value must be shown";
  }
  for (const char* secret : {R"("sasl.oauthbearer.token.endpoint.url":"[REDACTED]")", R"("salt":"[REDACTED]")"}) {
    EXPECT_THAT(all, HasSubstr(secret)) << "the secret attribute was not read";
  }
  EXPECT_THAT(read_file(dir_.file("bare.jsonl")), Not(HasSubstr("westeurope")))
      << "a sink with `events: digests_only` must get no values";
  EXPECT_THAT(read_file(dir_.file("bare.jsonl")), HasSubstr("digest:"));
}

}  // namespace
}  // namespace driftd::test
