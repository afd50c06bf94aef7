// SPDX-License-Identifier: Apache-2.0
// Each kind on a real broker: Kafka's own tools change it, change it back, delete it and create it again.
#include "world.hpp"

#include <utility>

#include "support/kafka_wire.hpp"

namespace driftd::test {
namespace {

using testing::Contains;
using testing::IsEmpty;

class KafkaKinds : public SharedKafka {
 protected:
  /// Refreshes until `condition` holds: a broker learns of a change a moment after the tool that made it has returned.
  static bool seen(ProviderProbe& probe, const std::function<bool(const Collected&)>& condition) {
    return eventually([&] { return condition(probe.refresh()); });
  }
  /// The requests of `driftd` by their names, once none was logged for two seconds: the broker logs a request only
  /// after its answer.
  std::map<std::string, int> logged_requests() const {
    using Clock = std::chrono::steady_clock;
    auto out = server().requests("driftd");
    auto since = Clock::now();
    EXPECT_TRUE(eventually([&] {
      auto now = server().requests("driftd");
      if (std::exchange(out, now) != now) since = Clock::now();
      return Clock::now() - since >= std::chrono::seconds(2);
    })) << "requests of driftd go on";
    return out;
  }
};

TEST_F(KafkaKinds, ReadmeRightsSufficeForEveryKind) {
  make_topic("plain-one", {"--partitions", "3"});
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  for (const char* kind : {"cluster", "broker", "topic", "acl", "group"})
    EXPECT_EQ(seen.complete.count(kind), 1u) << kind;
  for (const auto& d : seen.diagnostics) {
    EXPECT_EQ(d.code, DRIFTD_UNSUPPORTED) << d.text;
    EXPECT_TRUE(d.kind == "quota" || d.kind == "scram_user") << d.kind << ": " << d.text;
  }
  ASSERT_NE(
      std::find_if(seen.diagnostics.begin(), seen.diagnostics.end(), [](const auto& d) { return d.kind == "quota"; }),
      seen.diagnostics.end())
      << "the provider must name what it cannot see";
  EXPECT_FALSE(seen.cursor.empty());
  const auto cluster = seen.body("cluster", "cluster");
  EXPECT_EQ(cluster["cluster_id"], server().cluster_id());
  EXPECT_EQ(cluster["bootstrap_servers"], nlohmann::json({server().sasl_address()}));
  const auto broker = seen.body("broker", "1");
  EXPECT_EQ(broker["endpoint"], server().sasl_address());
  EXPECT_EQ(broker["rack"], "r1");
  EXPECT_EQ(broker["static"]["offsets.topic.num.partitions"], "4");
  EXPECT_EQ(broker["dynamic"], nlohmann::json::object());
  const auto topic = seen.body("topic", "plain-one");
  EXPECT_EQ(topic,
            (nlohmann::json{{"partitions", 3}, {"replication_factor", 1}, {"config", nlohmann::json::object()}}));
  EXPECT_EQ(p.health().health.system_identity, server().cluster_id());
}

TEST_F(KafkaKinds, RetentionOfATopicIsSeenAndGoesAwayAgain) {
  make_topic("orders");
  auto p = probe();
  const auto first = p.refresh();
  alter_topic("orders", "retention.ms=60000,cleanup.policy=[compact,delete]");
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.body("topic", "orders")["config"].size() == 2; }));
  const auto config = p.refresh(first.cursor).body("topic", "orders")["config"];
  EXPECT_EQ(config["retention.ms"], "60000");
  EXPECT_EQ(config["cleanup.policy"], (nlohmann::json{"compact", "delete"}));
  alter_topic("orders", "retention.ms,cleanup.policy", false);
  ASSERT_TRUE(seen(p, [&](const auto& s) { return s.body("topic", "orders") == first.body("topic", "orders"); }));
}

TEST_F(KafkaKinds, DeletedTopicIsNotFoundAndOneMadeAgainIsReadAgain) {
  make_topic("gone", {"--partitions", "2"});
  auto p = probe();
  EXPECT_NE(p.refresh().find("topic", "gone"), nullptr);
  server().topics({"--delete", "--topic", "gone"});
  server().await_topic("gone", false);
  const auto none = p.read({{"topic", "gone"}});
  EXPECT_EQ(none.status, DRIFTD_OK) << all_texts(none);
  ASSERT_NE(none.diagnostic(DRIFTD_NOT_FOUND), nullptr) << all_texts(none);
  EXPECT_EQ(none.diagnostic(DRIFTD_NOT_FOUND)->id, "gone");
  server().await_topic("gone", false);  // reading it has not created it, although this broker creates topics on request
  make_topic("gone", {"--partitions", "5"});
  EXPECT_EQ(p.read({{"topic", "gone"}}).body("topic", "gone")["partitions"], 5);
}

TEST_F(KafkaKinds, TopicThatGoesWhileTheTopicsAreReadCostsItselfAlone) {
  for (const char* name : {"stays", "flees"}) make_topic(name);
  auto p = probe({{"include", {"topic"}}});
  ASSERT_NE(p.refresh().find("topic", "flees"), nullptr);
  int requests = 0;
  p.before_each_request([&] {
    if (++requests != 2) return;  // the topics are listed, their configuration comes next
    server().topics({"--delete", "--topic", "flees"});
    server().await_topic("flees", false);
  });
  const auto seen = p.refresh();
  p.before_each_request({});
  EXPECT_EQ(seen.status, DRIFTD_OK);
  EXPECT_GE(requests, 2);
  EXPECT_EQ(seen.find("topic", "flees"), nullptr);
  EXPECT_NE(seen.find("topic", "stays"), nullptr);
  EXPECT_EQ(seen.complete.count("topic"), 1u)
      << "a topic that comes and goes must not hide the deletion of another: " << all_texts(seen);
  EXPECT_NE(p.read({{"topic", "flees"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(KafkaKinds, MorePartitionsAreSeen) {
  make_topic("growing", {"--partitions", "1"});
  auto p = probe();
  const auto first = p.refresh();
  server().topics({"--alter", "--topic", "growing", "--partitions", "4"});
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.body("topic", "growing")["partitions"] == 4; }));
  EXPECT_FALSE(p.refresh(first.cursor).unchanged);
}

TEST_F(KafkaKinds, BrokerValueIsReportedAtTheBrokerAndAClusterDefaultAtTheClusterAlone) {
  make_topic("inheriting");
  auto p = probe();
  const auto before = p.refresh();
  server().configs(
      {"--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", "log.retention.ms=7200000"});
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.body("broker", "1")["dynamic"]["log.retention.ms"] == "7200000"; }));
  server().configs(
      {"--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "log.segment.bytes=104857600"});
  ASSERT_TRUE(seen(p, [](const auto& s) { return !s.body("cluster", "cluster")["broker_defaults"].empty(); }));
  const auto after = p.refresh();
  EXPECT_EQ(after.body("cluster", "cluster")["broker_defaults"], (nlohmann::json{{"log.segment.bytes", "104857600"}}));
  EXPECT_EQ(after.body("broker", "1")["dynamic"], (nlohmann::json{{"log.retention.ms", "7200000"}}));
  EXPECT_EQ(after.body("topic", "inheriting"), before.body("topic", "inheriting"))
      << "a value that the topic inherits is not its own";
  server().configs(
      {"--alter", "--entity-type", "brokers", "--entity-name", "1", "--delete-config", "log.retention.ms"});
  server().configs({"--alter", "--entity-type", "brokers", "--entity-default", "--delete-config", "log.segment.bytes"});
  ASSERT_TRUE(seen(p, [&](const auto& s) {
    return s.body("broker", "1") == before.body("broker", "1") &&
           s.body("cluster", "cluster") == before.body("cluster", "cluster");
  }));
}

TEST_F(KafkaKinds, SensitiveValueOfABrokerIsUnreadAndNeverRemoved) {
  auto p = probe();
  const auto seen = p.refresh();
  const auto* broker = seen.find("broker", "1");
  ASSERT_NE(broker, nullptr);
  const std::string path = "static[\"listener.name.sasl.plain.sasl.jaas.config\"]";
  EXPECT_THAT(broker->unread, Contains(testing::Field(&sdk::Unread::path, path)));
  EXPECT_FALSE(nlohmann::json::parse(broker->body)["static"].contains("listener.name.sasl.plain.sasl.jaas.config"));
  EXPECT_EQ(all_texts(seen).find("plain-canary-of-kafka"), std::string::npos);
  // Each way to see the broker again says the same: unread, which is no removal.
  const std::string body = broker->body;
  const auto expect_unread = [&](const Collected& again) {
    const auto* record = again.find("broker", "1");
    ASSERT_NE(record, nullptr) << all_texts(again);
    EXPECT_THAT(record->unread, Contains(testing::Field(&sdk::Unread::path, path)));
    EXPECT_EQ(record->body, body);
    EXPECT_EQ(again.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  };
  expect_unread(p.refresh());
  expect_unread(p.read({{"broker", "1"}}));
  expect_unread(probe().refresh());
}

TEST_F(KafkaKinds, AclBindingIsOneResourceAndNotFoundWhenItWasRemoved) {
  auto p = probe();
  server().acls({"--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "bills",
                 "--resource-pattern-type", "prefixed", "--allow-host", "10.0.0.7"});
  const std::string id = "User:alice|10.0.0.7|Read|Allow|Topic|bills|Prefixed";
  ASSERT_TRUE(seen(p, [&](const auto& s) { return s.find("acl", id) != nullptr; })) << all_texts(p.refresh());
  const auto body = p.read({{"acl", id}}).body("acl", id);
  EXPECT_EQ(body["principal"], "User:alice");
  EXPECT_EQ(body["host"], "10.0.0.7");
  EXPECT_EQ(body["pattern_type"], "Prefixed");
  server().acls({"--remove", "--force", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "bills",
                 "--resource-pattern-type", "prefixed", "--allow-host", "10.0.0.7"});
  ASSERT_TRUE(seen(p, [&](const auto& s) { return s.find("acl", id) == nullptr; }));
  const auto gone = p.read({{"acl", id}});
  EXPECT_EQ(gone.status, DRIFTD_OK);
  ASSERT_NE(gone.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(KafkaKinds, BindingOfATypeThatThisLibraryDoesNotKnowIsNamedAsUnsupported) {
  server().acls({"--add", "--allow-principal", "User:alice", "--operation", "Describe", "--delegation-token", "t1"});
  auto p = probe({{"include", {"acl"}}});
  ASSERT_TRUE(seen(p, [&](const auto& s) { return s.diagnostic(DRIFTD_UNSUPPORTED) != nullptr; }));
  const auto seen = p.refresh();
  EXPECT_EQ(seen.complete.count("acl"), 1u);
  for (const auto& record : seen.records) EXPECT_EQ(record.id.find("Unknown"), std::string::npos) << record.id;
  server().acls({"--remove", "--force", "--allow-principal", "User:alice", "--operation", "Describe",
                 "--delegation-token", "t1"});
}

TEST_F(KafkaKinds, BindingsThatDifferBehindANulByteAreTold) {
  const KafkaWire wire(server().address(), "mallory");
  auto p = probe({{"include", {"acl"}}});
  for (const auto& principal : {std::string("User:twin"), std::string("User:twin\0", 10)})
    ASSERT_EQ(wire.allow(principal, "quiet"), 0);
  EXPECT_TRUE(seen(p, [](const auto& s) {
    const auto* corrupt = s.diagnostic(DRIFTD_CORRUPT);
    return corrupt != nullptr && corrupt->kind == "acl" &&
           corrupt->id == "User:twin|*|Read|Allow|Topic|quiet|Literal" && s.cursor.empty();
  })) << all_texts(p.refresh());
  server().acls({"--remove", "--force", "--allow-principal", "User:twin", "--operation", "Read", "--topic", "quiet"});
}

TEST_F(KafkaKinds, BrokerWhoseNumberIsTheGreatestIsSilentAndNeverGone) {
  auto p = probe();
  const auto read = p.read({{"broker", "2147483647"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << all_texts(read);
  EXPECT_NE(read.find("broker", "2147483647"), nullptr);
}

TEST_F(KafkaKinds, GroupIsSeenWithItsStateAndNotFoundAfterItsDeletion) {
  make_topic("read-by-group");
  server().groups({"--group", "billing", "--topic", "read-by-group", "--reset-offsets", "--to-earliest", "--execute"});
  auto p = probe();
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.find("group", "billing") != nullptr; }));
  const auto seen = p.refresh();
  EXPECT_EQ(seen.body("group", "billing").size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(seen.find("group", "billing")->status)["state"], "Empty");
  server().groups({"--delete", "--group", "billing"});
  const auto gone = p.read({{"group", "billing"}});
  EXPECT_EQ(gone.status, DRIFTD_OK) << all_texts(gone);
  ASSERT_NE(gone.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(KafkaKinds, QuietClusterIsUnchangedAndCostsTheRequestsThatTheReadmeSays) {
  make_topic("quiet");
  auto p = probe();
  const auto first = p.refresh();
  ASSERT_FALSE(first.cursor.empty());
  const auto before = logged_requests();
  EXPECT_TRUE(p.refresh(first.cursor).unchanged);
  const auto used = [&](std::map<std::string, int> now) {
    for (const auto& [name, count] : before) now[name] -= count;
    std::erase_if(now, [](const auto& one) { return one.second == 0; });
    return now;
  };
  const std::map<std::string, int> documented{
      {"METADATA", 3}, {"DESCRIBE_CONFIGS", 2}, {"DESCRIBE_ACLS", 1}, {"LIST_GROUPS", 1}};
  EXPECT_TRUE(eventually([&] { return used(server().requests("driftd")) == documented; }));
  EXPECT_EQ(used(logged_requests()), documented) << "no other request may follow";
}

TEST_F(KafkaKinds, ScopeLeavesOutWhatItExcludesAndAsksForNoConfigurationOfIt) {
  make_topic("in-scope");
  make_topic("out-of-scope");
  auto p = probe({{"include", {"topic/in-*"}}});
  const auto seen = p.refresh();
  ASSERT_EQ(seen.records.size(), 1u);
  EXPECT_EQ(seen.records[0].id, "in-scope");
  EXPECT_EQ(seen.complete.at("topic"), 1u);
  EXPECT_THAT(seen.diagnostics, IsEmpty()) << "a kind that the settings leave out needs no diagnostic";
  EXPECT_NE(p.read({{"topic", "out-of-scope"}}).find("topic", "out-of-scope"), nullptr);
  auto none = probe({{"include", {"topic/none-*"}}});
  const auto before = logged_requests();
  EXPECT_EQ(none.refresh().complete.at("topic"), 0u);
  auto after = logged_requests();
  EXPECT_GT(after["METADATA"], before.at("METADATA"));
  EXPECT_EQ(after["DESCRIBE_CONFIGS"], before.at("DESCRIBE_CONFIGS")) << "every topic is out of scope";
}

}  // namespace
}  // namespace driftd::test
