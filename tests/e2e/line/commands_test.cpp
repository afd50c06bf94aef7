// SPDX-License-Identifier: Apache-2.0
// The commands `once`, `validate` and `reload`, and configurations that are edited while the agent runs or is stopped.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "line_fixture.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(Line, OnceComparesWithARecordAndExitsAsTheTableSays) {
  Agent a = agent("30s", terraform_backend(state_), "  desk: { type: notifications }\n");
  const std::string record = dir_.file("record.json");
  const auto once = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {Agent::binary(), "--config", a.config(), "once"});
    return run(words);
  };
  const Output first = once({});
  EXPECT_EQ(first.code, 0) << first.out << first.err;
  const Output recorded = once({"--record", record});
  EXPECT_EQ(recorded.code, 0) << recorded.out << recorded.err;
  EXPECT_EQ(once({"--baseline", record}).code, 0);
  replace_file(state_, tfstate(7, 9));
  const Output drifted = once({"--baseline", record});
  EXPECT_EQ(drifted.code, 1) << drifted.out << drifted.err;
  EXPECT_THAT(drifted.out, HasSubstr("partitions"));
  EXPECT_EQ(once({}).code, 1);
  std::filesystem::remove(state_);
  EXPECT_EQ(once({"--baseline", record}).code, 3);
}

TEST_F(Line, OnceOnAFreshStoreFindsWhatAnExpectationForbids) {
  const std::string expecting = "    expect: [ { match: { kind: instance }, where: { partitions: 9 } } ]\n";
  const auto once = [&](const std::string& backends, std::vector<std::string> words) {
    std::filesystem::remove_all(dir_.file("data"));
    const Agent fresh = agent("30s", backends, "  desk: { type: notifications }\n");
    words.insert(words.begin(), {Agent::binary(), "--config", fresh.config(), "once"});
    return run(words);
  };
  const Output broken = once(terraform_backend(state_) + expecting, {});
  EXPECT_EQ(broken.code, 1) << broken.out << broken.err;
  EXPECT_THAT(broken.out, HasSubstr("partitions"));
  const Output recorded = once(terraform_backend(state_) + expecting, {"--record", dir_.file("record.json")});
  EXPECT_EQ(recorded.code, 1) << recorded.out << recorded.err;
  replace_file(state_, tfstate(7, 9));
  EXPECT_EQ(once(terraform_backend(state_) + expecting, {}).code, 0);
}

TEST_F(Line, RecordOfAPipelineWithoutAnInstallationComparesBesideItsKey) {
  const Agent a(dir_, "backends:\n" + terraform_backend(state_) +
                          "    policy: { credential: manual }\nsinks:\n  desk: { type: notifications }\n");
  const std::string record = dir_.file("base.json");
  const auto once = [&](const char* flag) {
    return run({Agent::binary(), "--config", a.config(), "once", flag, record});
  };
  const Output recorded = once("--record");
  EXPECT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_THAT(recorded.err, HasSubstr(record + ".key"));
  EXPECT_EQ(std::filesystem::status(record + ".key").permissions(), std::filesystem::perms(0600));
  EXPECT_FALSE(std::filesystem::exists(a.data_dir() + "/store.db"));
  const Output equal = once("--baseline");
  EXPECT_EQ(equal.code, 0) << equal.out << equal.err;
  replace_file(state_, tfstate(7, 3, "another-secret"));
  EXPECT_EQ(once("--baseline").code, 1) << "the changed secret is not seen under the key of the record";
  std::filesystem::remove(record + ".key");
  const Output keyless = once("--baseline");
  EXPECT_EQ(keyless.code, 69);
  EXPECT_THAT(keyless.err, HasSubstr("base.json.key"));
}

TEST_F(Line, ReferenceInASettingThatIsNoSecretIsItsValue) {
  Agent a(
      dir_,
      "backends:\n  - name: cache\n    provider: redis\n    settings: { address: \"${env:REDIS_ADDRESS}\", username: "
      "driftd, password: \"${env:REDIS_PASSWORD}\" }\nsinks:\n  desk: { type: notifications }\n",
      {{"REDIS_ADDRESS", redis_.address()}, {"REDIS_PASSWORD", "redis-canary"}});
  ASSERT_NO_FATAL_FAILURE(start(a, {"cache"}));
  EXPECT_EQ(a.backend("cache")->at("state"), "ok") << a.log();
}

TEST_F(Line, ValidateNeedsNoSecretsAndNamesThePluginsThatItRefuses) {
  const auto text = [](const std::string& plugins) {
    return "agent: { plugin_dirs: [\"" + plugins +
           "\"] }\nbackends:\n  - { name: cache, provider: redis }\nsinks:\n"
           "  hook: { type: webhook, url: \"https://example.org/in\", secret: \"${env:NOT_THERE}\" }\n";
  };
  const auto validate = [&](const std::string& plugins, const char* how = "--no-secrets") {
    return run({Agent::binary(), "validate", "--no-secrets", how, "--config", dir_.write("ci.yaml", text(plugins))});
  };
  const Output ci = validate(Agent::build("providers"));
  EXPECT_EQ(ci.code, 0) << ci.out << ci.err;
  const std::string open = dir_.file("open");
  std::filesystem::create_directory(open);
  std::filesystem::copy(Agent::build("providers/redis.so"), open);
  std::filesystem::permissions(open, std::filesystem::perms::all);
  const Output refused = validate(open), strict = validate(open, "--strict");
  EXPECT_EQ(refused.code, 0) << "the agent starts without a plugin, and its unit asks validate first";
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("warning"), HasSubstr("is writable by others")));
  EXPECT_EQ(strict.code, 78);
  EXPECT_THAT(strict.err, testing::HasSubstr("is writable by others"));
}

TEST_F(Line, ValidateNamesTheGroupsThatTheStartWouldNotFind) {
  const auto validate = [&](const std::string& admin, const std::string& more = {}, const char* how = "--strict") {
    return run({Agent::binary(), "validate", how, "--config",
                dir_.write("groups.yaml", "agent: { plugin_dirs: [\"" + Agent::build("providers") + "\"] }\nadmin: { " +
                                              admin + " }\n" + more)});
  };
  for (const char* key : {"socket_group", "read_group", "decide_group"}) {
    const Output wrong = validate(std::string(key) + ": no-such-group");
    EXPECT_EQ(wrong.code, 78) << key;
    EXPECT_THAT(wrong.err, testing::AllOf(HasSubstr("groups.yaml:2:"), HasSubstr("no-such-group"), HasSubstr(key)));
    EXPECT_EQ(validate(std::string(key) + ": nogroup").code, 0) << key;
    EXPECT_EQ(validate(std::string(key) + ": no-such-group", {}, "--no-secrets").code, 0) << "not the agent's machine";
  }
  const Output grant =
      validate("read_group: nogroup", "resolve: { grants: [{ group: no-such-group, backends: [\"*\"] }] }\n");
  EXPECT_EQ(grant.code, 78);
  EXPECT_THAT(grant.err, testing::AllOf(HasSubstr("no-such-group"), HasSubstr("resolve.grants")));
}

TEST_F(Line, ExamplesAreValidForTheirSinksAndPlugins) {
  dir_.write("secrets/billing-db", "billing-secret");
  dir_.write("secrets/redis", "redis-secret");
  dir_.write("secrets/keycloak", "keycloak-secret");
  for (const char* name : {"driftd.yaml", "minimal.yaml", "keycloak.yaml"}) {
    std::string text = read_file(std::string(DRIFTD_SOURCE_DIR) + "/examples/" + name);
    for (const auto& [from, to] :
         std::map<std::string, std::string>{{"/usr/lib/driftd/providers", Agent::build("providers")},
                                            {"/run/secrets/redis", dir_.file("secrets/redis")},
                                            {"/run/secrets/keycloak", dir_.file("secrets/keycloak")},
                                            {"driftd-read", "nogroup"},
                                            {"driftd-decide", "nogroup"}}) {
      if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
    }
    if (text.find("\nagent:") == std::string::npos) {
      text += "agent: { plugin_dirs: [\"" + Agent::build("providers") + "\"] }\n";
    }
    const Output checked =
        run({Agent::binary(), "validate", "--config", dir_.write(name, text)},
            {{"HOOK_SECRET", "a-hook-secret-of-some-length"}, {"CREDENTIALS_DIRECTORY", dir_.file("secrets")}});
    EXPECT_EQ(checked.code, 0) << name << "\n" << checked.out << checked.err;
  }
}

TEST_F(Line, ReloadIsWholeOrNotAtAll) {
  Agent a = agent("200ms", terraform_backend(state_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  const std::string good = read_file(a.config());
  std::ofstream(a.config()) << good << "nonsense: 1\n";
  const Output broken = run({Agent::binary(), "reload", "--config", a.config()});
  EXPECT_EQ(broken.code, 2) << "a broken config still names its agent";
  EXPECT_THAT(broken.err, testing::AllOf(HasSubstr("unknown key 'nonsense'"), Not(HasSubstr("\\x0a"))));
  std::string ignoring = good;
  ignoring.replace(ignoring.find("interval: 200ms"), 15, "interval: 200ms\n  ignore: [\"partitions\"]");
  std::ofstream(a.config()) << ignoring;
  a.signal(SIGHUP);
  ASSERT_TRUE(eventually([&] { return a.log().find("reload: ") != std::string::npos; })) << a.log();
  replace_file(state_, tfstate(7, 8));
  const auto before = a.backend("platform")->at("cycles").get<std::int64_t>();
  ASSERT_TRUE(eventually([&] { return a.backend("platform")->at("cycles").get<std::int64_t>() > before + 3; }));
  EXPECT_THAT(drifts(a, "platform"), testing::IsEmpty());
  EXPECT_EQ(a.log().find("needs a restart"), std::string::npos) << a.log();
}

TEST_F(Line, AReloadNamesWhatWaitsForARestartUntilThen) {
  Agent a = agent("200ms", terraform_backend(state_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  const auto reload = [&] { return run({Agent::binary(), "reload", "--config", a.config()}); };
  const std::string good = read_file(a.config());
  std::string other = good;
  other.replace(other.find("interval: 200ms"), 15, "interval: 200ms\n  ignore: [\"partitions\"]");
  other += "log: { level: debug }\n";
  std::ofstream(a.config()) << other;
  const Output reloaded = reload();
  EXPECT_EQ(reloaded.code, 0);
  EXPECT_THAT(reloaded.out, HasSubstr("reloaded: rules of backend platform"));
  EXPECT_THAT(reloaded.err, HasSubstr("log.level  " + a.config() + ":"));
  EXPECT_THAT(a.cli({"status"}).out, HasSubstr("needs a restart: log.level"));
  EXPECT_EQ(reload().out, "reloaded\n") << "the rules are in use already";
  EXPECT_THAT(reload().err, HasSubstr("log.level")) << "the level still needs a restart";
  std::ofstream(a.config()) << good;
  EXPECT_EQ(reload().err, "");
  EXPECT_THAT(a.cli({"status"}).out, Not(HasSubstr("needs a restart")));
  std::ofstream(a.config()) << other;
  EXPECT_THAT(reload().err, HasSubstr("log.level"));
  EXPECT_EQ(a.stop(), 0);
  a.start();
  ASSERT_TRUE(eventually([&] { return a.backend("platform").has_value(); }, std::chrono::seconds(40))) << a.log();
  EXPECT_THAT(a.cli({"status"}).out, Not(HasSubstr("needs a restart")));
}

/// If a backend is removed from the configuration, the next start closes its open drifts. `validate` warns of that.
TEST_F(Line, ValidateNamesABackendThatLeftWithOpenDrifts) {
  Agent a = agent("200ms", terraform_backend(state_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  replace_file(state_, tfstate(7, 8));
  ASSERT_TRUE(eventually([&] { return !drifts(a, "platform").empty(); })) << a.log();
  EXPECT_EQ(a.stop(), 0);
  const auto validate = [&](const std::string& how) {
    return run({Agent::binary(), "--config", a.config(), "validate", how});
  };
  EXPECT_THAT(validate("--strict").err, Not(HasSubstr("not in this file"))) << "the backend is still configured";
  std::string text = read_file(a.config());
  text.replace(text.find("name: platform"), 14, "name: another");
  std::ofstream(a.config()) << text;
  const Output strict = validate("--strict");
  EXPECT_EQ(strict.code, 78);
  EXPECT_THAT(strict.err, HasSubstr("backend 'platform' is not in this file any more, and has "));
  text.replace(text.find("name: another"), 13, "name: another\n    was: platform");
  std::ofstream(a.config()) << text;
  EXPECT_THAT(validate("--strict").err, Not(HasSubstr("not in this file"))) << "the backend was renamed, not removed";
}

TEST_F(Line, EditedExcludeMovesOutOfScopeAndDeletesNothing) {
  Agent a = agent("200ms", redis_backend(redis_) + terraform_backend(state_), "  desk: { type: notifications }\n");
  redis_.command({"ACL", "SETUSER", "app", "on", ">p"});
  ASSERT_NO_FATAL_FAILURE(start(a, {"cache", "platform"}));
  redis_.command({"ACL", "SETUSER", "app", "off"});
  ASSERT_TRUE(eventually([&] { return drifts(a, "cache").size() == 1; })) << a.log();
  EXPECT_EQ(a.stop(), 0);
  std::string narrow = read_file(a.config());
  narrow.replace(narrow.find("username: driftd"), 16, "exclude: [\"acl_user\"], username: driftd");
  narrow.replace(narrow.find("{ path: "), 8, "{ exclude: [\"instance/*\"], path: ");
  std::ofstream(a.config()) << narrow;
  a.start();
  ASSERT_TRUE(eventually([&] {
    const auto cache = a.backend("cache"), platform = a.backend("platform");
    return cache && platform && cache->at("cycles") > 3 && platform->at("cycles") > 3;
  })) << a.log();
  EXPECT_THAT(a.rows({"drifts"}), testing::IsEmpty());
  for (const auto& drift : a.rows({"drifts", "--all"})) EXPECT_NE(drift["operation"], "deleted") << drift.dump();
  EXPECT_EQ(a.rows({"drifts", "--all"}).size(), 1u);
  const nlohmann::json coverage = a.backend("cache")->at("coverage");
  for (const auto& kind : coverage) {
    EXPECT_NE(kind["kind"], "acl_user");
    EXPECT_TRUE(kind["complete"]) << kind.dump();
  }
}

}  // namespace
}  // namespace driftd::test
