// SPDX-License-Identifier: Apache-2.0
// Every kind of the postgres provider in a running agent: changed by SQL, read as events from JetStream.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>

#include "support/agent.hpp"
#include "support/cutting_relay.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

class PostgresLine : public testing::Test {
 protected:
  PostgresLine() : server_({{"wal_level = logical"}, false, nullptr}) {
    server_.sql(granted("pg-canary"));
    server_.sql("CREATE DATABASE shop; ");
    server_.sql(
        "CREATE ROLE app LOGIN PASSWORD 'role-canary-1'; CREATE SCHEMA orders; CREATE TABLE orders.t (id int PRIMARY "
        "KEY, v text); "
        "CREATE PUBLICATION pub FOR TABLE orders.t; CREATE SUBSCRIPTION sub CONNECTION 'host=10.0.0.1 "
        "password=conn-canary-1' PUBLICATION other WITH (connect = false); ALTER DEFAULT PRIVILEGES FOR ROLE app "
        "GRANT SELECT ON TABLES TO PUBLIC",
        "shop");
    server_.sql("SELECT pg_create_physical_replication_slot('standby_1')");
  }
  /// Returns the grants of plugins/postgres/README.md with this password.
  static std::string granted(const std::string& password) {
    std::string grants = readme_grants("postgres", "sql");
    return grants.replace(grants.find("CHANGE-ME"), 9, password);
  }
  static std::string backend(const std::string& name, const std::string& endpoint) {
    return "  - name: " + name + "\n    provider: postgres\n    settings: { endpoints: [\"" + endpoint +
           "\"], user: driftd, password: \"${env:PG_PASSWORD}\", sslmode: disable, databases: \"*\", fingerprints: "
           "[orders] }\n";
  }
  void start(const std::string& backends, const std::vector<std::string>& names) {
    agent_ =
        std::make_unique<Agent>(dir_,
                                "defaults:\n  interval: 200ms\nbackends:\n" + backends +
                                    "sinks:\n  bus: { type: nats, servers: [\"" + nats_.url() + "\"], views: false }\n",
                                std::map<std::string, std::string>{{"PG_PASSWORD", "pg-canary"}});
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established(names); }, seconds(60))) << agent_->log();
  }
  testing::AssertionResult arrives(const Expected& expected, long count = 1) const {
    return test::arrives(nats_, expected, count);
  }
  /// Expects a pending drift after `change`, and that `back` reverts it.
  void expect_pending_then_reverted(const std::string& resource, const std::string& field, const std::string& change,
                                    const std::string& back, const std::string& database = "shop") const {
    server_.sql(change, database);
    EXPECT_TRUE(arrives({"db", resource, "config.updated", "pending", "changed", field})) << change;
    server_.sql(back, database);
    EXPECT_TRUE(arrives({"db", resource, "config.updated", "reverted", {}, field})) << back;
  }
  /// Expects a deleted drift after `drop`, and a recreated one after `create`.
  void expect_deleted_then_recreated(const std::string& resource, const std::string& drop, const std::string& create,
                                     const std::string& database = "shop") const {
    server_.sql(drop, database);
    EXPECT_TRUE(arrives({"db", resource, "config.updated", "pending", "deleted", {}})) << drop;
    server_.sql(create, database);
    EXPECT_TRUE(arrives({"db", resource, "config.updated", "pending", "recreated", {}})) << create;
  }

  TempDir dir_;
  NatsServer nats_;
  PostgresServer server_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(PostgresLine, EveryKindChangesAndReverts) {
  ASSERT_NO_FATAL_FAILURE(start(backend("db", server_.endpoint()), {"db"}));
  server_.sql("ALTER SYSTEM SET work_mem = '9MB'");
  EXPECT_TRUE(
      arrives({"db", "file_setting/postgresql.auto.conf:work_mem", "config.updated", "pending", "created", {}}));
  server_.sql("SELECT pg_reload_conf()");
  EXPECT_TRUE(arrives({"db", "setting/work_mem", "config.updated", "pending", "changed", "bytes"}));
  server_.sql("ALTER SYSTEM RESET work_mem");
  server_.sql("SELECT pg_reload_conf()");
  EXPECT_TRUE(arrives({"db", "setting/work_mem", "config.updated", "reverted", {}, "bytes"}));
  EXPECT_TRUE(arrives({"db", "file_setting/postgresql.auto.conf:work_mem", "config.updated", "reverted", {}, {}}));
  const std::string hba_file = server_.data_folder() + "/pg_hba.conf", hba = read_file(hba_file);
  std::ofstream(hba_file, std::ios::app) << "host all intruder 10.0.0.0/8 scram-sha-256\n";
  EXPECT_TRUE(arrives({"db", "hba/pg_hba.conf", "config.updated", "pending", "changed", "rules"}));
  std::ofstream(hba_file, std::ios::trunc) << hba;
  EXPECT_TRUE(arrives({"db", "hba/pg_hba.conf", "config.updated", "reverted", {}, "rules"}));
  const std::string ident_file = server_.data_folder() + "/pg_ident.conf", ident = read_file(ident_file);
  std::ofstream(ident_file, std::ios::app) << "m intruder postgres\n";
  EXPECT_TRUE(arrives({"db", "ident/pg_ident.conf", "config.updated", "pending", "changed", "mappings"}));
  std::ofstream(ident_file, std::ios::trunc) << ident;
  EXPECT_TRUE(arrives({"db", "ident/pg_ident.conf", "config.updated", "reverted", {}, "mappings"}));
  expect_pending_then_reverted("role/app", "create_db", "ALTER ROLE app CREATEDB", "ALTER ROLE app NOCREATEDB");
  expect_pending_then_reverted("role/app", "memberships", "GRANT pg_monitor TO app", "REVOKE pg_monitor FROM app");
  expect_pending_then_reverted("database/shop", "connection_limit", "ALTER DATABASE shop CONNECTION LIMIT 7",
                               "ALTER DATABASE shop CONNECTION LIMIT -1");
  expect_pending_then_reverted("database/shop", "grants", "GRANT CREATE ON DATABASE shop TO app",
                               "REVOKE CREATE ON DATABASE shop FROM app");
  expect_pending_then_reverted("schema/shop.orders", "grants", "GRANT USAGE ON SCHEMA orders TO app",
                               "REVOKE USAGE ON SCHEMA orders FROM app");
  expect_pending_then_reverted(
      "extension/shop.plpgsql", "schema",
      "UPDATE pg_extension SET extnamespace = 'orders'::regnamespace WHERE extname = 'plpgsql'",
      "UPDATE pg_extension SET extnamespace = 'pg_catalog'::regnamespace WHERE extname = 'plpgsql'");
  expect_pending_then_reverted("publication/shop.pub", "tables",
                               "ALTER PUBLICATION pub SET TABLE orders.t WHERE (id > 1)",
                               "ALTER PUBLICATION pub SET TABLE orders.t");
  expect_pending_then_reverted("subscription/shop.sub", "synchronous_commit",
                               "ALTER SUBSCRIPTION sub SET (synchronous_commit = local)",
                               "ALTER SUBSCRIPTION sub SET (synchronous_commit = off)");
  expect_pending_then_reverted("default_privileges/shop.app:tables", "grants",
                               "ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT INSERT ON TABLES TO PUBLIC",
                               "ALTER DEFAULT PRIVILEGES FOR ROLE app REVOKE INSERT ON TABLES FROM PUBLIC");
  expect_pending_then_reverted("table_fingerprint/shop.orders.t", "indexes", "CREATE INDEX by_v ON orders.t (v)",
                               "DROP INDEX orders.by_v");
}

/// Each setting is written in another way, and one twin is written last, in the same record: only the twins are drifts.
TEST_F(PostgresLine, SettingsAreComparedAsTheServerReadsThem) {
  server_.sql(
      "ALTER ROLE app SET work_mem = '64MB'; ALTER ROLE app SET enable_seqscan = 'on'; ALTER ROLE app SET "
      "statement_timeout = '1min'; ALTER ROLE app IN DATABASE shop SET search_path = a, b; ALTER DATABASE shop SET "
      "synchronous_commit = 'off'; ALTER DATABASE shop SET default_transaction_isolation = 'serializable'");
  const std::string conf = server_.data_folder() + "/driftd.conf";
  std::ofstream(server_.data_folder() + "/postgresql.conf", std::ios::app) << "include 'driftd.conf'\n";
  std::ofstream(conf) << "work_mem = 8MB\nautovacuum_naptime = 60\nenable_sort = on\nlog_statement = none\n";
  server_.sql("SELECT pg_reload_conf()");
  ASSERT_NO_FATAL_FAILURE(start(backend("db", server_.endpoint()), {"db"}));
  std::ofstream(conf, std::ios::trunc)
      << "work_mem = '8192kB'\nautovacuum_naptime = 1min\nenable_sort = TRUE\nlog_statement = 'NONE'\n";
  server_.sql(
      "ALTER ROLE app SET work_mem = 65536; ALTER ROLE app SET enable_seqscan = true; ALTER ROLE app SET "
      "statement_timeout = 60000; ALTER ROLE app IN DATABASE shop SET search_path = \"a\",b; ALTER DATABASE shop SET "
      "synchronous_commit = false; ALTER DATABASE shop SET default_transaction_isolation = 'SERIALIZABLE'");
  server_.sql("ALTER ROLE app SET random_page_cost = 3; ALTER DATABASE shop SET random_page_cost = 3");
  std::ofstream(conf, std::ios::app) << "seq_page_cost = 3\n";
  EXPECT_TRUE(arrives({"db", "role/app", "config.updated", "pending", "changed", "settings.random_page_cost"}));
  EXPECT_TRUE(arrives({"db", "database/shop", "config.updated", "pending", "changed", "settings.random_page_cost"}));
  EXPECT_TRUE(arrives({"db", "file_setting/driftd.conf:seq_page_cost", "config.updated", "pending", "created", {}}));
  EXPECT_EQ(agent_->rows({"drifts", "--all"}).size(), 3u) << agent_->cli({"drifts", "--all"}).out;
  EXPECT_THAT(agent_->cli({"explain", "db", "role/app", "settings.work_mem"}).out,
              HasSubstr("both texts mean the same value of work_mem"));
  server_.sql("ALTER ROLE app RESET random_page_cost");
  EXPECT_TRUE(arrives({"db", "role/app", "config.updated", "reverted", {}, "settings.random_page_cost"}));
  expect_pending_then_reverted("role/app", "settings.work_mem", "ALTER ROLE app SET work_mem = '65MB'",
                               "ALTER ROLE app SET work_mem = '0.0625GB'");
  expect_pending_then_reverted("role/app", "database_settings.shop.search_path",
                               "ALTER ROLE app IN DATABASE shop SET search_path = b, a",
                               "ALTER ROLE app IN DATABASE shop SET search_path = a, b");
  std::ofstream(conf, std::ios::trunc)
      << "work_mem = '8192MB'\nautovacuum_naptime = 1min\nenable_sort = TRUE\nlog_statement = 'NONE'\n";
  EXPECT_TRUE(arrives({"db", "file_setting/driftd.conf:work_mem", "config.updated", "pending", "changed", "setting"}));
}

TEST_F(PostgresLine, ARuleOnTopOfAHundredIsOneDriftThatShowsTheRule) {
  const std::string file = server_.data_folder() + "/pg_hba.conf";
  {
    std::ofstream out(file, std::ios::app);
    for (int i = 0; i < 100; ++i) out << "host all u" << i << " 10.0." << i << ".0/24 scram-sha-256\n";
  }
  const std::string rules = read_file(file);
  ASSERT_NO_FATAL_FAILURE(start(backend("db", server_.endpoint()), {"db"}));
  std::ofstream(file, std::ios::trunc) << "host all intruder 0.0.0.0 0.0.0.0 trust # quick fix\n" << rules;
  EXPECT_TRUE(arrives({"db", "hba/pg_hba.conf", "config.updated", "pending", "changed", "rules"}));
  ASSERT_EQ(agent_->rows({"drifts", "--all"}).size(), 1u) << agent_->cli({"drifts", "--all"}).out;
  const std::string shown = agent_->cli({"drifts"}).out;
  EXPECT_THAT(shown, HasSubstr("\"users\":\"intruder\""));
  EXPECT_THAT(agent_->cli({"explain", "db", "hba/pg_hba.conf", "rules"}).out, HasSubstr("\"users\":\"intruder\""));
  EXPECT_THAT(shown, Not(HasSubstr("10.0.7.0/24"))) << "rules that did not change are not shown";
  std::ofstream(file, std::ios::trunc) << rules << "# a comment\n";
  EXPECT_TRUE(arrives({"db", "hba/pg_hba.conf", "config.updated", "reverted", {}, "rules"}));
}

TEST_F(PostgresLine, WhatIsDroppedIsDeletedAndWhatIsMadeAgainIsAnother) {
  ASSERT_NO_FATAL_FAILURE(start(backend("db", server_.endpoint()), {"db"}));
  expect_deleted_then_recreated("publication/shop.pub", "DROP PUBLICATION pub",
                                "CREATE PUBLICATION pub FOR TABLE orders.t");
  expect_deleted_then_recreated("table_fingerprint/shop.orders.t", "DROP TABLE orders.t",
                                "CREATE TABLE orders.t (id int PRIMARY KEY, v text)");
  expect_deleted_then_recreated("extension/shop.plpgsql", "DROP EXTENSION plpgsql", "CREATE EXTENSION plpgsql");
  expect_deleted_then_recreated("default_privileges/shop.app:tables",
                                "ALTER DEFAULT PRIVILEGES FOR ROLE app REVOKE SELECT ON TABLES FROM PUBLIC",
                                "ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT SELECT ON TABLES TO PUBLIC");
  expect_deleted_then_recreated("role/app", "DROP OWNED BY app; DROP ROLE app",
                                "CREATE ROLE app LOGIN PASSWORD 'role-canary-1'");
  expect_deleted_then_recreated("schema/shop.orders", "DROP SCHEMA orders CASCADE", "CREATE SCHEMA orders");
  server_.sql("SELECT pg_drop_replication_slot('standby_1')");
  EXPECT_TRUE(arrives({"db", "slot/standby_1", "config.updated", "pending", "deleted", {}}));
  server_.sql("SELECT pg_create_physical_replication_slot('standby_1')");
  EXPECT_TRUE(arrives({"db", "slot/standby_1", "config.updated", "reverted", {}, {}}))
      << "a slot has no identity, so a new one of the same name reverts the deletion";
}

/// A role gives itself a setting of megabytes, so that its record breaks a limit. A role that is created afterwards is
/// still reported, and so are the rights that the role itself gains.
TEST_F(PostgresLine, ARoleThatPoisonsItsOwnRecordHidesNothingButItsSettings) {
  ASSERT_NO_FATAL_FAILURE(start(backend("db", server_.endpoint()), {"db"}));
  server_.sql_as("app", "role-canary-1",
                 "DO $$ BEGIN EXECUTE 'ALTER ROLE current_user SET search_path = ' || (SELECT string_agg('\"' || "
                 "repeat('a', 24) || n || "
                 "'\"', ', ') FROM generate_series(1, 160000) n); END $$");
  ASSERT_TRUE(eventually(
      [&] { return agent_->backend("db")->dump().find("longer than 64 KiB, which is not read") != std::string::npos; },
      seconds(60)))
      << agent_->backend("db")->dump();
  server_.sql("CREATE ROLE zz_backdoor SUPERUSER; ALTER ROLE app CREATEROLE");
  EXPECT_TRUE(arrives({"db", "role/zz_backdoor", "config.updated", "pending", "created", {}}));
  EXPECT_TRUE(arrives({"db", "role/app", "config.updated", "pending", "changed", "create_role"}));
  server_.sql("ALTER ROLE app RESET search_path; ALTER ROLE app NOCREATEROLE");
  EXPECT_TRUE(arrives({"db", "role/app", "config.updated", "reverted", {}, "create_role"}));
  for (const auto& row : agent_->rows({"drifts", "--all"})) {
    EXPECT_TRUE(row["resource"] == "role/zz_backdoor" || row["operation"] == "changed") << row.dump();
  }
}

TEST_F(PostgresLine, CredentialsRotateAndAreNowhere) {
  ASSERT_NO_FATAL_FAILURE(start(backend("db", server_.endpoint()), {"db"}));
  server_.sql("ALTER ROLE app PASSWORD 'role-canary-2'");
  EXPECT_TRUE(arrives({"db", "role/app", "credentials.rotated", "auto-applied", "changed", "verifier"}));
  server_.sql("ALTER SUBSCRIPTION sub CONNECTION 'host=10.0.0.1 password=conn-canary-2'", "shop");
  EXPECT_TRUE(arrives({"db", "subscription/shop.sub", "credentials.rotated", "auto-applied", "changed", "conninfo"}));
  std::string everything = agent_->log();
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"drifts", "--all"}, {"events"}, {"status"}, {"resources", "db", "--bodies"}}) {
    const Output out = agent_->cli(words);
    everything += out.out + out.err;
  }
  for (const auto& message : stream_contents(nats_.url(), "DRIFT")) everything += message.body;
  EXPECT_EQ(agent_->stop(), 0);
  for (const auto& file : std::filesystem::directory_iterator(agent_->data_dir())) {
    if (file.is_regular_file()) everything += read_file(file.path().string());
  }
  EXPECT_THAT(everything, Not(HasSubstr("canary")));
}

TEST_F(PostgresLine, APromotionIsAnEndpointAndAnotherClusterBehindTheEndpointIsAsked) {
  PostgresServer standby({{"hot_standby = on"}, false, &server_}), stranger({{}, true, nullptr});
  stranger.sql(granted("pg-canary"));
  CuttingRelay relay(server_.port());
  ASSERT_NO_FATAL_FAILURE(
      start(backend("db", "127.0.0.1:" + std::to_string(relay.port())) + backend("copy", standby.endpoint()),
            {"db", "copy"}));
  ASSERT_EQ(standby.value("SELECT pg_promote(true, 60)"), "t");
  EXPECT_TRUE(arrives({"copy", "instance/instance", "endpoint.changed", "auto-applied", "changed", "role"}));
  EXPECT_TRUE(arrives({"copy", "instance/instance", "endpoint.changed", "auto-applied", "changed", "timeline"}));
  relay.point_to(stranger.port());
  ASSERT_TRUE(eventually(
      [&] {
        for (const auto& event : stream_events(nats_)) {
          if (event.backend_name() == "db" && event.what() == "endpoint.changed" &&
              event.reconciliation_status() == "pending")
            return true;
        }
        return false;
      },
      seconds(60)))
      << agent_->log();
  const auto failures = [&] { return agent_->backend("db")->at("failures").get<std::int64_t>(); };
  const auto held = failures();
  ASSERT_TRUE(eventually([&] { return failures() > held; }, seconds(60)))
      << "the backend does not refuse the other cluster again";
  for (const auto& event : stream_events(nats_)) {
    EXPECT_TRUE(event.backend_name() != "db" || event.what() != "config.updated")
        << event.resource_kind() << "/" << event.resource_id();
  }
}

TEST_F(PostgresLine, AServerThatStopsAndComesBackOpensNoDrift) {
  ASSERT_NO_FATAL_FAILURE(start(backend("db", server_.endpoint()), {"db"}));
  const auto state = [&](const std::string& wanted) {
    return eventually([&] { return agent_->backend("db")->at("health").value("state", "") == wanted; }, seconds(60));
  };
  server_.stop();
  EXPECT_TRUE(state("down"));
  server_.start();
  EXPECT_TRUE(state("up"));
  const auto cycles = [&] { return agent_->backend("db")->at("cycles").get<std::int64_t>(); };
  const auto before = cycles();
  ASSERT_TRUE(eventually([&] { return cycles() > before + 3; }, seconds(60))) << agent_->backend("db")->dump();
  for (const auto& drift : agent_->rows({"drifts", "--all"})) ADD_FAILURE() << drift.dump();
}

}  // namespace
}  // namespace driftd::test
