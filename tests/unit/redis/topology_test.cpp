// SPDX-License-Identifier: Apache-2.0
#include "redis/topology.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "redis/missed_changes.hpp"

namespace driftd::redis {
namespace {

using nlohmann::json;

const std::string kBefore =
    "aa 10.0.0.1:1@11 myself,master - 0 1 1 connected 0-5 8 6-7 [9->-bb]\nbb 10.0.0.2:1@11,db2 master - 0 1 2 "
    "connected "
    "9-16383\ncc 10.0.0.3:1@11 slave aa 0 1 1 connected\ndd :0@0 handshake - 0 0 0 disconnected\n";
const std::string kFailedOver =
    "cc 10.0.0.3:1@11 myself,master - 0 1 3 connected 0-8\naa 10.0.0.1:1@11 master,fail - 5 6 1 disconnected\n"
    "bb 10.0.0.2:1@11,db2 master - 7 8 2 connected 9-16383\n";

TEST(RedisCluster, TouchingRangesAreOneAndANodeThatIsBeingMetIsNoMember) {
  const json body = json::parse(cluster_record(kBefore, {}).body);
  EXPECT_EQ(body["shards"], json({"0-8", "9-16383"}));
  ASSERT_EQ(body["nodes"].size(), 3u);
  EXPECT_EQ(body["nodes"][1]["hostname"], "db2");
  EXPECT_EQ(body["nodes"][2]["primary"], "aa");
}

TEST(RedisCluster, AFailoverMovesNodesAndLeavesTheShards) {
  const json before = json::parse(cluster_record(kBefore, {}).body),
             after = json::parse(cluster_record(kFailedOver, {}).body);
  EXPECT_EQ(before["shards"], after["shards"]);
  EXPECT_NE(before["nodes"], after["nodes"]);
  EXPECT_EQ(json::parse(cluster_record(kFailedOver, {}).status)["failing_nodes"], json({"10.0.0.1:1"}));
}

TEST(RedisCluster, TheFingerprintLeavesOutWhatChangesByItself) {
  std::string later = kBefore;
  later.replace(later.find("0 1 1 connected"), 15, "9 9 1 connected");
  EXPECT_EQ(cluster_fingerprint(kBefore), cluster_fingerprint(later));
  EXPECT_NE(cluster_fingerprint(kBefore), cluster_fingerprint(kFailedOver));
}

TEST(RedisCluster, AReplicaOfNobodyYetLeavesItsNodesUnread) {
  const sdk::Record record = cluster_record(
      "aa 10.0.0.1:1@11 master - 0 0 1 connected 0-16383\nbb 10.0.0.2:1@11 slave - 0 0 1 connected\n", {});
  EXPECT_EQ(json::parse(record.body), json({{"shards", {"0-16383"}}}));
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].path, "nodes");
  EXPECT_NE(record.unread[0].reason.find("whose replica 10.0.0.2:1 is"), std::string::npos) << record.unread[0].reason;
}

TEST(RedisCluster, ALineThatIsCutIsCorrupt) { EXPECT_THROW(cluster_record("aa 10.0.0.1:1@11 mas", {}), sdk::Failure); }

SentinelView view(const std::string& sentinel, const std::string& port, const std::string& quorum,
                  const std::string& epoch) {
  return {sentinel,
          {{"m", {{"name", "m"}, {"ip", "10.0.0.1"}, {"port", port}, {"quorum", quorum}, {"config-epoch", epoch}}}}};
}

TEST(RedisSentinel, AgreementIsAValueAndDisagreementIsUnreadWithWhoSaysWhat) {
  const auto agreed = sentinel_records({view("s1", "1", "2", "0"), view("s2", "1", "2", "0")});
  EXPECT_EQ(json::parse(agreed.at(0).body)["primary"], "10.0.0.1:1");
  const auto torn = sentinel_records({view("s1", "1", "2", "0"), view("s2", "7", "2", "4")});
  EXPECT_FALSE(json::parse(torn.at(0).body).contains("primary"));
  ASSERT_EQ(torn[0].unread.size(), 1u);
  EXPECT_THAT(torn[0].unread[0].reason,
              testing::AllOf(testing::HasSubstr("10.0.0.1:7 (s2)"), testing::HasSubstr("s1")));
  EXPECT_EQ(primary_conflicts({view("s1", "1", "2", "0"), view("s2", "7", "2", "4")}).size(), 1u);
  EXPECT_EQ(primary_named({view("s1", "1", "2", "0"), view("s2", "7", "2", "4")}, "m"), "10.0.0.1:7")
      << "the newest epoch";
  EXPECT_EQ(primary_named({view("s1", "1", "2", "0")}, "other"), "");
}

TEST(RedisSweeps, CountsWhatStoodBehindTheSameCursorAndWasAnother) {
  MissedChanges sweeps;
  EXPECT_FALSE(sweeps.detect("a", 1));
  EXPECT_FALSE(sweeps.detect("b", 2)) << "the cursor showed it";
  EXPECT_FALSE(sweeps.detect("b", 2));
  EXPECT_TRUE(sweeps.detect("b", 3));
  EXPECT_FALSE(sweeps.detect("", 4)) << "there was no cursor to trust";
  EXPECT_EQ(sweeps.count(), 1);
}

TEST(RedisSweeps, CountersOfOneRunThatFallWereReset) {
  MissedChanges sweeps;
  const auto counted = [](const std::string& commands) {
    return counters_of(parse_info("total_commands_processed:100\r\n# Replication\r\n# Commandstats\r\n" + commands));
  };
  EXPECT_FALSE(sweeps.counters_fell("run", counted("cmdstat_get:calls=9,usec=1\r\ncmdstat_auth:calls=1,usec=1\r\n")));
  EXPECT_FALSE(sweeps.counters_fell("run", counted("cmdstat_get:calls=9,usec=1\r\ncmdstat_auth:calls=2,usec=1\r\n")));
  EXPECT_TRUE(sweeps.counters_fell("run", counted("cmdstat_get:calls=10,usec=1\r\n"))) << "one is gone";
  EXPECT_TRUE(sweeps.counters_fell("run", counted("cmdstat_get:calls=8,usec=1\r\n")));
  EXPECT_FALSE(sweeps.counters_fell("run", counted("cmdstat_get:calls=8,usec=1\r\n")));
  EXPECT_FALSE(sweeps.counters_fell("another run", counted("cmdstat_get:calls=1,usec=1\r\n")));
  EXPECT_TRUE(sweeps.counters_fell("another run", {{"", 3}})) << "all of them together";
}

}  // namespace
}  // namespace driftd::redis
