// SPDX-License-Identifier: Apache-2.0
// What the provider sees when it is built with a librdkafka newer than Debian's: topic ids and SCRAM users.
#include "world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

class KafkaNewerLibrary : public SharedKafka {
 protected:
#ifdef __SANITIZE_THREAD__
  void SetUp() override {
    GTEST_SKIP()
        << "LOUD: this librdkafka is linked into the plugin, and ThreadSanitizer does not see its locks (mtx_lock), so "
           "that it reports races in all that the library hands over. KafkaShared runs the same code with the shared "
           "library, which tests/tsan.supp names";
  }
#endif
  static ProviderProbe newer_probe(const json& more = json::object()) {
    json all{{"bootstrap_servers", shared()->sasl_address()}, {"sasl", sasl("SCRAM-SHA-512", "driftd", "token-1")}};
    all.merge_patch(more);
    return ProviderProbe("tests/newer/kafka.so", all, secrets());
  }
  /// Refreshes until `condition` holds.
  static bool seen(ProviderProbe& probe, const std::function<bool(const Collected&)>& condition) {
    return eventually([&] { return condition(probe.refresh()); });
  }
};

TEST_F(KafkaNewerLibrary, LogsInToKafka4ByScramAndSeesEveryKindButQuotas) {
  auto p = newer_probe();
  Collected seen;
  ASSERT_TRUE(eventually([&] { return (seen = p.refresh()).status == DRIFTD_OK; })) << all_texts(seen);
  for (const char* kind : {"cluster", "broker", "topic", "acl", "group", "scram_user"})
    EXPECT_EQ(seen.complete.count(kind), 1u) << kind;
  ASSERT_EQ(seen.diagnostics.size(), 1u) << all_texts(seen);
  EXPECT_EQ(seen.diagnostics[0].kind, "quota");
}

TEST_F(KafkaNewerLibrary, TopicMadeAgainUnderItsNameHasAnotherIdentity) {
  auto p = newer_probe();
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
  EXPECT_EQ(again.find("topic", "twice")->body, first->body) << "only the identity tells the two topics apart";
}

TEST_F(KafkaNewerLibrary, ScramUserIsSeenWithItsIterationsAndNotFoundWhenItIsGone) {
  auto p = newer_probe();
  server().scram_user("app", "canary-of-the-app");
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.find("scram_user", "app/SCRAM-SHA-256") != nullptr; }));
  EXPECT_EQ(p.refresh().body("scram_user", "app/SCRAM-SHA-256"), (json{{"iterations", 4096}}));
  server().configs({"--alter", "--entity-type", "users", "--entity-name", "app", "--add-config",
                    "SCRAM-SHA-256=[iterations=8192,password=canary-of-the-app]"});
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.body("scram_user", "app/SCRAM-SHA-256")["iterations"] == 8192; }));
  server().configs({"--alter", "--entity-type", "users", "--entity-name", "app", "--delete-config", "SCRAM-SHA-256"});
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.find("scram_user", "app/SCRAM-SHA-256") == nullptr; }));
  const auto gone = p.read({{"scram_user", "app/SCRAM-SHA-256"}});
  EXPECT_EQ(gone.status, DRIFTD_OK) << all_texts(gone);
  EXPECT_NE(gone.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(KafkaNewerLibrary, SaltOfAHelloStandsBesideWhatTheListSays) {
  server().scram_user("salted", "canary-of-the-salted");
  server().scram_user("unsalted", "canary-of-the-unsalted");
  auto p = newer_probe({{"scram_hello",
                         {{"interval_s", 1},
                          {"users",
                           {{{"name", "salted"}, {"mechanism", "SCRAM-SHA-256"}},
                            {{"name", "nobody"}, {"mechanism", "SCRAM-SHA-256"}}}}}}});
  ASSERT_TRUE(seen(p, [](const auto& s) { return s.find("scram_user", "unsalted/SCRAM-SHA-256") != nullptr; }));
  const auto first = p.refresh();
  EXPECT_EQ(first.body("scram_user", "salted/SCRAM-SHA-256")["iterations"], 4096);
  EXPECT_FALSE(first.body("scram_user", "salted/SCRAM-SHA-256")["salt"].empty());
  EXPECT_EQ(first.find("scram_user", "unsalted/SCRAM-SHA-256")->unread.size(), 1u);
  EXPECT_EQ(first.find("scram_user", "nobody/SCRAM-SHA-256"), nullptr) << "the list of SCRAM users does not have it";
  EXPECT_EQ(first.complete.count("scram_user"), 1u);
  EXPECT_NE(p.read({{"scram_user", "nobody/SCRAM-SHA-256"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

}  // namespace
}  // namespace driftd::test
