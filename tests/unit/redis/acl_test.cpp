// SPDX-License-Identifier: Apache-2.0
#include "redis/acl.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <set>

namespace driftd::redis {
namespace {

using nlohmann::json;

const AclCategories kCategories = {{"slow", {"config", "config|get", "config|set", "keys", "select"}},
                                   {"fast", {"get", "set", "ping"}},
                                   {"read", {"get", "keys"}},
                                   {"dangerous", {"config|get", "config|set", "keys"}}};

json body(const std::string& rules) {
  return json::parse(acl_record(parse_acl_line("user app on " + rules), kCategories, {}).body);
}
json commands(const std::string& rules) { return body(rules)["commands"]; }

TEST(RedisAcl, MacrosAndWhatTheyStandForAreOne) {
  EXPECT_EQ(commands("+@all -@dangerous"), commands("+@all -keys -config|set -config|get"));
  EXPECT_EQ(commands("+@all -@dangerous"), json({"+@all", "-config", "-keys"}));
  EXPECT_EQ(commands("-@all +config"), commands("-@all +config|get +config|set"));
  EXPECT_EQ(commands("-@all +@read"), json({"-@all", "+get", "+keys"}));
  EXPECT_EQ(commands("allcommands"), commands("-get +@all"));
}

/// A user name may hold any bytes and JSON only text; the other users are still read.
TEST(RedisAcl, NamesAndPatternsOfAnyBytesAreShownAndStayApart) {
  const auto record = [](const std::string& line) { return acl_record(parse_acl_line(line), kCategories, {}); };
  EXPECT_EQ(record("user \xff on ~* -@all").id, "\\xff");
  EXPECT_NE(record("user a on ~\xff -@all").body, record("user a on ~\xfe -@all").body);
}

/// A name may be empty; ACL LIST then has two blanks, and the word behind them is not the name.
TEST(RedisAcl, AUserWithoutANameIsNotTheOneThatIsCalledAsItsFirstFlag) {
  const auto nameless = parse_acl_line("user  on #aa11 resetchannels -@all +get");
  EXPECT_TRUE(nameless.enabled);
  EXPECT_EQ(nameless.passwords, std::vector<std::string>{"aa11"});
  EXPECT_EQ(acl_record(nameless, kCategories, {}).id, "(no name)") << "a blank: no user can be called that";
  EXPECT_EQ(acl_record(parse_acl_line("user on on #aa11 -@all"), kCategories, {}).id, "on");
}

/// A text that looks like an escaped byte, and that byte: two users with different ids.
TEST(RedisAcl, ANameThatImitatesAByteIsAnotherThanTheByte) {
  const auto id = [](const std::string& name) {
    return acl_record(parse_acl_line("user " + name + " on -@all"), kCategories, {}).id;
  };
  EXPECT_EQ(id("a\xff"), "a\\xff");
  EXPECT_NE(id("a\xff"), id("a\\xff"));
  EXPECT_NE(id("a\\xff"), id("a\\x5cxff"));
}

/// `ACL SETUSER app '(~a) -@all +ping)'` is one selector over keys that begin with `a)`: what stands behind such a word
/// is no rule of the user itself, where it would hide every later one.
TEST(RedisAcl, ASelectorEndsWhereTheNextBeginsWhateverItsPatternsAreCalled) {
  const json user = body("~app:* resetchannels -@all +get (~a) resetchannels -@all +ping) (%R~b +set)");
  EXPECT_EQ(user["keys"], json({"~app:*"}));
  EXPECT_EQ(user["commands"], json({"-@all", "+get"}));
  EXPECT_EQ(user["selectors"], json({"(%R~b -@all +set)", "(~a) -@all +ping)"}));
  EXPECT_NE(body("~app:* +@all (~a) -@all +ping)")["commands"], body("~app:* +get (~a) -@all +ping)")["commands"]);
}

/// If rules exceed the host's limits, both the rules and the commands are unread: without the commands a change would
/// look like the same rules in other words.
TEST(RedisAcl, RulesThatAreTooLongAreUnreadInBothReadings) {
  const auto left_out = [](const std::string& rules) {
    const auto record = acl_record(parse_acl_line("user app on " + rules), kCategories, {});
    EXPECT_LE(record.body.size(), 4u << 20);
    EXPECT_TRUE(json::parse(record.body)["enabled"]);
    std::set<std::string> out;
    for (const auto& unread : record.unread) {
      out.insert(unread.path);
      EXPECT_EQ(unread.code, DRIFTD_BUDGET);
    }
    return out;
  };
  std::string many;
  for (int i = 0; i < 120'000; ++i) many += " +select|" + std::to_string(i);
  EXPECT_EQ(left_out("-@all" + many), (std::set<std::string>{"commands", "rules"})) << "more values than a host takes";
  EXPECT_EQ(left_out("-@all +select|" + std::string(3u << 20, 'x')), (std::set<std::string>{"commands", "rules"}));
  EXPECT_EQ(left_out("-@all (-@all +select|" + std::string(3u << 20, 'x') + ")"),
            (std::set<std::string>{"selector_rules", "selectors"}));
  EXPECT_EQ(left_out("~" + std::string(5u << 20, 'x') + " -@all +get"), std::set<std::string>{"keys"});
  EXPECT_EQ(left_out("-@all +get"), std::set<std::string>{});
}

TEST(RedisAcl, OrderCountsExactlyWhereTheServerLetsIt) {
  EXPECT_EQ(commands("-@all +ping +config|get +get"), commands("-@all +get +config|get +ping"));
  EXPECT_NE(commands("-@all +config -config|set"), commands("-@all -config|set +config"));
  EXPECT_NE(commands("-@all +@read -get"), commands("-@all -get +@read"));
  EXPECT_EQ(commands("-@all +select|0 +select|1"), commands("-@all +select|1 +select|0"));
  EXPECT_NE(commands("-@all +select|0"), commands("-@all +select"));
}

TEST(RedisAcl, ARuleForCommandsToComeIsNotTheListOfTodaysCommands) {
  EXPECT_NE(commands("+@all"), commands("-@all +@slow +@fast"));
}

TEST(RedisAcl, AliasesOfKeysAndChannelsAreOne) {
  EXPECT_EQ(body("allkeys allchannels")["keys"], json({"~*"}));
  EXPECT_EQ(body("allkeys allchannels")["channels"], json({"&*"}));
  EXPECT_EQ(body("%R~x %W~x")["keys"], body("~x")["keys"]);
  EXPECT_EQ(body("%RW~x")["keys"], body("~x")["keys"]);
  EXPECT_NE(body("%R~x")["keys"], body("~x")["keys"]);
  EXPECT_EQ(body("resetchannels -@all")["flags"], json::array());
}

TEST(RedisAcl, SelectorsAreUnitsWhoseOrderSaysNothing) {
  EXPECT_EQ(body("-@all (~t:* -@all +set +get) (~k +ping)")["selectors"],
            body("-@all (~k +ping) (~t:* -@all +get +set)")["selectors"]);
  EXPECT_NE(body("-@all (~t:* +get) (~k +set)")["selectors"], body("-@all (~t:* +set) (~k +get)")["selectors"]);
}

TEST(RedisAcl, PasswordsAndFlagsStandApart) {
  const json user = body("nopass #aa11 ~orders:* -@all +get sanitize-payload");
  EXPECT_EQ(user["enabled"], true);
  EXPECT_EQ(user["passwords"], json({"aa11"}));
  EXPECT_EQ(user["flags"], json({"nopass", "sanitize-payload"}));
}

TEST(RedisAcl, WithoutTheCategoriesWhatRulesAllowIsUnread) {
  const auto record = acl_record(parse_acl_line("user app on +@all -@dangerous"), {}, "+acl|cat");
  EXPECT_FALSE(json::parse(record.body).contains("commands"));
  ASSERT_FALSE(record.unread.empty());
  EXPECT_THAT(record.unread[0].reason, testing::HasSubstr("+acl|cat"));
}

TEST(RedisAcl, RewordedRulesAndAServersNewCommandsAreNoChangeOfTheUser) {
  EXPECT_EQ(equivalent_acl_changes({{7, "rules"}}).size(), 1u);
  EXPECT_EQ(equivalent_acl_changes({{7, "commands"}}).at(0).first, 7u);
  EXPECT_TRUE(equivalent_acl_changes({{0, "rules"}, {1, "commands"}}).empty());
  EXPECT_TRUE(equivalent_acl_changes({{0, "keys"}}).empty());
}

TEST(RedisAcl, LineThatIsNoUserIsCorrupt) {
  try {
    parse_acl_line("something else");
    FAIL() << "expected a Failure";
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code, DRIFTD_CORRUPT);
  }
}

}  // namespace
}  // namespace driftd::redis
