// SPDX-License-Identifier: Apache-2.0
#include "redis/mapping.hpp"
#include "redis/settings.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace driftd::redis {
namespace {

using nlohmann::json;

const char* kInfo =
    "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc\r\n# Replication\r\nrole:slave\r\n"
    "master_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\n"
    "# Commandstats\r\ncmdstat_config|set:calls=3,usec=12,usec_per_call=4.00\r\n";

/// A client with the rights of a replica inserts lines of its own into INFO by `REPLCONF ip-address`.
TEST(RedisMapping, LinesThatAReplicaForgesIntoInfoStandForNothing) {
  const std::string head =
      "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc\r\n# Persistence\r\nloading:0\r\n";
  const std::string before = "# Replication\r\nrole:master\r\nconnected_slaves:1\r\n";
  const std::string after =
      "master_replid:true\r\nmaster_replid2:0\r\n# Commandstats\r\ncmdstat_config|set:calls=3\r\n# "
      "Cluster\r\ncluster_enabled:0\r\n";
  const std::string forged =
      "slave0:ip=1\r\nredis_mode:sentinel\r\nserver_name:evil\r\nevil_version:9\r\nrole:slave\r\nmaster_host:"
      "evil\r\nmaster_link_status:down\r\n"
      "loading:1\r\nmaster_replid:forged\r\ncmdstat_config|set:calls=9\r\ncluster_enabled:1\r\n# "
      "Sentinel\r\nmaster9:name=\r\nx:,port=1\r\n";
  const Info honest = parse_info(head + before + after), info = parse_info(head + before + forged + after);
  EXPECT_EQ(info, honest);
  EXPECT_EQ(health_of(info).state, DRIFTD_HEALTH_UP);
  EXPECT_EQ(change_stamp(info, ""), change_stamp(honest, ""));
}

TEST(RedisMapping, AMasterWithoutAStatusIsNoException) {
  EXPECT_EQ(health_of(parse_info("redis_mode:sentinel\r\nmaster9:name=\r\n")).state, DRIFTD_HEALTH_UP);
}

TEST(RedisMapping, GateMovesWithTheHistoryOfAReplicaAndIsNoneWithoutARunId) {
  Info info = parse_info(kInfo);
  const std::string before = change_stamp(info, "");
  info["master_replid"] = "another data set";
  EXPECT_NE(change_stamp(info, ""), before);
  info.erase("run_id");
  EXPECT_EQ(change_stamp(info, ""), "");
}

TEST(RedisMapping, GateMovesWithACountedChangeAndWithTheScope) {
  Info info = parse_info(kInfo);
  const std::string before = change_stamp(info, "");
  info["cmdstat_config|set"] = "calls=3,usec=20";  // reset, and as many calls again
  EXPECT_NE(change_stamp(info, ""), before);
  EXPECT_NE(change_stamp(parse_info(kInfo), "+acl_user/*"), before);
  EXPECT_EQ(change_stamp(parse_info(kInfo), ""), before);
}

TEST(RedisMapping, ServersBefore70HaveNoGate) {
  Info info = parse_info(kInfo);
  info["redis_version"] = "6.2.1";
  EXPECT_EQ(change_stamp(info, ""), "");
}

TEST(RedisMapping, TheVersionOfAForkIsItsOwn) {
  Info info = parse_info(kInfo);
  EXPECT_EQ(health_of(info).server_version, "7.0.15");
  EXPECT_EQ(json::parse(server_record(info, {}, std::nullopt).body)["product"], "redis");
  info["server_name"] = "valkey";
  info.erase("redis_mode");
  info["server_mode"] = "sentinel";
  info["valkey_version"] = "9.1.2";
  EXPECT_EQ(health_of(info).server_version, "9.1.2");
  EXPECT_EQ(json::parse(server_record(info, {}, std::nullopt).body)["product"], "valkey");
  EXPECT_EQ(json::parse(server_record(info, {}, std::nullopt).body)["mode"], "sentinel");
  EXPECT_EQ(role_of(info), "sentinel");
  EXPECT_EQ(json::parse(server_record(info, {}, std::nullopt).body)["version"], "9.1.2");
}

TEST(RedisMapping, ReplicaofAndOldAliasesAreNotConfiguration) {
  const auto record = server_record(parse_info(kInfo),
                                    {{"replicaof", "10.0.0.1 6379"},
                                     {"slave-read-only", "yes"},
                                     {"hash-max-ziplist-value", "64"},
                                     {"hash-max-listpack-value", "64"},
                                     {"replica-read-only", "yes"},
                                     {"maxmemory", "1048576"}},
                                    std::nullopt);
  const json config = json::parse(record.body)["config"];
  EXPECT_EQ(config, json({{"maxmemory", "1048576"}, {"replica-read-only", "yes"}, {"hash-max-listpack-value", "64"}}));
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].path, "modules");
}

/// A directive holds bytes and JSON holds text: two values that differ only in bytes that are not text stay different.
TEST(RedisMapping, DirectivesOfAnyBytesAreShownAndStayApart) {
  const auto body = [](const std::string& value) {
    return server_record(parse_info(kInfo), {{"masteruser", value}}, std::nullopt).body;
  };
  EXPECT_NE(body("a\xff"), body("a\xfe"));
  EXPECT_NE(body("a\xff"), body("a\\xff"));
  EXPECT_NE(config_value("masteruser", "a\xff"), config_value("masteruser", "a\xfe"));
  const auto odd = server_record(parse_info(kInfo), {{"mod\xff.token", "a"}}, std::nullopt);
  EXPECT_TRUE(json::parse(odd.body)["config"].contains("mod\\xff.token"));
  EXPECT_EQ(odd.sensitive, std::vector<std::string>{R"(config["mod\\xff.token"])"});
}

/// A user who may set one directive must not hide the others by making the record exceed the host's limits.
TEST(RedisMapping, ADirectiveThatIsTooLongIsUnreadAndTheOthersAreRead) {
  const auto record = server_record(parse_info(kInfo),
                                    {{"masterauth", std::string(5u << 20, 'x')}, {"maxmemory", "100"}}, std::nullopt);
  EXPECT_EQ(json::parse(record.body)["config"], json({{"maxmemory", "100"}}));
  ASSERT_EQ(record.unread.size(), 2u);
  EXPECT_EQ(record.unread[0].path, "config.masterauth");
  EXPECT_EQ(record.unread[0].code, DRIFTD_BUDGET);
  EXPECT_TRUE(record.sensitive.empty()) << "a path that is not there";
}

TEST(RedisMapping, ReplicaWithoutItsPrimaryIsDegraded) {
  const auto health = health_of(parse_info(kInfo));
  EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED));
  EXPECT_THAT(health.reason, testing::HasSubstr("10.0.0.1:6379"));
}

TEST(RedisSettings, AddressFormsAreUnderstoodAndBadOnesNamed) {
  EXPECT_EQ(parse_settings(R"({"address":"[::1]:7000"})").addresses[0].host, "::1");
  EXPECT_EQ(parse_settings(R"({"address":"[::1]:7000"})").addresses[0].text(), "[::1]:7000");
  EXPECT_EQ(parse_settings(R"({"address":"unix:/run/redis.sock"})").addresses[0].socket, "/run/redis.sock");
  EXPECT_EQ(parse_settings(R"({"address":"cache"})").addresses[0].port, 6379);
  EXPECT_EQ(parse_settings(R"({"addresses":["a:1","b:2"]})").addresses.size(), 2u);
  EXPECT_EQ(parse_settings("{}").addresses[0].text(), "127.0.0.1:6379");
  for (const char* bad : {"host:0", "host:x", "[::1", ":6379", "unix:"}) {
    const std::string settings = json{{"address", bad}}.dump();
    EXPECT_THROW(parse_settings(settings), sdk::Failure) << bad;
  }
}

TEST(RedisSettings, HalfAClientCertificateAndANamelessMasterAreRefused) {
  const auto refusal = [](const char* settings) -> std::string {
    try {
      parse_settings(settings);
    } catch (const sdk::Failure& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(R"({"tls":{"certificate":"/c.pem"}})"),
            "settings.tls.certificate: expected a certificate and its key, or neither, found only the certificate; "
            "add key to settings.tls");
  EXPECT_EQ(refusal(R"({"sentinel":{}})"),
            "settings.sentinel.master: expected the name that the Sentinels give the primary, found nothing; "
            "add it to settings.sentinel");
  EXPECT_EQ(refusal(R"({"config":[]})"),
            "settings.config: expected names or globs, found an empty list; "
            "to read no configuration, exclude the kind server");
  EXPECT_EQ(refusal(R"({"connect_timeout_ms":"5s"})"),
            "settings.connect_timeout_ms: expected a whole number of milliseconds from 1 to 60000, found text; "
            "write it without quotes");
}

TEST(RedisMapping, FlagsPointsAndLimitsAreSpeltOut) {
  EXPECT_EQ(json::parse(config_value("notify-keyspace-events", "AKE")),
            json::parse(config_value("notify-keyspace-events", "g$lshztdxeKE")));
  EXPECT_NE(config_value("notify-keyspace-events", "AKE"), config_value("notify-keyspace-events", "AmKE"));
  EXPECT_EQ(json::parse(config_value("save", "3600 1 300 100")), json({"3600 1", "300 100"}));
  EXPECT_EQ(json::parse(config_value("client-output-buffer-limit", "slave 1 2 3"))["replica"]["soft"], "2");
  EXPECT_EQ(persistence({{"save", ""}, {"appendonly", "yes"}}), "aof");
  EXPECT_EQ(persistence({{"save", "1 1"}, {"appendonly", "yes"}}), "rdb+aof");
}

TEST(RedisMapping, SecretsOfModulesAndNewerServersAreSensitiveWithoutASchema) {
  const auto record = server_record(parse_info(kInfo), {{"search.token", "canary"}, {"tls-auth-clients", "yes"}},
                                    std::vector<std::string>{});
  EXPECT_EQ(record.sensitive, std::vector<std::string>{"config[\"search.token\"]"});
}

TEST(RedisMapping, DirectivesThatWereNotAskedForAreUnread) {
  const auto record = server_record(parse_info(kInfo), {{"maxmemory", "1"}}, std::vector<std::string>{}, {"maxmem*"},
                                    {"maxmemory", "port"});
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].path, "config.port");
}

TEST(RedisMapping, AHistoryThatGoesOnUnderANewNameIsTheSameAndAnotherIsNot) {
  const auto demoted = [](const std::string& before, const std::string& previous) {
    return equivalent_history_changes(
               {{0, "history.id", before, "\"new\""}, {1, "history.previous", "\"0\"", previous}})
        .size();
  };
  EXPECT_EQ(demoted("\"old\"", "\"old\""), 2u);
  EXPECT_EQ(demoted("\"old\"", "\"other\""), 0u);
  EXPECT_TRUE(equivalent_history_changes({{0, "history.id", "\"old\"", "\"new\""}}).empty());
}

TEST(RedisSettings, IncludeAndExcludeAreItsScope) {
  const Settings s = parse_settings(R"({"include":["acl_user/*"],"exclude":["acl_user/tmp-*"]})");
  EXPECT_TRUE(s.scope.wants("acl_user", "app"));
  EXPECT_FALSE(s.scope.wants("acl_user", "tmp-1"));
  EXPECT_FALSE(s.scope.wants_kind("server"));
}

}  // namespace
}  // namespace driftd::redis
