// SPDX-License-Identifier: Apache-2.0
// Equality checked against the server itself: a value is set in one notation and declared in another, and the host's
// diff says whether the two are equal.
#include <fstream>

#include "core/judge/declaration.hpp"
#include "core/judge/expected.hpp"
#include "core/value/schema.hpp"
#include "fixture.hpp"
#include "redis/config.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

class RedisValues : public testing::Test {
 protected:
  RedisValues() : schemas_(json::parse(std::ifstream(DRIFTD_SOURCE_DIR "/plugins/redis/schema.json"))) {
    server_.grant_readme("pw-canary");
  }
  /// The paths at which the host's diff says that two bodies differ.
  std::vector<std::string> differing(const char* kind, const json& a, const json& b) const {
    const auto schema = core::KindSchema::parse(schemas_["kinds"][kind].dump());
    EXPECT_TRUE(schema.has_value()) << (schema ? "" : schema.error().message);
    std::vector<std::string> out;
    const core::ExpectedAttributes wanted{{core::Path{}, core::parse(a.dump()).value()}};
    for (const auto& change : core::diff_expected(wanted, core::parse(b.dump()).value(), **schema).changes) {
      out.push_back(change.path);
    }
    return out;
  }
  /// The body of a declaration of one directive.
  json declared(const std::string& name, const std::string& value) const {
    return {{"config", {{name, json::parse(redis::config_value(name, value))}}}};
  }
  /// The body of the ACL user `t` as the provider reads it.
  json user() {
    auto probe = redis_probe({{"address", server_.address()}});
    return probe.refresh().body("acl_user", "t");
  }
  /// Creates the ACL user `t` again with these rules and returns its body.
  json set_user(const std::string& rules) {
    EXPECT_NE(server_.command({"ACL", "DELUSER", "t"}), "");
    std::vector<std::string> words{"ACL", "SETUSER", "t"};
    std::istringstream in(rules);
    for (std::string word; in >> word;) words.push_back(word);
    EXPECT_EQ(server_.command(words), "OK") << rules;
    return user();
  }

  RedisServer server_;
  json schemas_;
};

/// A directive that is set to `set`, which is equal to `same` and differs from `other`.
struct Form {
  const char *name, *set, *same, *other;
};
const Form kForms[] = {
    {"maxmemory", "1gb", "1073741824", "1g"},
    {"maxmemory", "64mb", "65536kb", "64m"},
    {"maxmemory", "100k", "100000", "100kb"},
    {"maxmemory-clients", "5%", "5%", "6%"},
    {"maxmemory-clients", "1mb", "1048576b", "1m"},
    {"repl-backlog-size", "2MB", "2097152", "2m"},
    {"proto-max-bulk-len", "512mb", "536870912", "511mb"},
    {"client-query-buffer-limit", "1gb", "1024mb", "1g"},
    {"auto-aof-rewrite-min-size", "64mb", "67108864", "65mb"},
    {"timeout", "60", "60s", "61s"},
    {"repl-timeout", "60", "1m", "61"},
    {"busy-reply-threshold", "5000", "5s", "5001"},
    {"slowlog-log-slower-than", "10000", "10ms", "11ms"},
    {"slowlog-log-slower-than", "-1", "-1", "0"},
    {"appendonly", "no", "off", "yes"},
    {"lazyfree-lazy-eviction", "yes", "true", "no"},
    {"maxmemory-policy", "allkeys-lru", "ALLKEYS-LRU", "allkeys-lfu"},
    {"notify-keyspace-events", "KEA", "AKE", "KEAm"},
    {"notify-keyspace-events", "Ag$lE", "EA", "KA"},
    {"notify-keyspace-events", "g$lshzxetdK", "AK", "g$lshzxetK"},
    {"save", "3600 1 300 100", "300 100 3600 1", "3600 1"},
    {"client-output-buffer-limit", "replica 256mb 64mb 60", "slave 268435456 67108864 1m", "replica 256m 64mb 60"},
    {"oom-score-adj-values", "0 200 800", "0  200  800", "0 800 200"},
    {"latency-tracking-info-percentiles", "50 99.0 99.9", "99.9 50.0 99", "50 99"},
    {"maxclients", "10000", "10000", "9999"},
    {"list-max-listpack-size", "-2", "-2", "-3"}};

TEST_F(RedisValues, OneFormThatIsSetEqualsAnotherThatIsDeclaredAndATwinDoesNot) {
  auto probe = redis_probe({{"address", server_.address()}});
  for (const auto& form : kForms) {
    ASSERT_EQ(server_.command({"CONFIG", "SET", form.name, form.set}), "OK") << form.name << " " << form.set;
    const json seen = probe.refresh().body("server", "server");
    EXPECT_TRUE(differing("server", declared(form.name, form.same), seen).empty())
        << form.name << ": " << form.set << " must be equal to " << form.same << ", the server has "
        << seen["config"][form.name];
    EXPECT_FALSE(differing("server", declared(form.name, form.other), seen).empty())
        << form.name << ": " << form.set << " must differ from " << form.other;
  }
}

TEST_F(RedisValues, EveryDirectiveOfThisServerHasATypeThatReadsItsValue) {
  const auto schema = core::KindSchema::parse(schemas_["kinds"]["server"].dump()).value();
  auto probe = redis_probe({{"address", server_.address()}});
  const json config = probe.refresh().body("server", "server")["config"];
  EXPECT_GT(config.size(), 150u);
  for (const auto& [name, value] : config.items()) {
    if (value.is_object()) continue;  // each of its members has a type
    const auto path = core::Path().child("config").child(name);
    EXPECT_NE(schema->rule(path).path.text(), "config.*") << name << " has no type of its own";
    if (!value.is_string()) continue;
    EXPECT_TRUE(core::normalise(schema->rule(path), core::parse(value.dump()).value()).has_value())
        << name << " = " << value;
  }
}

TEST_F(RedisValues, CommandRulesInOtherWordsAreEqualAndTwinsAreNot) {
  std::string expanded = "+@all";
  std::istringstream dangerous(server_.command({"ACL", "CAT", "dangerous"}));
  for (std::string command; dangerous >> command;) expanded += " -" + command;
  const std::pair<std::string, std::string> equal[] = {
      {"+@all -@dangerous", expanded},
      {"-@all +get +set", "-@all +set +get"},
      {"allcommands", "+@all"},
      {"-@all +config", "-@all +config|get +config|set +config|rewrite +config|resetstat +config|help"},
      {"+@read +@write -@read", "+@write"}};
  for (const auto& [a, b] : equal) {
    const json left = set_user("on " + a)["commands"];
    EXPECT_EQ(left, set_user("on " + b)["commands"]) << a << " | " << b;
  }
  const std::pair<const char*, const char*> twins[] = {{"+@all -@dangerous", "+@all -@dangerous +keys"},
                                                       {"-@all +config -config|set", "-@all -config|set +config"},
                                                       {"-@all +@read -get", "-@all -get +@read"},
                                                       {"-@all +select|0", "-@all +select"}};
  for (const auto& [a, b] : twins)
    EXPECT_NE(set_user("on " + std::string(a))["commands"], set_user(std::string("on ") + b)["commands"]) << a;
}

TEST_F(RedisValues, WhatIsSaidToBeAllowedIsWhatTheServerAllows) {
  const std::string rules = "+@all -@dangerous -@write +set -config +config|get";
  const json commands = set_user("on ~* nopass " + rules)["commands"];
  const auto denied = [&](const std::string& command) {
    return std::find(commands.begin(), commands.end(), "-" + command) != commands.end();
  };
  for (const auto& [command, words] :
       std::map<std::string, std::vector<std::string>>{{"get", {"GET", "k"}},
                                                       {"set", {"SET", "k", "v"}},
                                                       {"del", {"DEL", "k"}},
                                                       {"keys", {"KEYS", "x"}},
                                                       {"config|get", {"CONFIG", "GET", "x"}},
                                                       {"config|set", {"CONFIG", "SET", "x", "y"}},
                                                       {"flushall", {"FLUSHALL"}}}) {
    std::vector<std::string> dry{"ACL", "DRYRUN", "t"};
    dry.insert(dry.end(), words.begin(), words.end());
    EXPECT_EQ(server_.command(dry) != "OK", denied(command)) << command;
  }
}

TEST_F(RedisValues, KeysChannelsSelectorsAndFlagsInOtherWordsAreEqual) {
  const std::pair<const char*, const char*> equal[] = {{"%R~x %W~x", "~x"},
                                                       {"%RW~x", "~x"},
                                                       {"~a ~b &x &y", "~b ~a &y &x"},
                                                       {"allkeys allchannels", "~* &*"},
                                                       {"~a resetkeys ~b", "~b"},
                                                       {"&a resetchannels", "resetchannels"},
                                                       {"(~k +get) (+set ~j)", "(~j +set) (+get ~k)"}};
  for (const auto& [a, b] : equal) {
    EXPECT_TRUE(differing("acl_user", set_user(std::string("on ") + a), set_user(std::string("on ") + b)).empty())
        << a << " | " << b;
  }
  for (const auto& [a, b] : {std::pair{"%R~x", "~x"}, {"~a", "~b"}, {"(~k +get)", "(~k +set)"}, {"&a", "&b"}}) {
    EXPECT_FALSE(differing("acl_user", set_user(std::string("on ") + a), set_user(std::string("on ") + b)).empty())
        << a << " | " << b;
  }
}

TEST_F(RedisValues, UsersReadTheSameOnAnotherServer) {
  set_user("on >secret +@all -@dangerous +keys +config|get ~a");
  const json before = user();
  const std::string line = server_.command({"ACL", "LIST"});
  RedisServer again;
  again.grant_readme("pw-canary");
  again.command({"ACL", "SETUSER", "t", "on", ">secret", "+@all", "-@dangerous", "+config|get", "+keys", "~a"});
  EXPECT_EQ(redis_probe({{"address", again.address()}}).refresh().body("acl_user", "t"), before) << line;
}

}  // namespace
}  // namespace driftd::test
