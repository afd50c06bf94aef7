// SPDX-License-Identifier: Apache-2.0
// Changes that are made while a refresh lists everything: its cursor must not vouch for them.
#include <fstream>
#include <thread>

#include "fixture.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;

void write(const std::string& file, const std::string& text) { std::ofstream(file, std::ios::trunc) << text; }

class PostgresListing : public testing::Test {
 protected:
  PostgresListing() { server_.sql(readme_grants("postgres", "sql")); }
  /// Replaces driftd.hba_file_modified() by a function that waits in these of its calls, each until let_go() of that
  /// call. The provider calls it once for each cursor and once for each list of the kind hba, which it reads before
  /// ident and schema. Its session may not write, so it counts its calls by the advisory locks that it holds.
  void hold(const std::string& calls) const {
    server_.sql(
        "CREATE OR REPLACE FUNCTION driftd.hba_file_modified() RETURNS timestamptz LANGUAGE plpgsql VOLATILE SECURITY "
        "DEFINER AS $$ DECLARE mine int := 1 + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'); BEGIN "
        "PERFORM "
        "pg_advisory_lock(77, mine); WHILE mine IN (" +
        calls +
        ") AND (pg_stat_file('go-' || mine, true)).size IS NULL LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN "
        "NULL; END $$");
  }
  /// Waits until call number `call` was begun.
  bool await_call(int call) const {
    return eventually([&] {
      return server_.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == std::to_string(call);
    });
  }
  /// Ends no transaction that the provider could notice.
  void let_go(int call) const { write(server_.data_folder() + "/go-" + std::to_string(call), "go"); }

  PostgresServer server_;
  ProviderProbe probe_ = postgres_probe(server_.endpoint(), {{"include", {"hba", "ident", "schema"}}});
};

TEST_F(PostgresListing, AChangeThatComesAndGoesInsideOfARefreshIsListedAgain) {
  ASSERT_EQ(probe_.refresh().status, DRIFTD_OK);
  constexpr int last = 3;  // the call for the cursor that is taken after the rows
  hold("2, " + std::to_string(last));
  Collected during;
  std::jthread refreshing([&] { during = probe_.refresh({}, seconds(30)); });
  EXPECT_TRUE(await_call(2));
  server_.sql("CREATE SCHEMA passing");
  let_go(2);
  EXPECT_TRUE(await_call(last));
  server_.sql("DROP SCHEMA passing");
  let_go(last);
  refreshing.join();
  ASSERT_NE(during.find("schema", "postgres.passing"), nullptr);
  const Collected after = probe_.refresh(during.cursor);
  EXPECT_FALSE(after.unchanged)
      << "the catalogue is as it was when the refresh began, but not as the refresh listed it";
  EXPECT_EQ(after.find("schema", "postgres.passing"), nullptr);
  EXPECT_TRUE(probe_.refresh(after.cursor).unchanged);
}

TEST_F(PostgresListing, AChangeDuringARefreshThatIsTakenBackAfterItIsSeen) {
  ASSERT_EQ(probe_.refresh().status, DRIFTD_OK);
  hold("2");
  Collected during;
  std::jthread refreshing([&] { during = probe_.refresh({}, seconds(30)); });
  EXPECT_TRUE(await_call(2));
  server_.sql("CREATE SCHEMA passing");
  let_go(2);
  refreshing.join();
  ASSERT_NE(during.find("schema", "postgres.passing"), nullptr);
  server_.sql("DROP SCHEMA passing");
  const Collected after = probe_.refresh(during.cursor);
  EXPECT_FALSE(after.unchanged) << "the catalogue is as it was before the change, but not as the refresh listed it";
  EXPECT_EQ(after.complete.count("schema"), 1u);
  EXPECT_EQ(after.find("schema", "postgres.passing"), nullptr);
  EXPECT_TRUE(probe_.refresh(after.cursor).unchanged);
}

/// A file is written without a transaction.
TEST_F(PostgresListing, AnEditOfAFileThatComesAndGoesInsideOfARefreshIsListedAgain) {
  const std::string file = server_.data_folder() + "/pg_ident.conf", before = read_file(file);
  ASSERT_EQ(probe_.refresh().status, DRIFTD_OK);
  hold("2, 3");
  Collected during;
  std::jthread refreshing([&] { during = probe_.refresh({}, seconds(30)); });
  EXPECT_TRUE(await_call(2));
  write(file, before + "m intruder postgres\n");
  let_go(2);
  EXPECT_TRUE(await_call(3));
  write(file, before);
  let_go(3);
  refreshing.join();
  ASSERT_EQ(during.body("ident", "pg_ident.conf")["mappings"].size(), 1U);
  const Collected after = probe_.refresh(during.cursor);
  EXPECT_FALSE(after.unchanged) << "the file is as it was when the refresh began, but not as the refresh listed it";
  EXPECT_EQ(after.body("ident", "pg_ident.conf")["mappings"].size(), 0U);
  EXPECT_TRUE(probe_.refresh(after.cursor).unchanged);
}

TEST_F(PostgresListing, OnAServerThatIsWrittenToTwoThatSayTheSameMakeACursor) {
  server_.sql("CREATE TABLE public.written (n int)");
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) server_.sql("INSERT INTO public.written VALUES (1)");
  });
  const Collected listed = refresh_until(probe_, [](const Collected& c) { return !c.cursor.empty(); });
  EXPECT_TRUE(probe_.refresh(listed.cursor).unchanged);
}

}  // namespace
}  // namespace driftd::test
