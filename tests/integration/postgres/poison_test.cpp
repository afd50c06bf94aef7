// SPDX-License-Identifier: Apache-2.0
// Whatever a role does to its own record, driftd still reads the others.
#include <gmock/gmock.h>

#include "fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

class PostgresPoison : public testing::Test {
 protected:
  PostgresPoison() {
    server_.sql(readme_grants("postgres", "sql"));
    server_.sql("CREATE ROLE mallory LOGIN PASSWORD 'of-mallory'");
  }
  PostgresServer server_;
};

TEST_F(PostgresPoison, SettingsOfMegabytesHideNothingButThemselves) {
  server_.sql_as("mallory", "of-mallory",
                 "DO $$ BEGIN EXECUTE 'ALTER ROLE current_user SET search_path = ' || (SELECT string_agg('\"' || "
                 "repeat('a', 24) || n || '\"', ', ') "
                 "FROM generate_series(1, 160000) n); END $$");
  server_.sql("CREATE ROLE zz_backdoor SUPERUSER; ALTER ROLE mallory CREATEROLE");
  ProviderProbe probe = postgres_probe(server_.endpoint());
  const Collected seen = probe.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics.front().text;
  EXPECT_EQ(seen.complete.size(), 14u);
  EXPECT_EQ(seen.body("role", "zz_backdoor")["superuser"], true);
  const auto* mallory = seen.find("role", "mallory");
  ASSERT_NE(mallory, nullptr);
  EXPECT_EQ(json::parse(mallory->body)["create_role"], true);
  ASSERT_EQ(mallory->unread.size(), 1u);
  EXPECT_EQ(mallory->unread[0].path, "settings");
  for (const auto& record : seen.records) EXPECT_LE(record.body.size(), 4u << 20) << record.kind << "/" << record.id;
}

/// A database whose encoding is SQL_ASCII accepts any bytes as a name, and a role belongs to all databases.
TEST_F(PostgresPoison, NamesThatAreNotUtf8AreShownAndHideNothing) {
  server_.sql("CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'");
  server_.sql("SET client_encoding = 'SQL_ASCII'; CREATE ROLE \"bad\xff\"; CREATE SCHEMA \"s\xfe\"", "bytes");
  server_.sql(
      "GRANT SELECT ON pg_file_settings, pg_hba_file_rules TO driftd; "
      "GRANT EXECUTE ON FUNCTION pg_show_all_file_settings(), pg_hba_file_rules() TO driftd",
      "bytes");  // each database has its own rights on catalogues
  server_.sql("CREATE ROLE zz_backdoor SUPERUSER");
  for (const auto& settings : {json{{"databases", "*"}}, json{{"database", "bytes"}}}) {
    ProviderProbe probe = postgres_probe(server_.endpoint(), settings);
    const Collected seen = probe.refresh();
    ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics.front().text;
    EXPECT_EQ(seen.complete.size(), 14u) << settings << (seen.diagnostics.empty() ? "" : seen.diagnostics.front().text);
    EXPECT_NE(seen.find("role", "bad\\xff"), nullptr);
    EXPECT_NE(seen.find("schema", "bytes.s\\xfe"), nullptr);
    EXPECT_EQ(seen.body("role", "zz_backdoor")["superuser"], true);
  }
}

}  // namespace
}  // namespace driftd::test
