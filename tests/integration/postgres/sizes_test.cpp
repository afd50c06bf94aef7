// SPDX-License-Identifier: Apache-2.0
// Values that a role, or the owner of a database or of a table, may make as long as the server accepts. The server
// measures them: if one is too long, only its length reaches us, and all other records and attributes are still read.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <fstream>

#include "fixture.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

/// The largest resident size that this process ever had, in KiB.
long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// A statement that sets a value of `mib` MiB. Each of its characters doubles when the array that holds it is printed,
/// and again when the row is.
std::string long_settings(const std::string& alter, int mib) {
  return "SET client_min_messages = error; DO $$ BEGIN EXECUTE '" + alter +
         " SET application_name = ' || quote_literal(repeat('\"', " + std::to_string(mib) + " << 20)); END $$";
}

class PostgresSizes : public testing::Test {
 protected:
  PostgresSizes() {
    server_.sql(readme_grants("postgres", "sql"));
    server_.sql(
        "CREATE ROLE mallory LOGIN PASSWORD 'of-mallory'; CREATE ROLE honest; ALTER ROLE honest SET work_mem = '8MB'");
    server_.sql("CREATE DATABASE shop OWNER mallory");
  }
  void as_mallory(const std::string& statement, const std::string& database = "postgres") const {
    server_.sql_as("mallory", "of-mallory", statement, database);
  }
  /// Expects that every kind is complete and that this attribute of this record, alone, is unread for its length.
  void expect_unread(const Collected& seen, const std::string& kind, const std::string& id,
                     const std::string& path) const {
    ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics.front().text;
    EXPECT_THAT(seen.diagnostics, IsEmpty()) << seen.diagnostics.front().text;
    EXPECT_EQ(seen.complete.size(), 14u);
    const auto* record = seen.find(kind, id);
    ASSERT_NE(record, nullptr);
    ASSERT_EQ(record->unread.size(), 1u) << kind << "/" << id;
    EXPECT_EQ(record->unread[0].path, path);
    EXPECT_EQ(record->unread[0].code, DRIFTD_BUDGET);
    EXPECT_THAT(record->unread[0].reason, HasSubstr("KiB"));
  }
  PostgresServer server_;
};

TEST_F(PostgresSizes, SettingsOfHundredsOfMegabytesAreUnreadAndNeverFetched) {
  auto p = postgres_probe(server_.endpoint(), {{"databases", "*"}});
  ASSERT_EQ(p.refresh().complete.size(), 14u);
  as_mallory(long_settings("ALTER ROLE mallory", 264));
  const long before = peak_kib();
  const auto seen = p.refresh();
  EXPECT_LT(peak_kib() - before, 64 << 10) << "KiB, the growth of this process";
  expect_unread(seen, "role", "mallory", "settings");
  EXPECT_EQ(seen.body("role", "honest")["settings"]["work_mem"], "8MB");
  EXPECT_TRUE(p.refresh(seen.cursor).unchanged) << "the settings cannot be printed, but their hash is the same";
  server_.sql("ALTER ROLE mallory CREATEROLE; ALTER ROLE honest SUPERUSER");
  const auto changed = p.refresh(seen.cursor);
  EXPECT_EQ(changed.body("role", "mallory")["create_role"], true) << "the other attributes of this role are still read";
  EXPECT_EQ(changed.body("role", "honest")["superuser"], true);
  server_.sql("ALTER ROLE mallory RESET ALL");
  const auto again = p.refresh(changed.cursor);
  EXPECT_FALSE(again.unchanged);
  EXPECT_EQ(again.body("role", "mallory")["settings"], json::object());
}

TEST_F(PostgresSizes, SettingsWithinADatabaseCostThatDatabaseAlone) {
  as_mallory(long_settings("ALTER ROLE mallory IN DATABASE shop", 96));
  as_mallory("ALTER ROLE mallory IN DATABASE postgres SET work_mem = '7MB'");
  auto p = postgres_probe(server_.endpoint(), {{"databases", "*"}});
  const auto seen = p.refresh();
  expect_unread(seen, "role", "mallory", "database_settings.shop");
  EXPECT_EQ(seen.body("role", "mallory")["database_settings"], json::parse(R"({"postgres":{"work_mem":"7MB"}})"));
}

TEST_F(PostgresSizes, SettingsOfADatabaseAreUnreadAndItsOtherAttributesJudged) {
  as_mallory(long_settings("ALTER DATABASE shop", 96));
  auto p = postgres_probe(server_.endpoint());
  const auto seen = p.refresh();
  expect_unread(seen, "database", "shop", "settings");
  EXPECT_EQ(seen.body("database", "shop")["owner"], "mallory");
  EXPECT_EQ(seen.body("database", "postgres")["settings"], json::object());
}

/// Each is below the bound, but together they are above it. The short ones are read first, so that a long one never
/// displaces a short one.
TEST_F(PostgresSizes, SettingsInManyDatabasesHaveOneBoundTogether) {
  for (int i = 0; i < 4; ++i) {
    server_.sql("CREATE DATABASE d" + std::to_string(i));
    as_mallory("SET client_min_messages = error; DO $$ BEGIN EXECUTE 'ALTER ROLE mallory IN DATABASE d" +
               std::to_string(i) + " SET application_name = ' || quote_literal(repeat('x', 30000 + " +
               std::to_string(i) + ")); END $$");
  }
  as_mallory("ALTER ROLE mallory IN DATABASE shop SET work_mem = '7MB'");
  auto p = postgres_probe(server_.endpoint());
  const auto seen = p.refresh();
  EXPECT_EQ(seen.complete.size(), 14u);
  const auto* mallory = seen.find("role", "mallory");
  ASSERT_NE(mallory, nullptr);
  ASSERT_EQ(mallory->unread.size(), 2u);
  EXPECT_EQ(mallory->unread[0].path, "database_settings.d2");
  EXPECT_EQ(mallory->unread[1].path, "database_settings.d3");
  EXPECT_EQ(seen.body("role", "mallory")["database_settings"]["shop"]["work_mem"], "7MB");
}

TEST_F(PostgresSizes, AFilterOfMegabytesCostsTheTablesOfItsPublicationAlone) {
  as_mallory("CREATE SCHEMA m; CREATE TABLE m.t (id int PRIMARY KEY, v text)", "shop");
  as_mallory(
      "DO $$ BEGIN EXECUTE 'CREATE PUBLICATION p FOR TABLE m.t WHERE (v <> ' || quote_literal(repeat('x', 6 << 20)) || "
      "')'; END $$",
      "shop");
  server_.sql("CREATE PUBLICATION q FOR TABLE m.t WHERE (id > 3)", "shop");
  auto p = postgres_probe(server_.endpoint(), {{"databases", {"shop"}}});
  const long before = peak_kib();
  const auto seen = p.refresh();
  EXPECT_LT(peak_kib() - before, (kSanitized ? 48 : 16) << 10)
      << "KiB, the growth of this process; a sanitizer keeps freed memory for a while";
  expect_unread(seen, "publication", "shop.p", "tables");
  EXPECT_EQ(seen.body("publication", "shop.q")["tables"][0]["filter"], "(id > 3)");
  EXPECT_EQ(seen.body("publication", "shop.p")["all_tables"], false);
}

/// A list of grants can be as long as there are roles, so who may create roles may lengthen it.
TEST_F(PostgresSizes, AGrantListThatNoRecordTakesIsUnreadAlone) {
  server_.sql("CREATE SCHEMA wide", "shop");
  for (int part = 0; part < 10; ++part) {  // in ten transactions, for the number of locks in one is limited
    server_.sql("DO $$ BEGIN FOR i IN 1..1000 LOOP EXECUTE format('CREATE ROLE %s" + std::to_string(100 + part) +
                    "_%s', repeat('r', 50), i); END LOOP; EXECUTE 'GRANT ALL ON SCHEMA wide TO ' || (SELECT "
                    "string_agg(rolname, ',') FROM pg_roles "
                    "WHERE rolname LIKE 'rrr%r" +
                    std::to_string(100 + part) + "%'); END $$",
                "shop");
  }
  auto p = postgres_probe(server_.endpoint(), {{"databases", {"shop"}}, {"include", {"schema/*"}}});
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics.front().text;
  EXPECT_EQ(seen.complete.count("schema"), 1u);
  ASSERT_EQ(seen.find("schema", "shop.wide")->unread.size(), 1u);
  EXPECT_EQ(seen.find("schema", "shop.wide")->unread[0].path, "grants");
  EXPECT_EQ(seen.body("schema", "shop.wide")["owner"], "postgres");
  EXPECT_TRUE(seen.find("schema", "shop.public")->unread.empty());
}

/// The list of rules is one value: what a record cannot hold is unread, and not a shorter list.
TEST(PostgresHbaSizes, TenThousandRulesAreReadAndTwiceAsManyAreUnread) {
  PostgresServer server;
  server.sql(readme_grants("postgres", "sql"));
  auto p = postgres_probe(server.endpoint(), {{"include", {"hba"}}});
  const auto append = [&](int count) {
    std::ofstream out(server.data_folder() + "/pg_hba.conf", std::ios::app);
    for (int i = 0; i < count; ++i) out << "hostssl all u" << i << " 10.0.0.0/8 scram-sha-256\n";
  };
  append(10'000);
  const auto whole = p.refresh();
  ASSERT_EQ(whole.status, DRIFTD_OK);
  EXPECT_THAT(whole.find("hba", "pg_hba.conf")->unread, testing::IsEmpty());
  EXPECT_GE(whole.body("hba", "pg_hba.conf")["rules"].size(), 10'000u);
  append(10'000);
  const auto more = p.refresh();
  ASSERT_EQ(more.complete.count("hba"), 1u);
  const auto* record = more.find("hba", "pg_hba.conf");
  ASSERT_EQ(record->unread.size(), 1u);
  EXPECT_EQ(record->unread[0].path, "rules");
  EXPECT_THAT(record->unread[0].reason, HasSubstr("90,000 values"));
  EXPECT_FALSE(more.body("hba", "pg_hba.conf").contains("rules"));
}

}  // namespace
}  // namespace driftd::test
