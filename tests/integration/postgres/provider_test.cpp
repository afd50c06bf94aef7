// SPDX-License-Identifier: Apache-2.0
// The provider against a real server, with the rights that its README asks for and no others.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <thread>

#include "fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PostgresProvider : public testing::Test {
 protected:
  ProviderProbe make(const json& extra = json::object(), const std::string& password = "CHANGE-ME") {
    return postgres_probe(server.endpoint(), extra, password);
  }
  void SetUp() override { server.sql(readme_grants("postgres", "sql")); }
  void append(const std::string& file, const std::string& line) const {
    std::ofstream(server.data_folder() + "/" + file, std::ios::app) << line << "\n";
  }
  PostgresServer server;
};

TEST_F(PostgresProvider, ListsEveryKindWholeWithTheRightsOfTheReadme) {
  ProviderProbe probe = make();
  const Collected all = probe.refresh();
  ASSERT_EQ(all.status, DRIFTD_OK);
  EXPECT_EQ(all.diagnostics.size(), 0U);
  for (const auto* kind : {"instance", "setting", "role", "database", "extension", "file_setting", "hba", "ident"}) {
    ASSERT_EQ(all.complete.count(kind), 1U) << kind;
    EXPECT_GT(all.complete.at(kind), 0U) << kind;
  }
  EXPECT_EQ(all.body("setting", "shared_buffers"), json({{"bytes", 16 * 1024 * 1024}}));
  EXPECT_EQ(all.body("instance", "instance")["role"], "primary");
  EXPECT_EQ(all.body("extension", "postgres.plpgsql")["schema"], "pg_catalog");
  EXPECT_EQ(all.body("file_setting", "postgresql.conf:fsync")["state"], "in_effect");
  EXPECT_EQ(all.body("hba", "pg_hba.conf")["rules"][0]["method"], "scram-sha-256");
  EXPECT_EQ(all.body("ident", "pg_ident.conf"), json({{"mappings", json::array()}}));
  for (const auto& record : all.records) EXPECT_TRUE(record.unread.empty()) << record.kind << "/" << record.id;
}

TEST_F(PostgresProvider, AnUntouchedServerIsUnchangedAndTwoListingsAreTheSameBytes) {
  ProviderProbe probe = make();
  const Collected first = probe.refresh();
  const Collected again = probe.refresh();
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  ASSERT_EQ(first.records.size(), again.records.size());
  for (std::size_t i = 0; i < first.records.size(); ++i) EXPECT_EQ(first.records[i].body, again.records[i].body);
}

TEST_F(PostgresProvider, ARotatedPasswordChangesTheDigestOfThatRoleOnly) {
  server.sql("CREATE ROLE app LOGIN PASSWORD 'one'; CREATE ROLE other LOGIN PASSWORD 'one'");
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  server.sql("ALTER ROLE app PASSWORD 'two'");
  const Collected after = probe.refresh(before.cursor);
  EXPECT_FALSE(after.unchanged);
  EXPECT_NE(before.body("role", "app")["verifier"], after.body("role", "app")["verifier"]);
  EXPECT_EQ(before.body("role", "other"), after.body("role", "other"));
  for (const auto& record : after.records) EXPECT_EQ(record.body.find("SCRAM-SHA-256$"), std::string::npos);
}

TEST_F(PostgresProvider, AlterSystemIsSeenInTheFileAtOnceAndInTheSettingAfterTheReload) {
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  server.sql("ALTER SYSTEM SET work_mem = '9MB'");
  const Collected edited = probe.refresh(before.cursor);
  EXPECT_EQ(edited.body("file_setting", "postgresql.auto.conf:work_mem")["state"], "edited_not_reloaded");
  EXPECT_EQ(edited.body("setting", "work_mem"), before.body("setting", "work_mem"));
  server.sql("SELECT pg_reload_conf()");
  const Collected loaded = refresh_until(probe, [](const Collected& c) {
    return c.body("setting", "work_mem") == json({{"bytes", 9 * 1024 * 1024}});
  });
  EXPECT_EQ(loaded.body("file_setting", "postgresql.auto.conf:work_mem")["state"], "in_effect");
  EXPECT_THAT(loaded.find("setting", "work_mem")->metadata.at("sourcefile"), HasSubstr("postgresql.auto.conf"));
}

TEST_F(PostgresProvider, ASettingThatNeedsARestartSaysSo) {
  ProviderProbe probe = make();
  server.sql("ALTER SYSTEM SET max_connections = 41");
  server.sql("SELECT pg_reload_conf()");
  const Collected pending = refresh_until(probe, [](const Collected& c) {
    const auto* record = c.find("setting", "max_connections");
    return record != nullptr && json::parse(record->status)["pending_restart"] == true;
  });
  EXPECT_EQ(pending.body("setting", "max_connections"), json({{"number", 40}}));
  EXPECT_EQ(pending.body("file_setting", "postgresql.auto.conf:max_connections")["state"], "needs_restart");
}

TEST_F(PostgresProvider, ASyntaxErrorInAFileChangesOnlyItsOwnLine) {
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  append("postgresql.conf", "work_mem 4MB 5");
  const Collected after = probe.refresh(before.cursor);
  std::vector<std::string> changed;
  for (const auto& record : after.records) {
    const auto* was = before.find(record.kind, record.id);
    if (was == nullptr || was->body != record.body) changed.push_back(record.kind + "/" + record.id);
  }
  ASSERT_THAT(changed, testing::ElementsAre(HasSubstr("file_setting/postgresql.conf:line-")));
  const std::string line = changed[0].substr(std::string("file_setting/").size());
  EXPECT_EQ(after.body("file_setting", line)["state"], "error");
  EXPECT_EQ(after.body("file_setting", line)["error"], "syntax error");
  EXPECT_EQ(after.find("file_setting", line)->metadata.count("refused"), 1U);
}

TEST_F(PostgresProvider, AnHbaEditIsSeenBeforeAnyReload) {
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  append("pg_hba.conf", "host all intruder 10.0.0.0/8 trust");
  std::filesystem::last_write_time(server.data_folder() + "/pg_hba.conf",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  const Collected after = probe.refresh(before.cursor);
  const json rule{
      {"type", "host"}, {"databases", "all"}, {"users", "intruder"}, {"address", "10.0.0.0/8"}, {"method", "trust"}};
  EXPECT_EQ(after.body("hba", "pg_hba.conf")["rules"].back(), rule);
  EXPECT_EQ(after.find("hba", "pg_hba.conf")->metadata.at("edited_not_reloaded"), "true");
  EXPECT_EQ(before.find("hba", "pg_hba.conf")->metadata.count("edited_not_reloaded"), 0U);
}

TEST_F(PostgresProvider, ABrokenHbaLineCarriesItsError) {
  ProviderProbe probe = make();
  append("pg_hba.conf", "host all all 10.0.0.0/8 no-such-method");
  append("pg_ident.conf", "m root");
  const Collected seen = probe.refresh();
  EXPECT_THAT(seen.body("hba", "pg_hba.conf")["rules"].back()["error"].get<std::string>(), HasSubstr("no-such-method"));
  EXPECT_THAT(seen.body("ident", "pg_ident.conf")["mappings"].back()["error"].get<std::string>(),
              HasSubstr("missing entry"));
}

TEST_F(PostgresProvider, RolesDatabasesAndExtensionsFollowTheCatalogue) {
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  server.sql("CREATE ROLE readers; CREATE ROLE app LOGIN CONNECTION LIMIT 3 VALID UNTIL '2030-01-02 03:04:05+02'");
  server.sql("GRANT readers TO app WITH ADMIN OPTION; ALTER ROLE app SET work_mem = '1MB'");
  server.sql("CREATE DATABASE shop OWNER app");
  server.sql("ALTER ROLE app IN DATABASE shop SET search_path = 'x'; ALTER DATABASE shop SET app.secret = 'canary'");
  const Collected after = probe.refresh(before.cursor);
  const json role = after.body("role", "app");
  EXPECT_EQ(role["memberships"], json::parse(R"([{"role":"readers","admin":true}])"));
  EXPECT_EQ(role["valid_until"], "2030-01-02T01:04:05.000000Z");
  EXPECT_EQ(role["settings"]["work_mem"], "1MB");
  EXPECT_EQ(role["database_settings"]["shop"]["search_path"], "x");
  EXPECT_EQ(after.body("database", "shop")["owner"], "app");
  EXPECT_EQ(after.find("database", "shop")->sensitive, std::vector<std::string>{"settings[\"app.secret\"]"});
  EXPECT_EQ(after.find("role", "app")->external_name, server.value("SELECT oid FROM pg_roles WHERE rolname = 'app'"));
}

TEST_F(PostgresProvider, ARevokedRightIsNamedAndOnlyThatKindStaysIncomplete) {
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  server.sql("REVOKE EXECUTE ON FUNCTION pg_hba_file_rules() FROM driftd");
  for (int cycle = 0; cycle < 2; ++cycle) {
    const Collected after = probe.refresh(before.cursor);
    ASSERT_NE(after.diagnostic(DRIFTD_DENIED), nullptr);
    EXPECT_FALSE(after.unchanged);
    EXPECT_EQ(after.diagnostic(DRIFTD_DENIED)->kind, "hba");
    EXPECT_THAT(after.diagnostic(DRIFTD_DENIED)->right, HasSubstr("pg_hba_file_rules()"));
    EXPECT_EQ(after.complete.count("hba"), 0U);
    EXPECT_EQ(after.complete.count("role"), 1U);
  }
  EXPECT_EQ(probe.read({{"hba", "pg_hba.conf"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
  server.sql("GRANT EXECUTE ON FUNCTION pg_hba_file_rules() TO driftd");
  EXPECT_EQ(probe.refresh(before.cursor).unchanged, true);
}

TEST_F(PostgresProvider, WithoutPgMonitorHiddenSettingsAreDeniedNotGone) {
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  server.sql("REVOKE pg_monitor FROM driftd");
  const Collected after = probe.refresh(before.cursor);
  EXPECT_EQ(after.complete.count("setting"), 0U);
  EXPECT_EQ(after.diagnostic(DRIFTD_DENIED)->right, "pg_monitor");
  const Collected one = probe.read({{"setting", "primary_conninfo"}});
  EXPECT_EQ(one.status, DRIFTD_DENIED);
  EXPECT_EQ(one.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(PostgresProvider, WithoutTheFunctionVerifiersAreUnreadAndRolesStayWhole) {
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  server.sql("REVOKE USAGE ON SCHEMA driftd FROM driftd");
  const Collected after = probe.refresh(before.cursor);
  const auto* role = after.find("role", "driftd");
  ASSERT_NE(role, nullptr);
  EXPECT_EQ(after.complete.count("role"), 1U);
  EXPECT_FALSE(after.body("role", "driftd").contains("verifier"));
  EXPECT_THAT(role->unread.at(0).reason, HasSubstr("driftd.role_verifiers()"));
}

TEST_F(PostgresProvider, VerifiersCanBeReadFromPgAuthidWhereThatIsGranted) {
  server.sql("GRANT SELECT ON pg_authid TO driftd; CREATE ROLE app LOGIN PASSWORD 'one'");
  ProviderProbe probe = make({{"verifiers", "pg_authid"}});
  const Collected all = probe.refresh();
  EXPECT_EQ(all.body("role", "app")["password_type"], "scram-sha-256");
  EXPECT_EQ(all.body("role", "app")["verifier"].get<std::string>().size(), 64U);
}

TEST_F(PostgresProvider, ADroppedRoleIsNotFoundAndARecreatedOneHasAnotherIdentity) {
  server.sql("CREATE ROLE app");
  ProviderProbe probe = make();
  const std::string first = probe.read({{"role", "app"}}).find("role", "app")->external_name;
  server.sql("DROP ROLE app");
  const Collected gone = probe.read({{"role", "app"}, {"role", "driftd"}});
  EXPECT_EQ(gone.status, DRIFTD_OK);
  ASSERT_NE(gone.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  EXPECT_EQ(gone.diagnostic(DRIFTD_NOT_FOUND)->id, "app");
  EXPECT_EQ(gone.records.size(), 1U);
  server.sql("CREATE ROLE app");
  EXPECT_NE(probe.read({{"role", "app"}}).find("role", "app")->external_name, first);
}

TEST_F(PostgresProvider, AStoppedServerIsUnavailableAndNothingIsNotFound) {
  ProviderProbe probe = make();
  const Collected before = probe.refresh();
  server.stop();
  const Collected down = probe.refresh(before.cursor);
  EXPECT_EQ(down.status, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(down.complete.empty() && down.records.empty() && !down.unchanged);
  const Collected read = probe.read({{"role", "driftd"}});
  EXPECT_EQ(read.status, DRIFTD_UNAVAILABLE);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  EXPECT_EQ(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  server.start();
  EXPECT_EQ(probe.refresh(before.cursor).status, DRIFTD_OK);
}

TEST_F(PostgresProvider, AWrongPasswordIsUnauthenticatedAndNotRepeated) {
  ProviderProbe probe = make(json::object(), "canary-wrong-password");
  const Collected refused = probe.refresh();
  EXPECT_EQ(refused.status, DRIFTD_UNAUTHENTICATED);
  for (const auto& d : refused.diagnostics) EXPECT_EQ(d.text.find("canary"), std::string::npos);
}

TEST_F(PostgresProvider, MissingConnectAndMissingDatabaseAreToldApart) {
  server.sql("CREATE DATABASE closed");
  server.sql("REVOKE CONNECT ON DATABASE closed FROM PUBLIC");
  const Collected closed = make({{"database", "closed"}}).refresh();
  EXPECT_EQ(closed.status, DRIFTD_DENIED);
  EXPECT_EQ(closed.diagnostic(DRIFTD_DENIED)->right, "CONNECT ON DATABASE closed");
  EXPECT_EQ(make({{"database", "none"}}).refresh().status, DRIFTD_INVALID);
}

/// The server's message names only the role, and that of a time-out only the endpoint, so the provider must name the
/// database.
TEST_F(PostgresProvider, ADatabaseThatTakesNoConnectionIsNamed) {
  server.sql("CREATE DATABASE another");
  server.sql("ALTER ROLE driftd CONNECTION LIMIT 1");
  const Collected got = make({{"databases", {"another"}}}).refresh();
  server.sql("ALTER ROLE driftd CONNECTION LIMIT -1");
  const auto* why = got.diagnostic(DRIFTD_UNAVAILABLE);
  ASSERT_NE(why, nullptr);
  EXPECT_THAT(why->text, HasSubstr("database another: "));
  EXPECT_THAT(why->text, HasSubstr("too many connections for role"));
}

TEST_F(PostgresProvider, ASecondEndpointServesWhenTheFirstIsDead) {
  const std::string dead = "127.0.0.1:" + std::to_string(free_port());
  ProviderProbe probe = make({{"endpoints", {dead, server.endpoint()}}});
  EXPECT_EQ(probe.refresh().body("instance", "instance")["endpoint"], server.endpoint());
}

TEST_F(PostgresProvider, TheUnixSocketWorksToo) {
  json settings{{"socket", server.socket_file()}, {"user", "driftd"}, {"password", "token-1"}};
  ProviderProbe probe("providers/postgres.so", settings, {{"token-1", "CHANGE-ME"}});
  EXPECT_EQ(probe.refresh().status, DRIFTD_OK);
}

TEST_F(PostgresProvider, HealthAnswersWithinASecondWhileARefreshIsBlocked) {
  ProviderProbe probe = make({{"include", {"hba"}}});
  probe.health();
  // a function of the README sleeps now, so that the refresh hangs in it
  server.sql(
      "CREATE OR REPLACE FUNCTION driftd.hba_file_modified() RETURNS timestamptz LANGUAGE sql VOLATILE SECURITY "
      "DEFINER AS $$ SELECT now() FROM (SELECT pg_sleep(30)) s $$");
  Collected blocked;
  std::jthread refreshing([&] { blocked = probe.refresh({}, std::chrono::seconds(6)); });
  ASSERT_TRUE(eventually([&] {
    return server.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'driftd' AND state = 'active'") == "1";
  }));
  const Collected health = probe.health(std::chrono::seconds(1));
  EXPECT_EQ(health.health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  EXPECT_EQ(health.health.role, "primary");
  EXPECT_EQ(health.health.system_identity, server.value("SELECT system_identifier FROM pg_control_system()"));
  refreshing.join();
  EXPECT_EQ(blocked.status, DRIFTD_DEADLINE);
  EXPECT_TRUE(eventually([&] {  // the provider asked the server to cancel the statement
    return server.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'driftd' AND state = 'active'") == "0";
  }));
}

TEST_F(PostgresProvider, AFrozenServerIsDownWithinASecond) {
  ProviderProbe probe = make();
  server.signal(SIGSTOP);
  const Collected health = probe.health();
  server.signal(SIGCONT);
  EXPECT_EQ(health.health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
}

TEST_F(PostgresProvider, AThousandRolesAreListedWhole) {
  server.sql("DO $$ BEGIN FOR i IN 1..1000 LOOP EXECUTE format('CREATE ROLE r%s', i); END LOOP; END $$");
  ProviderProbe probe = make({{"include", {"role/r*"}}});
  const Collected all = probe.refresh();
  EXPECT_EQ(all.complete.at("role"), 1000U);
  EXPECT_EQ(all.complete.size(), 1U);
  EXPECT_TRUE(probe.refresh(all.cursor).unchanged);
}

TEST_F(PostgresProvider, ASettingOfTheMonitoringRoleItselfIsUnread) {
  server.sql("ALTER ROLE driftd SET work_mem = '64MB'");
  const Collected all = make().refresh();
  EXPECT_EQ(all.body("setting", "work_mem"), json::object());
  EXPECT_EQ(all.find("setting", "work_mem")->unread.at(0).path, "bytes");
}

/// Answers one login as PostgreSQL 11 does. This is a fake greeting, for this folder's tests have only Debian's server.
void answer_login_as_eleven(int listener) {
  const int fd = ::accept(listener, nullptr, nullptr);
  char startup[1024];
  (void)!::read(fd, startup, sizeof startup);
  static constexpr char kHello[] =
      "R\0\0\0\x08\0\0\0\0"
      "S\0\0\0\x18server_version\0"
      "11.0\0"
      "Z\0\0\0\x05I";
  (void)!::write(fd, kHello, sizeof kHello - 1);
  (void)!::read(fd, startup, sizeof startup);
  ::close(fd);
}

TEST(PostgresOld, AServerBefore12IsUnsupportedAndTheMessageNamesItsVersion) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  std::thread old(answer_login_as_eleven, listener);
  const std::string endpoint = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  ProviderProbe probe("providers/postgres.so", {{"endpoints", endpoint}, {"user", "driftd"}, {"sslmode", "disable"}});
  const Collected refused = probe.refresh();
  old.join();
  ::close(listener);
  ASSERT_EQ(refused.status, DRIFTD_UNSUPPORTED);
  EXPECT_THAT(refused.diagnostic(DRIFTD_UNSUPPORTED)->text,
              HasSubstr("PostgreSQL 11.0 is too old, expected 12 or newer"));
}

TEST(PostgresLibrary, ExportsOneSymbol) {
  const Output nm = run({"nm", "-D", "--defined-only", DRIFTD_BINARY_DIR "/providers/postgres.so"});
  EXPECT_THAT(nm.out, testing::EndsWith(" T driftd_provider_v1\n"));
  EXPECT_EQ(std::count(nm.out.begin(), nm.out.end(), '\n'), 1);
}

}  // namespace
}  // namespace driftd::test
