// SPDX-License-Identifier: Apache-2.0
// A failure makes what could not be read unknown, names the missing right, and is never taken for a deletion.
#include <csignal>

#include "fixture.hpp"
#include "support/certificates.hpp"
#include "support/cutting_relay.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RedisFailure : public testing::Test {
 protected:
  RedisFailure() { server_.grant_readme("pw-canary"); }
  RedisServer server_;
};

/// Expects that the refresh neither reports a resource as gone nor claims that nothing changed.
void expect_nothing_concluded(const Collected& seen) {
  EXPECT_EQ(seen.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  EXPECT_FALSE(seen.unchanged);
}

TEST_F(RedisFailure, EachRightThatIsTakenNamesItselfAndOnlyItsKindIsIncomplete) {
  struct Right {
    const char *rule, *kind;
  };
  for (const auto& [rule, kind] : {Right{"config|get", "server"}, Right{"acl|list", "acl_user"}}) {
    auto probe = redis_probe({{"address", server_.address()}});
    const auto before = probe.refresh();
    server_.command({"ACL", "SETUSER", "driftd", "-" + std::string(rule)});
    const auto after = probe.refresh(before.cursor);
    ASSERT_NE(after.diagnostic(DRIFTD_DENIED), nullptr) << rule;
    EXPECT_EQ(after.diagnostic(DRIFTD_DENIED)->right, "+" + std::string(rule));
    EXPECT_EQ(after.complete.count(kind), 0u);
    EXPECT_EQ(after.complete.size(), 4u);
    EXPECT_TRUE(after.cursor.empty());
    expect_nothing_concluded(after);
    EXPECT_EQ(probe.read({{kind, "driftd"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
    server_.command({"ACL", "SETUSER", "driftd", "+" + std::string(rule)});
  }
}

TEST_F(RedisFailure, RightsOfSingleAttributesAreNamedWhereTheyAreMissing) {
  server_.command({"ACL", "SETUSER", "driftd", "-acl|cat", "-module|list"});
  auto probe = redis_probe({{"address", server_.address()}});
  const auto seen = probe.refresh();
  EXPECT_EQ(seen.complete.size(), 5u);
  EXPECT_THAT(seen.find("acl_user", "driftd")->unread.at(0).reason, HasSubstr("+acl|cat"));
  EXPECT_THAT(seen.find("server", "server")->unread.at(0).reason, HasSubstr("+module|list"));
}

TEST_F(RedisFailure, WithoutInfoNothingIsKnownAndTheRightIsNamed) {
  auto probe = redis_probe({{"address", server_.address()}});
  const auto before = probe.refresh();
  server_.command({"ACL", "SETUSER", "driftd", "-info"});
  const auto after = probe.refresh(before.cursor);
  EXPECT_EQ(after.status, DRIFTD_DENIED);
  EXPECT_EQ(after.diagnostic(DRIFTD_DENIED)->right, "+info");
  EXPECT_EQ(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED));
}

std::string diagnostic_texts(const Collected& seen) {
  std::string out;
  for (const auto& one : seen.diagnostics) out += one.text + "\n";
  return out;
}

TEST(RedisLogin, AServerThatQuotesWhatItWasToldShowsNothingOfThePassword) {
  RedisServer server({"--rename-command", "AUTH", "NOBODYS"});
  const std::string password = "canary-" + std::string(400, 'k');
  ProviderProbe probe = redis_probe({{"address", server.address()}}, password);
  const Collected got = probe.refresh();
  EXPECT_EQ(got.status, DRIFTD_UNAUTHENTICATED) << diagnostic_texts(got);
  EXPECT_THAT(diagnostic_texts(got), AllOf(HasSubstr("ERR unknown command"), Not(HasSubstr("canary"))));
}

/// The server runs ECHO under the name of the command, so the answer is a text. It says nothing about what exists.
TEST(RedisLogin, AnAnswerThatIsNoListIsNoEmptyOne) {
  for (const auto& [command, kind] : {std::pair("ACL", "acl_user"), std::pair("MODULE", "server")}) {
    RedisServer server({"--rename-command", command, "NOBODYS", "--rename-command", "ECHO", command});
    ProviderProbe probe("providers/redis.so", {{"address", server.address()}}, {});
    const Collected got = probe.refresh();
    ASSERT_NE(got.diagnostic(DRIFTD_CORRUPT), nullptr) << command << "\n" << diagnostic_texts(got);
    EXPECT_THAT(got.diagnostic(DRIFTD_CORRUPT)->text,
                HasSubstr(std::string(command) + " LIST: the answer is not a list"));
    EXPECT_EQ(got.complete.count(kind), 0u) << command;
  }
}

TEST(RedisLogin, AServerThatHasTooManyClientsIsBusyAndHasNotRefusedThePassword) {
  RedisServer server({"--maxclients", "1"});
  server.grant_readme("pw-canary");
  // the PING below may hold the only connection when the subscriber connects, which then ends and is started again
  Child subscriber;
  const auto full = [&] {
    if (!subscriber.running())
      subscriber = Child({"redis-cli", "-p", std::to_string(server.port()), "SUBSCRIBE", "x"}, {});
    return server.command({"PING"}).find("max number of clients") != std::string::npos;
  };
  ASSERT_TRUE(eventually(full));
  ProviderProbe probe = redis_probe({{"address", server.address()}});
  const Collected got = probe.refresh();
  EXPECT_EQ(got.status, DRIFTD_UNAVAILABLE) << diagnostic_texts(got);
}

TEST_F(RedisFailure, APausedServerIsLateNotChangedAndHealthAnswersWithinASecond) {
  json settings{{"address", server_.address()}, {"call_timeout_ms", 700}, {"connect_timeout_ms", 700}};
  auto probe = redis_probe(settings);
  const auto before = probe.refresh_ok();
  server_.signal(SIGSTOP);
  const auto health = probe.health();
  EXPECT_EQ(health.health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  const auto during = probe.refresh(before.cursor);
  EXPECT_EQ(during.status, DRIFTD_UNAVAILABLE);
  expect_nothing_concluded(during);
  server_.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return probe.refresh(before.cursor).unchanged; }));
}

TEST_F(RedisFailure, AListThatIsCutAnywhereIsNeverWholeAndNothingIsGone) {
  for (int i = 0; i < 200; ++i)
    server_.command({"ACL", "SETUSER", "u" + std::to_string(i), "on", ">p", "~" + std::string(100, 'k')});
  CuttingRelay relay(server_.port());
  json settings{{"address", "127.0.0.1:" + std::to_string(relay.port())}};
  relay.cut_after(-1);
  ASSERT_EQ(redis_probe(settings).refresh().complete.at("acl_user"), 202u);
  const long long whole = relay.passed();
  for (int part = 1; part < 20; ++part) {
    auto probe = redis_probe(settings);
    relay.cut_after(whole * part / 20);
    const auto cut = probe.refresh();
    EXPECT_EQ(cut.status, DRIFTD_UNAVAILABLE) << part;
    expect_nothing_concluded(cut);
    EXPECT_TRUE(cut.complete.count("acl_user") == 0 || cut.complete.at("acl_user") == 202u);
    EXPECT_TRUE(cut.cursor.empty());
  }
  relay.cut_after(-1);
  EXPECT_EQ(redis_probe(settings).refresh().status, DRIFTD_OK);
}

TEST_F(RedisFailure, TheSecondAddressServesWhereTheFirstIsDead) {
  auto probe = redis_probe({{"addresses", {"127.0.0.1:" + std::to_string(free_port()), server_.address()}}});
  const auto seen = probe.refresh();
  EXPECT_EQ(seen.status, DRIFTD_OK);
  EXPECT_EQ(seen.complete.size(), 5u);
}

TEST_F(RedisFailure, ResetCountersAreNoSilence) {
  auto probe = redis_probe({{"address", server_.address()}});
  server_.command({"CONFIG", "RESETSTAT"});
  server_.command({"CONFIG", "SET", "maxmemory", "1mb"});
  const auto before = probe.refresh();
  server_.command({"CONFIG", "RESETSTAT"});
  server_.command({"CONFIG", "SET", "maxmemory", "2mb"});
  const auto after = probe.refresh(before.cursor);
  EXPECT_FALSE(after.unchanged);
  EXPECT_EQ(after.body("server", "server")["config"]["maxmemory"], "2097152");
}

/// The time of the calls is in microseconds, so what is counted after a reset soon reads as before it.
TEST_F(RedisFailure, CountersThatWereResetAndReadAsBeforeAreNoSilence) {
  auto probe = redis_probe({{"address", server_.address()}});
  const auto counted = [&](const std::string& section, const std::string& name) {
    const std::string info = server_.command({"INFO", section});
    const auto at = info.find(name + ":");
    return at == std::string::npos ? std::string() : info.substr(at, info.find('\r', at) - at);
  };
  const auto reset = [&] {
    server_.command({"CONFIG", "RESETSTAT"});
    return counted("commandstats", "cmdstat_config|resetstat");
  };
  const std::string once = reset();
  const auto before = probe.refresh();
  ASSERT_TRUE(probe.refresh(before.cursor).unchanged);
  server_.command({"CONFIG", "SET", "maxmemory", "2mb"});
  ASSERT_TRUE(eventually([&] { return reset() == once; })) << once;
  for (int i = 0; i < 100; ++i) server_.command({"PING"});  // more than were processed at the refresh
  const auto after = probe.refresh(before.cursor);
  EXPECT_FALSE(after.unchanged);
  EXPECT_EQ(after.body("server", "server")["config"]["maxmemory"], "2097152");
}

TEST_F(RedisFailure, ARefreshOfOneKindLeavesNoCursorThatStandsForTheOthers) {
  auto probe = redis_probe({{"address", server_.address()}});
  const auto one = probe.refresh_kind("server");
  ASSERT_EQ(one.complete.size(), 1u);
  EXPECT_EQ(probe.refresh(one.cursor).complete.size(), 5u);
}

TEST_F(RedisFailure, DirectivesByNameWhereTheWholeMapIsNotAskedFor) {
  auto probe = redis_probe({{"address", server_.address()}, {"config", {"maxmemory*", "appendonly"}}});
  server_.command({"CONFIG", "SET", "requirepass", ""});
  const auto seen = probe.refresh();
  const json config = seen.body("server", "server")["config"];
  EXPECT_TRUE(config.contains("maxmemory-policy") && config.contains("appendonly"));
  EXPECT_FALSE(config.contains("requirepass"));
  EXPECT_GT(seen.find("server", "server")->unread.size(), 100u);
}

TEST_F(RedisFailure, AnIdleCycleIsOneRequestAndTwoOnAClusterNode) {
  RedisServer node({"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())});
  node.grant_readme("pw-canary");
  for (const auto& [server, requests] : {std::pair<const RedisServer*, int>{&server_, 1}, {&node, 2}}) {
    const auto processed = [&, at = server] {
      const std::string info = at->command({"INFO", "stats"});
      return std::atoll(info.c_str() + info.find("total_commands_processed:") + 25);
    };
    auto probe = redis_probe({{"address", server->address()}});
    const auto first = probe.refresh();
    const long long before = processed();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
    EXPECT_EQ(processed() - before - 1, 10 * requests) << "one command is our own reading of the counter";
  }
}

class RedisTls : public testing::Test {
 protected:
  RedisTls() : port_(free_port()) {
    authority_.issue("server", "cache.test", "DNS:cache.test,IP:127.0.0.1");
    authority_.issue("client", "driftd");
    server_ = std::make_unique<RedisServer>(std::vector<std::string>{
        "--tls-port", std::to_string(port_), "--tls-cert-file", authority_.certificate("server"), "--tls-key-file",
        authority_.key("server"), "--tls-ca-cert-file", authority_.ca(), "--tls-auth-clients", "yes"});
    server_->grant_readme("pw-canary");
  }
  json settings(json tls) const {
    json all{
        {"ca", authority_.ca()}, {"certificate", authority_.certificate("client")}, {"key", authority_.key("client")}};
    all.update(tls);
    return {{"address", "127.0.0.1:" + std::to_string(port_)}, {"tls", all}};
  }
  Certificates authority_;
  int port_;
  std::unique_ptr<RedisServer> server_;
};

TEST_F(RedisTls, ACertificateOfTheRightNameIsTrustedAndEveryKindIsRead) {
  for (const json& tls : {json::object(), json{{"server_name", "cache.test"}}}) {
    auto probe = redis_probe(settings(tls));
    const auto seen = probe.refresh();
    ASSERT_EQ(seen.status, DRIFTD_OK) << (seen.diagnostics.empty() ? "" : seen.diagnostics[0].text);
    EXPECT_EQ(seen.complete.size(), 5u);
    EXPECT_TRUE(probe.refresh(seen.cursor).unchanged);
  }
}

TEST_F(RedisTls, AWrongNameAStrangersAuthorityAndAMissingClientCertificateAreRefused) {
  const Certificates stranger;
  const auto refused = [&](const json& tls, const std::string& why) {
    const auto seen = redis_probe(tls).refresh();
    EXPECT_EQ(seen.status, DRIFTD_UNAVAILABLE);
    ASSERT_FALSE(seen.diagnostics.empty());
    EXPECT_THAT(seen.diagnostics[0].text, HasSubstr(why));
    expect_nothing_concluded(seen);
  };
  refused(settings({{"server_name", "other.test"}}), "ostname mismatch");
  refused(settings({{"ca", stranger.ca()}}), "certificate");
  json bare = settings(json::object());
  bare["tls"].erase("certificate");
  bare["tls"].erase("key");
  refused(bare, "TLS");
  EXPECT_EQ(redis_probe(settings({{"ca", "/nowhere/ca.pem"}})).refresh().status, DRIFTD_INVALID);
  const auto health = redis_probe(settings({{"server_name", "other.test"}})).health().health;
  EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
}

}  // namespace
}  // namespace driftd::test
