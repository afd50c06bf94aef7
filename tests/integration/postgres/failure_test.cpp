// SPDX-License-Identifier: Apache-2.0
// A failure makes what could not be read unknown, names the missing right, and is never taken for a deletion.
#include <csignal>
#include <fstream>

#include "fixture.hpp"
#include "support/certificates.hpp"
#include "support/cutting_relay.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PostgresFailure : public testing::Test {
 protected:
  PostgresFailure() { server_.sql(readme_grants("postgres", "sql")); }
  PostgresServer server_;
};

TEST_F(PostgresFailure, EachRightThatIsTakenNamesItselfAndOnlyItsKindsAreIncomplete) {
  struct Right {
    const char *take, *give, *expected;
    std::vector<std::string> kinds;
  };
  const Right rights[] = {
      {"REVOKE pg_monitor FROM driftd", "GRANT pg_monitor TO driftd", "pg_monitor", {"file_setting", "setting"}},
      {"REVOKE SELECT ON pg_file_settings FROM driftd",
       "GRANT SELECT ON pg_file_settings TO driftd",
       "pg_file_settings",
       {"file_setting"}},
      {"REVOKE EXECUTE ON FUNCTION pg_show_all_file_settings() FROM driftd",
       "GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO driftd",
       "pg_show_all_file_settings()",
       {"file_setting"}},
      {"REVOKE SELECT ON pg_hba_file_rules FROM driftd",
       "GRANT SELECT ON pg_hba_file_rules TO driftd",
       "pg_hba_file_rules",
       {"hba"}},
      {"REVOKE EXECUTE ON FUNCTION pg_hba_file_rules() FROM driftd",
       "GRANT EXECUTE ON FUNCTION pg_hba_file_rules() TO driftd",
       "pg_hba_file_rules()",
       {"hba"}},
      {"REVOKE SELECT ON pg_subscription FROM PUBLIC; REVOKE SELECT (oid, subdbid, subname, subowner, subenabled, "
       "subbinary, substream, subtwophasestate, subdisableonerr, subslotname, subsynccommit, subpublications) ON "
       "pg_subscription FROM PUBLIC",
       "GRANT SELECT (oid, subdbid, subname, subowner, subenabled, subbinary, substream, subtwophasestate, "
       "subdisableonerr, subslotname, subsynccommit, subpublications) ON pg_subscription TO PUBLIC",
       "pg_subscription",
       {"subscription"}}};
  for (const auto& right : rights) {
    auto p = postgres_probe(server_.endpoint());
    const auto before = p.refresh();
    ASSERT_EQ(before.complete.size(), 14u) << right.take;
    server_.sql(right.take);
    const auto after = p.refresh(before.cursor);
    EXPECT_EQ(after.status, DRIFTD_OK) << right.take << ": "
                                       << (after.diagnostics.empty() ? "" : after.diagnostics[0].text);
    ASSERT_NE(after.diagnostic(DRIFTD_DENIED), nullptr) << right.take;
    EXPECT_THAT(after.diagnostic(DRIFTD_DENIED)->right, HasSubstr(right.expected));
    EXPECT_EQ(after.complete.size(), 14u - right.kinds.size()) << right.take;
    for (const auto& kind : right.kinds) {
      EXPECT_EQ(after.complete.count(kind), 0u) << right.take;
      EXPECT_EQ(p.read({{kind, "nothing of that name"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr) << right.take;
    }
    EXPECT_FALSE(after.unchanged);
    EXPECT_TRUE(after.cursor.empty());
    server_.sql(right.give);
  }
}

TEST_F(PostgresFailure, RightsOfSingleAttributesAreNamedWhereTheyAreMissing) {
  server_.sql("CREATE ROLE app LOGIN PASSWORD 'p'");
  auto p = postgres_probe(server_.endpoint());
  server_.sql(
      "REVOKE EXECUTE ON FUNCTION driftd.role_verifiers() FROM driftd; REVOKE EXECUTE ON FUNCTION pg_control_system() "
      "FROM PUBLIC");
  const auto seen = p.refresh();
  ASSERT_EQ(seen.complete.size(), 14u);
  const auto health = p.health().health;
  EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP)) << health.reason;
  EXPECT_EQ(health.system_identity, "");
  EXPECT_THAT(seen.find("role", "app")->unread.at(0).reason, HasSubstr("driftd.role_verifiers()"));
  EXPECT_THAT(seen.find("instance", "instance")->unread.at(0).reason, HasSubstr("pg_control_system()"));
}

TEST_F(PostgresFailure, APausedServerIsLateNotChanged) {
  auto p = postgres_probe(server_.endpoint(), {{"connect_timeout_ms", 700}, {"statement_timeout_ms", 700}});
  const auto before = p.refresh_ok();
  server_.sql("SELECT 1");
  // both the postmaster and the backend process of the provider's connection are stopped
  const std::string backend = server_.value("SELECT pid FROM pg_stat_activity WHERE usename = 'driftd'");
  server_.signal(SIGSTOP);
  freeze(std::stoi(backend));
  const auto during = p.refresh(before.cursor);
  EXPECT_TRUE(during.status == DRIFTD_DEADLINE || during.status == DRIFTD_UNAVAILABLE) << during.status;
  EXPECT_TRUE(during.complete.empty() && during.records.empty() && !during.unchanged);
  EXPECT_EQ(during.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  ::kill(std::stoi(backend), SIGCONT);
  server_.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return p.refresh(before.cursor).unchanged; }));
}

TEST_F(PostgresFailure, AListThatIsCutAnywhereIsNeverWholeAndNothingIsGone) {
  server_.sql("DO $$ BEGIN FOR i IN 1..200 LOOP EXECUTE format('CREATE ROLE r%s', i); END LOOP; END $$");
  CuttingRelay relay(server_.port());
  const std::string endpoint = "127.0.0.1:" + std::to_string(relay.port());
  relay.cut_after(-1);
  const auto whole = postgres_probe(endpoint).refresh();
  ASSERT_EQ(whole.complete.size(), 14u);
  const long long bytes = relay.passed();
  for (int part = 1; part < 16; ++part) {
    auto p = postgres_probe(endpoint);
    relay.cut_after(bytes * part / 16);
    const auto cut = p.refresh();
    EXPECT_EQ(cut.status, DRIFTD_UNAVAILABLE) << part;
    for (const auto& [kind, count] : cut.complete) EXPECT_EQ(count, whole.complete.at(kind)) << kind;
    EXPECT_TRUE(cut.cursor.empty() && !cut.unchanged);
    EXPECT_EQ(cut.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  }
}

class PostgresTls : public testing::Test {
 protected:
  PostgresTls() {
    authority_.issue("server", "db.test", "DNS:db.test,DNS:localhost", "postgres");
    authority_.issue("client", "driftd", {}, "root");
    std::ofstream(server_.data_folder() + "/pg_hba.conf", std::ios::app) << "hostssl all driftd ::1/128 cert\n";
    server_.sql(readme_grants("postgres", "sql"));
    server_.sql("ALTER SYSTEM SET ssl_cert_file = '" + authority_.certificate("server") + "'");
    server_.sql("ALTER SYSTEM SET ssl_key_file = '" + authority_.key("server") + "'");
    server_.sql("ALTER SYSTEM SET ssl_ca_file = '" + authority_.ca() + "'");
    server_.sql("ALTER SYSTEM SET ssl = on");
    server_.restart();
  }
  std::string endpoint_at(const std::string& host) const { return host + ":" + std::to_string(server_.port()); }
  json settings(const std::string& mode) const { return {{"sslmode", mode}, {"sslrootcert", authority_.ca()}}; }
  Certificates authority_;
  PostgresServer server_;
};

TEST_F(PostgresTls, TheRightNameIsTrustedAndAWrongOneRefused) {
  EXPECT_EQ(postgres_probe(endpoint_at("localhost"), settings("verify-full")).refresh().status, DRIFTD_OK);
  const auto refused = postgres_probe(endpoint_at("127.0.0.1"), settings("verify-full")).refresh();
  EXPECT_EQ(refused.status, DRIFTD_UNAVAILABLE);
  ASSERT_FALSE(refused.diagnostics.empty());
  EXPECT_THAT(refused.diagnostics[0].text, HasSubstr("does not match host name"));
  EXPECT_TRUE(refused.records.empty() && refused.complete.empty());
  EXPECT_EQ(postgres_probe(endpoint_at("127.0.0.1"), settings("verify-ca")).refresh().status, DRIFTD_OK);
  const Certificates stranger;
  const auto of_stranger =
      postgres_probe(endpoint_at("localhost"), {{"sslmode", "verify-full"}, {"sslrootcert", stranger.ca()}}).refresh();
  EXPECT_EQ(of_stranger.status, DRIFTD_UNAVAILABLE);
  EXPECT_THAT(of_stranger.diagnostics.at(0).text, HasSubstr("certificate verify failed"));
}

TEST_F(PostgresTls, AClientCertificateStandsForThePassword) {
  server_.sql("SELECT 1");
  std::ofstream hba(server_.data_folder() + "/pg_hba.conf", std::ios::trunc);
  hba << "local all all scram-sha-256\nhostssl all driftd all cert\n" << std::flush;
  server_.sql("SELECT pg_reload_conf()");
  json with_certificate = settings("verify-full");
  with_certificate.update({{"sslcert", authority_.certificate("client")}, {"sslkey", authority_.key("client")}});
  EXPECT_TRUE(eventually([&] {
    return postgres_probe(endpoint_at("localhost"), settings("verify-full")).refresh().status == DRIFTD_UNAUTHENTICATED;
  }));
  const auto seen = postgres_probe(endpoint_at("localhost"), with_certificate).refresh();
  EXPECT_EQ(seen.status, DRIFTD_OK) << (seen.diagnostics.empty() ? "" : seen.diagnostics[0].text);
}

}  // namespace
}  // namespace driftd::test
