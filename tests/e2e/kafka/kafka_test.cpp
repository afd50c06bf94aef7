// SPDX-License-Identifier: Apache-2.0
// Every kind of the kafka provider in a running agent: changed by Kafka's own tools, read as events from JetStream.
#include "support/certificates.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A setting of a backend that reads neither quotas nor SCRAM users.
const std::string kNoUsers = "exclude: [quota, scram_user]";
const std::vector<std::string> kKinds{"cluster", "broker", "topic", "acl", "group"};

/// Functions that set and delete configurations of an entity, such as `--entity-type topics --entity-name orders`.
class ConfigOf {
 public:
  ConfigOf(const KafkaServer& kafka, std::vector<std::string> entity) : kafka_(kafka), entity_(std::move(entity)) {}
  std::function<void()> add(const std::string& what) const { return alter("--add-config", what); }
  std::function<void()> remove(const std::string& what) const { return alter("--delete-config", what); }

 private:
  std::function<void()> alter(const std::string& how, const std::string& what) const {
    std::vector<std::string> words{"--alter"};
    words.insert(words.end(), entity_.begin(), entity_.end());
    words.insert(words.end(), {how, what});
    return [this, words] { kafka_.configs(words); };
  }
  const KafkaServer& kafka_;
  std::vector<std::string> entity_;
};

TEST_F(KafkaLine, ConfigurationOfTopicBrokerAndClusterIsAskedAboutAtItsOwnerAndReverts) {
  make_topic("orders");
  ASSERT_NO_FATAL_FAILURE(start(backend("kafka", kNoUsers), {"kafka"}, kKinds));
  const ConfigOf topic(kafka_, {"--entity-type", "topics", "--entity-name", "orders"});
  expect_pending_then_reverted("topic/orders", "config[\"retention.ms\"]", topic.add("retention.ms=60000"),
                               topic.remove("retention.ms"));
  const ConfigOf broker(kafka_, {"--entity-type", "brokers", "--entity-name", "1"});
  expect_pending_then_reverted("broker/1", "dynamic[\"log.retention.ms\"]", broker.add("log.retention.ms=7200000"),
                               broker.remove("log.retention.ms"));
  const ConfigOf all(kafka_, {"--entity-type", "brokers", "--entity-default"});
  expect_pending_then_reverted("cluster/cluster", "broker_defaults[\"log.segment.bytes\"]",
                               all.add("log.segment.bytes=104857600"), all.remove("log.segment.bytes"));
  kafka_.topics({"--alter", "--topic", "orders", "--partitions", "3"});
  EXPECT_TRUE(arrives({"kafka", "topic/orders", "config.updated", "pending", "changed", "partitions"}));
  for (const auto& event : stream_events(nats_)) {
    const std::string id = event.resource_id();
    EXPECT_TRUE(id.empty() || id == "orders" || id == "1" || id == "cluster")
        << "a value that others inherit is a drift of its owner only: " << event.ShortDebugString();
  }
}

TEST_F(KafkaLine, TopicsAndBindingsComeAndGoAndWhatIsHiddenIsNotGone) {
  for (const char* name : {"bills", "parcels"}) make_topic(name);
  const std::vector<std::string> alice{"--allow-principal", "User:alice", "--operation", "Read", "--topic", "bills"};
  const auto bind = [&](const char* how, std::vector<std::string> words) {
    words.insert(words.begin(), how);
    if (std::string(how) == "--remove") words.insert(words.begin() + 1, "--force");
    kafka_.acls(words);
  };
  bind("--add", alice);
  ASSERT_NO_FATAL_FAILURE(start(backend("kafka", kNoUsers), {"kafka"}, kKinds));

  const std::vector<std::string> hide{"--deny-principal", "User:driftd", "--operation", "Describe", "--topic", "bills"};
  bind("--add", hide);
  const std::string denied = "acl/User:driftd|*|Describe|Deny|Topic|bills|Literal";
  EXPECT_TRUE(arrives({"kafka", denied, "config.updated", "pending", "created", {}}));
  ASSERT_TRUE(
      eventually([&] { return coverage("kafka", "topic").dump().find("Describe on Topic bills") != std::string::npos; },
                 seconds(30)));
  EXPECT_TRUE(cycles("kafka", 3));
  EXPECT_FALSE(any_deleted());
  bind("--remove", hide);
  EXPECT_TRUE(arrives({"kafka", denied, "config.updated", "reverted", {}, {}}));

  const std::string read = "acl/User:alice|*|Read|Allow|Topic|bills|Literal";
  bind("--remove", alice);
  EXPECT_TRUE(arrives({"kafka", read, "config.updated", "pending", "deleted", {}}));
  bind("--add", alice);
  EXPECT_TRUE(arrives({"kafka", read, "config.updated", "reverted", {}, {}}))
      << "a binding has no identity, so the same one again reverts the deletion";

  kafka_.topics({"--delete", "--topic", "bills"});
  EXPECT_TRUE(arrives({"kafka", "topic/bills", "config.updated", "pending", "deleted", {}}));
  make_topic("bills");
  EXPECT_TRUE(arrives({"kafka", "topic/bills", "config.updated", "reverted", {}, {}}))
      << "this librdkafka does not report topic ids";
  make_topic("fresh");
  EXPECT_TRUE(arrives({"kafka", "topic/fresh", "config.updated", "pending", "created", {}}));
  for (const auto& event : stream_events(nats_)) EXPECT_NE(event.resource_id(), "parcels") << event.ShortDebugString();
}

TEST_F(KafkaLine, StateOfAGroupIsSeenAndIsNoDriftItsDeletionIsOne) {
  make_topic("read");
  kafka_.consume("read", "billing");
  ASSERT_NO_FATAL_FAILURE(start(backend("kafka", kNoUsers), {"kafka"}, kKinds));
  const auto rows = agent_->rows({"resources", "kafka", "--kind", "group"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["status"]["state"], "Empty");
  // The group is in state Stable during these cycles.
  kafka_.consume("read", "billing", [&] { EXPECT_TRUE(cycles("kafka", 2)); });
  EXPECT_TRUE(cycles("kafka", 2));
  EXPECT_THAT(drifts(), IsEmpty());
  kafka_.groups({"--delete", "--group", "billing"});
  EXPECT_TRUE(arrives({"kafka", "group/billing", "config.updated", "pending", "deleted", {}}));
  kafka_.consume("read", "billing");
  EXPECT_TRUE(arrives({"kafka", "group/billing", "config.updated", "reverted", {}, {}}));
}

TEST_F(KafkaLine, PasswordThatIsSetAnewIsACredentialDriftAndIsNowhere) {
  kafka_.scram_user("app", "user-canary-1", "SCRAM-SHA-512");
  ASSERT_NO_FATAL_FAILURE(
      start(backend("kafka", "scram_hello: { users: [{ name: app, mechanism: SCRAM-SHA-512 }], interval_s: 1 }"),
            {"kafka"}, {"scram_user", "topic"}));
  EXPECT_EQ(coverage("kafka", "scram_user").value("state", ""), "seen");
  EXPECT_EQ(coverage("kafka", "quota").value("state", ""), "unsupported");
  const std::string app = "scram_user/app/SCRAM-SHA-512";
  kafka_.scram_user("app", "user-canary-1", "SCRAM-SHA-512");
  EXPECT_TRUE(arrives({"kafka", app, "credentials.rotated", "auto-applied", "changed", "salt"}))
      << "the same password was set again";
  const ConfigOf user(kafka_, {"--entity-type", "users", "--entity-name", "app"});
  user.add("SCRAM-SHA-512=[iterations=8192,password=user-canary-2]")();
  EXPECT_TRUE(arrives({"kafka", app, "config.updated", "pending", "changed", "iterations"}));
  EXPECT_TRUE(arrives({"kafka", app, "credentials.rotated", "auto-applied", "changed", "salt"}, 2));

  user.remove("SCRAM-SHA-512")();
  ASSERT_TRUE(eventually([&] { return coverage("kafka", "scram_user").value("state", "") == "partial"; }, seconds(30)));
  EXPECT_THAT(coverage("kafka", "scram_user").dump(), HasSubstr("no such credential"));
  EXPECT_TRUE(cycles("kafka", 3));
  EXPECT_FALSE(any_deleted()) << "a refused login is not a deletion";
  kafka_.scram_user("app", "user-canary-3", "SCRAM-SHA-512");
  EXPECT_TRUE(arrives({"kafka", app, "credentials.rotated", "auto-applied", "changed", "salt"}, 3));
  EXPECT_TRUE(arrives({"kafka", app, "config.updated", "reverted", {}, "iterations"}));
  EXPECT_THAT(everything(), Not(HasSubstr("canary")));
}

TEST_F(KafkaLine, ClientCertificatesAreReadInTheWorkersJailAndAWrongOneIsNamedAndNoDrift) {
  const Certificates elsewhere;
  elsewhere.issue("wrong", "driftd");
  const auto by = [&](const std::string& name, const std::string& certificate, const std::string& key) {
    return "  - name: " + name + "\n    provider: kafka\n    settings: { bootstrap_servers: \"" +
           kafka_.mtls_address() + "\", tls: { ca: \"" + kafka_.ca() + "\", certificate: \"" + certificate +
           "\", key: \"" + key + "\" }, " + kNoUsers + " }\n";
  };
  const std::string ours = kafka_.client_certificate("driftd"), stranger = kafka_.client_certificate("stranger");
  ASSERT_NO_FATAL_FAILURE(start(by("kafka", ours, ours) + by("stranger", stranger, stranger) +
                                    by("wrong", elsewhere.certificate("wrong"), elsewhere.key("wrong")),
                                {"kafka"}, kKinds));
  const auto status_shows = [&](const std::string& name, const std::string& what) {
    return eventually([&] { return agent_->backend(name)->dump().find(what) != std::string::npos; }, seconds(60));
  };
  EXPECT_TRUE(status_shows("stranger", "Describe on Topic *")) << agent_->backend("stranger")->dump();
  EXPECT_EQ(coverage("stranger", "topic").value("state", ""), "denied");
  EXPECT_TRUE(status_shows("wrong", "settings.tls.certificate")) << agent_->backend("wrong")->dump();
  EXPECT_TRUE(
      eventually([&] { return agent_->backend("wrong")->at("health").value("state", "") == "degraded"; }, seconds(60)))
      << agent_->backend("wrong")->dump();
  EXPECT_TRUE(cycles("kafka", 3));
  EXPECT_THAT(drifts(), IsEmpty());
}

/// Loads a provider that is built with a librdkafka that reports topic ids and lists SCRAM users.
using KafkaNewerLine = KafkaLine;

TEST_F(KafkaNewerLine, TopicMadeAgainIsRecreatedAndAUserThatIsGoneIsDeleted) {
  make_topic("twice");
  kafka_.scram_user("reports", "user-canary-4");
  kafka_.scram_user("billing", "user-canary-5");
  ASSERT_NO_FATAL_FAILURE(
      start(backend("kafka", "scram_hello: { users: [{ name: reports, mechanism: SCRAM-SHA-256 }], interval_s: 1 }"),
            {"kafka"}, {"scram_user", "topic"}, "tests/newer"));
  kafka_.topics({"--delete", "--topic", "twice"});
  EXPECT_TRUE(arrives({"kafka", "topic/twice", "config.updated", "pending", "deleted", {}}));
  make_topic("twice");
  EXPECT_TRUE(arrives({"kafka", "topic/twice", "config.updated", "pending", "recreated", {}}));
  kafka_.scram_user("reports", "user-canary-4");
  EXPECT_TRUE(
      arrives({"kafka", "scram_user/reports/SCRAM-SHA-256", "credentials.rotated", "auto-applied", "changed", "salt"}));
  const ConfigOf user(kafka_, {"--entity-type", "users", "--entity-name", "billing"});
  user.remove("SCRAM-SHA-256")();
  EXPECT_TRUE(arrives({"kafka", "scram_user/billing/SCRAM-SHA-256", "config.updated", "pending", "deleted", {}}));
  kafka_.scram_user("billing", "user-canary-5");
  EXPECT_TRUE(arrives({"kafka", "scram_user/billing/SCRAM-SHA-256", "config.updated", "reverted", {}, {}}));
  EXPECT_THAT(everything(), Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace driftd::test
