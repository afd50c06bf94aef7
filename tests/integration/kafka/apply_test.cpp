// SPDX-License-Identifier: Apache-2.0
// Configurations are put back at a real broker: what was drifted reads as before, a dry run changes nothing, and
// whatever is refused leaves nothing half done.
#include "world.hpp"

#include "support/redis.hpp"

namespace driftd::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string first_text(const AppliedCall& seen) {
  return seen.diagnostics.empty() ? seen.outcome.text : seen.diagnostics.back().text;
}

class KafkaApply : public SharedKafka {
 protected:
  KafkaApply() {
    grant({"--operation", "AlterConfigs", "--topic", "*"});
    grant({"--operation", "AlterConfigs", "--cluster"});
  }
  /// Whoever may alter may describe, which the other tests of this broker take away.
  ~KafkaApply() override {
    revoke({"--operation", "AlterConfigs", "--topic", "*"});
    revoke({"--operation", "AlterConfigs", "--cluster"});
  }
  /// One attribute of a topic back to a value.
  static sdk::Apply back(const std::string& topic, const std::string& key, const std::string& from,
                         const std::string& to) {
    return {false, {"topic", topic}, {}, "key-of-" + topic, {{0, "config[\"" + key + "\"]", from, to}}};
  }
  static nlohmann::json config(ProviderProbe& p, const std::string& topic) {
    return p.read({{"topic", topic}}).body("topic", topic).value("config", nlohmann::json());
  }
  /// Changes a topic by Kafka's own tool and waits until a read shows it.
  void drift(ProviderProbe& p, const std::string& topic, const std::string& what, bool add = true) const {
    const auto before = config(p, topic);
    alter_topic(topic, what, add);
    ASSERT_TRUE(eventually([&] { return config(p, topic) != before; }));
  }
};

TEST_F(KafkaApply, DriftIsPutBackSetAndUnsetTogetherAndTheRestStays) {
  make_topic("put-back", {"--config", "retention.ms=60000", "--config", "cleanup.policy=compact,delete", "--config",
                          "segment.ms=7000"});
  auto p = probe();
  const auto before = config(p, "put-back");
  drift(p, "put-back", "retention.ms=1000,cleanup.policy=delete,flush.ms=5");
  sdk::Apply request = back("put-back", "retention.ms", "\"1000\"", "\"60000\"");
  request.changes.push_back({1, "config[\"cleanup.policy\"]", R"(["delete"])", R"(["compact","delete"])"});
  request.changes.push_back({2, "config[\"flush.ms\"]", "\"5\"", ""});
  request.dry_run = true;
  const auto drifted = config(p, "put-back");
  const auto dry = p.apply(request);
  ASSERT_EQ(dry.status, DRIFTD_OK) << first_text(dry);
  EXPECT_EQ(dry.outcome.outcome, std::uint32_t{DRIFTD_APPLY_SUCCESS}) << dry.outcome.text;
  EXPECT_FALSE(dry.outcome.changed);
  EXPECT_EQ(config(p, "put-back"), drifted) << "a dry run changes nothing";
  request.dry_run = false;
  const auto real = p.apply(request);
  ASSERT_EQ(real.status, DRIFTD_OK) << first_text(real);
  EXPECT_EQ(real.outcome.outcome, std::uint32_t{DRIFTD_APPLY_SUCCESS}) << real.outcome.text;
  EXPECT_TRUE(real.outcome.changed);
  EXPECT_EQ(config(p, "put-back"), before);
  EXPECT_EQ(real.outcome.commands, dry.outcome.commands);
  EXPECT_THAT(real.outcome.commands, ElementsAre(HasSubstr("--delete-config flush.ms")));
  for (int i = 0; i < 2; ++i) {
    const auto again = p.apply(request);
    EXPECT_EQ(again.outcome.outcome, std::uint32_t{DRIFTD_APPLY_SUCCESS});
    EXPECT_FALSE(again.outcome.changed);
  }
}

TEST_F(KafkaApply, CommandsInTheDetailsDoWhatTheySay) {
  make_topic("by-hand", {"--config", "retention.ms=60000"});
  auto p = probe();
  const auto before = config(p, "by-hand");
  drift(p, "by-hand", "retention.ms=1000,cleanup.policy=[compact,delete]");
  const auto drifted = config(p, "by-hand");
  sdk::Apply request = back("by-hand", "retention.ms", "\"1000\"", "\"60000\"");
  request.changes.push_back({1, "config[\"cleanup.policy\"]", R"(["compact","delete"])", ""});
  request.dry_run = true;
  const auto dry = p.apply(request);
  ASSERT_EQ(dry.outcome.commands.size(), 1u) << first_text(dry);
  const auto at_plain_listener = [&](std::string line) {
    return line.replace(line.find(server().sasl_address()), server().sasl_address().size(), server().address());
  };
  EXPECT_EQ(server().shell(at_plain_listener(dry.outcome.commands[0])).code, 0);
  EXPECT_TRUE(eventually([&] { return config(p, "by-hand") == before; })) << config(p, "by-hand");
  EXPECT_EQ(server().shell(at_plain_listener(dry.outcome.undo.at(0))).code, 0);
  EXPECT_TRUE(eventually([&] { return config(p, "by-hand") == drifted; })) << config(p, "by-hand");
}

TEST_F(KafkaApply, SameKeyIsMadeOnceEvenIfTheOldValueComesBack) {
  make_topic("once", {"--config", "retention.ms=60000"});
  auto p = probe();
  drift(p, "once", "retention.ms=1000");
  const auto request = back("once", "retention.ms", "\"1000\"", "\"60000\"");
  ASSERT_TRUE(p.apply(request).outcome.changed);
  drift(p, "once", "retention.ms=1000");
  const auto again = p.apply(request);
  EXPECT_EQ(again.status, DRIFTD_OK);
  EXPECT_FALSE(again.outcome.changed);
  EXPECT_EQ(config(p, "once").at("retention.ms"), "1000");
}

TEST_F(KafkaApply, ChangedSinceItWasJudgedIsAConflict) {
  make_topic("moved", {"--config", "retention.ms=3000"});
  auto p = probe();
  EXPECT_EQ(p.apply(back("moved", "retention.ms", "\"1000\"", "\"60000\"")).status, DRIFTD_CONFLICT);
  EXPECT_EQ(p.apply(back("moved", "flush.ms", "\"1000\"", "\"60000\"")).status, DRIFTD_CONFLICT);
  auto versioned = back("moved", "retention.ms", "\"3000\"", "\"60000\"");
  versioned.expected_version = "4";
  EXPECT_EQ(p.apply(versioned).status, DRIFTD_CONFLICT);
  EXPECT_EQ(config(p, "moved").at("retention.ms"), "3000");
}

TEST_F(KafkaApply, TopicThatIsGoneIsNotFoundAndNotCreated) {
  auto p = probe();
  EXPECT_EQ(p.apply(back("never-was", "retention.ms", "\"1000\"", "\"60000\"")).status, DRIFTD_NOT_FOUND);
  EXPECT_EQ(p.refresh_ok().find("topic", "never-was"), nullptr);
}

TEST_F(KafkaApply, ValueThatKafkaRefusesIsRefusedInTheDryRunAndNothingIsHalfDone) {
  make_topic("refused", {"--config", "retention.ms=3000"});
  auto p = probe();
  auto request = back("refused", "retention.ms", "\"3000\"", "\"60000\"");
  request.changes.push_back({1, "config[\"cleanup.policy\"]", "", R"(["burn"])"});
  for (const bool dry : {true, false}) {
    request.dry_run = dry;
    const auto seen = p.apply(request);
    EXPECT_EQ(seen.status, DRIFTD_OK) << first_text(seen);
    EXPECT_EQ(seen.outcome.outcome, std::uint32_t{DRIFTD_APPLY_FAILED});
    EXPECT_THAT(seen.outcome.text, HasSubstr("INVALID_CONFIG"));
    EXPECT_FALSE(seen.outcome.changed);
  }
  EXPECT_EQ(config(p, "refused"), nlohmann::json({{"retention.ms", "3000"}}));
}

TEST_F(KafkaApply, WithoutTheRightTheOutcomeNamesItAndTheGrantHelps) {
  make_topic("ungranted", {"--config", "retention.ms=3000"});
  auto p = probe();
  revoke({"--operation", "AlterConfigs", "--topic", "*"});
  auto request = back("ungranted", "retention.ms", "\"3000\"", "\"60000\"");
  request.dry_run = true;
  AppliedCall seen;
  ASSERT_TRUE(eventually([&] {
    seen = p.apply(request);
    return seen.outcome.outcome == DRIFTD_APPLY_FAILED;
  })) << first_text(seen);
  EXPECT_EQ(seen.outcome.details.at("right"), "AlterConfigs on Topic ungranted");
  EXPECT_EQ(config(p, "ungranted").at("retention.ms"), "3000");
  std::string line = seen.outcome.details.at("instead");
  line.replace(line.find(server().sasl_address()), server().sasl_address().size(), server().address());
  ASSERT_EQ(server().shell(line).code, 0);
  request.dry_run = false;
  ASSERT_TRUE(eventually([&] { return (seen = p.apply(request)).outcome.changed; })) << first_text(seen);
  EXPECT_EQ(config(p, "ungranted").at("retention.ms"), "60000");
}

TEST_F(KafkaApply, GrantsOfTheReadmeSufficeAsTheyArePrinted) {
  make_topic("granted-to-alter", {"--config", "retention.ms=3000"});
  auto p = probe();
  const auto request = back("granted-to-alter", "retention.ms", "\"3000\"", "\"60000\"");
  revoke({"--operation", "AlterConfigs", "--topic", "*"});
  revoke({"--operation", "AlterConfigs", "--cluster"});
  AppliedCall seen;
  ASSERT_TRUE(eventually([&] {
    sdk::Apply dry = request;
    dry.dry_run = true;
    return (seen = p.apply(dry)).outcome.outcome == DRIFTD_APPLY_FAILED;
  })) << first_text(seen);
  std::string lines = readme_block("kafka", "### To put values back", "sh");
  for (auto at = lines.find("localhost:9092"); at != std::string::npos; at = lines.find("localhost:9092"))
    lines.replace(at, 14, server().address());
  ASSERT_EQ(server().shell(lines).code, 0);
  EXPECT_TRUE(eventually([&] { return (seen = p.apply(request)).outcome.changed; })) << first_text(seen);
}

TEST_F(KafkaApply, BrokerAndClusterDefaultsArePutBack) {
  auto p = probe();
  const auto value = [&](const std::string& kind, const std::string& id, const char* map) {
    return p.read({{kind, id}}).body(kind, id).value(map, nlohmann::json()).value("log.cleaner.threads", "");
  };
  for (const auto& [kind, id, map] :
       {std::tuple{"broker", "1", "dynamic"}, {"cluster", "cluster", "broker_defaults"}}) {
    std::vector<std::string> words{"--alter", "--entity-type", "brokers"};
    if (kind == std::string("broker"))
      words.insert(words.end(), {"--entity-name", "1"});
    else
      words.push_back("--entity-default");
    words.insert(words.end(), {"--add-config", "log.cleaner.threads=2"});
    server().configs(words);
    ASSERT_TRUE(eventually([&, kind = kind, id = id, map = map] { return value(kind, id, map) == "2"; })) << kind;
    const std::string path = std::string(map) + "[\"log.cleaner.threads\"]";
    const sdk::Apply request{false, {kind, id}, {}, std::string("k-") + kind, {{0, path, "\"2\"", ""}}};
    const auto seen = p.apply(request);
    EXPECT_TRUE(seen.outcome.changed) << first_text(seen);
    EXPECT_EQ(value(kind, id, map), "") << kind;
  }
  const auto listeners =
      p.apply({true, {"broker", "1"}, {}, "k-listeners", {{0, "dynamic[\"log.cleaner.threads\"]", "", "\"1000\""}}});
  EXPECT_EQ(listeners.outcome.outcome, std::uint32_t{DRIFTD_APPLY_FAILED}) << "a broker takes at most twice as many";
}

TEST_F(KafkaApply, SecretsAndWhatIsNoSettingAreNotSet) {
  make_topic("facts", {});
  auto p = probe();
  const auto failed = [&](const sdk::Identity& id, const sdk::Change& change) {
    const auto seen = p.apply({true, id, {}, "k-facts", {change}});
    EXPECT_EQ(seen.status, DRIFTD_OK) << first_text(seen);
    EXPECT_EQ(seen.outcome.outcome, std::uint32_t{DRIFTD_APPLY_FAILED});
    return seen.outcome.text;
  };
  EXPECT_THAT(failed({"topic", "facts"}, {0, "partitions", "1", "2"}), HasSubstr("cannot be set"));
  EXPECT_THAT(failed({"broker", "1"}, {0, "dynamic[\"ssl.key.password\"]", "", "\"x\""}), HasSubstr("cannot be set"));
  EXPECT_THAT(failed({"broker", "1"}, {0, "dynamic[\"no.such.key\"]", "", "\"x\""}), HasSubstr("does not list it"));
}

TEST_F(KafkaApply, LoginsOfEachMechanismWork) {
  make_topic("logins", {"--config", "retention.ms=3000"});
  for (const bool tls : {false, true}) {
    nlohmann::json more;
    if (tls) more = {{"bootstrap_servers", server().tls_address()}, {"tls", {{"ca", server().ca()}}}};
    auto p = probe(tls ? more : nlohmann::json::object());
    auto request = back("logins", "retention.ms", "\"3000\"", "\"60000\"");
    request.dry_run = true;
    const auto seen = p.apply(request);
    EXPECT_EQ(seen.outcome.outcome, std::uint32_t{DRIFTD_APPLY_SUCCESS}) << tls << first_text(seen);
  }
}

}  // namespace
}  // namespace driftd::test
