// SPDX-License-Identifier: Apache-2.0
// What can happen to a PostgreSQL server that stores a state: the diagnostic says what to do, and nothing is concluded.
#include <gmock/gmock.h>
#include <csignal>

#include "site.hpp"
#include "support/certificates.hpp"
#include "support/cutting_relay.hpp"
#include "support/postgres.hpp"
#include "support/provider_probe.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class TerraformPg : public testing::Test {
 protected:
  TerraformPg() {
    server_.sql(
        "CREATE SCHEMA terraform_remote_state; CREATE TABLE terraform_remote_state.states (name text PRIMARY KEY, data "
        "text)");
    server_.sql("INSERT INTO terraform_remote_state.states VALUES ('default', '" + state_text(1, 1) + "')");
    server_.sql("CREATE ROLE driftd LOGIN PASSWORD 'canary-of-driftd'");
    server_.sql(readme_grants("terraform", "sql"));
  }
  std::string conn(const std::string& more = "sslmode=disable", int port = 0, const std::string& host = "127.0.0.1",
                   const std::string& password = "canary-of-driftd") const {
    return "host=" + host + " port=" + std::to_string(port == 0 ? server_.port() : port) +
           " user=driftd dbname=postgres password=" + password + " " + more;
  }
  static ProviderProbe probe_of(const std::string& conn, const json& more = json::object()) {
    json backend = {{"type", "pg"}, {"conn_str", "token"}};
    backend.update(more);
    return ProviderProbe("providers/terraform.so",
                         {{"backend", backend}, {"call_timeout_ms", 1500}, {"connect_timeout_ms", 1500}},
                         {{"token", conn}});
  }
  /// Expects that every call fails with `code`, concludes nothing, quotes no secret, and names `reason` in its text or
  /// right.
  static void expect_failure(ProviderProbe& probe, const std::string& cursor, driftd_status code,
                             const std::string& reason) {
    for (const auto& seen :
         {probe.refresh(cursor), probe.refresh(), probe.read({{"instance", "terraform_data.a"}}), probe.discover()}) {
      EXPECT_EQ(seen.status, code) << (seen.diagnostics.empty() ? "" : seen.diagnostics[0].text);
      EXPECT_TRUE(seen.records.empty() && seen.complete.empty() && !seen.unchanged && !seen.discovery_complete);
      ASSERT_FALSE(seen.diagnostics.empty());
      EXPECT_EQ(seen.diagnostic(DRIFTD_NOT_FOUND), nullptr);
      EXPECT_THAT(seen.diagnostics[0].text + " " + seen.diagnostics[0].right, HasSubstr(reason));
      EXPECT_THAT(seen.diagnostics[0].text, Not(HasSubstr("canary")));
    }
  }
  static auto health_state(ProviderProbe& probe) { return static_cast<int>(probe.health().health.state); }

  PostgresServer server_;
};

TEST_F(TerraformPg, RightsAndConnectionsThatAreTakenAreNamedAndGivenBackWithoutAReading) {
  ProviderProbe probe = probe_of(conn());
  const auto first = probe.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  server_.sql("REVOKE SELECT ON terraform_remote_state.states FROM driftd");
  expect_failure(probe, first.cursor, DRIFTD_DENIED, "SELECT ON \"terraform_remote_state\".\"states\"");
  EXPECT_EQ(health_state(probe), DRIFTD_HEALTH_DEGRADED);
  server_.sql(readme_grants("terraform", "sql"));
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  server_.sql(
      "ALTER ROLE driftd CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
      "'driftd'");
  expect_failure(probe, first.cursor, DRIFTD_UNAVAILABLE, "too many connections");
  server_.sql("ALTER ROLE driftd CONNECTION LIMIT -1; ALTER ROLE driftd NOLOGIN");
  expect_failure(probe, first.cursor, DRIFTD_UNAUTHENTICATED, "conn_str");
  server_.sql("ALTER ROLE driftd LOGIN PASSWORD 'another-one'");
  expect_failure(probe, first.cursor, DRIFTD_UNAUTHENTICATED, "conn_str");
  server_.sql("ALTER ROLE driftd PASSWORD 'canary-of-driftd'");
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  EXPECT_EQ(health_state(probe), DRIFTD_HEALTH_UP);
}

TEST_F(TerraformPg, NothingThatOthersPutOnTheSearchPathRuns) {
  server_.sql(
      "CREATE ROLE mallory LOGIN PASSWORD 'of-mallory'; CREATE SCHEMA evil AUTHORIZATION mallory; GRANT USAGE ON "
      "SCHEMA evil TO public");
  server_.sql_as("mallory", "of-mallory", R"sql(
CREATE FUNCTION evil.loot(what text) RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN RAISE LOG 'LOOTED as %: %', session_user, what; RETURN true; END $f$;
CREATE FUNCTION evil.md5(text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.loot('md5'); RETURN 'x'; END $f$;
CREATE FUNCTION evil.length(text) RETURNS int LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.loot('length'); RETURN 1; END $f$;
CREATE FUNCTION evil.substr(text, int, int) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.loot('substr'); RETURN '{}'; END $f$;
CREATE FUNCTION evil.eq(text, text) RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.loot('='); RETURN true; END $f$;
CREATE OPERATOR evil.= (leftarg = text, rightarg = text, procedure = evil.eq);
CREATE DOMAIN evil.text AS pg_catalog.text CHECK (evil.loot('type text')))sql");
  server_.sql("ALTER DATABASE postgres SET search_path = evil, public, pg_catalog");
  ProviderProbe probe = probe_of(conn());
  const auto seen = probe.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics[0].text;
  EXPECT_EQ(seen.body("state", "state")["lineage"], json::parse(state_text(1, 1))["lineage"]);
  EXPECT_EQ(seen.complete.count("instance"), 1u);
  EXPECT_TRUE(probe.refresh(seen.cursor).unchanged);
  EXPECT_EQ(health_state(probe), DRIFTD_HEALTH_UP);
  EXPECT_THAT(server_.log(), Not(HasSubstr("LOOTED as driftd")));
  server_.sql_as("driftd", "canary-of-driftd", "SELECT md5('x'::pg_catalog.text)");
  EXPECT_THAT(server_.log(), HasSubstr("LOOTED as driftd: md5")) << "the trap does not work";
}

TEST_F(TerraformPg, PausedItIsDownWithinItsTimeoutsAndNothingIsLost) {
  ProviderProbe probe = probe_of(conn());
  const auto first = probe.refresh();
  std::vector<pid_t> pids = {server_.pid()};  // and below, the backend process of the provider's open connection
  for (const auto& row : server_.sql("SELECT pid FROM pg_stat_activity WHERE usename = 'driftd'"))
    pids.push_back(std::stoi(row.at(0).value()));
  ASSERT_GT(pids.size(), 1u);
  for (const pid_t pid : pids) freeze(pid);
  EXPECT_EQ(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  expect_failure(probe, first.cursor, DRIFTD_UNAVAILABLE, "no answer within 1500 ms");
  for (const pid_t pid : pids) ::kill(pid, SIGCONT);
  EXPECT_TRUE(eventually([&] { return probe.refresh(first.cursor).unchanged; }));
  EXPECT_EQ(health_state(probe), DRIFTD_HEALTH_UP);
  server_.stop();
  expect_failure(probe, first.cursor, DRIFTD_UNAVAILABLE, "127.0.0.1");
}

TEST_F(TerraformPg, AnAnswerThatIsCutAnywhereTellsNothing) {
  CuttingRelay relay(server_.port());
  relay.cut_after(-1);
  const auto whole = probe_of(conn("sslmode=disable", relay.port())).refresh();
  ASSERT_EQ(whole.status, DRIFTD_OK);
  const long long bytes = relay.passed();
  ASSERT_GT(bytes, 20'000);
  for (int part = 1; part < 16; ++part) {
    ProviderProbe probe = probe_of(conn("sslmode=disable", relay.port()));
    relay.cut_after(bytes * part / 16);
    const auto cut = probe.refresh();
    EXPECT_EQ(cut.status, DRIFTD_UNAVAILABLE) << part;
    EXPECT_TRUE(cut.records.empty() && cut.complete.empty() && cut.cursor.empty()) << part;
  }
}

TEST_F(TerraformPg, ACertificateOfAnotherNameOrAnotherCaIsRefused) {
  Certificates authority;
  authority.issue("server", "localhost", "DNS:localhost", "postgres");
  server_.sql("ALTER SYSTEM SET ssl_cert_file = '" + authority.certificate("server") + "'");
  server_.sql("ALTER SYSTEM SET ssl_key_file = '" + authority.key("server") + "'");
  server_.sql("ALTER SYSTEM SET ssl = on");
  server_.restart();
  const std::string named = "hostaddr=127.0.0.1";  // `host` is then only the name that the certificate must have
  ProviderProbe right = probe_of(conn(named, 0, "localhost"), {{"ca_file", authority.ca()}});
  const auto first = right.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  EXPECT_EQ(health_state(right), DRIFTD_HEALTH_UP);
  ProviderProbe name = probe_of(conn("", 0), {{"ca_file", authority.ca()}});
  expect_failure(name, first.cursor, DRIFTD_UNAVAILABLE, "does not match host name");
  EXPECT_EQ(health_state(name), DRIFTD_HEALTH_DOWN);
  const Certificates strangers;
  ProviderProbe stranger = probe_of(conn(named, 0, "localhost"), {{"ca_file", strangers.ca()}});
  expect_failure(stranger, first.cursor, DRIFTD_UNAVAILABLE, "Check settings.backend.ca_file");
  EXPECT_EQ(health_state(stranger), DRIFTD_HEALTH_DOWN);
}

}  // namespace
}  // namespace driftd::test
