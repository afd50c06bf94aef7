// SPDX-License-Identifier: Apache-2.0
#include "redis/mapping.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace driftd::redis {
namespace {

using nlohmann::json;

const char* kInfo =
    "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc\r\n# Replication\r\nrole:slave\r\n"
    "master_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\n"
    "# Commandstats\r\ncmdstat_config|set:calls=3,usec=12,usec_per_call=4.00\r\n";

TEST(RedisMapping, GateMovesWithACountedChangeAndWithTheScope) {
  Info info = parse_info(kInfo);
  const std::string before = gate(info, "");
  info["cmdstat_config|set"] = "calls=4,usec=20";
  EXPECT_NE(gate(info, ""), before);
  EXPECT_NE(gate(parse_info(kInfo), "+acl_user/*"), before);
  EXPECT_EQ(gate(parse_info(kInfo), ""), before);
}

TEST(RedisMapping, ServersBefore70HaveNoGate) {
  Info info = parse_info(kInfo);
  info["redis_version"] = "6.2.1";
  EXPECT_EQ(gate(info, ""), "");
}

TEST(RedisMapping, AclLineBecomesSetsAndKeepsTheOrderOfCommands) {
  const auto record = acl_record("user app on #aa11 ~orders:* %R~x* &* -@all +get +set (~tmp:* +del) sanitize-payload");
  EXPECT_EQ(record.id, "app");
  const json body = json::parse(record.body);
  EXPECT_EQ(body["enabled"], true);
  EXPECT_EQ(body["passwords"], json({"aa11"}));
  EXPECT_EQ(body["keys"], json({"~orders:*", "%R~x*"}));
  EXPECT_EQ(body["commands"], "-@all +get +set");
  EXPECT_EQ(body["selectors"], json({"(~tmp:* +del)"}));
  EXPECT_EQ(body["flags"], json({"sanitize-payload"}));
}

TEST(RedisMapping, OrderOfRulesAboutDifferentCommandsSaysNothing) {
  const auto commands = [](const std::string& rules) {
    return json::parse(acl_record("user app on " + rules).body)["commands"].get<std::string>();
  };
  EXPECT_EQ(commands("-@all +ping +config|get +acl|list +info"), commands("-@all +info +acl|list +config|get +ping"));
  const auto selectors = [](const std::string& line) { return json::parse(acl_record("user app on " + line).body)["selectors"]; };
  EXPECT_EQ(selectors("-@all (~t:* -@all +set +get)"), selectors("-@all (~t:* -@all +get +set)"));
  EXPECT_NE(commands("-@all +config -config|set"), commands("-@all -config|set +config"));
  EXPECT_NE(commands("-@all +get +@read -get"), commands("-@all -get +@read +get"));
}

TEST(RedisMapping, LineThatIsNoUserIsCorrupt) {
  try {
    acl_record("something else");
    FAIL() << "expected a Failure";
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code, DRIFTD_CORRUPT);
  }
}

TEST(RedisMapping, ReplicaofAndOldAliasesAreNotConfiguration) {
  const auto record = server_record(parse_info(kInfo), {{"replicaof", "10.0.0.1 6379"},
                                                        {"slave-read-only", "yes"},
                                                        {"replica-read-only", "yes"},
                                                        {"maxmemory", "1048576"}},
                                    std::nullopt);
  const json config = json::parse(record.body)["config"];
  EXPECT_EQ(config, json({{"maxmemory", "1048576"}, {"replica-read-only", "yes"}}));
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].path, "modules");
}

TEST(RedisMapping, ReplicaWithoutItsPrimaryIsDegraded) {
  const auto health = health_of(parse_info(kInfo));
  EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED));
  EXPECT_THAT(health.reason, testing::HasSubstr("10.0.0.1:6379"));
}

TEST(RedisSettings, AddressFormsAreUnderstoodAndBadOnesNamed) {
  EXPECT_EQ(parse_settings(R"({"address":"[::1]:7000"})").host, "::1");
  EXPECT_EQ(parse_settings(R"({"address":"[::1]:7000"})").port, 7000);
  EXPECT_EQ(parse_settings(R"({"address":"unix:/run/redis.sock"})").socket, "/run/redis.sock");
  EXPECT_EQ(parse_settings(R"({"address":"cache"})").port, 6379);
  for (const char* bad : {"host:0", "host:x", "[::1", ":6379", "unix:"}) {
    const std::string settings = json{{"address", bad}}.dump();
    EXPECT_THROW(parse_settings(settings), sdk::Failure) << bad;
  }
}

TEST(RedisSettings, IncludeAndExcludeAreItsScope) {
  const Settings s = parse_settings(R"({"include":["acl_user/*"],"exclude":["acl_user/tmp-*"]})");
  EXPECT_TRUE(s.scope.wants("acl_user", "app"));
  EXPECT_FALSE(s.scope.wants("acl_user", "tmp-1"));
  EXPECT_FALSE(s.scope.wants_kind("server"));
}

}  // namespace
}  // namespace driftd::redis
