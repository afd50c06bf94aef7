// SPDX-License-Identifier: Apache-2.0
#include "kafka/mapping.hpp"

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <nlohmann/json.hpp>

#include "kafka/digest.hpp"

namespace driftd::kafka {
namespace {

using nlohmann::json;

ConfigEntry entry(const std::string& name, std::optional<std::string> value, Source source, bool sensitive = false) {
  return {name, value, source, sensitive, {{name, value, source, sensitive, {}}}};
}

Topic topic_of(std::vector<Partition> partitions) { return {"orders", {}, std::move(partitions)}; }

TEST(KafkaTopic, OnlyWhatIsSetAtTheTopicIsInItsBody) {
  const Configs configs{"orders",
                        {},
                        {entry("retention.ms", "60000", Source::topic), entry("segment.bytes", "1", Source::broker),
                         entry("cleanup.policy", "delete", Source::builtin)}};
  const auto record = map_topic(topic_of({{0, 1, {1, 2}, {1, 2}}}), configs, "id-1");
  EXPECT_EQ(json::parse(record.body),
            (json{{"partitions", 1}, {"replication_factor", 2}, {"config", {{"retention.ms", "60000"}}}}));
  EXPECT_EQ(record.external_name, "id-1");
  EXPECT_TRUE(record.unread.empty());
}

TEST(KafkaTopic, SentinelsAreHandedOnAsTheyAre) {
  const Configs configs{
      "orders",
      {},
      {entry("retention.ms", "-1", Source::topic), entry("flush.messages", "9223372036854775807", Source::topic)}};
  const auto config = json::parse(map_topic(topic_of({{0, 1, {1}, {1}}}), configs, "").body)["config"];
  EXPECT_EQ(config["retention.ms"], "-1");
  EXPECT_EQ(config["flush.messages"], "9223372036854775807");
}

TEST(KafkaTopic, ReplicasThatAReassignmentAddsAreNotItsReplicationFactor) {
  const auto record = map_topic(topic_of({{0, 1, {1, 2, 3, 4}, {1, 2}}, {1, 1, {1, 2}, {1, 2}}}), {}, "");
  EXPECT_EQ(json::parse(record.body)["replication_factor"], 2);
}

TEST(KafkaTopic, DeniedConfigurationIsUnreadWithTheRightThatIsMissing) {
  const auto record = map_topic(topic_of({{0, 1, {1}, {1}}}), {"orders", {DRIFTD_DENIED, "no"}, {}}, "");
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].path, "config.**");
  EXPECT_EQ(record.unread[0].code, DRIFTD_DENIED);
  EXPECT_THAT(record.unread[0].reason, testing::HasSubstr("DescribeConfigs on Topic orders"));
  EXPECT_FALSE(json::parse(record.body).contains("config"));
}

TEST(KafkaTopic, ValuesOfABrokerThatDoesNotTellTheirSourceAreUnknown) {
  const auto record =
      map_topic(topic_of({{0, 1, {1}, {1}}}), {"orders", {}, {entry("retention.ms", "1", Source::unknown)}}, "");
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].code, DRIFTD_UNSUPPORTED);
  EXPECT_FALSE(json::parse(record.body).contains("config"));
}

/// A broker's plugins choose the names of their keys. dump() throws for a name that is not UTF-8, which would end the
/// refresh of all kinds.
TEST(KafkaTopic, ASensitiveKeyOfAnyBytesIsUnreadByNameAndEndsNothing) {
  const Configs configs{
      "orders",
      {},
      {entry("retention.ms", "60000", Source::topic), entry("plugin.\xff.secret", std::nullopt, Source::topic, true)}};
  const auto record = map_topic(topic_of({{0, 1, {1}, {1}}}), configs, "");
  EXPECT_EQ(json::parse(record.body)["config"], (json{{"retention.ms", "60000"}}));
  ASSERT_EQ(record.unread.size(), 1u);
  EXPECT_EQ(record.unread[0].code, DRIFTD_UNSUPPORTED);
  EXPECT_EQ(record.unread[0].path, "config[\"plugin.\ufffd.secret\"]");
}

TEST(KafkaTopic, OfALongConfigurationTheLongestValuesAreUnreadByName) {
  std::string replicas = "0:0";
  while (replicas.size() < 32'000) replicas += ",0:0";
  const Configs configs{"orders",
                        {},
                        {entry("retention.ms", "60000", Source::topic),
                         entry("leader.replication.throttled.replicas", replicas, Source::topic),
                         entry("follower.replication.throttled.replicas", replicas, Source::topic)}};
  const auto record = map_topic(topic_of({{0, 1, {1}, {1}}}), configs, "");
  EXPECT_LT(record.body.size(), 66U << 10);
  EXPECT_EQ(json::parse(record.body)["config"]["retention.ms"], "60000");
  ASSERT_FALSE(record.unread.empty());
  EXPECT_EQ(record.unread[0].code, DRIFTD_BUDGET);
  EXPECT_EQ(record.unread[0].path, "config[\"follower.replication.throttled.replicas\"]");
}

TEST(KafkaTopic, ManyLongConfigurationsCostThemselvesAlone) {
  Records topics;
  const auto make = [&](const std::string& name, const std::string& value) {
    Topic topic = topic_of({{0, 1, {1}, {1}}});
    topic.name = name;
    topics.push_back(map_topic(topic, {name, {}, {entry("message.timestamp.type", value, Source::topic)}}, ""));
  };
  for (int i = 0; i < 40; ++i) make("aaa-" + std::to_string(i), std::string(30'000, 'x'));
  for (int i = 0; i < 500; ++i) make("orders-" + std::to_string(i), "LogAppendTime");
  bound_topics(topics, 200'000);
  std::size_t bytes = 0, unread = 0;
  for (const auto& topic : topics) {
    bytes += topic.body.size();
    unread += topic.unread.empty() ? 0 : 1;
    if (!topic.id.starts_with("orders-")) continue;
    EXPECT_TRUE(topic.unread.empty()) << topic.id;
    EXPECT_EQ(json::parse(topic.body)["config"]["message.timestamp.type"], "LogAppendTime");
  }
  EXPECT_LE(bytes, 200'000U);
  EXPECT_GT(unread, 30U);
  EXPECT_LT(unread, 40U) << "no more than it takes";
}

TEST(KafkaTopic, StatusCountsWhatIsAmissAndListsThoseReplicasAlone) {
  const Configs configs{"orders", {}, {entry("min.insync.replicas", "2", Source::builtin)}};
  const auto status = json::parse(
      map_topic(topic_of({{0, -1, {1, 2}, {}}, {1, 1, {1, 2}, {1}}, {2, 1, {1, 2}, {1, 2}}}), configs, "").status);
  EXPECT_EQ(status["offline_partitions"], 1);
  EXPECT_EQ(status["under_replicated_partitions"], 2);
  EXPECT_EQ(status["under_min_isr_partitions"], 2);
  EXPECT_EQ(status["isr"], (json{{"0", json::array()}, {"1", {1}}}));
}

TEST(KafkaBroker, EachValueStandsWhereItWasSet) {
  ConfigEntry shadowed{"log.retention.ms",
                       "5",
                       Source::broker_default,
                       false,
                       {{"log.retention.ms", "5", Source::broker_default, false, {}},
                        {"log.retention.ms", "7", Source::fixed, false, {}},
                        {"log.retention.hours", "168", Source::builtin, false, {}}}};
  const Configs configs{
      "1",
      {},
      {shadowed, entry("log.segment.bytes", "9", Source::broker), entry("num.io.threads", "8", Source::builtin),
       entry("ssl.key.password", std::nullopt, Source::fixed, true),
       entry("ssl.keystore.password", std::nullopt, Source::builtin, true)}};
  const auto record = map_broker({1, "::1", 9092}, configs);
  const auto body = json::parse(record.body);
  EXPECT_EQ(body["static"], (json{{"log.retention.ms", "7"}}));
  EXPECT_EQ(body["dynamic"], (json{{"log.segment.bytes", "9"}}));
  EXPECT_EQ(body["endpoint"], "[::1]:9092");
  ASSERT_EQ(record.unread.size(), 1u) << "only what is set can be hidden";
  EXPECT_EQ(record.unread[0].path, "static[\"ssl.key.password\"]");
  const auto cluster = map_cluster({"a:1"}, {"id", {}, {}}, &configs, {}, {});
  EXPECT_EQ(json::parse(cluster.body)["broker_defaults"], (json{{"log.retention.ms", "5"}}));
}

TEST(KafkaBroker, OneThatHoldsReplicasAndIsNotAliveIsUnknownAltogether) {
  const Metadata metadata{"id", {{1, "h", 1}}, {topic_of({{0, 1, {1, 2}, {1}}})}};
  EXPECT_EQ(silent_brokers(metadata), (std::set<std::int32_t>{2}));
  const auto record = map_silent_broker("2");
  EXPECT_EQ(record.body, "{}");
  EXPECT_EQ(record.unread.size(), 4u);
}

TEST(KafkaValue, ListsBecomeListsAndAllElseStays) {
  EXPECT_EQ(value_json("cleanup.policy", "compact, delete"), R"(["compact","delete"])");
  EXPECT_EQ(value_json("listener.name.tls.sasl.enabled.mechanisms", "PLAIN,OAUTHBEARER"), R"(["PLAIN","OAUTHBEARER"])");
  EXPECT_EQ(value_json("super.users", "User:CN=a,O=b;User:c"), R"(["User:CN=a,O=b","User:c"])");
  EXPECT_EQ(value_json("log.dirs", ""), "[]");
  EXPECT_EQ(value_json("some.key", "a,b"), R"("a,b")");
}

TEST(KafkaScram, SaltOfAHelloStandsBesideTheListedIterations) {
  const ScramHelloResult hello{{}, "c2FsdA==", 4096, 7, true};
  const auto both = map_scram_user({"app", "SCRAM-SHA-512"}, 8192, &hello);
  EXPECT_EQ(both.id, "app/SCRAM-SHA-512");
  EXPECT_EQ(json::parse(both.body), (json{{"iterations", 8192}, {"salt", "c2FsdA=="}}))
      << "the list is newer than the hello";
  EXPECT_EQ(json::parse(map_scram_user({"app", "SCRAM-SHA-512"}, std::nullopt, &hello).body)["iterations"], 4096);
  EXPECT_TRUE(both.unread.empty());
}

TEST(KafkaScram, WhatNobodyAskedForOrAnsweredIsUnreadAndNotRemoved) {
  const auto listed = map_scram_user({"app", "SCRAM-SHA-512"}, 8192, nullptr);
  ASSERT_EQ(listed.unread.size(), 1u);
  EXPECT_EQ(listed.unread[0].path, "salt");
  EXPECT_THAT(listed.unread[0].reason, testing::HasSubstr("settings.scram_hello"));
  const ScramHelloResult silent;
  const auto unheard = map_scram_user({"app", "SCRAM-SHA-512"}, std::nullopt, &silent);
  EXPECT_EQ(unheard.body, "{}");
  EXPECT_EQ(unheard.unread.size(), 2u);
}

TEST(KafkaScram, IdNamesUserAndMechanism) {
  EXPECT_TRUE(is_scram_id("a/b/SCRAM-SHA-256"));
  for (const char* id : {"", "app", "/SCRAM-SHA-256", "app/PLAIN"}) EXPECT_FALSE(is_scram_id(id)) << id;
}

TEST(KafkaAcl, IdIsReadableAndNoTwoBindingsShareOne) {
  const Acl acl{"User:CN=a|b", "*", "Read", "Allow", "Group", "50%", "Literal"};
  EXPECT_EQ(acl_id(acl), "User:CN=a%7Cb|*|Read|Allow|Group|50%25|Literal");
  Acl other = acl;
  other.principal = "User:CN=a";
  other.host = "b|*";
  EXPECT_NE(acl_id(acl), acl_id(other));
}

TEST(KafkaAcl, WhatAnOlderLibraryLeavesOutIsToldFromItsId) {
  const auto listed = [](const char* operation, const char* type, const std::string& name) {
    return listed_by_every_library(acl_id({"User:a|b", "*", operation, "Allow", type, name, "Literal"}));
  };
  for (const char* type : {"Topic", "Group", "Cluster"}) EXPECT_TRUE(listed("Read", type, "orders|x")) << type;
  for (const char* type : {"TransactionalId", "DelegationToken", "User"})
    EXPECT_FALSE(listed("Read", type, "orders")) << type;
  EXPECT_FALSE(listed("TwoPhaseCommit", "Topic", "orders"));
  EXPECT_FALSE(listed_by_every_library("not an id"));
}

TEST(KafkaAcl, OnlyADenyOfDescribeThatConcernsUsHidesTopics) {
  const Acl deny{"User:driftd", "*", "Describe", "Deny", "Topic", "secret", "Literal"};
  EXPECT_NE(hiding_topics({deny}, "User:driftd"), nullptr);
  EXPECT_NE(hiding_topics({deny}, ""), nullptr) << "who does not know his name must fear for all";
  EXPECT_EQ(hiding_topics({deny}, "User:other"), nullptr);
  for (auto change : {&Acl::operation, &Acl::permission, &Acl::type}) {
    Acl harmless = deny;
    harmless.*change = change == &Acl::operation ? "Read" : change == &Acl::permission ? "Allow" : "Group";
    EXPECT_EQ(hiding_topics({harmless}, "User:driftd"), nullptr);
  }
  Acl everybody = deny;
  everybody.principal = "User:*";
  everybody.operation = "All";
  EXPECT_NE(hiding_topics({everybody}, "User:driftd"), nullptr);
}

/// A client chooses the name of its group. A name that is too long is shortened by the host; here it is only passed on.
TEST(KafkaMapping, NamesOfAnyBytesAndLengthMakeARecord) {
  Group group;
  group.id = "g\xff";
  EXPECT_EQ(map_group(group).id, "g\\xff");
  group.id = std::string(10'000, 'g');
  EXPECT_EQ(map_group(group).id.size(), 10'000u);
  Acl acl;
  acl.principal = "User:\xfe";
  acl.name = "\xff";
  EXPECT_EQ(nlohmann::json::parse(map_acl(acl).body)["resource_name"], "\\xff");
  EXPECT_EQ(nlohmann::json::parse(map_acl(acl).body)["principal"], "User:\\xfe");
}

// As if memory had run out: driftd-check's memory.failing_allocations ended the worker.
TEST(KafkaDigest, ThatCannotBeComputedIsAnError) {
  EVP_set_default_properties(nullptr, "provider=none");
  EXPECT_THROW(Digest("scope"), sdk::Failure);
  EVP_set_default_properties(nullptr, "");
  EXPECT_EQ(Digest("scope").text().size(), 64u);
}

}  // namespace
}  // namespace driftd::kafka
