// SPDX-License-Identifier: Apache-2.0
// One right after the other is taken away: what cannot be seen is unknown, names the missing right, and is never taken
// for deleted.
#include "world.hpp"

#include "support/redis.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

/// The diagnostic that says which right is missing for a kind. Null if there is none.
const sdk::Diagnostic* find_denied(const Collected& seen, const std::string& kind, const std::string& right) {
  for (const auto& d : seen.diagnostics) {
    if (d.code == DRIFTD_DENIED && d.kind == kind && d.right.find(right) != std::string::npos) return &d;
  }
  return nullptr;
}

class KafkaRights : public SharedKafka {
 protected:
  /// Takes a binding from driftd as long as this object lives.
  class Without {
   public:
    Without(const KafkaRights& test, std::vector<std::string> binding) : test_(test), binding_(std::move(binding)) {
      test_.revoke(binding_);
    }
    ~Without() { test_.grant(binding_); }

   private:
    const KafkaRights& test_;
    std::vector<std::string> binding_;
  };
  /// Refreshes until `condition` holds and returns the last refresh.
  static Collected await(ProviderProbe& probe, const std::function<bool(const Collected&)>& condition) {
    Collected seen;
    EXPECT_TRUE(eventually([&] { return seen = probe.refresh(), condition(seen); })) << all_texts(seen);
    EXPECT_EQ(seen.status, DRIFTD_OK);
    return seen;
  }
};

TEST_F(KafkaRights, GrantsOfTheReadmeSufficeAsTheyArePrinted) {
  server().acls({"--remove", "--force", "--allow-principal", "User:driftd", "--cluster"});
  server().acls({"--remove", "--force", "--allow-principal", "User:driftd", "--topic", "*"});
  std::string lines = readme_grants("kafka", "sh");
  for (auto at = lines.find("localhost:9092"); at != std::string::npos; at = lines.find("localhost:9092")) {
    lines.replace(at, 14, server().address());
  }
  lines.replace(lines.find("CHANGE-ME"), 9, "another-canary-of-kafka");
  const Output out = server().shell(lines);
  ASSERT_EQ(out.code, 0) << out.out << out.err;
  make_topic("granted");
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK) << all_texts(seen);
  for (const char* kind : {"cluster", "broker", "topic", "acl", "group"})
    EXPECT_EQ(seen.complete.count(kind), 1u) << kind;
  EXPECT_EQ(seen.diagnostic(DRIFTD_DENIED), nullptr);
}

TEST_F(KafkaRights, WithoutDescribeOnAllTopicsTheHiddenOnesAreDeniedAndNotDeleted) {
  make_topic("hidden");
  make_topic("shown");
  auto p = probe();
  const auto before = p.refresh();
  ASSERT_NE(before.find("topic", "hidden"), nullptr);
  grant({"--operation", "Describe", "--topic", "shown"});
  const Without right(*this, {"--operation", "Describe", "--topic", "*"});
  const auto seen = await(p, [](const auto& s) { return s.find("topic", "hidden") == nullptr; });
  EXPECT_NE(seen.find("topic", "shown"), nullptr);
  EXPECT_EQ(seen.complete.count("topic"), 0u);
  EXPECT_EQ(seen.complete.count("acl"), 1u) << "the other kinds are still complete";
  EXPECT_NE(find_denied(seen, "topic", "Describe on Topic *"), nullptr) << all_texts(seen);
  EXPECT_TRUE(seen.cursor.empty()) << "a cursor would vouch for what was not seen";
  EXPECT_EQ(seen.complete.count("group"), 0u)
      << "whether each partition of __consumer_offsets has a leader is not known";
  EXPECT_NE(find_denied(seen, "group", "Describe on Topic __consumer_offsets"), nullptr) << all_texts(seen);
  EXPECT_EQ(p.read({{"group", "never-was"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
  const auto read = p.read({{"topic", "hidden"}, {"topic", "never-was"}});
  EXPECT_EQ(read.status, DRIFTD_DENIED);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << all_texts(read);
  EXPECT_NE(find_denied(read, "topic", "Describe on Topic hidden"), nullptr) << all_texts(read);
  revoke({"--operation", "Describe", "--topic", "shown"});
}

TEST_F(KafkaRights, DenyOfOneTopicHidesItAndDeletesNothing) {
  make_topic("denied-one");
  auto p = probe();
  ASSERT_NE(p.refresh().find("topic", "denied-one"), nullptr);
  server().acls({"--add", "--deny-principal", "User:driftd", "--operation", "Describe", "--topic", "denied-one"});
  const auto seen = await(p, [](const auto& s) { return s.find("topic", "denied-one") == nullptr; });
  EXPECT_EQ(seen.complete.count("topic"), 0u);
  EXPECT_NE(find_denied(seen, "topic", "Describe on Topic denied-one"), nullptr) << all_texts(seen);
  const auto read = p.read({{"topic", "denied-one"}});
  EXPECT_EQ(read.status, DRIFTD_DENIED);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  server().acls(
      {"--remove", "--force", "--deny-principal", "User:driftd", "--operation", "Describe", "--topic", "denied-one"});
  await(p, [](const auto& s) { return s.complete.count("topic") == 1; });
}

TEST_F(KafkaRights, WithoutDescribeConfigsOnTopicsTheirConfigurationIsUnreadAndNamed) {
  make_topic("configured", {"--config", "retention.ms=5000"});
  auto p = probe();
  const Without right(*this, {"--operation", "DescribeConfigs", "--topic", "*"});
  const auto seen =
      await(p, [](const auto& s) { return find_denied(s, "topic", "DescribeConfigs on Topic") != nullptr; });
  const auto* topic = seen.find("topic", "configured");
  ASSERT_NE(topic, nullptr);
  ASSERT_EQ(topic->unread.size(), 1u);
  EXPECT_EQ(topic->unread[0].path, "config.**");
  EXPECT_EQ(topic->unread[0].code, DRIFTD_DENIED);
  EXPECT_FALSE(nlohmann::json::parse(topic->body).contains("config"));
  EXPECT_TRUE(seen.cursor.empty());
}

TEST_F(KafkaRights, WithoutDescribeOnTheClusterAclsAndGroupsAreIncomplete) {
  auto p = probe();
  const Without right(*this, {"--operation", "Describe", "--cluster"});
  const auto seen = await(p, [](const auto& s) { return find_denied(s, "acl", "Describe on Cluster") != nullptr; });
  EXPECT_NE(find_denied(seen, "group", "Describe on Cluster"), nullptr);
  EXPECT_EQ(seen.complete.count("acl") + seen.complete.count("group"), 0u);
  EXPECT_EQ(seen.complete.count("topic"), 1u);
  const auto read = p.read({{"acl", "User:x|*|Read|Allow|Topic|x|Literal"}, {"group", "never-was"}});
  EXPECT_NE(read.status, DRIFTD_OK);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << all_texts(read);
}

TEST_F(KafkaRights, WithoutDescribeConfigsOnTheClusterBrokersAreUnreadAndNamed) {
  auto p = probe();
  const Without right(*this, {"--operation", "DescribeConfigs", "--cluster"});
  const auto seen =
      await(p, [](const auto& s) { return find_denied(s, "broker", "DescribeConfigs on Cluster") != nullptr; });
  EXPECT_NE(find_denied(seen, "cluster", "DescribeConfigs on Cluster"), nullptr);
  const auto* broker = seen.find("broker", "1");
  ASSERT_NE(broker, nullptr);
  EXPECT_EQ(broker->unread.size(), 3u);
  EXPECT_FALSE(nlohmann::json::parse(broker->body).contains("static"));
  ASSERT_EQ(seen.find("cluster", "cluster")->unread.size(), 1u);
}

}  // namespace
}  // namespace driftd::test
