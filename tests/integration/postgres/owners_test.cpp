// SPDX-License-Identifier: Apache-2.0
// What the owner of a database, or of a table in it, may do to make it slow to read. It costs only that kind of that
// database.
#include <gmock/gmock.h>
#include <chrono>
#include <set>
#include <thread>

#include "fixture.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

class PostgresOwners : public testing::Test {
 protected:
  PostgresOwners() {
    server_.sql(readme_grants("postgres", "sql"));
    server_.sql("CREATE ROLE mallory LOGIN PASSWORD 'of-mallory'");
    server_.sql("CREATE DATABASE shop OWNER mallory");
    as_mallory("CREATE SCHEMA m; CREATE TABLE m.t (id int PRIMARY KEY, v text); CREATE VIEW m.w AS SELECT v FROM m.t");
  }
  void as_mallory(const std::string& statement) const { server_.sql_as("mallory", "of-mallory", statement, "shop"); }
  ProviderProbe probe() const {
    return postgres_probe(server_.endpoint(),
                          {{"databases", {"shop"}}, {"fingerprints", {"m"}}, {"statement_timeout_ms", 8000}});
  }
  PostgresServer server_;
};

TEST_F(PostgresOwners, ATimeoutThatTheySetIsNotOurs) {
  as_mallory(
      "DO $$ BEGIN FOR i IN 1..400 LOOP EXECUTE 'CREATE TABLE m.t' || i || ' (id int PRIMARY KEY CHECK (id > ' || i || "
      "'), v text DEFAULT ''x'')'; END LOOP; END $$");
  as_mallory("ALTER DATABASE shop SET statement_timeout = '20ms'; ALTER DATABASE shop SET lock_timeout = '1ms'");
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics.front().text;
  EXPECT_EQ(seen.complete.size(), 14u);
  EXPECT_NE(seen.find("table_fingerprint", "shop.m.t400"), nullptr);
  EXPECT_TRUE(p.refresh(seen.cursor).unchanged);
}

TEST_F(PostgresOwners, ALockCostsTheKindThatMeetsIt) {
  auto p = probe();
  const auto before = p.refresh();
  ASSERT_EQ(before.complete.size(), 14u);
  std::thread holder([this] {
    EXPECT_THROW(as_mallory("BEGIN; LOCK TABLE m.w IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)"), std::runtime_error);
  });
  EXPECT_TRUE(eventually([this] {
    return server_.value(
               "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = 'm.w'::regclass",
               "shop") == "1";
  }));
  server_.sql("CREATE ROLE newcomer; CREATE SCHEMA fresh");
  server_.sql("CREATE SCHEMA fresh", "shop");
  const auto begun = std::chrono::steady_clock::now();
  const auto seen = p.refresh(before.cursor);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(8));
  EXPECT_EQ(seen.status, DRIFTD_OK);
  EXPECT_FALSE(seen.unchanged);
  EXPECT_NE(seen.find("role", "newcomer"), nullptr);
  EXPECT_NE(seen.find("schema", "shop.fresh"), nullptr) << "the other kinds of that database are read";
  EXPECT_EQ(seen.complete.size(), 13u);
  EXPECT_EQ(seen.complete.count("table_fingerprint"), 0u);
  const auto* why = seen.diagnostic(DRIFTD_BUDGET);
  EXPECT_THAT(why != nullptr ? why->text : "", testing::AllOf(HasSubstr("database shop"), HasSubstr("lock timeout")));
  server_.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mallory'");
  holder.join();
  EXPECT_FALSE(p.refresh(seen.cursor).unchanged)
      << "a refresh that missed a kind must not give a cursor that vouches for it";
}

/// Twelve databases of one tenant, with a locked view in each, and one of somebody else.
class PostgresManyOwners : public testing::Test {
 protected:
  PostgresManyOwners() {
    server_.sql(readme_grants("postgres", "sql"));
    server_.sql("CREATE ROLE mallory LOGIN CREATEDB PASSWORD 'of-mallory'");
    for (int i = 10; i < 22; ++i) {
      const std::string name = "m" + std::to_string(i);
      server_.sql_as("mallory", "of-mallory", "CREATE DATABASE " + name);
      server_.sql_as("mallory", "of-mallory", "CREATE SCHEMA m; CREATE VIEW m.w AS SELECT 1 AS v", name);
      locked_.push_back(name);
    }
    server_.sql("CREATE DATABASE shop");
    server_.sql("CREATE SCHEMA m; CREATE TABLE m.ours (id int PRIMARY KEY)", "shop");
  }
  ~PostgresManyOwners() override { release(); }
  void lock_all() {
    for (const auto& name : locked_) {
      holders_.emplace_back([this, name] {
        EXPECT_THROW(server_.sql_as("mallory", "of-mallory",
                                    "BEGIN; LOCK TABLE m.w IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)", name),
                     std::runtime_error);
      });
    }
    ASSERT_TRUE(eventually([this] {
      return server_.value("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND database <> 0") ==
             "12";
    }));
  }
  void release() {
    if (holders_.empty()) return;
    server_.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mallory'");
    for (auto& one : holders_) one.join();
    holders_.clear();
  }
  PostgresServer server_;
  std::vector<std::string> locked_;
  std::vector<std::thread> holders_;
};

TEST_F(PostgresManyOwners, AllTheirLocksTogetherLeaveTheCycleItsEnd) {
  auto p = postgres_probe(server_.endpoint(), {{"databases", "*"}, {"fingerprints", {"m"}}});
  lock_all();
  std::set<std::string> read_once;
  int shop_reads = 0;
  for (int cycle = 0; cycle < 6 && (shop_reads < 3 || read_once.size() < locked_.size()); ++cycle) {
    const auto seen = p.refresh({}, std::chrono::seconds(10));
    ASSERT_EQ(seen.status, DRIFTD_OK) << cycle << ": " << seen.diagnostics.front().text;
    EXPECT_GE(seen.complete.size(), 8u) << "the kinds that are not in databases are complete";
    EXPECT_EQ(seen.complete.count("table_fingerprint"), 0u);
    EXPECT_NE(seen.find("role", "mallory"), nullptr);
    EXPECT_NE(seen.find("schema", "postgres.public"), nullptr);
    std::string schemas_missed;
    for (const auto& why : seen.diagnostics) {
      if (why.kind == "schema")
        schemas_missed += why.text + "\n";  // the time of the database, or of its connection, was over
    }
    for (const auto& name : locked_) {
      const bool read = seen.find("schema", name + ".m") != nullptr;
      if (read) read_once.insert(name);
      EXPECT_NE(read, schemas_missed.find(name) != std::string::npos)
          << "cycle " << cycle << ": " << name << " must be either read or named in: " << schemas_missed;
    }
    EXPECT_EQ(seen.complete.count("schema") == 0, !schemas_missed.empty());
    const bool shop_read = seen.find("table_fingerprint", "shop.m.ours") != nullptr;
    EXPECT_TRUE(shop_read || shop_reads == 0) << "cycle " << cycle << ": once read, a cheap database is read each time";
    if (shop_read) ++shop_reads;
  }
  EXPECT_GT(shop_reads, 0) << "the cheap database was never read";
  EXPECT_EQ(read_once.size(), locked_.size()) << "each locked database must be read at least once";
  release();
  EXPECT_TRUE(eventually([&] { return p.refresh({}, std::chrono::seconds(10)).complete.size() == 14u; }));
}

}  // namespace
}  // namespace driftd::test
