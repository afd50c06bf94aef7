// SPDX-License-Identifier: Apache-2.0
// A role that may create objects in a schema of the search path must not get its code run by the monitoring role
// (CVE-2018-1058). Here such a role creates operators, functions, views and types of every name that driftd uses.
#include <gmock/gmock.h>
#include <set>

#include "fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// Each trap calls this function if it runs. It writes to the server's log, which no rollback removes, and tries to
// insert a row. %1 is the schema.
constexpr const char* kLoot = R"sql(
CREATE TABLE IF NOT EXISTS public.loot (what text);
GRANT INSERT, SELECT ON public.loot TO public;
CREATE FUNCTION %1.loot(what pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE plpgsql VOLATILE AS $f$
BEGIN
  RAISE LOG 'LOOTED as %: %', session_user, what;
  BEGIN INSERT INTO public.loot VALUES (what); EXCEPTION WHEN OTHERS THEN NULL; END;
  RETURN true;
END $f$;
GRANT EXECUTE ON FUNCTION %1.loot(pg_catalog.text) TO public;
)sql";

// The traps: a function of the same name and arguments for each function of pg_catalog; an operator for each operator
// there, and for pairs of types that pg_catalog's own operators fit only after a conversion; a view for each relation;
// and a domain for each type that queries name. What the role may not create is left out.
constexpr const char* kPlant = R"sql(
DO $plant$
DECLARE one record; n int := 0; body text;
BEGIN
  FOR one IN SELECT p.proname, pg_catalog.pg_get_function_arguments(p.oid) AS args, pg_catalog.format_type(p.prorettype, NULL) AS result,
                    p.proretset AS rows
             FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.proname !~ '^(loot|int|float|bt|hash|RI_|plpgsql)'
             AND NOT EXISTS (SELECT FROM unnest(p.proargtypes || p.prorettype) t(o) JOIN pg_catalog.pg_type y ON y.oid = t.o
                             WHERE y.typtype = 'p' AND y.typname NOT IN ('anyelement', 'anyarray', 'record', 'void'))
             AND p.prorettype NOT IN ('record'::regtype) LOOP
    BEGIN
      EXECUTE format('CREATE FUNCTION %1.%I(%s) RETURNS %s%s LANGUAGE plpgsql AS $f$ BEGIN PERFORM %1.loot(%L); RETURN%s; END $f$',
                     one.proname, one.args, CASE WHEN one.rows THEN 'SETOF ' ELSE '' END, one.result, 'function ' || one.proname,
                     CASE WHEN one.rows OR one.result = 'void' THEN '' ELSE ' NULL' END);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
  END LOOP;
  FOR one IN SELECT o.oprname AS name, o.oprleft::regtype::text AS l, o.oprright::regtype::text AS r, o.oprresult::regtype::text AS t
             FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_type x ON x.oid = o.oprleft JOIN pg_catalog.pg_type y ON y.oid = o.oprright
             WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND x.typtype <> 'p' AND y.typtype <> 'p'
             UNION SELECT '||', l, r, 'text' FROM unnest(ARRAY['oid', 'name', 'text', 'integer', 'timestamptz', '"char"', 'boolean']) l,
                                                  unnest(ARRAY['oid', 'name', 'text', 'integer', 'timestamptz', '"char"', 'boolean']) r LOOP
    n := n + 1;
    BEGIN
      EXECUTE format('CREATE FUNCTION %1.op_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN PERFORM %1.loot(%L); RETURN NULL; END $f$',
                     n, one.l, one.r, one.t, 'operator ' || one.name);
      EXECUTE format('CREATE OPERATOR %1.%s (leftarg = %s, rightarg = %s, procedure = %1.op_%s)', one.name, one.l, one.r, n);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
  END LOOP;
  FOR one IN SELECT c.relname, (SELECT string_agg('c.' || quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
                                WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.atttypid::regtype::text !~ 'anyarray|pg_statistic') AS columns
             FROM pg_catalog.pg_class c WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v') LOOP
    EXECUTE format('CREATE VIEW %1.%I AS SELECT %s FROM pg_catalog.%I c WHERE %1.loot(%L)', one.relname, one.columns, one.relname,
                   'view ' || one.relname);
    EXECUTE format('GRANT SELECT ON %1.%I TO public', one.relname);
  END LOOP;
  FOREACH body IN ARRAY ARRAY['text', 'name', 'oid', 'json', 'jsonb', 'regclass', 'pg_lsn', 'bytea', 'inet'] LOOP
    EXECUTE format('CREATE DOMAIN %1.%I AS pg_catalog.%I CHECK (%1.loot(%L))', body, body, 'type ' || body);
    EXECUTE format('GRANT USAGE ON DOMAIN %1.%I TO public', body);
  END LOOP;
END $plant$;
CREATE FUNCTION %1.concat_ws(pg_catalog.text, VARIADIC pg_catalog.text[]) RETURNS pg_catalog.text LANGUAGE plpgsql AS $f$
BEGIN PERFORM %1.loot('function concat_ws'); RETURN NULL; END $f$;
CREATE TYPE %1.mood AS ENUM ('calm', 'bad');
CREATE FUNCTION %1.mood_text(%1.mood) RETURNS pg_catalog.text LANGUAGE plpgsql AS $f$ BEGIN PERFORM %1.loot('cast'); RETURN 'x'; END $f$;
CREATE CAST (%1.mood AS pg_catalog.text) WITH FUNCTION %1.mood_text(%1.mood) AS IMPLICIT;
CREATE TABLE %1.feelings (id pg_catalog.int4, now %1.mood DEFAULT 'calm', CHECK (now <> 'bad'));
)sql";

std::string in_schema(const std::string& schema, std::string text) {
  for (auto at = text.find("%1"); at != std::string::npos; at = text.find("%1", at)) text.replace(at, 2, schema);
  return text;
}

class PostgresHostile : public testing::Test {
 protected:
  static constexpr const char* kPassword = "of-mallory";
  PostgresHostile() : server_({{"wal_level = logical"}, false, nullptr}) {
    server_.sql(readme_grants("postgres", "sql"));
    server_.sql("CREATE ROLE mallory LOGIN PASSWORD 'of-mallory'");
    server_.sql("CREATE DATABASE shop OWNER mallory");
    server_.sql("CREATE SUBSCRIPTION sub CONNECTION 'host=10.0.0.1' PUBLICATION p WITH (connect = false)");
    for (const auto* database : {"postgres", "shop"}) {
      server_.sql(
          "GRANT CREATE ON SCHEMA public TO mallory; CREATE SCHEMA evil AUTHORIZATION mallory; "
          "GRANT USAGE ON SCHEMA evil TO public; CREATE SCHEMA IF NOT EXISTS driftd; GRANT USAGE, CREATE ON SCHEMA "
          "driftd TO mallory; "
          "CREATE PUBLICATION all_of_it FOR ALL TABLES",
          database);
      // mallory does not own the functions of the README, so CREATE OR REPLACE could not change them
      for (const auto* schema : {"evil", "public", "driftd"}) {
        plant(schema, kLoot, database);
        plant(schema, kPlant, database);
      }
    }
  }
  void plant(const std::string& schema, const std::string& text, const std::string& database) const {
    const std::string path = "SET search_path = pg_catalog; SET check_function_bodies = off; ";
    server_.sql_as("mallory", kPassword, path + in_schema(schema, text), database);
  }
  /// Sets the search path for everybody, as the owner of a database may: the schemas with the traps come before
  /// pg_catalog.
  void set_traps() const {
    for (const auto* database : {"postgres", "shop"}) {
      server_.sql("ALTER DATABASE " + std::string(database) + " SET search_path = evil, \"$user\", public, pg_catalog");
    }
    server_.sql("ALTER ROLE driftd RESET search_path");
  }
  ProviderProbe probe() const {
    return postgres_probe(server_.endpoint(), {{"databases", "*"}, {"fingerprints", {"public", "evil"}}});
  }
  void expect_nothing_looted() const {
    EXPECT_THAT(server_.log(), Not(HasSubstr("LOOTED as driftd")));
    for (const auto* database : {"postgres", "shop"})
      EXPECT_EQ(server_.value("SELECT count(*) FROM public.loot", database), "0") << database;
  }

  PostgresServer server_;
};

TEST_F(PostgresHostile, NothingOfTheSearchPathRunsAndWhatIsReadIsRight) {
  ProviderProbe before = probe();
  const Collected honest = before.refresh({}, std::chrono::seconds(60));
  ASSERT_EQ(honest.status, DRIFTD_OK) << honest.diagnostics.front().text;
  set_traps();
  ProviderProbe trapped = probe();
  const Collected seen = trapped.refresh({}, std::chrono::seconds(60));
  ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics.front().text;
  EXPECT_EQ(seen.complete, honest.complete);
  EXPECT_EQ(seen.complete.size(), 14u) << "every kind must be complete";
  const std::set<std::string> changed = {"database/postgres", "database/shop", "role/driftd"};  // by set_traps() itself
  for (const auto& record : honest.records) {
    const std::string name = record.kind + "/" + record.id;
    if (changed.contains(name)) continue;
    EXPECT_EQ(seen.body(record.kind, record.id), json::parse(record.body)) << name;
  }
  EXPECT_TRUE(trapped.refresh(seen.cursor).status == DRIFTD_OK);
  EXPECT_EQ(trapped.read({{"role", "mallory"}, {"schema", "shop.evil"}, {"setting", "work_mem"}}).records.size(), 3u);
  EXPECT_EQ(trapped.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  expect_nothing_looted();
  for (const char* naive : {"SELECT length('x'::pg_catalog.text)", "SELECT 1::pg_catalog.oid = 1::pg_catalog.oid",
                            "SELECT count(*) FROM pg_roles", "SELECT 'x'::text"}) {
    const std::size_t logged = server_.log().size();
    server_.sql_as("driftd", "CHANGE-ME", naive);
    EXPECT_TRUE(eventually([&] { return server_.log().find("LOOTED as driftd", logged) != std::string::npos; }))
        << "the trap does not work: " << naive;
  }
}

TEST_F(PostgresHostile, TheWatchOfDdlRunsNothingOfTheSearchPath) {
  server_.sql(readme_block("postgres", "### Faster", "sql"));
  set_traps();
  ProviderProbe watched = probe();
  bool created = false;
  const auto table = [&] {
    if (!std::exchange(created, true)) server_.sql("SET search_path = pg_catalog; CREATE TABLE public.news (id int4)");
  };
  const auto seen = watched.watch(
      {}, [](const Collected& c) { return c.marks >= 2; }, std::chrono::seconds(30), table);
  EXPECT_GE(seen.marks, 2);
  expect_nothing_looted();
}

TEST_F(PostgresHostile, FunctionsInASchemaOfOurNameCountOnlyWhenASuperuserOwnsThem) {
  server_.sql("DROP FUNCTION driftd.role_verifiers(), driftd.hba_file_modified(), driftd.subscription_conninfo()");
  server_.sql_as("mallory", kPassword,
                 "CREATE FUNCTION driftd.role_verifiers() RETURNS TABLE (role_oid oid, password_type pg_catalog.text, "
                 "digest pg_catalog.text) LANGUAGE "
                 "plpgsql AS $f$ BEGIN PERFORM evil.loot('verifiers'); END $f$; "
                 "CREATE FUNCTION driftd.hba_file_modified() RETURNS timestamptz LANGUAGE plpgsql AS $f$ BEGIN PERFORM "
                 "evil.loot('hba'); RETURN NULL; END $f$; "
                 "CREATE FUNCTION driftd.subscription_conninfo() RETURNS TABLE (subscription_oid oid, digest "
                 "pg_catalog.text) LANGUAGE plpgsql AS "
                 "$f$ BEGIN PERFORM evil.loot('conninfo'); END $f$");
  ProviderProbe probe = postgres_probe(server_.endpoint());
  const Collected seen = probe.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  const auto* role = seen.find("role", "mallory");
  ASSERT_NE(role, nullptr);
  ASSERT_EQ(role->unread.size(), 2u);
  EXPECT_THAT(role->unread[0].reason, HasSubstr("role_verifiers()"));
  EXPECT_EQ(seen.find("subscription", "postgres.sub")->unread.size(), 1u);
  expect_nothing_looted();
}

}  // namespace
}  // namespace driftd::test
