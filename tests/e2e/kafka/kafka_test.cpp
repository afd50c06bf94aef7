// SPDX-License-Identifier: Apache-2.0
// From Kafka's own tool to a message in JetStream, through the real agent, its worker and the worker's jail.
#include <gmock/gmock.h>

#include <filesystem>

#include "rfc.pb.h"
#include "support/agent.hpp"
#include "support/kafka.hpp"
#include "support/nats.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPassword = "kafka-canary-of-the-line";

/// Decoded events of one resource, in the stream's order, by a consumer that was written from the RFC alone.
std::vector<rfc::BackendChangeEvent> events(const NatsServer& nats, const std::string& subject) {
  std::vector<rfc::BackendChangeEvent> out;
  for (const auto& message : stream_contents(nats.url(), "DRIFT")) {
    for (const auto& [name, value] : message.headers) {
      if (name != "ce-subject" || value != subject) continue;
      EXPECT_TRUE(out.emplace_back().ParseFromString(message.body));
    }
  }
  return out;
}

class KafkaLine : public testing::Test {
 protected:
  static KafkaServer::Options options() {
    KafkaServer::Options out;
    out.secure = true;
    out.plain_users = {{"driftd", kPassword}};
    return out;
  }
  KafkaLine() : kafka_(options()) {
    for (const auto& where : {std::vector<std::string>{"--cluster"}, {"--topic", "*"}}) {
      std::vector<std::string> words{"--add", "--allow-principal", "User:driftd", "--operation", "Describe", "--operation", "DescribeConfigs"};
      words.insert(words.end(), where.begin(), where.end());
      kafka_.acls(words);
    }
    for (const char* topic : {"orders", "bills"}) {
      kafka_.topics({"--create", "--topic", topic});
      kafka_.await_topic(topic, true);
    }
  }
  std::string config() const {
    return "defaults:\n  interval: 1s\nbackends:\n  - name: kafka\n    provider: kafka\n    settings: { bootstrap_servers: \"" +
           kafka_.tls_address() + "\", tls: { ca: \"" + kafka_.ca() +
           "\" }, sasl: { mechanism: PLAIN, username: driftd, password: \"${env:KAFKA_PASSWORD}\" }, exclude: [quota, scram_user] }\n"
           "sinks:\n  bus: { type: nats, servers: [\"" + nats_.url() + "\"], views: false }\n";
  }
  std::vector<nlohmann::json> deletions(const Agent& agent) const {
    std::vector<nlohmann::json> out;
    for (auto& drift : agent.rows({"drifts"})) {
      if (drift.value("operation", "") == "deleted") out.push_back(drift);
    }
    return out;
  }
  std::int64_t cycles(const Agent& agent) const { return agent.backend("kafka")->at("cycles").get<std::int64_t>(); }

  TempDir dir_;
  KafkaServer kafka_;
  NatsServer nats_;
};

TEST_F(KafkaLine, RetentionDriftsAndIsRevertedAndOnlyADeletedTopicIsDeleted) {
  Agent agent(dir_, config(), {{"KAFKA_PASSWORD", kPassword}});
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"kafka"}); }, seconds(60))) << agent.log();

  kafka_.configs({"--alter", "--entity-type", "topics", "--entity-name", "orders", "--add-config", "retention.ms=60000"});
  ASSERT_TRUE(eventually([&] { return events(nats_, "kafka/topic/orders").size() == 1; }, seconds(30))) << agent.log();
  const auto drift = events(nats_, "kafka/topic/orders")[0];
  EXPECT_EQ(drift.change_type(), rfc::BACKEND_CHANGE_TYPE_CONFIG_DRIFT_DETECTED);
  EXPECT_EQ(drift.reconciliation_status(), "pending");
  EXPECT_THAT(drift.changed_fields(), ElementsAre("topic/orders:config[\"retention.ms\"]"));
  EXPECT_EQ(drift.backend_name(), "kafka");

  kafka_.configs({"--alter", "--entity-type", "topics", "--entity-name", "orders", "--delete-config", "retention.ms"});
  ASSERT_TRUE(eventually([&] { return events(nats_, "kafka/topic/orders").size() == 2; }, seconds(30))) << agent.log();
  EXPECT_EQ(events(nats_, "kafka/topic/orders")[1].reconciliation_status(), "reverted");

  // hidden is not gone: the topic is missing from every list, and the right is named
  kafka_.acls({"--add", "--deny-principal", "User:driftd", "--operation", "Describe", "--topic", "bills"});
  ASSERT_TRUE(eventually([&] { return agent.backend("kafka")->dump().find("Describe on Topic bills") != std::string::npos; }, seconds(30)))
      << agent.backend("kafka")->dump();
  const auto before = cycles(agent);
  ASSERT_TRUE(eventually([&] { return cycles(agent) > before + 3; }, seconds(30)));
  EXPECT_TRUE(deletions(agent).empty());
  kafka_.acls({"--remove", "--force", "--deny-principal", "User:driftd", "--operation", "Describe", "--topic", "bills"});

  kafka_.topics({"--delete", "--topic", "orders"});
  ASSERT_TRUE(eventually([&] { return events(nats_, "kafka/topic/orders").size() == 3; }, seconds(30))) << agent.log();
  const auto gone = deletions(agent);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_THAT(gone[0].dump(), HasSubstr("orders"));
  EXPECT_EQ(events(nats_, "kafka/topic/bills").size(), 0u);

  EXPECT_EQ(agent.stop(), 0) << agent.log();
  EXPECT_THAT(agent.log(), Not(HasSubstr(kPassword)));
  for (const auto& message : stream_contents(nats_.url(), "DRIFT")) EXPECT_THAT(message.body, Not(HasSubstr(kPassword)));
  for (const auto& file : std::filesystem::recursive_directory_iterator(agent.data_dir())) {
    if (!file.is_regular_file()) continue;
    EXPECT_EQ(read_file(file.path().string()).find(kPassword), std::string::npos) << file.path();
  }
}

}  // namespace
}  // namespace driftd::test
