// SPDX-License-Identifier: Apache-2.0
// Replicas, Sentinels and clusters of real servers: a failover changes endpoints, never configuration, and only once.
#include <csignal>
#include <sstream>
#include <thread>
#include <utility>

#include "fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;

std::vector<std::string> replica_of(const RedisServer& primary) {
  return {"--replicaof", "127.0.0.1", std::to_string(primary.port()), "--repl-diskless-sync-delay", "0"};
}

/// Waits until the replica is connected to its primary.
bool await_link(const RedisServer& replica) {
  return eventually([&] {
    return replica.command({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
  });
}

class Replicas : public testing::Test {
 protected:
  Replicas() : replica_(replica_of(primary_)) {
    primary_.grant_readme("pw-canary");
    replica_.grant_readme("pw-canary");
    EXPECT_TRUE(await_link(replica_));
  }
  RedisServer primary_, replica_;
};

TEST_F(Replicas, PromotionChangesEndpointsOnly) {
  auto probe = redis_probe({{"address", replica_.address()}});
  const auto before = probe.refresh();
  EXPECT_EQ(before.body("replication", "replication")["primary"], primary_.address());
  ASSERT_EQ(replica_.command({"REPLICAOF", "NO", "ONE"}), "OK");
  const auto after = probe.refresh(before.cursor);
  EXPECT_FALSE(after.unchanged);
  EXPECT_EQ(after.body("replication", "replication"), json({{"role", "primary"}}));
  EXPECT_EQ(before.body("server", "server"), after.body("server", "server"));
  EXPECT_EQ(before.body("acl_user", "driftd"), after.body("acl_user", "driftd"));
}

TEST_F(Replicas, APromotedPrimaryContinuesTheHistoryAndAnotherServerDoesNot) {
  RedisServer second(replica_of(primary_)), stranger;
  second.grant_readme("pw-canary");
  ASSERT_TRUE(await_link(second));
  auto probe = redis_probe({{"address", second.address()}});
  const json first = probe.refresh().body("replication", "replication")["history"];
  replica_.command({"REPLICAOF", "NO", "ONE"});
  second.command({"REPLICAOF", "127.0.0.1", std::to_string(replica_.port())});
  const auto after =
      refresh_until(probe, [](const Collected& c) { return c.body("replication", "replication").contains("history"); });
  const json second_history = after.body("replication", "replication")["history"];
  EXPECT_NE(second_history["id"], first["id"]);
  EXPECT_EQ(second_history["previous"], first["id"]) << "the new history names the one that it continues";
  second.command({"REPLICAOF", "127.0.0.1", std::to_string(stranger.port())});
  const auto lost = refresh_until(probe, [&](const Collected& c) {
    const json history = c.body("replication", "replication").value("history", second_history);
    return history["id"] != second_history["id"];
  });
  EXPECT_NE(lost.body("replication", "replication")["history"]["previous"], second_history["id"]);
}

TEST_F(Replicas, ALostPrimaryIsDegradedAndItsHistoryUnknownAndNothingElseMoves) {
  auto probe = redis_probe({{"address", replica_.address()}});
  const auto before = probe.refresh();
  primary_.stop();
  ASSERT_TRUE(
      eventually([&] { return probe.health().health.state == static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED); }));
  EXPECT_THAT(probe.health().health.reason, HasSubstr(primary_.address()));
  const auto after = probe.refresh();
  const auto* record = after.find("replication", "replication");
  ASSERT_NE(record, nullptr);
  ASSERT_EQ(record->unread.size(), 1u);
  EXPECT_EQ(record->unread[0].path, "history.**");
  EXPECT_EQ(after.body("replication", "replication")["primary"], primary_.address());
  EXPECT_EQ(before.body("server", "server"), after.body("server", "server"));
}

TEST(RedisLoading, AServerThatLoadsItsDataIsDegradedAndItsConfigurationIsTheSame) {
  RedisServer server({"--enable-debug-command", "yes", "--rdbcompression", "no"});
  server.grant_readme("pw-canary");
  auto probe = redis_probe({{"address", server.address()}});
  for (int i = 0; i < 20; ++i) server.command({"SET", "k" + std::to_string(i), std::string(3000, 'x')});
  ASSERT_EQ(server.command({"CONFIG", "SET", "loading-process-events-interval-bytes", "1024"}), "OK");
  ASSERT_EQ(server.command({"CONFIG", "SET", "key-load-delay", "200000"}), "OK");
  const auto before = probe.refresh();
  std::jthread loading([&] { server.command({"DEBUG", "RELOAD"}); });
  ASSERT_TRUE(
      eventually([&] { return probe.health().health.state == static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED); }));
  EXPECT_THAT(probe.health().health.reason, HasSubstr("loading"));
  const auto during = probe.refresh();
  if (during.status == DRIFTD_OK) {
    EXPECT_EQ(during.body("acl_user", "driftd"), before.body("acl_user", "driftd"));
    EXPECT_EQ(during.body("server", "server"), before.body("server", "server"));
  } else {
    EXPECT_EQ(during.status, DRIFTD_UNAVAILABLE);
  }
  EXPECT_EQ(during.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  server.command({"CONFIG", "SET", "key-load-delay", "0"});
}

class Sentinels : public Replicas {
 protected:
  Sentinels() : sentinel_("m", primary_.port()) {
    sentinel_.grant_readme("pw-canary");
    EXPECT_TRUE(eventually([&] {
      return sentinel_.command({"SENTINEL", "REPLICAS", "m"}).find(std::to_string(replica_.port())) !=
             std::string::npos;
    }));
  }
  /// Waits longer than 30 s, for a Sentinel whose timer was two seconds late does nothing for that long (its TILT
  /// mode).
  void fail_over() const {
    EXPECT_TRUE(eventually([&] { return sentinel_.command({"SENTINEL", "FAILOVER", "m"}) == "OK"; }, seconds(75)));
    EXPECT_TRUE(eventually(
        [&] {
          return sentinel_.command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"})
                     .find(std::to_string(replica_.port())) != std::string::npos;
        },
        seconds(75)));
  }
  RedisSentinel sentinel_;
};

TEST_F(Sentinels, RightsOfTheReadmeShowTheMasterAndTheSentinelItself) {
  auto probe = redis_probe({{"address", sentinel_.address()}});
  const auto seen = probe.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  EXPECT_THAT(seen.diagnostics, testing::IsEmpty());
  EXPECT_EQ(seen.body("sentinel_master", "m"), json({{"primary", primary_.address()},
                                                     {"quorum", "1"},
                                                     {"down_after", "1000"},
                                                     {"failover_timeout", "5000"},
                                                     {"parallel_syncs", "1"}}));
  EXPECT_EQ(seen.complete.at("sentinel_master"), 1u);
  EXPECT_EQ(seen.complete.at("replication"), 0u);
  EXPECT_EQ(seen.complete.at("acl_user"), 2u);
  EXPECT_EQ(probe.health().health.role, "sentinel");
  expect_named_by_schema(seen);
}

TEST_F(Sentinels, SwitchMasterIsAHintAndTheNewPrimaryAnEndpoint) {
  auto probe = redis_probe({{"address", sentinel_.address()}});
  EXPECT_EQ(probe.refresh().body("sentinel_master", "m")["primary"], primary_.address());
  bool started = false;
  const auto hints = probe.watch(
      {}, [](const Collected& c) { return c.marks >= 2; }, seconds(120),
      [&] {
        if (!std::exchange(started, true)) fail_over();
      });
  EXPECT_GE(hints.marks, 2) << "one hint when the watch begins to listen, one for the switch";
  EXPECT_EQ(probe.refresh().body("sentinel_master", "m")["primary"], replica_.address());
}

TEST_F(Sentinels, ASubscriptionThatStoodIsTakenUpAgainAfterOneSecondHoweverOftenItIsCut) {
  auto probe = redis_probe({{"address", sentinel_.address()}});
  const auto began = std::chrono::steady_clock::now();
  const auto cut = probe.watch(
      {},
      [&](const Collected& c) {
        if (c.marks < 6) sentinel_.command({"CLIENT", "KILL", "TYPE", "pubsub"});
        return c.marks >= 6;
      },
      seconds(60));
  EXPECT_GE(cut.marks, 6) << "one hint each time that the watch begins to listen";
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(20))
      << "five pauses of one second are 5 s, pauses that double would be 31 s";
}

TEST_F(Sentinels, SettingsOfAMasterAreConfigurationAndARemovedOneIsNotFound) {
  auto probe = redis_probe({{"address", sentinel_.address()}});
  sentinel_.command({"SENTINEL", "SET", "m", "quorum", "2"});
  EXPECT_EQ(probe.refresh().body("sentinel_master", "m")["quorum"], "2");
  sentinel_.command({"SENTINEL", "REMOVE", "m"});
  const auto gone = probe.read({{"sentinel_master", "m"}});
  ASSERT_NE(gone.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(Sentinels, TheyMayDisagreeAndThatIsHealthNeverAnEndpoint) {
  RedisServer stranger;
  RedisSentinel other("m", stranger.port());
  other.grant_readme("pw-canary");
  auto probe = redis_probe({{"addresses", {sentinel_.address(), other.address()}}});
  const auto disagreeing = probe.refresh();
  const auto* record = disagreeing.find("sentinel_master", "m");
  ASSERT_NE(record, nullptr);
  EXPECT_FALSE(disagreeing.body("sentinel_master", "m").contains("primary"));
  ASSERT_EQ(record->unread.size(), 1u);
  EXPECT_THAT(record->unread[0].reason, testing::AllOf(HasSubstr(stranger.address()), HasSubstr(primary_.address())));
  EXPECT_EQ(disagreeing.body("sentinel_master", "m")["quorum"], "1");
  const auto health = probe.health().health;
  EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED));
  EXPECT_THAT(health.reason, HasSubstr("do not agree on m"));
  other.stop();
  const auto with_one_down = probe.refresh();
  EXPECT_EQ(with_one_down.complete.count("sentinel_master"), 0u)
      << "a Sentinel that did not answer may know more masters";
  EXPECT_EQ(with_one_down.body("sentinel_master", "m")["primary"], primary_.address());
  EXPECT_EQ(with_one_down.body("server", "server"), disagreeing.body("server", "server"));
  const auto missing = probe.read({{"sentinel_master", "other"}});
  EXPECT_NE(missing.status, DRIFTD_OK);
  EXPECT_EQ(missing.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(Sentinels, ThePrimaryThatTheyNameIsFollowed) {
  auto probe = redis_probe({{"address", sentinel_.address()}, {"sentinel", {{"master", "m"}}}});
  const auto before = probe.refresh();
  ASSERT_EQ(before.status, DRIFTD_OK);
  EXPECT_EQ(before.body("replication", "replication"), json({{"role", "primary"}, {"endpoint", primary_.address()}}));
  EXPECT_EQ(before.complete.at("sentinel_master"), 1u);
  EXPECT_TRUE(probe.refresh(before.cursor).unchanged);
  fail_over();
  const auto after = refresh_until(probe, [&](const Collected& c) {
    return c.status == DRIFTD_OK && c.body("replication", "replication")["endpoint"] == replica_.address();
  });
  EXPECT_EQ(after.body("server", "server")["config"]["port"], std::to_string(replica_.port()));
  auto lost = redis_probe({{"address", sentinel_.address()}, {"sentinel", {{"master", "nobody"}}}});
  EXPECT_EQ(lost.refresh().status, DRIFTD_UNAVAILABLE);
}

/// Three primaries and a replica of the first.
class Cluster : public testing::Test {
 protected:
  static std::vector<std::string> options() {
    return {"--cluster-enabled",
            "yes",
            "--cluster-port",
            std::to_string(free_port()),
            "--cluster-node-timeout",
            "5000",
            "--repl-diskless-sync-delay",
            "0"};
  }
  Cluster() : a_(options()), b_(options()), c_(options()), replica_(options()) {
    int slot = 0;
    for (auto* node : {&a_, &b_, &c_}) {
      const int last = node == &c_ ? 16383 : slot + 5460;
      EXPECT_EQ(node->command({"CLUSTER", "ADDSLOTSRANGE", std::to_string(slot), std::to_string(last)}), "OK");
      slot = last + 1;
    }
    for (auto* node : {&b_, &c_, &replica_})
      a_.command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(node->port()), bus_port(*node)});
    EXPECT_TRUE(eventually([&] { return knows_all(a_) && knows_all(replica_); }, seconds(40)));
    EXPECT_TRUE(eventually([&] {
      return replica_.command({"CLUSTER", "REPLICATE", a_.command({"CLUSTER", "MYID"})}) == "OK";
    }));
    EXPECT_TRUE(eventually(
        [&] {  // each node learns it for itself, by gossip
          const auto sees_replica = [](const RedisServer* node) {
            const std::string nodes = node->command({"CLUSTER", "NODES"});
            return knows_all(*node) && nodes.find("slave") != std::string::npos &&
                   nodes.find("slave -") == std::string::npos;
          };
          return sees_replica(&a_) && sees_replica(&b_) && sees_replica(&c_);
        },
        seconds(40)));
    for (auto* node : {&a_, &b_, &c_, &replica_}) node->grant_readme("pw-canary");
  }
  static std::string bus_port(const RedisServer& node) {
    const std::string answer = node.command({"CONFIG", "GET", "cluster-port"});
    return answer.substr(answer.find('\n') + 1);
  }
  static bool knows_all(const RedisServer& node) {
    const std::string info = node.command({"CLUSTER", "INFO"});
    return info.find("cluster_known_nodes:4") != std::string::npos &&
           info.find("cluster_state:ok") != std::string::npos;
  }
  RedisServer a_, b_, c_, replica_;
};

TEST_F(Cluster, ShardsAreConfigurationAndAFailoverMovesOnlyNodes) {
  auto probe = redis_probe({{"address", b_.address()}});
  const auto before = refresh_until(probe, [](const Collected& c) {
    return c.body("cluster", "cluster")["nodes"].dump().find("replica") != std::string::npos;
  });
  EXPECT_THAT(before.diagnostics, testing::IsEmpty());
  const json body = before.body("cluster", "cluster");
  EXPECT_EQ(body["shards"], json({"0-5460", "10922-16383", "5461-10921"}));
  EXPECT_EQ(body["nodes"].size(), 4u);
  EXPECT_EQ(probe.refresh(before.cursor).unchanged, true);
  const auto promoted = [&] { return replica_.command({"ROLE"}).rfind("master", 0) == 0; };
  const auto fails_over = [&] {  // an attempt of the server gives up after five seconds
    return replica_.command({"CLUSTER", "FAILOVER"}) == "OK" && eventually(promoted, seconds(6));
  };
  ASSERT_TRUE(eventually([&] { return promoted() || fails_over(); }, seconds(30)));
  const auto after =
      refresh_until(probe, [&](const Collected& c) { return c.body("cluster", "cluster")["nodes"] != body["nodes"]; });
  const json settled = refresh_until(probe, [&](const Collected& c) {
                         return c.body("cluster", "cluster")["shards"].size() == 3;
                       }).body("cluster", "cluster");
  EXPECT_EQ(settled["shards"], body["shards"]);
  EXPECT_EQ(after.body("server", "server"), before.body("server", "server"));
}

TEST_F(Cluster, AMovedSlotIsSeenAtOnceThoughNoCounterOfInfoMoves) {
  auto probe = redis_probe({{"address", b_.address()}});
  const auto before = probe.refresh();
  for (auto* node : {&a_, &b_, &c_})
    node->command({"CLUSTER", "SETSLOT", "0", "NODE", b_.command({"CLUSTER", "MYID"})});
  const Collected after = probe.refresh(before.cursor);
  ASSERT_FALSE(after.unchanged);
  EXPECT_EQ(after.body("cluster", "cluster")["shards"], json({"0 5461-10921", "1-5460", "10922-16383"}));
  expect_named_by_schema(before);
}

TEST_F(Cluster, ADeadNodeIsHealthAndStaysAMember) {
  auto probe = redis_probe({{"address", b_.address()}});
  const auto before = probe.refresh();
  c_.stop();
  ASSERT_TRUE(eventually(
      [&] { return probe.health().health.state == static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED); }, seconds(40)));
  EXPECT_THAT(probe.health().health.reason, HasSubstr("cluster_state"));
  const auto after = refresh_until(probe, [&](const Collected& c) {
    return json::parse(c.find("cluster", "cluster")->status)["failing_nodes"] == json({c_.address()});
  });
  EXPECT_EQ(after.body("cluster", "cluster"), before.body("cluster", "cluster"));
}

}  // namespace
}  // namespace driftd::test
