// SPDX-License-Identifier: Apache-2.0
// Which texts of a setting mean the same, asked of the server itself: it is given each text and shows what it has then.
#include "fixture.hpp"
#include "postgres/guc_types.hpp"

namespace driftd::test {
namespace {

using postgres::GucTypes;

class PostgresMeaning : public testing::Test {
 protected:
  PostgresMeaning() {
    server_.sql(
        "CREATE FUNCTION shown(name text, given text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM set_config(name, given, true); RETURN (SELECT setting FROM pg_settings s WHERE s.name = shown.name); "
        "EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$");
    postgres::Rows rows{{"name", "vartype", "unit", "words"}, server_.sql(postgres::guc_types_query())};
    types_ = GucTypes(rows);
  }
  /// What the server has after it was given this text; empty if it refuses it.
  std::optional<std::string> shown(const std::string& name, const std::string& text) const {
    return server_.sql("SELECT shown('" + name + "', '" + text + "')").at(0).at(0);
  }
  PostgresServer server_;
  GucTypes types_;
};

/// Every pair of these texts: the provider calls them the same exactly if the server has the same value after each.
TEST_F(PostgresMeaning, TextsAreTheSameExactlyWhenTheServerHasTheSameAfterThem) {
  const std::vector<std::string> memory = {
      "64MB",    "65536kB",  "65536",    "67108864B", "0.0625GB", "64 MB", " 65536 ",  "0x10000", "0200000",
      "65536.4", "65536.5",  "65537.5",  "65537",     "100000B",  "98kB",  "98304B",   "99kB",    "64mb",
      "64min",   "6.5536e4", "65536e0",  "1GB",       "1024MB",   "1.1GB", "1126.4MB", "8192",    "1MB",
      "1024kB",  "128",      "1048576B", "1000000B",  "-1",       "0",     "",         "MB"};
  const std::vector<std::string> time = {"1min",  "60s",  "60000", "60000ms", "60000000us", "0.5s", "500",   "500ms",
                                         "499.6", "1.5",  "2",     "2.5",     "1500us",     "1h",   "60min", "3600",
                                         "3600s", "0.1s", "100",   "100ms",   "1d",         "24h",  "2.5ms", "2500us",
                                         "1 min", "1m",   "-1",    "0",       "0.25"};
  const std::vector<std::string> flags = {"on", "ON", "true",  "tr", "t",  "yes", "y", "1", "off",
                                          "of", "o",  "false", "f",  "no", "n",   "0", "2", ""};
  const std::map<std::string, std::vector<std::string>> texts = {
      {"work_mem", memory},
      {"backend_flush_after", memory},
      {"effective_cache_size", memory},
      {"temp_file_limit", memory},
      {"log_min_duration_statement", time},
      {"idle_session_timeout", time},
      {"vacuum_cost_delay", time},
      {"log_parameter_max_length", memory},
      {"random_page_cost", {"1.1", "1.10", "11e-1", "1.11", "4", "4.0", "0x4", "4kB", "nan", "inf"}},
      {"geqo_effort", {"5", "5.4", "5.5", "6", "0x5", "05", "5e0", "010", "8"}},
      {"enable_seqscan", flags},
      {"synchronous_commit",
       {"on", "ON", "true", "yes", "1", "off", "false", "no", "0", "local", "LOCAL", "remote_apply", "t"}},
      {"constraint_exclusion", {"on", "true", "partition", "Partition", "off", "0"}},
      {"log_min_messages", {"warning", "WARNING", "error", "Error"}},
      {"client_min_messages", {"notice", "Notice", "warning"}},
      {"DateStyle", {"ISO, MDY", "mdy,iso", "ISO, DMY", "dmy, iso", "\"iso\", mdy"}}};
  int same = 0, different = 0;
  for (const auto& [name, given] : texts) {
    std::vector<std::optional<std::string>> after;
    for (const auto& text : given) after.push_back(shown(name, text));
    for (std::size_t i = 0; i < given.size(); ++i) {
      for (std::size_t j = i + 1; j < given.size(); ++j) {
        if (!after[i] && !after[j]) continue;  // both are out of range: the server has neither
        const bool expected = after[i] == after[j];
        ++(expected ? same : different);
        EXPECT_EQ(types_.same(name, given[i], given[j]), expected)
            << name << ": '" << given[i] << "' is " << after[i].value_or("refused") << ", '" << given[j] << "' is "
            << after[j].value_or("refused");
      }
    }
  }
  EXPECT_GT(same, 100);
  EXPECT_GT(different, 1000);
}

TEST_F(PostgresMeaning, ASearchPathIsItsSchemasInTheirOrder) {
  server_.sql("CREATE SCHEMA a; CREATE SCHEMA b; CREATE SCHEMA \"B\"; CREATE SCHEMA \"a, b\"");
  const std::vector<std::string> paths = {"a,b", "a, b", "A ,B", "\"a\", b", "\"a, b\"", "b,a", "a,\"B\"", "a,b,", "a"};
  std::vector<std::optional<std::string>> after;
  for (const auto& path : paths) {
    try {
      const auto rows = server_.sql("SET search_path TO a; SELECT set_config('search_path', '" + path +
                                    "', false); SELECT current_schemas(false)::text");
      after.push_back(rows.at(0).at(0));
    } catch (const std::exception&) {
      after.push_back(std::nullopt);
    }
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (std::size_t j = i + 1; j < paths.size(); ++j) {
      EXPECT_EQ(types_.same("search_path", paths[i], paths[j]), after[i] && after[j] && *after[i] == *after[j])
          << paths[i] << " and " << paths[j];
    }
  }
}

/// What the server itself prints must be a text that the provider reads, or every change of it is compared as text.
TEST_F(PostgresMeaning, EverySettingOfTheServerIsRead) {
  for (const auto& row : server_.sql("SELECT s.name, s.vartype, s.unit, s.setting, s.enumvals::text, "
                                     "current_setting(s.name) FROM pg_settings s WHERE s.vartype <> 'string'")) {
    const postgres::GucType type{*row[1], row[2].value_or(""), {}};
    EXPECT_TRUE(postgres::meaning(*row[0], type, *row[3])) << *row[0] << " = " << *row[3];
    EXPECT_TRUE(types_.same(*row[0], *row[3], *row[5])) << *row[0] << ": " << *row[3] << " and " << *row[5];
  }
}

}  // namespace
}  // namespace driftd::test
