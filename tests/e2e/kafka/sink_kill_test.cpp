// SPDX-License-Identifier: Apache-2.0
// The agent and the broker of its Kafka sinks are killed while changes go on. Each change makes an object of its own
// and moves a value of one that is always the same; every change must arrive at both sinks, under one id, and the moves
// in their order.
#include <gtest/gtest.h>
#include <cstdlib>

#include "support/agent.hpp"
#include "support/kafka.hpp"
#include "support/kafka_records.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;

constexpr int kChanges = 5;  // between two kills

int number_from_env(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoi(text);
}

std::string sink_of(const KafkaServer& server, const std::string& name, const std::string& more) {
  return "  " + name + ": { type: kafka, bootstrap_servers: [\"" + server.address() + "\"], topic: " + name +
         ", partitions: 4" + more + " }\n";
}

/// Expects one id for each subject, and returns the subjects that did not arrive.
std::string missing(const std::map<std::string, std::vector<std::string>>& events,
                    const std::set<std::string>& expected) {
  std::string out;
  for (const auto& subject : expected) {
    const auto found = events.find(subject);
    if (found == events.end()) {
      out += subject + " ";
    } else {
      EXPECT_EQ(std::set<std::string>(found->second.begin(), found->second.end()).size(), 1U)
          << subject << " arrived under more than one id";
    }
  }
  return out;
}

TEST(KafkaSinkKills, EveryChangeReachesBothSinksUnderOneIdAndInOrder) {
  const int kills = number_from_env("DRIFTD_AGENT_KILLS", 20);
  TempDir dir;
  KafkaServer kafka;
  RedisServer redis;
  redis.grant_readme("redis-canary");
  Agent agent(dir,
              "defaults:\n  interval: 100ms\n  policy: { config: auto }\nbackends:\n  - name: cache\n    provider: "
              "redis\n    settings: { address: \"" +
                  redis.address() + "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" }\nsinks:\n" +
                  sink_of(kafka, "plain", "") + sink_of(kafka, "whole", ", transactional_id: edge-1"),
              {{"REDIS_PASSWORD", "redis-canary"}});
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"cache"}); }, seconds(60))) << agent.log();
  std::set<std::string> expected;  // the subject of each object
  for (int kill = 0; kill < kills; ++kill) {
    for (int i = 0; i < kChanges; ++i) {
      const std::string user = "u" + std::to_string(kill) + "-" + std::to_string(i);
      ASSERT_EQ(redis.command({"ACL", "SETUSER", user, "on", ">p", "~k:*"}), "OK");
      redis.command({"CONFIG", "SET", "maxmemory", std::to_string((kill * kChanges + i + 1) * 1'000'000)});
      expected.insert("cache/acl_user/" + user);
    }
    // In most kills the agent is at work: it shows drifts of these changes. If it does not within a second, it is
    // killed all the same.
    if (kill % 3 != 0)
      eventually([&] { return agent.rows({"drifts", "--all"}).size() > expected.size() / 2; }, seconds(1));
    agent.kill();
    if (kill % 7 == 3) {
      kafka.kill();
      kafka.start();
    }
    agent.start();
  }
  const seconds enough(120);
  ASSERT_TRUE(agent.running()) << agent.log();
  for (const std::string topic : {"plain", "whole"}) {
    std::string lost;
    EXPECT_TRUE(
        eventually([&] { return (lost = missing(events_of_topic(kafka.address(), topic), expected)).empty(); }, enough))
        << topic << " lacks " << lost << agent.log().substr(agent.log().size() > 4000 ? agent.log().size() - 4000 : 0);
    const auto records = topic_contents(kafka.address(), topic);
    EXPECT_EQ(key_out_of_order(records), "") << topic;
    std::set<std::string> ids;
    for (const auto& record : records) ids.insert(record.header("ce_id"));
    std::cout << topic << ": " << records.size() << " records of " << ids.size() << " events after " << kills
              << " kills\n";
    EXPECT_LE(records.size(), ids.size() + 256U * static_cast<unsigned>(kills));
  }
}

}  // namespace
}  // namespace driftd::test
