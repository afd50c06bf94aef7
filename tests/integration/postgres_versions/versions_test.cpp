// SPDX-License-Identifier: Apache-2.0
// Servers of major versions that Debian does not have (tests/servers/postgres): every kind is complete, a change is
// seen, and nothing drifts by itself.
#include "integration/postgres/fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

std::string major_of(const std::string& version) { return version.substr(0, version.find('.')); }

class PostgresVersions : public testing::TestWithParam<const char*> {
 protected:
  PostgresVersions() : server_({{"wal_level = logical"}, false, nullptr, GetParam()}) {
    if (major_of(GetParam()) == "12") server_.sql("CREATE EXTENSION pgcrypto");  // the README asks for it there
    server_.sql(readme_grants("postgres", "sql"));
    if (major_of(GetParam()) == "12") server_.sql(readme_block("postgres", "### PostgreSQL 12 and 13", "sql"));
    server_.sql("CREATE DATABASE shop");
    server_.sql("CREATE ROLE app LOGIN PASSWORD 'one'; CREATE ROLE reader");
    server_.sql(
        "ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT SELECT ON TABLES TO reader; CREATE SCHEMA orders; "
        "CREATE TABLE t (id int PRIMARY KEY, v text CHECK (v IN ('a', 'b'))); "
        "CREATE VIEW w AS SELECT id FROM t WHERE v = ANY (ARRAY['a']); "
        "CREATE PUBLICATION p FOR TABLE t; "
        "CREATE SUBSCRIPTION s CONNECTION 'host=nowhere dbname=x' PUBLICATION p WITH (connect = false)",
        "shop");
    server_.sql("SELECT pg_create_logical_replication_slot('slot', 'pgoutput')", "shop");
    server_.sql("ALTER SYSTEM SET work_mem = '8MB'");
    server_.sql("SELECT pg_reload_conf()");
  }
  ProviderProbe probe() { return postgres_probe(server_.endpoint(), {{"databases", "*"}, {"fingerprints", "public"}}); }
  PostgresServer server_;
};

TEST_P(PostgresVersions, EveryKindIsWholeTwiceTheSameBytesAndAnIdleServerIsUnchanged) {
  auto p = probe();
  const auto first = refresh_until(p, [](const auto& c) { return c.body("setting", "work_mem")["bytes"] == 8388608; });
  ASSERT_EQ(first.status, DRIFTD_OK);
  for (const auto& diagnostic : first.diagnostics) ADD_FAILURE() << diagnostic.text;
  EXPECT_EQ(first.complete.size(), 14u);
  for (const auto& [kind, count] : first.complete) EXPECT_GT(count, 0u) << kind << " has no record";
  const bool shows_ident = std::stoi(major_of(GetParam())) >= 15;
  for (const auto& record : first.records) {
    const bool whole = record.kind != "ident" || shows_ident;
    EXPECT_EQ(record.unread.size(), whole ? 0u : 1u) << record.kind << "/" << record.id;
  }
  EXPECT_EQ(major_of(first.body("instance", "instance")["version"].get<std::string>()), major_of(GetParam()));
  EXPECT_EQ(first.body("table_fingerprint", "shop.public.w")["printed_by"], major_of(GetParam()) + "/3");
  const auto second = p.refresh();
  ASSERT_EQ(first.records.size(), second.records.size());
  for (std::size_t i = 0; i < first.records.size(); ++i) EXPECT_EQ(first.records[i].body, second.records[i].body);
  EXPECT_TRUE(p.refresh(second.cursor).unchanged);
  const auto health = p.health().health;
  EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  EXPECT_EQ(health.system_identity, first.body("instance", "instance")["system_identifier"]);
}

TEST_P(PostgresVersions, AChangeMovesTheCursorAndIsSeen) {
  struct Step {
    const char* database;
    const char* statement;
    const char* kind;
    const char* id;
  };
  auto p = probe();
  auto before = p.refresh();
  for (const Step& step :
       {Step{"postgres", "ALTER ROLE app PASSWORD 'two'", "role", "app"},
        Step{"postgres", "GRANT reader TO app WITH ADMIN OPTION", "role", "app"},
        Step{"postgres", "ALTER DATABASE shop CONNECTION LIMIT 7", "database", "shop"},
        Step{"postgres", "ALTER SYSTEM SET work_mem = '9MB'", "file_setting", "postgresql.auto.conf:work_mem"},
        Step{"postgres", "SELECT pg_reload_conf()", "setting", "work_mem"},
        Step{"shop", "ALTER SCHEMA orders OWNER TO app", "schema", "shop.orders"},
        Step{"shop", "ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT INSERT ON TABLES TO reader", "default_privileges",
             "shop.app:tables"},
        Step{"shop", "ALTER PUBLICATION p SET (publish = 'insert')", "publication", "shop.p"},
        Step{"shop", "ALTER SUBSCRIPTION s CONNECTION 'host=elsewhere dbname=x'", "subscription", "shop.s"},
        Step{"shop", "ALTER TABLE t ADD CONSTRAINT more CHECK (id > 0)", "table_fingerprint", "shop.public.t"},
        Step{"shop", "CREATE OR REPLACE VIEW w AS SELECT id FROM t", "table_fingerprint", "shop.public.w"},
        Step{"shop", "GRANT SELECT ON t TO reader", "table_fingerprint", "shop.public.t"},
        Step{"shop", "CREATE EXTENSION hstore", "extension", "shop.hstore"},
        Step{"shop", "SELECT pg_drop_replication_slot('slot')", "slot", "slot"}}) {
    server_.sql(step.statement, step.database);
    Collected after;
    const auto seen = [&] {
      after = p.refresh(before.cursor);
      return !after.unchanged && after.body(step.kind, step.id) != before.body(step.kind, step.id);
    };
    ASSERT_TRUE(eventually(seen)) << step.statement;
    before = std::move(after);
  }
}

TEST_P(PostgresVersions, ARightThatIsGoneIsNamedAndThatKindIsNotComplete) {
  auto p = probe();
  server_.sql("REVOKE EXECUTE ON FUNCTION pg_hba_file_rules() FROM driftd");
  const auto seen = p.refresh();
  EXPECT_EQ(seen.complete.count("hba"), 0u);
  ASSERT_NE(seen.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_THAT(seen.diagnostic(DRIFTD_DENIED)->right, HasSubstr("pg_hba_file_rules"));
  EXPECT_EQ(seen.complete.size(), 13u);
}

TEST_P(PostgresVersions, SubscriptionsThatMayNotBeReadWholeNameTheRight) {
  server_.sql("REVOKE SELECT (oid, subsynccommit) ON pg_subscription FROM driftd, PUBLIC");
  auto p = probe();
  const auto seen = p.refresh();
  EXPECT_EQ(seen.complete.count("subscription"), 0u);
  EXPECT_EQ(seen.complete.size(), 13u);
  ASSERT_NE(seen.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(seen.diagnostic(DRIFTD_DENIED)->right, "SELECT (oid, subsynccommit) ON pg_subscription");
  EXPECT_EQ(p.read({{"subscription", "shop.s"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_P(PostgresVersions, RightsThatComeWithTheVersionAreNoDriftOfAnOwner) {
  auto p = probe();
  const auto list = grants(p.refresh().body("table_fingerprint", "shop.public.t"));
  EXPECT_EQ(list,
            (std::vector<std::string>{"postgres:DELETE", "postgres:INSERT", "postgres:REFERENCES", "postgres:SELECT",
                                      "postgres:TRIGGER", "postgres:TRUNCATE", "postgres:UPDATE"}));
  if (major_of(GetParam()) != "17") return;
  server_.sql("GRANT MAINTAIN ON t TO reader", "shop");
  EXPECT_THAT(grants(p.refresh().body("table_fingerprint", "shop.public.t")), testing::Contains("reader:MAINTAIN"));
}

TEST_P(PostgresVersions, ATimeoutThatTheOwnerOfADatabaseSetsIsNotOurs) {
  server_.sql(
      "DO $$ BEGIN FOR i IN 1..400 LOOP EXECUTE 'CREATE TABLE t' || i || ' (id int PRIMARY KEY CHECK (id > ' || i || "
      "'), v text DEFAULT ''x'')'; END LOOP; END $$",
      "shop");
  server_.sql("ALTER DATABASE shop SET statement_timeout = '20ms'; ALTER DATABASE shop SET lock_timeout = '1ms'");
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  for (const auto& diagnostic : seen.diagnostics) ADD_FAILURE() << diagnostic.text;
  EXPECT_EQ(seen.complete.size(), 14u);
  EXPECT_NE(seen.find("table_fingerprint", "shop.public.t400"), nullptr);
  EXPECT_TRUE(p.refresh(seen.cursor).unchanged);
}

INSTANTIATE_TEST_SUITE_P(Majors, PostgresVersions, testing::Values("12.22.0", "14.19.0", "17.6.0"),
                         [](const auto& info) { return major_of(info.param); });

TEST(PostgresTooOld, IsUnsupportedAndTheVersionIsNamed) {
  PostgresServer server({{}, false, nullptr, "11.22.0"});
  server.sql("CREATE ROLE driftd LOGIN PASSWORD 'CHANGE-ME'");
  auto p = postgres_probe(server.endpoint());
  const auto seen = p.refresh();
  EXPECT_EQ(seen.status, DRIFTD_UNSUPPORTED);
  EXPECT_THAT(seen.records, IsEmpty());
  EXPECT_THAT(seen.complete, IsEmpty());
  const auto health = p.health().health;
  EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  EXPECT_THAT(health.reason, HasSubstr("PostgreSQL 11.22"));
  EXPECT_THAT(health.reason, HasSubstr("expected 12 or newer"));
}

}  // namespace
}  // namespace driftd::test
