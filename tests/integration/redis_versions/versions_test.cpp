// SPDX-License-Identifier: Apache-2.0
// Servers of versions that Debian does not have (tests/servers/redis): every kind is seen with the README's rights, a
// change is seen, and nothing drifts by itself.
#include "integration/redis/fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

class RedisVersions : public testing::TestWithParam<const char*> {
 protected:
  bool older() const { return std::string(GetParam()) == "redis-6.2"; }
  std::string version() const { return older() ? "6.2.14" : "9.1.2"; }
  static void expect_same_bodies(const Collected& a, const Collected& b) {
    ASSERT_EQ(a.records.size(), b.records.size());
    for (std::size_t i = 0; i < a.records.size(); ++i)
      EXPECT_EQ(a.records[i].body, b.records[i].body) << a.records[i].id;
  }
};

TEST_P(RedisVersions, RightsOfTheReadmeShowEveryKindAndTwoListingsAreTheSameBytes) {
  RedisServer server({}, GetParam());
  server.grant_readme("pw-canary");
  server.command({"ACL", "SETUSER", "app", "on", ">one", "~app:*", "+@all", "-@dangerous", "+config|get"});
  auto p = redis_probe({{"address", server.address()}});
  const auto first = p.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK);
  for (const auto& diagnostic : first.diagnostics) ADD_FAILURE() << diagnostic.text;
  EXPECT_EQ(first.complete,
            (std::map<std::string, std::uint64_t>{
                {"acl_user", 3}, {"cluster", 0}, {"replication", 1}, {"sentinel_master", 0}, {"server", 1}}));
  for (const auto& record : first.records) EXPECT_THAT(record.unread, IsEmpty()) << record.kind << "/" << record.id;
  const json body = first.body("server", "server");
  EXPECT_EQ(body["version"], version()) << "the version of the product, not of the Redis that it is compatible with";
  EXPECT_EQ(body["product"], older() ? "redis" : "valkey");
  EXPECT_GT(body["config"].size(), 100u);
  EXPECT_EQ(body["persistence"], "none");
  EXPECT_EQ(body["mode"], "standalone");
  expect_same_bodies(first, p.refresh());
  EXPECT_EQ(p.refresh(first.cursor).unchanged, !older()) << "INFO counts the calls of subcommands only from 7.0 on";
  const auto health = p.health().health;
  EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  EXPECT_EQ(health.server_version, version());
}

TEST_P(RedisVersions, ARestartIsNoDrift) {
  RedisServer server({"--requirepass", "", "--maxmemory", "64mb"}, GetParam());
  server.grant_readme("pw-canary");
  auto p = redis_probe({{"address", server.address()}});
  const auto first = p.refresh();
  server.stop();
  server.start();
  server.grant_readme("pw-canary");
  const auto second = p.refresh(first.cursor);
  EXPECT_FALSE(second.unchanged);
  expect_same_bodies(first, second);
}

TEST_P(RedisVersions, AChangeIsSeen) {
  RedisServer server({}, GetParam()), primary({}, GetParam());
  server.grant_readme("pw-canary");
  ASSERT_EQ(server.command({"ACL", "SETUSER", "app", "on", ">one", "~app:*", "-@all", "+get"}), "OK");
  auto p = redis_probe({{"address", server.address()}});
  auto current = p.refresh();
  const auto change = [&](const std::vector<std::string>& words) {
    EXPECT_EQ(server.command(words), "OK") << words[0];
    current = p.refresh(current.cursor);
    EXPECT_FALSE(current.unchanged) << words[0];
  };
  change({"CONFIG", "SET", "maxmemory", "64mb"});
  EXPECT_EQ(current.body("server", "server")["config"]["maxmemory"], "67108864");
  const json password = current.body("acl_user", "app")["passwords"];
  change({"ACL", "SETUSER", "app", "resetpass", ">two"});
  EXPECT_NE(current.body("acl_user", "app")["passwords"], password);
  const json commands = current.body("acl_user", "app")["commands"];
  change({"ACL", "SETUSER", "app", "+@read"});
  EXPECT_NE(current.body("acl_user", "app")["commands"], commands);
  change({"ACL", "SETUSER", "app", "~other:*", "resetchannels", "&news"});
  EXPECT_EQ(current.body("acl_user", "app")["keys"], json({"~app:*", "~other:*"}));
  change({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())});
  EXPECT_EQ(current.body("replication", "replication")["role"], "replica");
  EXPECT_EQ(current.body("replication", "replication")["primary"], primary.address());
  EXPECT_EQ(server.command({"ACL", "DELUSER", "app"}), "1");
  EXPECT_NE(p.read({{"acl_user", "app"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_P(RedisVersions, RulesThatAllowTheSameHaveTheSameCommands) {
  RedisServer server({}, GetParam());
  server.grant_readme("pw-canary");
  auto p = redis_probe({{"address", server.address()}});
  const auto commands = [&](std::vector<std::string> rules) {
    std::vector<std::string> words{"ACL", "SETUSER", "app", "reset"};
    words.insert(words.end(), rules.begin(), rules.end());
    EXPECT_EQ(server.command(words), "OK");
    return p.refresh().body("acl_user", "app")["commands"];
  };
  EXPECT_EQ(commands({"-@all", "+get", "+set"}), commands({"-@all", "+set", "+get"}));
  EXPECT_EQ(commands({"+@all"}), commands({"allcommands"}));
  EXPECT_NE(commands({"+@all", "-@dangerous"}), commands({"+@all"}));
  EXPECT_NE(commands({"-@all", "+config|get"}), commands({"-@all"}));
  EXPECT_NE(commands({"-@all", "+config|get"}), commands({"-@all", "+config"}));
  EXPECT_EQ(commands({"-@all", "+config|get", "+acl|list"}), commands({"-@all", "+acl|list", "+config|get"}));
}

TEST_P(RedisVersions, ARightThatIsGoneIsNamedAndThatKindIsNotComplete) {
  RedisServer server({}, GetParam());
  server.grant_readme("pw-canary");
  auto p = redis_probe({{"address", server.address()}});
  const auto first = p.refresh();
  ASSERT_EQ(server.command({"ACL", "SETUSER", "driftd", "-config"}), "OK");
  const auto denied = p.refresh(first.cursor);
  EXPECT_EQ(denied.complete.count("server"), 0u);
  EXPECT_EQ(denied.complete.count("acl_user"), 1u);
  ASSERT_NE(denied.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(denied.diagnostic(DRIFTD_DENIED)->right, "+config|get");
  EXPECT_EQ(p.read({{"server", "server"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_P(RedisVersions, AClusterNodeShowsItsShards) {
  RedisServer server({"--cluster-enabled", "yes"}, GetParam());
  server.grant_readme("pw-canary");
  ASSERT_EQ(server.command({"CLUSTER", "ADDSLOTS", "0", "1", "2"}), "OK");
  auto p = redis_probe({{"address", server.address()}});
  const auto seen = p.refresh();
  for (const auto& diagnostic : seen.diagnostics) ADD_FAILURE() << diagnostic.text;
  EXPECT_EQ(seen.complete.at("cluster"), 1u);
  EXPECT_THAT(seen.body("cluster", "cluster")["shards"].dump(), HasSubstr("0-2"));
  expect_same_bodies(seen, p.refresh());
}

TEST_P(RedisVersions, ASentinelShowsItsMasters) {
  RedisServer primary({}, GetParam());
  RedisSentinel sentinel("m", primary.port(), GetParam());
  sentinel.grant_readme("pw-canary");
  auto p = redis_probe({{"address", sentinel.address()}});
  const auto seen = p.refresh();
  for (const auto& diagnostic : seen.diagnostics) ADD_FAILURE() << diagnostic.text;
  EXPECT_EQ(seen.body("sentinel_master", "m")["primary"], primary.address());
  EXPECT_EQ(seen.body("server", "server")["version"], version());
  EXPECT_EQ(seen.body("server", "server")["mode"], "sentinel");
  EXPECT_EQ(p.health().health.role, "sentinel");
  EXPECT_EQ(sentinel.command({"SENTINEL", "SET", "m", "quorum", "2"}), "OK");
  EXPECT_EQ(p.refresh().body("sentinel_master", "m")["quorum"], "2");
}

INSTANTIATE_TEST_SUITE_P(Servers, RedisVersions, testing::Values("redis-6.2", "valkey-9.1"), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace driftd::test
