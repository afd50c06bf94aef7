// SPDX-License-Identifier: Apache-2.0
// Brokers that stop, hang or die: nothing is taken for deleted, no call waits long, and the provider reads again when
// they are back.
#include "support/patience.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

milliseconds took(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
}

TEST(KafkaFaults, StoppedAndPausedBrokersAreReportedInTimeAndComeBack) {
  KafkaServer server;
  server.topics({"--create", "--topic", "orders"});
  server.await_topic("orders", true);
  ProviderProbe p("providers/kafka.so",
                  {{"bootstrap_servers", server.address()}, {"exclude", {"acl", "quota", "scram_user"}}});
  const auto first = p.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << all_texts(first);
  EXPECT_EQ(first.complete.count("topic"), 1u) << "a broker without an authorizer hides no topic";
  ProviderProbe all("providers/kafka.so", {{"bootstrap_servers", server.address()}});
  Collected seen = all.refresh();
  EXPECT_EQ(seen.complete.count("acl"), 0u) << "a broker without an authorizer has no list of ACLs, not an empty one";
  EXPECT_EQ(seen.diagnostic(DRIFTD_DENIED), nullptr) << all_texts(seen);
  EXPECT_EQ(seen.complete.count("group"), 1u);

  server.pause();
  EXPECT_LT(took([&] { seen = p.refresh({}, seconds(3)); }), seconds(3) * kPatience + seconds(5));
  EXPECT_EQ(seen.status, DRIFTD_DEADLINE) << all_texts(seen);
  EXPECT_TRUE(seen.records.empty());
  seen = p.health();
  EXPECT_EQ(seen.health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  server.go_on();
  EXPECT_TRUE(eventually([&] { return p.refresh({}, seconds(5)).status == DRIFTD_OK; }));

  server.stop();
  EXPECT_LT(took([&] { seen = p.refresh(); }), seconds(8));
  EXPECT_EQ(seen.status, DRIFTD_UNAVAILABLE) << all_texts(seen);
  EXPECT_TRUE(seen.complete.empty());
  EXPECT_NE(p.read({{"topic", "orders"}}).status, DRIFTD_OK);
  EXPECT_EQ(p.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  server.start();
  ASSERT_TRUE(eventually([&] { return p.refresh().status == DRIFTD_OK; }, seconds(30)));
  const auto back = p.refresh();
  EXPECT_EQ(back.body("topic", "orders"), first.body("topic", "orders")) << "a restart changes nothing";
  EXPECT_EQ(back.body("broker", "1"), first.body("broker", "1"));
  EXPECT_TRUE(eventually([&] { return p.health().health.state == DRIFTD_HEALTH_UP; }));
}

TEST(KafkaFaults, BrokerThatDiesIsUnknownAndItsPartitionsAreOffline) {
  KafkaServer first;
  KafkaServer::Options options;
  options.node = 2;
  options.join = &first;
  KafkaServer second(options);
  const auto create = [&](const std::string& name, const std::string& assignment) {
    first.topics({"--create", "--topic", name, "--replica-assignment", assignment});
    first.await_topic(name, true);
  };
  ASSERT_TRUE(eventually([&] {
    return kafka_tool(
               "4.0.0", "org.apache.kafka.tools.TopicCommand",
               {"--bootstrap-server", first.address(), "--create", "--topic", "on-two", "--replica-assignment", "2"})
               .code == 0;
  }));
  create("on-both", "1:2");
  first.configs(
      {"--alter", "--entity-type", "topics", "--entity-name", "on-both", "--add-config", "min.insync.replicas=2"});
  ProviderProbe p("providers/kafka.so",
                  {{"bootstrap_servers", first.address()}, {"exclude", {"acl", "quota", "scram_user", "group"}}});
  ASSERT_TRUE(eventually([&] { return p.refresh().body("broker", "2").contains("static"); }));
  EXPECT_EQ(p.refresh().body("topic", "on-both")["replication_factor"], 2);

  second.pause();  // for some seconds the controller still takes it for alive
  ProviderProbe fresh("providers/kafka.so",
                      {{"bootstrap_servers", first.address()}, {"include", {"broker"}}, {"call_timeout_ms", 1500}});
  Collected seen = fresh.refresh();
  EXPECT_EQ(seen.status, DRIFTD_OK) << "a broker that hangs must not hide the others: " << all_texts(seen);
  EXPECT_TRUE(seen.body("broker", "1").contains("static"));
  EXPECT_FALSE(seen.body("broker", "2").contains("static"));
  second.go_on();

  second.kill();
  ASSERT_TRUE(eventually(
      [&] {
        seen = p.refresh();
        const auto* cluster = seen.find("cluster", "cluster");
        return cluster != nullptr && json::parse(cluster->status)["under_min_isr_partitions"] == 1;
      },
      seconds(60)))
      << all_texts(seen);
  const auto status = json::parse(seen.find("cluster", "cluster")->status);
  EXPECT_EQ(status["brokers"], 1);
  EXPECT_EQ(status["offline_partitions"], 1);
  EXPECT_EQ(seen.complete.count("broker"), 1u);
  const auto* broker = seen.find("broker", "2");
  ASSERT_NE(broker, nullptr);
  EXPECT_EQ(broker->body, "{}");
  EXPECT_EQ(broker->unread.size(), 4u);
  const auto read = p.read({{"broker", "2"}, {"broker", "7"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << "a broker that is down is not known to be gone for good";
  EXPECT_EQ(p.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED));
  EXPECT_EQ(json::parse(seen.find("topic", "on-both")->status)["isr"], (json{{"0", {1}}}));
}

TEST(KafkaOlder, Kafka39IsReadWithAScramLogin) {
  KafkaServer::Options options;
  options.version = "3.9.1";
  options.secure = true;
  KafkaServer server(options);
  grant_readme(server, "scram-canary-of-39");
  const auto alter = [&](const char* option, const char* config) {
    server.configs({"--alter", "--entity-type", "topics", "--entity-name", "orders", option, config});
  };
  server.topics({"--create", "--topic", "orders", "--partitions", "2"});
  server.await_topic("orders", true);
  ProviderProbe p("providers/kafka.so",
                  {{"bootstrap_servers", server.sasl_address()},
                   {"sasl", {{"mechanism", "SCRAM-SHA-512"}, {"username", "driftd"}, {"password", "t"}}}},
                  {{"t", "scram-canary-of-39"}});
  Collected seen;
  ASSERT_TRUE(eventually([&] { return (seen = p.refresh()).status == DRIFTD_OK; })) << all_texts(seen);
  for (const char* kind : {"cluster", "broker", "topic", "acl", "group"})
    EXPECT_EQ(seen.complete.count(kind), 1u) << kind;
  EXPECT_EQ(all_texts(seen).find("scram-canary-of-39"), std::string::npos);
  const auto before = seen.body("topic", "orders");
  alter("--add-config", "retention.ms=60000");
  ASSERT_TRUE(eventually([&] {
    return p.refresh().body("topic", "orders")["config"] == json{{"retention.ms", "60000"}};
  }));
  alter("--delete-config", "retention.ms");
  ASSERT_TRUE(eventually([&] { return p.refresh().body("topic", "orders") == before; }));
  server.topics({"--delete", "--topic", "orders"});
  server.await_topic("orders", false);
  const auto gone = p.read({{"topic", "orders"}});
  EXPECT_EQ(gone.status, DRIFTD_OK) << all_texts(gone);
  EXPECT_NE(gone.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

}  // namespace
}  // namespace driftd::test
