// SPDX-License-Identifier: Apache-2.0
// The agent and its broker are killed while changes go on. Each change makes an object of its own; every change must
// arrive at both sinks, under one id.
#include <cstdlib>

#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;

/// Returns the number in an environment variable, or `fallback` if it is not set.
int number_from_env(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoi(text);
}

TEST(Kills, EveryChangeReachesJetStreamAndTheWebhookUnderOneId) {
  const int agent_kills = number_from_env("DRIFTD_AGENT_KILLS", 20);
  const int nats_kills = number_from_env("DRIFTD_NATS_KILLS", 3);
  TempDir dir;
  RedisServer redis;
  PostgresServer postgres;
  NatsServer nats;
  HttpReceiver receiver;
  redis.grant_readme("redis-canary");
  grant_readme(postgres);
  std::vector<std::string> topics = {"orders"};
  const std::string state = dir.write("infra/terraform.tfstate", tfstate_of(topics));
  Agent agent(
      dir,
      "defaults:\n  interval: 100ms\nbackends:\n" + redis_backend(redis) + postgres_backend(postgres) +
          terraform_backend(state) + "sinks:\n" + nats_sink(nats) + webhook_sink(receiver),
      {{"REDIS_PASSWORD", "redis-canary"}, {"PG_PASSWORD", "pg-canary"}, {"HOOK_SECRET", "hook-canary-of-24-bytes!"}});
  agent.start();
  ASSERT_TRUE(eventually(
      [&] {
        return agent.established({"cache", "orders-db", "platform"});
      },
      seconds(40)))
      << agent.log();

  std::set<std::string> expected;  // the subject of each change
  using Clock = std::chrono::steady_clock;
  Clock::time_point receiver_down{};
  const auto down_long_enough = [&] {
    return Clock::now() - receiver_down > seconds(number_from_env("DRIFTD_WEBHOOK_DOWN", 10));
  };
  for (int kill = 0; kill < agent_kills; ++kill) {
    for (int i = 0; i < 3; ++i) {
      const std::string fresh = std::to_string(kill) + "-" + std::to_string(i);
      ASSERT_EQ(redis.command({"ACL", "SETUSER", "u" + fresh, "on", ">p", "~k:*"}), "OK");
      postgres.sql("create role \"r" + fresh + "\"");
      topics.push_back("t" + fresh);
      replace_file(state, tfstate_of(topics));
      redis.command({"CONFIG", "SET", "maxmemory", std::to_string((kill * 3 + i + 1) * 1'000'000)});
      expected.insert(
          {"cache/acl_user/u" + fresh, "orders-db/role/r" + fresh, "platform/instance/kafka_topic.t" + fresh});
    }
    const std::size_t seen = agent.log().size();
    if (kill % 2 == 0) {
      // In half of the kills the agent is at work: it has logged something or shows drifts of these changes. If it does
      // neither within a second, it is killed all the same.
      eventually([&] { return agent.log().size() > seen || agent.rows({"drifts"}).size() > expected.size() / 2; },
                 seconds(1));
    }
    agent.kill();
    if (kill % std::max(1, agent_kills / nats_kills) == 1) {
      nats.sigkill();
      nats.start();
    }
    agent.start();
    if (kill == agent_kills / 2) {
      receiver.kill();
      receiver_down = Clock::now();
    }
  }
  ASSERT_TRUE(eventually(down_long_enough, seconds(120)));
  receiver.start();

  const auto missing = [&](const std::map<std::string, std::vector<std::string>>& events) {
    std::string out;
    for (const auto& subject : expected) {
      if (events.count(subject) == 0) out += subject + " ";
    }
    return out;
  };
  // A longer run has more to deliver: one second more for every ten changes.
  const seconds more(static_cast<long>(expected.size()) / 10);
  EXPECT_TRUE(eventually([&] { return missing(events_of_stream(nats)).empty(); }, seconds(60) + more))
      << missing(events_of_stream(nats))
      << agent.log().substr(agent.log().size() > 4000 ? agent.log().size() - 4000 : 0);
  EXPECT_TRUE(eventually([&] { return missing(events_of_webhook(receiver)).empty(); }, seconds(90) + more))
      << missing(events_of_webhook(receiver));
  const std::vector<std::map<std::string, std::vector<std::string>>> arrived = {events_of_stream(nats),
                                                                                events_of_webhook(receiver)};
  for (const auto& subject : expected) {
    for (const auto& events : arrived) {
      const auto found = events.find(subject);
      if (found == events.end()) continue;
      const std::set<std::string> ids(found->second.begin(), found->second.end());
      EXPECT_EQ(ids.size(), 1u) << subject << " arrived under more than one id";
    }
  }
  // maxmemory changed all the time; the webhook gets its last value.
  const std::string last = std::to_string(agent_kills * 3 * 1'000'000);
  EXPECT_TRUE(eventually(
      [&] {
        for (const auto& request : receiver.received()) {
          if (request.status == 200 && request.body.find(last) != std::string::npos) return true;
        }
        return false;
      },
      seconds(60)));
}

}  // namespace
}  // namespace driftd::test
