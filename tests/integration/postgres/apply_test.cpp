// SPDX-License-Identifier: Apache-2.0
// Values are put back into a real server.
#include <gmock/gmock.h>
#include <filesystem>

#include "fixture.hpp"
#include "support/put_back.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

const sdk::Identity kApp{"role", "app"}, kShop{"database", "shop"};

class PostgresApply : public testing::Test {
 protected:
  void SetUp() override {
    server.sql(readme_grants("postgres", "sql"));
    const std::string more = readme_block("postgres", "### To put values back", "sql");
    server.sql(more.substr(0, more.find("-- settings")));
    server.sql(
        "CREATE ROLE app LOGIN PASSWORD 'x' CONNECTION LIMIT 7; CREATE ROLE readers; CREATE ROLE writers; "
        "GRANT readers TO app; ALTER ROLE app SET work_mem = '8MB'");
    server.sql("CREATE DATABASE shop");
    server.sql("GRANT CREATE ON DATABASE shop TO app");
    server.sql("ALTER DATABASE shop SET search_path = \"$user\", public");
  }
  ProviderProbe make() { return postgres_probe(server.endpoint()); }
  void may_everything() const { server.sql("ALTER ROLE driftd SUPERUSER"); }
  static json body(ProviderProbe& probe, const sdk::Identity& id) { return probe.read({id}).body(id.kind, id.id); }
  /// Reads, lets `drift` run, and returns the request that puts back what was read.
  sdk::Apply drifted(ProviderProbe& probe, const sdk::Identity& id, const std::string& drift, json& should) const {
    should = body(probe, id);
    server.sql(drift);
    return put_back(id, body(probe, id), should, "key");
  }
  void until_value(ProviderProbe& probe, const std::string& name, const json& value) const {
    ASSERT_TRUE(eventually([&] { return body(probe, {"setting", name}) == value; })) << name;
  }
  std::string lines_of_alter_system() const {
    return server.value("SELECT count(*) FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'");
  }
  PostgresServer server;
};

TEST_F(PostgresApply, ARoleComesBackWithItsMembershipsAndSettings) {
  may_everything();
  auto p = make();
  json should;
  const auto request =
      drifted(p, kApp,
              "ALTER ROLE app SUPERUSER NOLOGIN CREATEDB CONNECTION LIMIT -1 VALID UNTIL '2031-01-01'; "
              "REVOKE readers FROM app; GRANT writers TO app WITH ADMIN OPTION; ALTER ROLE app SET "
              "work_mem = '1GB'; ALTER ROLE app IN DATABASE shop SET \"app.tenant\" = 'x'",
              should);
  auto without = request;
  std::erase_if(without.changes, [](const auto& change) { return change.path == "valid_until"; });
  ASSERT_GE(without.changes.size(), 7u);
  EXPECT_THAT(p.apply(dry(request)).reason(), HasSubstr("valid_until cannot be unset"));
  const json is = body(p, kApp);
  const auto planned = p.apply(dry(without));
  ASSERT_EQ(planned.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << planned.reason();
  EXPECT_THAT(planned.outcome.commands, Contains(HasSubstr("NOSUPERUSER")));
  EXPECT_EQ(planned.outcome.commands.front(), "BEGIN");
  EXPECT_EQ(body(p, kApp), is) << "a dry run changes nothing";
  const auto done = p.apply(without);
  ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_EQ(done.outcome.commands, planned.outcome.commands);
  should["valid_until"] = is["valid_until"];
  should["database_settings"] = body(p, kApp)["database_settings"];
  EXPECT_EQ(body(p, kApp), should);
  EXPECT_TRUE(body(p, kApp)["database_settings"].empty());
  EXPECT_FALSE(p.apply(without).outcome.changed) << "the same key";
}

TEST_F(PostgresApply, TheUndoIsSqlThatTakesItBack) {
  may_everything();
  auto p = make();
  json should;
  const auto request = drifted(p, kApp, "ALTER ROLE app CREATEDB; GRANT writers TO app", should);
  const json is = body(p, kApp);
  const auto done = p.apply(request);
  ASSERT_TRUE(done.outcome.changed) << done.reason();
  for (const auto& sql : done.outcome.undo) {
    if (sql != "BEGIN" && sql != "COMMIT") server.sql(sql);
  }
  EXPECT_EQ(body(p, kApp), is);
}

TEST_F(PostgresApply, ADatabaseComesBackWithOwnerGrantsAndSettings) {
  may_everything();
  auto p = make();
  json should;
  const auto request = drifted(
      p, kShop,
      "ALTER DATABASE shop OWNER TO app; ALTER DATABASE shop CONNECTION LIMIT 3; REVOKE CONNECT ON DATABASE "
      "shop FROM PUBLIC; GRANT TEMPORARY ON DATABASE shop TO writers WITH GRANT OPTION; ALTER DATABASE shop SET "
      "search_path = evil; ALTER DATABASE shop SET work_mem = '1GB'",
      should);
  const auto done = p.apply(request);
  ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  json now = body(p, kShop);
  EXPECT_EQ(grants(now), grants(should));
  now.erase("grants");
  should.erase("grants");
  EXPECT_EQ(now, should);
}

TEST_F(PostgresApply, OneRefusedStatementRollsBackAllOfThem) {
  may_everything();
  auto p = make();
  const json is = body(p, kApp);
  const sdk::Apply request{
      false, kApp, "", "k", {{0, "create_db", "false", "true"}, {1, "settings.work_mem", "\"8MB\"", "\"a lot\""}}};
  const auto refused = p.apply(request);
  EXPECT_EQ(refused.status, DRIFTD_OK);
  EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(refused.reason(), HasSubstr("work_mem"));
  EXPECT_THAT(refused.reason(), HasSubstr("nothing was changed"));
  EXPECT_FALSE(refused.outcome.changed);
  EXPECT_EQ(body(p, kApp), is);
}

TEST_F(PostgresApply, AMissingRightIsSaidAndNothingIsHalfDone) {
  auto p = make();
  json should;
  const auto request = drifted(p, kApp, "ALTER ROLE app CREATEDB; GRANT writers TO app", should);
  const json is = body(p, kApp);
  const auto refused = p.apply(request);
  EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(refused.reason(), HasSubstr("grant the right to role driftd"));
  EXPECT_EQ(body(p, kApp), is);
  const auto setting = p.apply({false, {"setting", "work_mem"}, "", "k2", {{0, "bytes", "4194304", "8388608"}}});
  EXPECT_EQ(setting.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << setting.reason();
  EXPECT_THAT(setting.reason(), HasSubstr("grant ALTER SYSTEM ON PARAMETER"));
}

TEST_F(PostgresApply, AStaleValueIsAConflictAndARoleThatIsGoneIsNotCreated) {
  may_everything();
  auto p = make();
  json should;
  const auto request = drifted(p, kApp, "ALTER ROLE app CREATEDB CONNECTION LIMIT 1", should);
  server.sql("ALTER ROLE app CONNECTION LIMIT 2");
  const auto stale = p.apply(request);
  EXPECT_EQ(stale.status, DRIFTD_CONFLICT);
  EXPECT_THAT(stale.reason(), HasSubstr("connection_limit changed since"));
  EXPECT_EQ(body(p, kApp)["create_db"], true);
  server.sql("REVOKE CREATE ON DATABASE shop FROM app; DROP ROLE app");
  EXPECT_EQ(p.apply(request).status, DRIFTD_NOT_FOUND);
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_roles WHERE rolname = 'app'"), "0");
}

TEST_F(PostgresApply, ASettingOfAlterSystemIsResetAndTheFileCountsAgain) {
  server.sql(
      "GRANT ALTER SYSTEM ON PARAMETER work_mem TO driftd; GRANT EXECUTE ON FUNCTION pg_reload_conf() TO driftd");
  auto p = make();
  const json should = body(p, {"setting", "work_mem"});
  server.sql("ALTER SYSTEM SET work_mem = '64MB'");
  server.sql("SELECT pg_reload_conf()");
  until_value(p, "work_mem", {{"bytes", 64 << 20}});
  const auto request = put_back({"setting", "work_mem"}, {{"bytes", 64 << 20}}, should, "k");
  const auto planned = p.apply(dry(request));
  EXPECT_THAT(planned.outcome.commands, ElementsAre("ALTER SYSTEM RESET \"work_mem\"", "SELECT pg_reload_conf()"));
  EXPECT_THAT(planned.outcome.undo, ElementsAre("ALTER SYSTEM SET \"work_mem\" = '64MB'", "SELECT pg_reload_conf()"));
  EXPECT_EQ(body(p, {"setting", "work_mem"})["bytes"], 64 << 20);
  const auto done = p.apply(request);
  ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_EQ(body(p, {"setting", "work_mem"}), should) << "it was waited for";
  EXPECT_FALSE(p.apply(request).outcome.changed);
}

TEST_F(PostgresApply, ASettingIsSetWhereTheFileSaysAnotherValue) {
  may_everything();
  auto p = make();
  const auto done = p.apply({false, {"setting", "work_mem"}, "", "k", {{0, "bytes", "4194304", "16777216"}}});
  ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_THAT(done.outcome.commands, Contains("ALTER SYSTEM SET \"work_mem\" = '16777216B'"));
  EXPECT_THAT(done.outcome.undo, Contains("ALTER SYSTEM RESET \"work_mem\""));
  EXPECT_EQ(server.value("SHOW work_mem"), "16MB");
}

TEST_F(PostgresApply, ASettingThatNeedsARestartIsRefusedWithTheCommand) {
  may_everything();
  auto p = make();
  const json is = body(p, {"setting", "max_connections"});
  const sdk::Apply request{false, {"setting", "max_connections"}, "", "k", {{0, "number", is["number"].dump(), "57"}}};
  for (const auto& each : {dry(request), request}) {
    const auto refused = p.apply(each);
    EXPECT_EQ(refused.status, DRIFTD_OK);
    EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << refused.reason();
    EXPECT_FALSE(refused.outcome.changed);
    EXPECT_THAT(refused.reason(), HasSubstr("restart the server"));
    EXPECT_EQ(refused.outcome.details.at("instead"),
              "ALTER SYSTEM SET \"max_connections\" = '57'; then restart the server");
  }
  EXPECT_EQ(lines_of_alter_system(), "0") << "a line would take effect at the next restart";
}

/// A reload for one value loads every file: what others have written there and not loaded must not come with it.
TEST_F(PostgresApply, AnEditThatWaitsForAReloadIsNotPutInForceByOurs) {
  may_everything();
  auto p = make();
  const sdk::Apply request{false, {"setting", "work_mem"}, "", "k", {{0, "bytes", "4194304", "16777216"}}};
  const auto expect_refused = [&](const std::string& names) {
    for (const auto& each : {dry(request), request}) {
      const auto refused = p.apply(each);
      EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << names << refused.reason();
      EXPECT_FALSE(refused.outcome.changed);
      EXPECT_THAT(refused.reason(), HasSubstr("not loaded: " + names + ";"));
    }
    EXPECT_EQ(server.value("SHOW work_mem"), "4MB");
  };
  server.sql("ALTER SYSTEM SET log_statement = 'all'");
  expect_refused("postgresql.auto.conf:log_statement");
  EXPECT_EQ(server.value("SHOW log_statement"), "none");
  server.sql("SELECT pg_reload_conf()");
  until_value(p, "log_statement", {{"value", "all"}});
  server.sql("ALTER SYSTEM RESET log_statement");
  expect_refused("the removed line of log_statement");
  server.sql("SELECT pg_reload_conf()");
  until_value(p, "log_statement", {{"value", "none"}});
  for (const std::string name : {"pg_hba.conf", "pg_ident.conf"}) {
    const std::string file = server.data_folder() + "/" + name;
    const auto before = std::filesystem::last_write_time(file);
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
    expect_refused(name);
    std::filesystem::last_write_time(file, before);
  }
  const auto done = p.apply(request);
  EXPECT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_EQ(server.value("SHOW work_mem"), "16MB");
}

TEST_F(PostgresApply, WhatWaitsInAFileAndCannotBeToldIsARefusalThatNamesTheFunction) {
  may_everything();
  server.sql("DROP FUNCTION driftd.ident_file_modified()");
  auto p = make();
  const sdk::Apply request{false, {"setting", "work_mem"}, "", "k", {{0, "bytes", "4194304", "16777216"}}};
  EXPECT_THAT(p.apply(request).reason(), HasSubstr("driftd.ident_file_modified()"));
  server.sql("DROP FUNCTION driftd.hba_file_modified()");
  EXPECT_THAT(p.apply(request).reason(), HasSubstr("driftd.hba_file_modified()"));
  EXPECT_EQ(lines_of_alter_system(), "0");
}

TEST_F(PostgresApply, WithoutTheRightToReloadTheLineIsTakenBack) {
  server.sql("GRANT ALTER SYSTEM ON PARAMETER work_mem TO driftd");
  auto p = make();
  const auto refused = p.apply({false, {"setting", "work_mem"}, "", "k", {{0, "bytes", "4194304", "16777216"}}});
  EXPECT_EQ(refused.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(refused.reason(), HasSubstr("pg_reload_conf"));
  EXPECT_THAT(refused.reason(), HasSubstr("was taken back"));
  EXPECT_THAT(refused.outcome.left, IsEmpty());
  EXPECT_EQ(lines_of_alter_system(), "0");
}

TEST_F(PostgresApply, WhatCannotBeSetIsRefusedBeforeAnythingRuns) {
  may_everything();
  auto p = make();
  const auto all = p.refresh();
  const auto refusal = [&](const sdk::Identity& id, const sdk::Change& change) {
    const auto out = p.apply({false, id, "", "k-" + id.id + change.path, {change}});
    EXPECT_EQ(out.outcome.outcome, unsigned{DRIFTD_APPLY_FAILED}) << id.id << out.reason();
    EXPECT_FALSE(out.outcome.changed);
    return out.reason();
  };
  EXPECT_THAT(refusal({"setting", "block_size"}, {0, "number", "8192", "4096"}), HasSubstr("fixed"));
  EXPECT_THAT(
      refusal({"setting", "config_file"}, {0, "value", all.body("setting", "config_file")["value"].dump(), "\"x\""}),
      HasSubstr("its source is"));
  EXPECT_THAT(refusal(kApp, {0, "password_type", "\"scram-sha-256\"", "\"md5\""}), HasSubstr("password"));
  EXPECT_THAT(refusal(kShop, {0, "encoding", "\"UTF8\"", "\"LATIN1\""}), HasSubstr("encoding cannot be set"));
  EXPECT_THAT(refusal({"extension", "postgres.plpgsql"}, {0, "schema", "\"pg_catalog\"", "\"x\""}),
              HasSubstr("extension is not set by driftd"));
  EXPECT_EQ(p.refresh().body("role", "app"), all.body("role", "app"));
}

/// Names and texts that end a statement are only names and texts.
TEST_F(PostgresApply, HostileNamesAndTextsAreQuoted) {
  may_everything();
  const std::string name = "x\"; DROP ROLE readers; --";
  server.sql("CREATE ROLE \"x\"\"; DROP ROLE readers; --\"");
  auto p = make();
  const sdk::Identity id{"role", name};
  const auto done = p.apply({false,
                             id,
                             "",
                             "k",
                             {{0, "settings[\"app.x\"]", "", json("'; DROP ROLE writers; --\\' $$").dump()},
                              {1, "create_db", "false", "true"}}});
  ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << done.reason();
  EXPECT_EQ(body(p, id)["settings"]["app.x"], "'; DROP ROLE writers; --\\' $$");
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_roles WHERE rolname IN ('readers', 'writers')"), "2");
}

/// Each setting of the server that a reload can change is moved and put back.
TEST_F(PostgresApply, EverySettingThatAReloadChangesComesBackAsItWas) {
  may_everything();
  auto p = make();
  const auto all = p.refresh();
  int set = 0;
  for (const auto& row :
       server.sql("SELECT name FROM pg_settings WHERE context IN ('sighup', 'user', 'superuser') AND "
                  "source IN ('default', 'configuration file') AND vartype IN ('integer', 'bool') AND "
                  "name ~ '^(autovacuum|checkpoint|log_|vacuum|wal_w|effective)' ORDER BY name")) {
    const std::string name = *row[0];
    const json should = all.body("setting", name);
    if (should.is_null() || should.empty() || name == "autovacuum") continue;
    const std::string path = should.begin().key();
    if (should[path].is_string()) continue;  // log_file_mode: JSON cannot write the number 0600
    const json other = path == "flag" ? json(!should[path].get<bool>()) : json(should[path].get<std::int64_t>() * 2);
    if (other == should[path]) continue;
    sdk::Apply away{false, {"setting", name}, "", "a-" + name, {{0, path, should[path].dump(), other.dump()}}};
    if (p.apply(away).outcome.outcome != unsigned{DRIFTD_APPLY_SUCCESS}) continue;  // out of its range
    sdk::Apply back{false, {"setting", name}, "", "b-" + name, {{0, path, other.dump(), should[path].dump()}}};
    const auto done = p.apply(back);
    ASSERT_EQ(done.outcome.outcome, unsigned{DRIFTD_APPLY_SUCCESS}) << name << ": " << done.reason();
    EXPECT_EQ(body(p, {"setting", name}), should) << name;
    ++set;
  }
  EXPECT_GT(set, 20);
  EXPECT_EQ(lines_of_alter_system(), "0") << "nothing of ours is left where the files say the same";
}

}  // namespace
}  // namespace driftd::test
