// SPDX-License-Identifier: Apache-2.0
// The kinds inside databases: schemas, default privileges, publications, subscriptions, and the fingerprints of tables;
// and the replication slots of the server.
#include <thread>
#include <utility>

#include "fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;

class PostgresCatalog : public testing::Test {
 protected:
  PostgresCatalog() : server_({{"wal_level = logical"}, false, nullptr}) {
    server_.sql(readme_grants("postgres", "sql"));
    server_.sql("CREATE DATABASE shop");
    server_.sql("CREATE ROLE app; CREATE ROLE reader; CREATE TABLE public.t (id int PRIMARY KEY, v text, w text)",
                "shop");
  }
  ProviderProbe probe(const json& extra = {{"databases", "*"}, {"fingerprints", "public"}}) {
    return postgres_probe(server_.endpoint(), extra);
  }
  /// The attributes of the fingerprint of shop.public.t that a statement changes.
  std::vector<std::string> attributes_changed_by(const std::string& statement) {
    auto p = probe();
    const json before = p.refresh().body("table_fingerprint", "shop.public.t");
    server_.sql(statement, "shop");
    const json after = p.refresh().body("table_fingerprint", "shop.public.t");
    std::vector<std::string> out;
    for (const auto& [name, value] : before.items()) {
      if (after[name] != value) out.push_back(name);
    }
    return out;
  }
  PostgresServer server_;
};

TEST_F(PostgresCatalog, EveryKindIsWholeAcrossDatabasesAndAnIdleServerIsUnchanged) {
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  EXPECT_THAT(seen.diagnostics, testing::IsEmpty());
  EXPECT_EQ(seen.complete.size(), 14u);
  EXPECT_NE(seen.find("extension", "postgres.plpgsql"), nullptr);
  EXPECT_NE(seen.find("extension", "shop.plpgsql"), nullptr);
  EXPECT_NE(seen.find("schema", "shop.public"), nullptr);
  EXPECT_NE(seen.find("table_fingerprint", "shop.public.t"), nullptr);
  EXPECT_EQ(seen.find("table_fingerprint", "postgres.driftd.salt"), nullptr);
  EXPECT_TRUE(p.refresh(seen.cursor).unchanged);
}

TEST_F(PostgresCatalog, AChangeInAnotherDatabaseMovesTheCursor) {
  auto p = probe();
  const auto before = p.refresh();
  server_.sql("CREATE SCHEMA orders AUTHORIZATION app", "shop");
  const auto after = p.refresh(before.cursor);
  EXPECT_FALSE(after.unchanged);
  EXPECT_EQ(after.body("schema", "shop.orders")["owner"], "app");
}

TEST_F(PostgresCatalog, ARenamedTablespaceMovesTheCursor) {
  auto p = probe();
  server_.sql("ALTER ROLE postgres SET allow_in_place_tablespaces = on");
  server_.sql("CREATE TABLESPACE fast LOCATION ''");
  server_.sql("ALTER DATABASE shop SET TABLESPACE fast");
  const auto before = p.refresh();
  EXPECT_EQ(before.body("database", "shop")["tablespace"], "fast");
  server_.sql("ALTER TABLESPACE fast RENAME TO slow");
  EXPECT_EQ(p.refresh(before.cursor).body("database", "shop")["tablespace"], "slow");
}

TEST_F(PostgresCatalog, GrantAllIsTheListSpeltOutAndAnUntouchedListIsItsDefault) {
  auto p = probe();
  server_.sql("CREATE SCHEMA s AUTHORIZATION app", "shop");
  const json untouched = p.refresh().body("schema", "shop.s");
  server_.sql("GRANT ALL ON SCHEMA s TO app", "shop");
  EXPECT_EQ(p.refresh().body("schema", "shop.s"), untouched);
  server_.sql("GRANT USAGE, CREATE ON SCHEMA s TO reader", "shop");
  const auto spelt_out = grants(p.refresh().body("schema", "shop.s"));
  server_.sql("REVOKE ALL ON SCHEMA s FROM reader; GRANT ALL ON SCHEMA s TO reader", "shop");
  EXPECT_EQ(grants(p.refresh().body("schema", "shop.s")), spelt_out);
  server_.sql("REVOKE CREATE ON SCHEMA s FROM reader", "shop");
  EXPECT_NE(grants(p.refresh().body("schema", "shop.s")), spelt_out);
  const json database = p.refresh().body("database", "shop");
  server_.sql("GRANT CONNECT, TEMPORARY ON DATABASE shop TO PUBLIC; GRANT ALL ON DATABASE shop TO postgres");
  EXPECT_EQ(p.refresh().body("database", "shop"), database);
  const json table = p.refresh().body("table_fingerprint", "shop.public.t");
  server_.sql("GRANT ALL ON t TO postgres", "shop");
  EXPECT_EQ(p.refresh().body("table_fingerprint", "shop.public.t"), table);
  server_.sql("GRANT SELECT ON t TO reader WITH GRANT OPTION", "shop");
  EXPECT_THAT(grants(p.refresh().body("table_fingerprint", "shop.public.t")), testing::Contains("reader:SELECT*"));
}

TEST_F(PostgresCatalog, DefaultPrivilegesComeAndGo) {
  auto p = probe();
  const auto before = p.refresh();
  EXPECT_EQ(before.complete.at("default_privileges"), 0u);
  server_.sql(
      "ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA public GRANT SELECT ON TABLES TO reader; "
      "ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT EXECUTE ON FUNCTIONS TO reader",
      "shop");
  const auto after = p.refresh(before.cursor);
  EXPECT_EQ(grants(after.body("default_privileges", "shop.app:tables:public")),
            std::vector<std::string>{"reader:SELECT"});
  EXPECT_THAT(grants(after.body("default_privileges", "shop.app:functions")),
              testing::IsSupersetOf({"PUBLIC:EXECUTE", "app:EXECUTE", "reader:EXECUTE"}));
  server_.sql("ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA public REVOKE SELECT ON TABLES FROM reader", "shop");
  EXPECT_NE(p.read({{"default_privileges", "shop.app:tables:public"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(PostgresCatalog, EachPartOfATableMovesItsOwnDigest) {
  using testing::ElementsAre;
  EXPECT_THAT(attributes_changed_by("ALTER TABLE t ADD COLUMN x int DEFAULT 7"), ElementsAre("columns"));
  EXPECT_THAT(attributes_changed_by("ALTER TABLE t ALTER COLUMN x TYPE bigint"), ElementsAre("columns"));
  EXPECT_THAT(attributes_changed_by("GRANT SELECT (v) ON t TO reader"), ElementsAre("columns"));
  EXPECT_THAT(attributes_changed_by("ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)"),
              ElementsAre("constraints"));
  EXPECT_THAT(attributes_changed_by("CREATE INDEX by_v ON t (v)"), ElementsAre("indexes"));
  EXPECT_THAT(attributes_changed_by("CREATE POLICY own ON t USING (v = current_user)"), ElementsAre("policies"));
  EXPECT_THAT(attributes_changed_by("CREATE POLICY narrow ON t AS RESTRICTIVE USING (v = 'a')"),
              ElementsAre("policies"));
  EXPECT_THAT(
      attributes_changed_by("DROP POLICY narrow ON t; CREATE POLICY narrow ON t AS RESTRICTIVE WITH CHECK (v = 'a')"),
      ElementsAre("policies"))
      << "USING and WITH CHECK are different conditions";
  EXPECT_THAT(attributes_changed_by("ALTER TABLE t ENABLE ROW LEVEL SECURITY"), ElementsAre("row_security"));
  EXPECT_THAT(attributes_changed_by("ALTER TABLE t OWNER TO app"), testing::IsSupersetOf({"owner"}));
  EXPECT_THAT(
      attributes_changed_by("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; "
                            "CREATE TRIGGER tr AFTER INSERT ON t EXECUTE FUNCTION f()"),
      ElementsAre("triggers"));
  EXPECT_THAT(attributes_changed_by("INSERT INTO t (id) VALUES (1); ANALYZE t"), ElementsAre())
      << "rows and statistics are not in the fingerprint";
}

TEST_F(PostgresCatalog, ASchemaWhoseNameHoldsABackslashIsListed) {
  server_.sql(R"(CREATE SCHEMA "a\b"; CREATE TABLE "a\b".t (id int))", "shop");
  auto p = probe({{"databases", "*"}, {"fingerprints", R"(a\b)"}});
  EXPECT_NE(p.refresh().find("table_fingerprint", R"(shop.a\b.t)"), nullptr);
}

TEST_F(PostgresCatalog, ARecreatedTableHasAnotherIdentityAndADroppedOneIsNotFound) {
  auto p = probe();
  const std::string first = p.refresh().find("table_fingerprint", "shop.public.t")->external_name;
  server_.sql("DROP TABLE t", "shop");
  EXPECT_NE(p.read({{"table_fingerprint", "shop.public.t"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
  server_.sql("CREATE TABLE t (id int PRIMARY KEY, v text, w text)", "shop");
  EXPECT_NE(p.refresh().find("table_fingerprint", "shop.public.t")->external_name, first);
}

TEST_F(PostgresCatalog, PublicationsCarryTablesColumnsFiltersAndOptions) {
  auto p = probe();
  server_.sql("CREATE PUBLICATION p FOR TABLE t (id, v) WHERE (id > 3) WITH (publish = 'insert, delete')", "shop");
  const json body = p.refresh().body("publication", "shop.p");
  EXPECT_EQ(body["operations"], json({"insert", "delete"}));
  EXPECT_EQ(body["tables"], json::parse(R"x([{"table":"public.t","columns":["id","v"],"filter":"(id > 3)"}])x"));
  EXPECT_EQ(body["all_tables"], false);
  server_.sql(
      "ALTER PUBLICATION p SET TABLES IN SCHEMA public; ALTER PUBLICATION p SET (publish_via_partition_root = true)",
      "shop");
  const json other = p.refresh().body("publication", "shop.p");
  EXPECT_EQ(other["schemas"], json::array({"public"}));
  EXPECT_EQ(other["via_root"], true);
}

TEST_F(PostgresCatalog, ARotatedConnectionStringIsADigestAndTheSecretIsNowhere) {
  auto p = probe();
  server_.sql(
      "CREATE SUBSCRIPTION sub CONNECTION 'host=10.0.0.1 password=conn-canary-1' PUBLICATION b, a WITH (connect = "
      "false)",
      "shop");
  const auto before = p.refresh();
  EXPECT_EQ(before.body("subscription", "shop.sub")["publications"], json({"b", "a"}));
  EXPECT_EQ(before.body("subscription", "shop.sub")["enabled"], false);
  EXPECT_EQ(before.body("subscription", "shop.sub")["slot"], "sub");
  server_.sql("ALTER SUBSCRIPTION sub CONNECTION 'host=10.0.0.1 password=conn-canary-2'", "shop");
  const auto after = p.refresh(before.cursor);
  EXPECT_FALSE(after.unchanged);
  EXPECT_NE(before.body("subscription", "shop.sub")["conninfo"], after.body("subscription", "shop.sub")["conninfo"]);
  for (const auto& record : after.records) EXPECT_EQ(record.body.find("conn-canary"), std::string::npos) << record.id;
  server_.sql("REVOKE EXECUTE ON FUNCTION driftd.subscription_conninfo() FROM driftd");
  const auto blind = p.refresh(after.cursor);
  EXPECT_EQ(blind.complete.at("subscription"), 1u);
  EXPECT_THAT(blind.find("subscription", "shop.sub")->unread.at(0).reason, HasSubstr("subscription_conninfo()"));
  server_.sql("ALTER SUBSCRIPTION sub SET (slot_name = NONE)", "shop");
  server_.sql("DROP SUBSCRIPTION sub", "shop");
}

TEST_F(PostgresCatalog, SlotsComeAndGoAndTheirLagIsStatus) {
  auto p = probe();
  server_.sql("SELECT pg_create_logical_replication_slot('logical', 'pgoutput', false, true)", "shop");
  server_.sql("SELECT pg_create_physical_replication_slot('physical', true)");
  const auto seen = p.refresh();
  EXPECT_EQ(seen.body("slot", "logical"),
            json({{"type", "logical"}, {"plugin", "pgoutput"}, {"database", "shop"}, {"two_phase", true}}));
  EXPECT_EQ(seen.body("slot", "physical")["database"], nullptr);
  const json status = json::parse(seen.find("slot", "logical")->status);
  EXPECT_EQ(status["active"], false);
  EXPECT_EQ(status["wal_status"], "reserved");
  server_.sql("SELECT pg_logical_emit_message(true, 'filler', repeat('x', 100000))");
  EXPECT_TRUE(p.refresh(seen.cursor).unchanged) << "a slot whose lag alone grows has not changed";
  server_.sql("SELECT pg_drop_replication_slot('logical')");
  EXPECT_NE(p.read({{"slot", "logical"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(PostgresCatalog, ADatabaseThatIsClosedToUsIsUnknownAndNothingInItIsGone) {
  auto p = probe();
  const auto before = p.refresh();
  server_.sql("REVOKE CONNECT ON DATABASE shop FROM PUBLIC");
  const auto after = p.refresh(before.cursor);
  EXPECT_EQ(after.status, DRIFTD_OK);
  EXPECT_EQ(after.complete.count("schema"), 0u);
  EXPECT_EQ(after.complete.count("role"), 1u);
  ASSERT_NE(after.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(after.diagnostic(DRIFTD_DENIED)->right, "CONNECT ON DATABASE shop");
  EXPECT_TRUE(after.cursor.empty());
  const auto one = p.read({{"schema", "shop.public"}});
  EXPECT_EQ(one.status, DRIFTD_DENIED);
  EXPECT_EQ(one.diagnostic(DRIFTD_NOT_FOUND), nullptr);
}

TEST_F(PostgresCatalog, WhatIsInADatabaseThatWasClosedOrBecameATemplateIsNotGone) {
  for (const std::string option : {"ALLOW_CONNECTIONS false", "IS_TEMPLATE true"}) {
    auto p = probe();
    const auto before = p.refresh();
    server_.sql("ALTER DATABASE shop " + option);
    const auto after = p.refresh(before.cursor);
    EXPECT_EQ(after.find("schema", "shop.public"), nullptr);
    EXPECT_EQ(after.complete.count("schema"), 1u) << "the schemas of the other databases are complete";
    const auto one = p.read({{"schema", "shop.public"}, {"schema", "shop.never"}, {"schema", "postgres.never"}});
    ASSERT_NE(one.diagnostic(DRIFTD_UNAVAILABLE), nullptr);
    EXPECT_THAT(one.diagnostic(DRIFTD_UNAVAILABLE)->text,
                HasSubstr(option == "ALLOW_CONNECTIONS false" ? "closed to connections" : "a template"));
    std::map<std::string, driftd_status> codes;
    for (const auto& d : one.diagnostics) codes[d.id] = d.code;
    EXPECT_EQ(codes, (std::map<std::string, driftd_status>{{"shop.public", DRIFTD_UNAVAILABLE},
                                                           {"shop.never", DRIFTD_UNAVAILABLE},
                                                           {"postgres.never", DRIFTD_NOT_FOUND}}));
    server_.sql("ALTER DATABASE shop ALLOW_CONNECTIONS true IS_TEMPLATE false");
    EXPECT_EQ(p.refresh().body("schema", "shop.public"), before.body("schema", "shop.public"));
  }
  server_.sql("ALTER DATABASE shop IS_TEMPLATE true");
  auto named = probe({{"databases", {"shop"}}});
  EXPECT_NE(named.refresh().find("schema", "shop.public"), nullptr);
}

TEST_F(PostgresCatalog, ADroppedDatabaseTakesItsOwnWithIt) {
  auto p = probe();
  p.refresh();
  server_.sql("DROP DATABASE shop WITH (FORCE)");
  const auto after = p.read({{"schema", "shop.public"}, {"database", "shop"}});
  EXPECT_EQ(after.status, DRIFTD_OK);
  std::map<std::string, driftd_status> codes;
  for (const auto& d : after.diagnostics) codes[d.id] = d.code;
  EXPECT_EQ(codes,
            (std::map<std::string, driftd_status>{{"shop.public", DRIFTD_NOT_FOUND}, {"shop", DRIFTD_NOT_FOUND}}));
}

TEST_F(PostgresCatalog, DdlIsAHintWhereTheTriggerOfTheReadmeIs) {
  server_.sql(readme_block("postgres", "### Faster", "sql"));
  auto p = probe({{"connect_timeout_ms", 2000}});
  bool done = false;
  const auto hints = p.watch(
      {}, [](const Collected& c) { return c.marks >= 2; }, seconds(20),
      [&] {
        if (!std::exchange(done, true)) server_.sql("CREATE TABLE news (id int)");
      });
  EXPECT_GE(hints.marks, 2) << "one hint when the watch begins to listen, one for the statement";
  EXPECT_EQ(hints.status, DRIFTD_OK);
}

TEST_F(PostgresCatalog, WithoutTheTriggerTheWatchIsSilentAndEndsWhenAsked) {
  auto p = probe({{"connect_timeout_ms", 2000}});
  const std::jthread ddl([this](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) server_.sql("CREATE TABLE news_" + std::to_string(i) + " (id int)");
  });
  const auto silent = p.watch(
      {}, [](const Collected&) { return false; }, std::chrono::milliseconds(500));
  EXPECT_EQ(silent.status, DRIFTD_OK);
  EXPECT_EQ(silent.marks, 0);
}

TEST_F(PostgresCatalog, AnIdleCycleIsFourStatements) {
  auto p = probe({{"connect_timeout_ms", 2000}});
  const auto first = p.refresh();
  server_.sql("ALTER SYSTEM SET log_statement = 'all'; ");
  server_.sql("SELECT pg_reload_conf()");
  const auto loaded =
      refresh_until(p, [&](const Collected& c) { return c.body("setting", "log_statement")["value"] == "all"; });
  // If the reload, or a transaction of somebody else, came between the hashes and the rows, the cursor does not vouch
  // for what was listed, and the next refresh lists again.
  auto cursor = loaded.cursor;
  ASSERT_TRUE(eventually([&] {
    const auto next = p.refresh(cursor);
    cursor = next.unchanged ? cursor : next.cursor;
    return next.unchanged;
  }));
  const std::string logged = "LOG:  statement: ";
  const auto statements = [&] {
    const std::string log = server_.log();
    std::size_t count = 0;
    for (auto at = log.find(logged); at != std::string::npos; at = log.find(logged, at + 1)) ++count;
    return count;
  };
  const auto before = statements();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(p.refresh(cursor).unchanged);
  EXPECT_TRUE(eventually([&] { return statements() - before == 20; })) << statements() - before;
}

/// In which order rights and roles were given is no part of what they mean.
TEST_F(PostgresCatalog, TheOrderOfGrantsAndOfAPolicysRolesIsNoChange) {
  server_.sql("CREATE ROLE ann; CREATE ROLE bob");
  server_.sql(
      "CREATE TABLE o (v int); GRANT SELECT (v) ON o TO bob; GRANT UPDATE (v) ON o TO ann; GRANT SELECT ON o TO bob, "
      "ann; "
      "CREATE POLICY p ON o TO bob, ann USING (true)",
      "shop");
  auto p = probe();
  const json before = p.refresh().body("table_fingerprint", "shop.public.o");
  server_.sql(
      "REVOKE ALL ON o FROM ann, bob; REVOKE ALL (v) ON o FROM ann, bob; DROP POLICY p ON o; GRANT SELECT ON o TO ann, "
      "bob; GRANT UPDATE (v) ON o TO ann; GRANT SELECT (v) ON o TO bob; CREATE POLICY p ON o TO ann, bob USING (true)",
      "shop");
  EXPECT_EQ(p.refresh().body("table_fingerprint", "shop.public.o"), before);
  server_.sql("REVOKE UPDATE (v) ON o FROM ann; ALTER POLICY p ON o TO ann", "shop");
  const json after = p.refresh().body("table_fingerprint", "shop.public.o");
  EXPECT_NE(after["columns"], before["columns"]);
  EXPECT_NE(after["policies"], before["policies"]);
}

}  // namespace
}  // namespace driftd::test
