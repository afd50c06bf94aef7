// SPDX-License-Identifier: Apache-2.0
// Attacks by somebody who may use groups, alter a topic of their own or write ACLs in a watched Kafka.
#include "support/kafka.hpp"
#include "attacked.hpp"
#include "support/kafka_wire.hpp"

namespace driftd::test {
namespace {

class HostileKafka : public Attacked {
 protected:
  HostileKafka() : kafka_(options()) {
    for (const auto& where : {std::vector<std::string>{"--cluster"}, {"--topic", "*"}, {"--group", "*"}}) {
      std::vector<std::string> words{"--add", "--allow-principal", "User:driftd", "--operation", "Describe"};
      if (where[0] != "--group") words.insert(words.end(), {"--operation", "DescribeConfigs"});
      words.insert(words.end(), where.begin(), where.end());
      kafka_.acls(words);
    }
    for (const char* topic : {"quiet", "mallory"}) make(topic);
  }
  void make(const std::string& topic) const {
    kafka_.topics({"--create", "--topic", topic});
    kafka_.await_topic(topic, true);
  }
  void watch() {
    start_agent("  - name: bus\n    provider: kafka\n    settings: { bootstrap_servers: \"" + kafka_.sasl_address() +
                    "\", sasl: { mechanism: PLAIN, username: driftd, password: \"${env:KAFKA}\" }, exclude: [quota, "
                    "scram_user] }\n",
                {"bus"}, {{"KAFKA", "kafka-canary"}});
  }
  void alter(const std::string& topic, const std::string& what) const {
    kafka_.configs({"--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", what});
  }
  /// Expects that topics, groups and ACLs are still judged: makes a group and an ACL and changes a topic.
  void expect_watched(const KafkaWire& wire) {
    const std::string mark = std::to_string(2'000'000 + ++marks_);
    alter("quiet", "retention.ms=" + mark);
    EXPECT_EQ(wire.commit("honest-" + mark, "quiet"), 0);
    EXPECT_EQ(wire.allow("User:honest-" + mark, "quiet"), 0);
    EXPECT_TRUE(drift_appears("bus", "\"" + mark + "\"", "quiet")) << "the topic's configuration";
    EXPECT_TRUE(drift_appears("bus", "group/honest-" + mark, "honest-" + mark));
    EXPECT_TRUE(drift_appears("bus", "acl/User:honest-" + mark, "User:honest-" + mark + "*"));
  }

  KafkaServer kafka_;
  int marks_ = 0;

 private:
  static KafkaServer::Options options() {
    KafkaServer::Options out;
    out.secure = true;
    out.plain_users = {{"driftd", "kafka-canary"}};
    return out;
  }
};

TEST_F(HostileKafka, NamesOfAnyBytesAndLengthCostThemselvesAlone) {
  const KafkaWire wire(kafka_.address(), "caf\xff\x1b[2J" + std::string(30'000, 'c'));
  for (const char* group : {"victims", "leaving"}) ASSERT_EQ(wire.commit(group, "quiet"), 0);
  ASSERT_NO_FATAL_FAILURE(watch());
  const std::vector<std::string> groups{"",
                                        "\x1b[2J\x07red",
                                        "caf\xff\xfe",
                                        "caf\\xff\\xfe",
                                        "**",
                                        "victims/",
                                        "%s%n$hmac",
                                        std::string("victims\0", 8),
                                        std::string(32'700, 'g')};
  for (const auto& group : groups) {
    EXPECT_EQ(wire.commit(group, "quiet"), 0) << group.substr(0, 64);
    ASSERT_TRUE(neighbour_is_watched()) << group.substr(0, 64);
  }
  const std::string no_topics("\0\0\0\0\0\0\0\0\0\0", 10);  // a valid empty subscription; garbage follows
  EXPECT_EQ(wire.join("huge", no_topics + std::string(900'000, '\xff')), 0)
      << "the metadata of a member is not configuration";
  EXPECT_EQ(wire.join(std::string(20'000, 'h'), std::string("\0\xff\xfe", 3)), 0);
  EXPECT_EQ(wire.allow("User:evil\n\x1b[2J|*|Read", "quiet"), 0);
  EXPECT_EQ(wire.allow("User:" + std::string(30'000, 'p'), "quiet"), 0);
  make(std::string(249, 'a'));
  std::string dots;
  while (dots.size() < 249) dots += "a.";
  make(dots.substr(0, 249));
  std::string replicas = "0:1";  // grows to the limit of the protocol for a value
  while (replicas.size() < 32'000) replicas += ",0:1";
  alter("mallory", "leader.replication.throttled.replicas=[" + replicas + "]");
  ASSERT_NO_FATAL_FAILURE(expect_watched(wire));
  EXPECT_TRUE(drift_appears("bus", "leader.replication", "mallory"));
  EXPECT_TRUE(backend_reports("bus", "`id` has 32700 bytes"));
  EXPECT_TRUE(drift_appears("bus", "topic/" + std::string(249, 'a'), std::string(249, 'a')));
  EXPECT_TRUE(drift_appears("bus", "group/huge"));
  expect_nothing_deleted("bus");
  EXPECT_TRUE(backend_reports("bus", "several groups are called victims up to a NUL byte"));
  wire.delete_groups({"leaving"});
  EXPECT_TRUE(drift_appears("bus", "\"deleted\"", "leaving")) << "a deletion is still noticed";
  expect_unharmed();
  EXPECT_EQ(agent_->cli({"drifts", "--all"}).out.find('\x1b'), std::string::npos)
      << "escape sequences of names are not printed";
  EXPECT_EQ(all_output().find("canary"), std::string::npos);
}

TEST_F(HostileKafka, AStormOfGroupsBlindsNobody) {
  const KafkaWire wire(kafka_.address(), "mallory");
  ASSERT_NO_FATAL_FAILURE(watch());
  std::vector<std::string> storm;
  for (int i = 0; i < 3'000; ++i) storm.push_back("storm" + std::to_string(i));
  for (const auto& group : storm) ASSERT_EQ(wire.commit(group, "quiet"), 0) << group;
  EXPECT_TRUE(neighbour_is_watched());
  wire.delete_groups(storm);
  EXPECT_TRUE(neighbour_is_watched());
  ASSERT_NO_FATAL_FAILURE(expect_watched(wire));
  for (const char* id : {"quiet", "mallory", "User:*"}) expect_nothing_deleted("bus", id);
  expect_nothing_deleted("bus", "storm*");
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
