// SPDX-License-Identifier: Apache-2.0
// Values are put back into a real server, with the rights that the README asks for and no others.
#include <gmock/gmock.h>
#include <filesystem>
#include <optional>
#include <sstream>

#include "fixture.hpp"
#include "support/cutting_relay.hpp"
#include "support/process.hpp"
#include "support/put_back.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const sdk::Identity kServer{"server", "server"}, kApp{"acl_user", "app"};

class RedisApply : public testing::Test {
 protected:
  explicit RedisApply(const std::vector<std::string>& options = {}) : server_(options) {
    server_.grant_readme("pw-canary");
    server_.command({"ACL", "SETUSER", "app", "on", ">s3cret-of-app", "~app:*", "&news", "-@all", "+get"});
  }
  ProviderProbe probe(json settings = json::object()) const {
    settings["address"] = server_.address();
    return redis_probe(settings);
  }
  void grant_enforce() const {
    const std::string grant = readme_block("redis", "### To put values back", "redis");
    std::istringstream words(grant.substr(0, grant.find('\n')));
    std::vector<std::string> command;
    for (std::string word; words >> word;) command.push_back(word);
    ASSERT_EQ(server_.command(command), "OK");
  }
  std::string get(const std::string& name) const {
    const std::string answer = server_.command({"CONFIG", "GET", name});
    return answer.substr(answer.find('\n') + 1);
  }
  std::string rules() const { return server_.command({"ACL", "LIST"}); }

  RedisServer server_;
};

TEST_F(RedisApply, DriftOfSeveralDirectivesIsPutBackByOneCommand) {
  grant_enforce();
  auto p = probe();
  const json should = p.refresh().body("server", "server");
  server_.command(
      {"CONFIG", "SET", "maxmemory", "64mb", "maxclients", "99", "client-output-buffer-limit", "pubsub 1 2 3"});
  const json is = p.refresh().body("server", "server");
  const auto request = put_back(kServer, is, should, "k");
  ASSERT_GE(request.changes.size(), 4u) << "three parts of a limit, maxmemory";
  const auto planned = p.apply(dry(request));
  ASSERT_EQ(planned.status, DRIFTD_OK) << planned.reason();
  EXPECT_EQ(planned.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << planned.reason();
  EXPECT_FALSE(planned.outcome.changed);
  ASSERT_EQ(planned.outcome.commands.size(), 1u);
  EXPECT_THAT(planned.outcome.commands[0], HasSubstr("CONFIG SET client-output-buffer-limit \"normal 0 0 0"));
  EXPECT_THAT(planned.outcome.commands[0], HasSubstr(" maxmemory 0"));
  EXPECT_THAT(planned.outcome.undo, ElementsAre(HasSubstr(" maxmemory 67108864")));
  EXPECT_EQ(p.refresh().body("server", "server"), is) << "a dry run changes nothing";

  const auto done = p.apply(request);
  EXPECT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_TRUE(done.outcome.changed);
  EXPECT_EQ(done.outcome.commands, planned.outcome.commands) << "what was shown is what runs";
  EXPECT_EQ(p.refresh().body("server", "server"), should);
}

TEST_F(RedisApply, TheUndoTakesTheChangeBack) {
  grant_enforce();
  auto p = probe();
  const json should = p.refresh().body("server", "server");
  server_.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  const json is = p.refresh().body("server", "server");
  const auto done = p.apply(put_back(kServer, is, should, "k"));
  ASSERT_THAT(done.outcome.undo, ElementsAre("CONFIG SET maxmemory-policy allkeys-lru"));
  EXPECT_EQ(get("maxmemory-policy"), "noeviction");
  server_.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  EXPECT_EQ(p.refresh().body("server", "server"), is);
}

TEST_F(RedisApply, TheSameKeyChangesNothingMoreAndAnotherChangeUnderItIsRefused) {
  grant_enforce();
  auto p = probe();
  const json should = p.refresh().body("server", "server");
  server_.command({"CONFIG", "SET", "maxmemory", "64mb"});
  const auto request = put_back(kServer, p.refresh().body("server", "server"), should, "k");
  EXPECT_TRUE(p.apply(request).outcome.changed);
  server_.command({"CONFIG", "SET", "maxmemory", "64mb"});
  const auto again = p.apply(request);
  EXPECT_EQ(again.status, DRIFTD_OK);
  EXPECT_FALSE(again.outcome.changed);
  EXPECT_EQ(get("maxmemory"), "67108864") << "a key is one change";
  auto other = request;
  other.changes[0].new_value = "\"1\"";
  EXPECT_EQ(p.apply(other).status, DRIFTD_INVALID);
}

TEST_F(RedisApply, AValueThatMovedSinceIsAConflictAndOneThatIsThereIsDone) {
  grant_enforce();
  auto p = probe();
  const json should = p.refresh().body("server", "server");
  server_.command({"CONFIG", "SET", "maxmemory", "64mb", "hz", "20"});
  auto request = put_back(kServer, p.refresh().body("server", "server"), should, "k");
  server_.command({"CONFIG", "SET", "hz", "30"});
  const auto stale = p.apply(request);
  EXPECT_EQ(stale.status, DRIFTD_CONFLICT);
  EXPECT_THAT(stale.reason(), HasSubstr("config.hz changed since"));
  EXPECT_EQ(get("maxmemory"), "67108864") << "all or none";
  server_.command({"CONFIG", "SET", "maxmemory", "0", "hz", "10"});
  const auto there = p.apply(request);
  EXPECT_EQ(there.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS});
  EXPECT_FALSE(there.outcome.changed);
}

TEST_F(RedisApply, WhatTheServerRefusesIsSaidAndNothingIsHalfDone) {
  grant_enforce();
  auto p = probe();
  sdk::Apply request{false,
                     kServer,
                     "",
                     "k",
                     {{0, "config.maxmemory", "\"0\"", "\"5000000\""}, {1, "config.hz", "\"10\"", "\"many\""}}};
  const auto refused = p.apply(request);
  EXPECT_EQ(refused.status, DRIFTD_OK);
  EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(refused.reason(), HasSubstr("hz"));
  EXPECT_THAT(refused.reason(), HasSubstr("nothing was changed"));
  EXPECT_FALSE(refused.outcome.changed);
  EXPECT_EQ(get("maxmemory"), "0");
  request.changes[1] = {1, "config.databases", "\"16\"", "\"32\""};
  EXPECT_THAT(p.apply(dry(request)).reason(), HasSubstr("config.databases cannot be set"));
  request.changes[1] = {1, "version", p.refresh().body("server", "server")["version"].dump(), "\"6\""};
  EXPECT_THAT(p.apply(request).reason(), HasSubstr("version cannot be set"));
  EXPECT_EQ(get("maxmemory"), "0");
}

TEST_F(RedisApply, AMissingRightIsNamed) {
  auto p = probe();
  const sdk::Apply request{false, kServer, "", "k", {{0, "config.maxmemory", "\"0\"", "\"5000000\""}}};
  const auto refused = p.apply(request);
  EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(refused.reason(), HasSubstr("grant +config|set"));
  EXPECT_EQ(get("maxmemory"), "0");
  const auto user = p.apply({false, kApp, "", "k2", {{0, "enabled", "true", "false"}}});
  EXPECT_THAT(user.reason(), HasSubstr("grant +acl|setuser"));
}

TEST_F(RedisApply, AUserGetsBackEveryPartButItsPassword) {
  grant_enforce();
  server_.command({"ACL", "SETUSER", "app", "sanitize-payload", "(~sel:* -@all +set)"});
  auto p = probe();
  const std::string before = rules();
  const json should = p.refresh().body("acl_user", "app");
  server_.command({"ACL", "SETUSER", "app", "off", "~*", "&*", "+@all", "skip-sanitize-payload", "clearselectors"});
  const json is = p.refresh().body("acl_user", "app");
  const auto request = put_back(kApp, is, should, "k");
  ASSERT_GE(request.changes.size(), 7u);
  const auto done = p.apply(request);
  ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_EQ(p.refresh().body("acl_user", "app"), should);
  EXPECT_EQ(rules(), before) << "with the same password, which no command names";
  for (const auto& command : done.outcome.commands) EXPECT_EQ(command.find('#'), std::string::npos) << command;
  ASSERT_EQ(done.outcome.undo.size(), 1u);
  EXPECT_THAT(done.outcome.undo[0], HasSubstr("ACL SETUSER app off"));
}

TEST_F(RedisApply, AUserThatIsGoneIsNotCreated) {
  grant_enforce();
  auto p = probe();
  const sdk::Apply request{false, kApp, "", "k", {{0, "enabled", "true", "false"}}};
  server_.command({"ACL", "DELUSER", "app"});
  const auto gone = p.apply(request);
  EXPECT_EQ(gone.status, DRIFTD_NOT_FOUND);
  EXPECT_EQ(rules().find("user app"), std::string::npos);
}

/// Between the reading and ACL SETUSER, which creates a user that is not there.
TEST_F(RedisApply, AUserThatIsRemovedAtTheLastMomentIsNotCreated) {
  grant_enforce();
  CuttingRelay relay(server_.port());
  auto p = redis_probe({{"address", "127.0.0.1:" + std::to_string(relay.port())}});
  std::string removed;
  relay.before("SETUSER", [&] { removed = server_.command({"ACL", "DELUSER", "app"}); });
  const auto gone = p.apply({false, kApp, "", "k", {{0, "channels", R"(["&news"])", R"(["&other"])"}}});
  EXPECT_EQ(removed, "1") << "the test's own part";
  EXPECT_EQ(gone.status, DRIFTD_NOT_FOUND) << gone.reason();
  EXPECT_THAT(gone.reason(), HasSubstr("was removed while"));
  EXPECT_EQ(rules().find("user app"), std::string::npos) << rules();
}

TEST_F(RedisApply, APasswordIsNeverSet) {
  grant_enforce();
  auto p = probe();
  const std::string before = rules();
  for (const char* path : {"passwords", "flags"}) {
    const json is = p.refresh().body("acl_user", "app")[path];
    json should = is;
    should.push_back("nopass");
    const auto refused = p.apply({false, kApp, "", path, {{0, path, is.dump(), should.dump()}}});
    EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << path;
  }
  const auto refused = p.apply({false, kServer, "", "k", {{0, "config.requirepass", "\"\"", "\"x\""}}});
  EXPECT_THAT(refused.reason(), HasSubstr("credential"));
  EXPECT_EQ(rules(), before);
}

TEST_F(RedisApply, KindsThatAreOnlyReadAreRefused) {
  grant_enforce();
  auto p = probe();
  const auto refused =
      p.apply({false, {"replication", "replication"}, "", "k", {{0, "role", "\"primary\"", "\"replica\""}}});
  EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(refused.reason(), HasSubstr("replication is not set by driftd"));
  EXPECT_EQ(p.apply({false, {"table", "x"}, "", "k2", {{0, "a", "1", "2"}}}).status, DRIFTD_INVALID);
}

/// Each directive that a running server takes is moved and put back; what is read afterwards is what was read before.
TEST_F(RedisApply, EveryDirectiveThatCanBeSetComesBackAsItWas) {
  grant_enforce();
  auto p = probe();
  const json should = p.refresh().body("server", "server");
  int set = 0;
  for (const auto& [name, value] : should["config"].items()) {
    if (!value.is_string() || name == "port" || name == "bind" || name == "maxclients") continue;
    const std::string text = value.get<std::string>();
    const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    const std::string other = text == "yes"  ? "no"
                              : text == "no" ? "yes"
                              : number       ? std::to_string(std::stoull(text) + 1)
                                             : "";
    if (other.empty() || server_.command({"CONFIG", "SET", name, other}) != "OK") continue;
    const json is = p.read({kServer}).body("server", "server");
    if (is == should) continue;  // the server took it for the same value
    const auto done = p.apply(put_back(kServer, is, should, "k-" + name));
    ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << name << ": " << done.reason();
    EXPECT_EQ(p.read({kServer}).body("server", "server"), should) << name;
    ++set;
  }
  EXPECT_GT(set, 60);
}

/// A server with a configuration file of its own.
class RedisApplyWithFile : public RedisApply {
 protected:
  RedisApplyWithFile() : RedisApply({make_conf()}) {
    grant_enforce();
    server_.command({"ACL", "SETUSER", "driftd", "+config|rewrite"});
    server_.command({"CONFIG", "SET", "maxmemory", "64mb"});
  }
  static std::string make_conf() {
    kConf.emplace();
    return kConf->write("redis.conf", "maxmemory 100mb\n");
  }
  sdk::Apply request() const {
    return {false, kServer, "", "k", {{0, "config.maxmemory", "\"67108864\"", "\"104857600\""}}};
  }
  static std::string conf() { return kConf->file("redis.conf"); }
  static inline std::optional<TempDir> kConf;  ///< one at a time: the base needs its file before this is made
  static inline const json kAuto{{"apply", {{"rewrite", "auto"}}}};
};

TEST_F(RedisApplyWithFile, TheFileIsRewrittenSoThatARestartKeepsTheValue) {
  auto p = probe(kAuto);
  const auto done = p.apply(request());
  ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_THAT(done.outcome.commands, ElementsAre("CONFIG SET maxmemory 104857600", "CONFIG REWRITE"));
  EXPECT_THAT(done.outcome.undo, ElementsAre("CONFIG SET maxmemory 67108864", "CONFIG REWRITE"));
  EXPECT_THAT(read_file(conf()), HasSubstr("maxmemory 100mb"));
  EXPECT_THAT(read_file(conf()), HasSubstr("CONFIG REWRITE")) << "the server's own mark";
  EXPECT_THAT(done.outcome.details, IsEmpty());
}

/// CONFIG REWRITE would make other values last, too, which nobody has approved.
TEST_F(RedisApplyWithFile, ItIsLeftAloneUnlessTheSettingsSayOtherwise) {
  server_.command({"CONFIG", "SET", "hz", "33"});
  auto p = probe();
  const auto planned = p.apply(dry(request()));
  EXPECT_THAT(planned.outcome.details, testing::Contains(testing::Key("not saved")));
  const auto done = p.apply(request());
  EXPECT_THAT(done.outcome.commands, ElementsAre("CONFIG SET maxmemory 104857600"));
  EXPECT_THAT(done.outcome.details, testing::Contains(testing::Key("not saved")));
  EXPECT_EQ(read_file(conf()), "maxmemory 100mb\n");
}

TEST_F(RedisApplyWithFile, WhereTheFileCannotBeWrittenTheValueIsTakenBack) {
  std::filesystem::remove(conf());
  std::filesystem::create_directory(conf());
  auto p = probe(kAuto);
  const auto refused = p.apply(request());
  std::filesystem::remove(conf());
  EXPECT_EQ(refused.status, DRIFTD_OK);
  EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(refused.reason(), HasSubstr("CONFIG REWRITE: "));
  EXPECT_THAT(refused.reason(), HasSubstr("was taken back"));
  EXPECT_FALSE(refused.outcome.changed);
  EXPECT_THAT(refused.outcome.left, IsEmpty());
  EXPECT_EQ(get("maxmemory"), "67108864");
}

TEST_F(RedisApplyWithFile, WithoutTheRightToRewriteTheValueIsTakenBackAndTheRightIsNamed) {
  server_.command({"ACL", "SETUSER", "driftd", "-config|rewrite"});
  auto p = probe(kAuto);
  const auto refused = p.apply(request());
  EXPECT_THAT(refused.reason(), HasSubstr("grant +config|rewrite"));
  EXPECT_EQ(get("maxmemory"), "67108864");
}

/// The undo is a SETUSER, too.
TEST_F(RedisApplyWithFile, AUserThatIsRemovedBeforeItIsTakenBackIsNotCreated) {
  server_.command({"ACL", "SETUSER", "driftd", "-config|rewrite"});
  CuttingRelay relay(server_.port());
  json settings = kAuto;
  settings["address"] = "127.0.0.1:" + std::to_string(relay.port());
  auto p = redis_probe(settings);
  std::string removed;
  relay.before("REWRITE", [&] { removed = server_.command({"ACL", "DELUSER", "app"}); });
  const auto failed = p.apply({false, kApp, "", "k", {{0, "channels", R"(["&news"])", R"(["&other"])"}}});
  EXPECT_EQ(removed, "1") << "the test's own part";
  EXPECT_EQ(failed.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << failed.reason();
  EXPECT_THAT(failed.outcome.left, ElementsAre("channels"));
  EXPECT_EQ(rules().find("user app"), std::string::npos) << rules();
}

}  // namespace
}  // namespace driftd::test
