// SPDX-License-Identifier: Apache-2.0
// Every kind of the redis provider in a running agent: changed by commands of Redis, read as events from JetStream.
#include <gmock/gmock.h>
#include <csignal>
#include <filesystem>

#include "support/agent.hpp"
#include "support/certificates.hpp"
#include "support/redis.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

/// One agent that reads a server, a Sentinel and a cluster of one node.
class RedisLine : public testing::Test {
 protected:
  RedisLine()
      : cluster_({"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())}),
        watched_{},
        sentinel_("m", watched_.port()) {
    EXPECT_EQ(cluster_.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}), "OK");
    for (auto* server : {&server_, &cluster_}) server->grant_readme("redis-canary");
    sentinel_.grant_readme("redis-canary");
    server_.command({"ACL", "SETUSER", "app", "on", ">user-canary-1", "~app:*", "+get"});
  }
  static std::string backend(const std::string& name, const std::string& address) {
    return "  - name: " + name + "\n    provider: redis\n    settings: { address: \"" + address +
           "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" }\n";
  }
  void start() {
    agent_ =
        std::make_unique<Agent>(dir_,
                                "defaults:\n  interval: 200ms\nbackends:\n" + backend("cache", server_.address()) +
                                    backend("shards", cluster_.address()) + backend("watchers", sentinel_.address()) +
                                    "sinks:\n  bus: { type: nats, servers: [\"" + nats_.url() + "\"], views: false }\n",
                                std::map<std::string, std::string>{{"REDIS_PASSWORD", "redis-canary"}});
    agent_->start();
    ASSERT_TRUE(eventually(
        [&] {
          return agent_->established({"cache", "shards", "watchers"});
        },
        seconds(60)))
        << agent_->log();
  }
  testing::AssertionResult arrives(const Expected& expected, long count = 1) const {
    return test::arrives(nats_, expected, count);
  }
  /// Expects a pending drift after `change`, and that `back` reverts it.
  void expect_pending_then_reverted(const std::string& backend, const std::string& resource, const std::string& field,
                                    const std::function<void()>& change, const std::function<void()>& back) const {
    change();
    EXPECT_TRUE(arrives({backend, resource, "config.updated", "pending", "changed", field}));
    back();
    EXPECT_TRUE(arrives({backend, resource, "config.updated", "reverted", {}, field}));
  }

  TempDir dir_;
  NatsServer nats_;
  RedisServer server_, cluster_, watched_;
  RedisSentinel sentinel_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(RedisLine, EveryKindChangesRevertsGoesAndComesBack) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto run_at = [](auto& server, std::vector<std::string> words) {
    return [&server, words] { EXPECT_EQ(server.command(words), words[1] == "DELUSER" ? "1" : "OK") << words[1]; };
  };
  expect_pending_then_reverted("cache", "server/server", "config.maxmemory",
                               run_at(server_, {"CONFIG", "SET", "maxmemory", "64mb"}),
                               run_at(server_, {"CONFIG", "SET", "maxmemory", "0"}));
  expect_pending_then_reverted("cache", "acl_user/app", "commands", run_at(server_, {"ACL", "SETUSER", "app", "+set"}),
                               run_at(server_, {"ACL", "SETUSER", "app", "-set"}));
  expect_pending_then_reverted("watchers", "sentinel_master/m", "quorum",
                               run_at(sentinel_, {"SENTINEL", "SET", "m", "quorum", "2"}),
                               run_at(sentinel_, {"SENTINEL", "SET", "m", "quorum", "1"}));
  expect_pending_then_reverted("shards", "cluster/cluster", "shards", run_at(cluster_, {"CLUSTER", "DELSLOTS", "7"}),
                               run_at(cluster_, {"CLUSTER", "ADDSLOTS", "7"}));
  run_at(server_, {"ACL", "DELUSER", "app"})();
  EXPECT_TRUE(arrives({"cache", "acl_user/app", "config.updated", "pending", "deleted", {}}));
  run_at(server_, {"ACL", "SETUSER", "app", "on", ">user-canary-1", "~app:*", "+get"})();
  EXPECT_TRUE(arrives({"cache", "acl_user/app", "config.updated", "reverted", {}, {}}, 2));
  run_at(server_, {"ACL", "SETUSER", "new"})();
  EXPECT_TRUE(arrives({"cache", "acl_user/new", "config.updated", "pending", "created", {}}));
  sentinel_.command({"SENTINEL", "REMOVE", "m"});
  EXPECT_TRUE(arrives({"watchers", "sentinel_master/m", "config.updated", "pending", "deleted", {}}));
  RedisServer primary;
  run_at(server_, {"REPLICAOF", "127.0.0.1", std::to_string(primary.port())})();
  EXPECT_TRUE(arrives({"cache", "replication/replication", "endpoint.changed", "auto-applied", "changed", "role"}));
  run_at(server_, {"REPLICAOF", "NO", "ONE"})();
  EXPECT_TRUE(arrives({"cache", "replication/replication", "endpoint.changed", "auto-applied", "changed", "role"}, 2));
}

TEST_F(RedisLine, CredentialsRotateAndAreNowhere) {
  ASSERT_NO_FATAL_FAILURE(start());
  server_.command({"ACL", "SETUSER", "app", "resetpass", ">user-canary-2"});
  EXPECT_TRUE(arrives({"cache", "acl_user/app", "credentials.rotated", "auto-applied", "changed", "passwords"}));
  for (const char* name : {"masterauth", "tls-key-file-pass", "tls-client-key-file-pass"}) {
    server_.command({"CONFIG", "SET", name, std::string("config-canary-") + name});
    EXPECT_TRUE(arrives(
        {"cache", "server/server", "credentials.rotated", "auto-applied", "changed", std::string("config.") + name}))
        << name;
  }
  sentinel_.command({"SENTINEL", "CONFIG", "SET", "sentinel-pass", "sentinel-canary"});
  EXPECT_TRUE(
      arrives({"watchers", "server/server", "credentials.rotated", "auto-applied", "changed", "config.sentinel-pass"}));
  // This comes last, because after it the test itself cannot log in.
  server_.command({"CONFIG", "SET", "requirepass", "require-canary"});
  EXPECT_TRUE(
      arrives({"cache", "server/server", "credentials.rotated", "auto-applied", "changed", "config.requirepass"}));
  std::string everything = agent_->log();
  for (const auto& words : std::vector<std::vector<std::string>>{{"drifts", "--all"},
                                                                 {"events"},
                                                                 {"status"},
                                                                 {"resources", "cache", "--bodies"},
                                                                 {"resources", "watchers", "--bodies"}}) {
    const Output out = agent_->cli(words);
    everything += out.out + out.err;
  }
  for (const auto& message : stream_contents(nats_.url(), "DRIFT")) everything += message.body;
  EXPECT_EQ(agent_->stop(), 0);
  for (const auto& file : std::filesystem::directory_iterator(agent_->data_dir())) {
    if (file.is_regular_file()) everything += read_file(file.path().string());
  }
  EXPECT_THAT(everything, Not(HasSubstr("canary")));
}

TEST_F(RedisLine, APausedServerAndOneThatComesBackOpenNoDrift) {
  ASSERT_NO_FATAL_FAILURE(start());
  server_.signal(SIGSTOP);
  ASSERT_TRUE(
      eventually([&] { return agent_->backend("cache")->at("health").value("state", "") == "down"; }, seconds(60)))
      << agent_->backend("cache")->dump();
  server_.signal(SIGCONT);
  cluster_.stop();
  const auto shards = [&](const std::string& state) {
    return eventually([&] { return agent_->backend("shards")->at("health").value("state", "") == state; }, seconds(60));
  };
  ASSERT_TRUE(shards("down"));
  cluster_.start();
  cluster_.grant_readme("redis-canary");
  ASSERT_TRUE(shards("up")) << agent_->backend("shards")->dump();
  const auto cycles = [&] { return agent_->backend("cache")->at("cycles").get<std::int64_t>(); };
  const auto before = cycles();
  ASSERT_TRUE(eventually([&] { return cycles() > before + 3; }, seconds(60))) << agent_->backend("cache")->dump();
  EXPECT_THAT(agent_->rows({"drifts", "--all"}), testing::IsEmpty());
}

TEST_F(RedisLine, RulesInOtherWordsAreNoDrift) {
  server_.command({"ACL", "SETUSER", "admin", "on", ">user-canary-3", "-@all", "+config"});
  ASSERT_NO_FATAL_FAILURE(start());
  const std::vector<std::string> words{"ACL",         "SETUSER",     "admin",           "-@all",
                                       "+config|get", "+config|set", "+config|rewrite", "+config|resetstat",
                                       "+config|help"};
  const std::string before = server_.command({"ACL", "LIST"});
  ASSERT_EQ(server_.command(words), "OK");
  ASSERT_NE(server_.command({"ACL", "LIST"}), before) << "the server shows the rules as before";
  // The event of this change comes after, or with, the event that `admin` must not cause.
  server_.command({"ACL", "SETUSER", "app", "+set"});
  EXPECT_TRUE(arrives({"cache", "acl_user/app", "config.updated", "pending", "changed", "commands"}));
  for (const auto& event : stream_events(nats_)) EXPECT_NE(event.resource_id(), "admin") << event.ShortDebugString();
  EXPECT_THAT(agent_->rows({"drifts", "--all"}), testing::SizeIs(1)) << "only the drift of app";
}

TEST(RedisTlsLine, CertificatesAreReadInTheWorkersJailAndAWrongNameIsDownNotDrift) {
  const TempDir dir;
  const Certificates authority;
  authority.issue("server", "cache.test", "DNS:cache.test");
  authority.issue("client", "driftd");
  const int port = free_port();
  const RedisServer server({"--tls-port", std::to_string(port), "--tls-cert-file", authority.certificate("server"),
                            "--tls-key-file", authority.key("server"), "--tls-ca-cert-file", authority.ca()});
  server.grant_readme("redis-canary");
  const auto backend = [&](const std::string& name, const std::string& server_name) {
    return "  - name: " + name + "\n    provider: redis\n    settings: { address: \"127.0.0.1:" + std::to_string(port) +
           "\", username: driftd, password: \"${env:REDIS_PASSWORD}\", tls: { ca: " + authority.ca() +
           ", certificate: " + authority.certificate("client") + ", key: " + authority.key("client") +
           ", server_name: " + server_name + " } }\n";
  };
  Agent agent(dir,
              "defaults:\n  interval: 200ms\nbackends:\n" + backend("right", "cache.test") +
                  backend("wrong", "other.test") + "sinks:\n  desk: { type: notifications }\n",
              {{"REDIS_PASSWORD", "redis-canary"}});
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"right"}); }, seconds(60))) << agent.log();
  ASSERT_TRUE(eventually([&] { return agent.backend("wrong")->dump().find("ostname mismatch") != std::string::npos; },
                         seconds(60)))
      << agent.backend("wrong")->dump();
  EXPECT_FALSE(agent.established({"wrong"}));
  EXPECT_THAT(agent.rows({"drifts", "--all"}), testing::IsEmpty());
}

}  // namespace
}  // namespace driftd::test
