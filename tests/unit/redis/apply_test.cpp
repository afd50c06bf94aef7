// SPDX-License-Identifier: Apache-2.0
// From attributes back to commands.
#include "redis/apply_mapping.hpp"

#include <gmock/gmock.h>

#include "common/apply_steps.hpp"

namespace driftd::redis {
namespace {

using common::CannotSet;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const CannotSet& why) {
    return why.what();
  }
  return "accepted";
}

/// Every text that CONFIG GET of a real server answers comes back as a text of the same meaning.
TEST(RedisPutBack, ADirectiveComesBackInTheFormOfTheServer) {
  const std::vector<std::pair<std::string, std::string>> kAnswers{
      {"maxmemory", "67108864"},
      {"maxmemory-policy", "allkeys-lru"},
      {"save", "3600 1 300 100"},
      {"save", ""},
      {"bind", "* -::*"},
      {"bind", ""},
      {"notify-keyspace-events", "$Kg"},
      {"notify-keyspace-events", ""},
      {"oom-score-adj-values", "0 200 800"},
      {"latency-tracking-info-percentiles", "50 99 99.9"},
      {"client-output-buffer-limit", "normal 0 0 0 pubsub 33554432 8388608 60 replica 268435456 67108864 60"},
      {"proc-title-template", "{title} {listen-addr} \"x\""},
      {"some.module-option", "a\\x41 \xff b"},
      {"appendonly", "yes"}};
  for (const auto& [name, answer] : kAnswers) {
    const json shown = json::parse(config_value(name, answer));
    EXPECT_EQ(config_text(name, shown), answer) << name;
  }
}

TEST(RedisPutBack, WhatAnExpectationMaySayIsUnderstood) {
  EXPECT_EQ(config_text("maxmemory", "64mb"), "64mb");
  EXPECT_EQ(config_text("maxclients", 100), "100");
  EXPECT_EQ(config_text("appendonly", true), "yes");
  EXPECT_THAT(refusal([] { config_text("maxmemory", nullptr); }), HasSubstr("cannot be unset"));
}

const Config kNow{{"maxmemory", "0"},   {"save", "3600 1"},
                  {"appendonly", "no"}, {"requirepass", "x"},
                  {"databases", "16"},  {"client-output-buffer-limit", "normal 0 0 0 slave 1 2 3 pubsub 4 5 6"}};

TEST(RedisPutBack, PartsOfALimitAreSetTogetherAndTheOthersStay) {
  const auto out = directive_changes(kNow, {{0, "config.client-output-buffer-limit.replica.hard", "\"1\"", "\"7\""},
                                            {1, "config.client-output-buffer-limit.pubsub.seconds", "\"6\"", "\"8\""}});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].value, "normal 0 0 0 pubsub 4 5 8 replica 7 2 3");
  EXPECT_EQ(out[0].old_value, kNow.at("client-output-buffer-limit"));
  EXPECT_EQ(out[0].paths.size(), 2u);
}

TEST(RedisPutBack, AFactIsFineOnlyWhereTheOtherChangesBringIt) {
  const sdk::Change save{0, "config.save", "[\"3600 1\"]", "[]"}, none{1, "persistence", "\"rdb\"", "\"none\""};
  EXPECT_EQ(directive_changes(kNow, {save, none}).size(), 1u);
  EXPECT_THAT(refusal([&] { directive_changes(kNow, {none}); }), HasSubstr("set config.save"));
  EXPECT_THAT(refusal([&] {
                directive_changes(kNow, {save, {1, "version", "\"7\"", "\"6\""}});
              }),
              HasSubstr("version cannot be set"));
}

TEST(RedisPutBack, SecretsAndFixedDirectivesAreRefusedWithTheWholeRequest) {
  const sdk::Change good{0, "config.maxmemory", "\"0\"", "\"1\""};
  for (const char* path : {"config.requirepass", "config.masteruser", "config.databases", "config.no-such",
                           "config.rename-command", "config", "config.maxmemory.part", "modules"}) {
    EXPECT_THAT(refusal([&] { directive_changes(kNow, {good, {1, path, "\"1\"", "\"2\""}}); }), HasSubstr(path));
  }
}

AclUser user(const std::string& rules) { return parse_acl_line("user app " + rules); }

TEST(RedisPutBack, AUserIsChangedInTheNamedPartsOnly) {
  const AclUser now = user("on #abc ~x &c -@all +get");
  const auto change = user_change(now, {{0, "keys", "[\"~x\"]", "[\"%R~b\",\"~a*\"]"}});
  EXPECT_THAT(change.rules, ElementsAre("resetkeys", "%R~b", "~a*"));
  EXPECT_THAT(change.undo, ElementsAre("resetkeys", "~x"));
}

TEST(RedisPutBack, AUserIsOnOrOffAndNothingElse) {
  const AclUser now = user("on #abc ~x &c -@all +get");
  EXPECT_THAT(user_change(now, {{0, "enabled", "true", "false"}}).rules, ElementsAre("off"));
  EXPECT_THAT(refusal([&] {
                user_change(now, {{0, "enabled", "true", "\"on\""}});
              }),
              HasSubstr("expected true or false"));
}

TEST(RedisPutBack, TheTextOfRulesCountsMoreThanWhatTheyAllow) {
  const AclUser now = user("on #abc ~* &* +@all");
  const std::vector<sdk::Change> both{{0, "commands", "[\"+@all\"]", "[\"-@all\",\"+get\",\"+mget\"]"},
                                      {1, "rules", "\"+@all\"", "\"-@all +get +mget -set\""}};
  EXPECT_THAT(user_change(now, both).rules, ElementsAre("-@all", "-@all", "+get", "+mget", "-set"));
  EXPECT_THAT(user_change(now, {both[1], both[0]}).rules, ElementsAre("-@all", "-@all", "+get", "+mget", "-set"));
  EXPECT_THAT(user_change(now, {both[0]}).rules, ElementsAre("-@all", "-@all", "+get", "+mget"));
}

TEST(RedisPutBack, AUserThatHadNoFlagAboutPayloadsCannotBeMadeSoAgain) {
  const AclUser skips = user("on #abc skip-sanitize-payload ~* &* +@all"), plain = user("on #abc ~* &* +@all");
  EXPECT_THAT(refusal([&] {
                user_change(skips, {{0, "flags", "[\"skip-sanitize-payload\"]", "[]"}});
              }),
              HasSubstr("gets one of them for good"));
  EXPECT_THAT(user_change(plain, {{0, "flags", "[]", "[\"sanitize-payload\"]"}}).rules,
              ElementsAre("sanitize-payload"));
}

TEST(RedisPutBack, NothingAboutAPasswordIsEverARule) {
  const AclUser now = user("on nopass ~* &* +@all"), with = user("on #abc ~* &* +@all");
  EXPECT_THAT(refusal([&] { user_change(now, {{0, "flags", "[\"nopass\"]", "[]"}}); }), HasSubstr("nopass"));
  EXPECT_THAT(refusal([&] { user_change(with, {{0, "flags", "[]", "[\"nopass\"]"}}); }), HasSubstr("nopass"));
  EXPECT_THAT(refusal([&] { user_change(with, {{0, "passwords", "[]", "[\"x\"]"}}); }), HasSubstr("credential"));
  for (const char* rule : {"reset", "resetpass", ">secret", "#abc", "nopass", "on"}) {
    const std::string quoted = json(std::string("-@all ") + rule).dump(), listed = json::array({rule}).dump();
    EXPECT_THAT(refusal([&] { user_change(with, {{0, "rules", "\"+@all\"", quoted}}); }), HasSubstr(rule));
    for (const char* path : {"keys", "channels", "commands", "flags"})
      EXPECT_NE(refusal([&] {
                  user_change(with, {{0, path, "[]", listed}});
                }),
                rule == std::string("nopass") ? "" : "accepted")
          << path << " " << rule;
    EXPECT_NE(refusal([&] {
                user_change(with, {{0, "selectors", "[]", json::array({"(" + std::string(rule) + ")"}).dump()}});
              }),
              "accepted");
  }
}

TEST(RedisPutBack, ACommandIsShownAsRedisCliReadsIt) {
  EXPECT_EQ(command_text({"CONFIG", "SET", "save", "", "x", "a b", "y", "q\"\\\n"}),
            R"(CONFIG SET save "" x "a b" y "q\"\\\x0a")");
}

TEST(PutBackPath, OnlyMembersAreRead) {
  EXPECT_EQ(*common::member_names(R"(config["a.b\"]"].c)"), (std::vector<std::string>{"config", "a.b\"]", "c"}));
  EXPECT_EQ(common::member_names("nodes[id=1].x"), std::nullopt);
  EXPECT_EQ(common::member_names("a[0]"), std::nullopt);
  EXPECT_EQ(common::member_names(""), std::nullopt);
  EXPECT_EQ(common::member_names("a[\"b"), std::nullopt);
}

}  // namespace
}  // namespace driftd::redis
