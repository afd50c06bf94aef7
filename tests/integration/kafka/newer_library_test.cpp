// SPDX-License-Identifier: Apache-2.0
// What the provider sees when it is built with a librdkafka newer than Debian's: topic ids and SCRAM users.
#include "world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

class KafkaNewerLibrary : public SharedKafka {
 protected:
  static ProviderProbe newer() {
    return ProviderProbe("tests/newer/kafka.so",
                         {{"bootstrap_servers", shared()->sasl_address()}, {"sasl", sasl("SCRAM-SHA-512", "driftd", "token-1")}},
                         secrets());
  }
  static bool seen(ProviderProbe& probe, const std::function<bool(const Collected&)>& says) {
    return eventually([&] { return says(probe.refresh()); });
  }
};

TEST_F(KafkaNewerLibrary, LogsInToKafka4ByScramAndSeesEveryKindButQuotas) {
  auto p = newer();
  Collected seen;
  ASSERT_TRUE(eventually([&] { return (seen = p.refresh()).status == DRIFTD_OK; })) << all_said(seen);
  for (const char* kind : {"cluster", "broker", "topic", "acl", "group", "scram_user"}) EXPECT_EQ(seen.complete.count(kind), 1u) << kind;
  ASSERT_EQ(seen.diagnostics.size(), 1u) << all_said(seen);
  EXPECT_EQ(seen.diagnostics[0].kind, "quota");
}

TEST_F(KafkaNewerLibrary, TopicMadeAgainUnderItsNameHasAnotherIdentity) {
  auto p = newer();
  make_topic("twice");
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.find("topic", "twice") != nullptr; }));
  const auto before = p.refresh();
  const auto* first = before.find("topic", "twice");
  ASSERT_FALSE(first->external_name.empty());
  EXPECT_EQ(p.refresh().find("topic", "twice")->external_name, first->external_name);
  server().topics({"--delete", "--topic", "twice"});
  server().await_topic("twice", false);
  make_topic("twice");
  Collected again;
  ASSERT_TRUE(eventually([&] { return (again = p.refresh()).find("topic", "twice") != nullptr; }));
  EXPECT_FALSE(again.find("topic", "twice")->external_name.empty());
  EXPECT_NE(again.find("topic", "twice")->external_name, first->external_name);
  EXPECT_EQ(again.find("topic", "twice")->body, first->body) << "its identity alone tells them apart";
}

TEST_F(KafkaNewerLibrary, ScramUserIsSeenWithItsIterationsAndNotFoundWhenItIsGone) {
  auto p = newer();
  server().scram_user("app", "canary-of-the-app");
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.find("scram_user", "app") != nullptr; }));
  EXPECT_EQ(p.refresh().body("scram_user", "app"), (json{{"mechanisms", {{"SCRAM-SHA-256", {{"iterations", 4096}}}}}}));
  server().configs({"--alter", "--entity-type", "users", "--entity-name", "app", "--add-config",
                    "SCRAM-SHA-256=[iterations=8192,password=canary-of-the-app]"});
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.body("scram_user", "app")["mechanisms"]["SCRAM-SHA-256"]["iterations"] == 8192; }));
  server().configs({"--alter", "--entity-type", "users", "--entity-name", "app", "--delete-config", "SCRAM-SHA-256"});
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.find("scram_user", "app") == nullptr; }));
  const auto gone = p.read({{"scram_user", "app"}});
  EXPECT_EQ(gone.status, DRIFTD_OK) << all_said(gone);
  EXPECT_NE(gone.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

}  // namespace
}  // namespace driftd::test
