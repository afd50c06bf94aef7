// SPDX-License-Identifier: Apache-2.0
// Units checked against the server itself: a setting is set in one notation and declared in another, and the host's
// diff says whether the two are equal.
#include <fstream>

#include "core/judge/declaration.hpp"
#include "core/judge/expected.hpp"
#include "core/value/schema.hpp"
#include "fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

/// A setting that is set to `set`, whose `attribute` is equal to `same` and differs from `other`.
struct Form {
  const char *name, *set, *attribute;
  json same, other;
};

TEST(PostgresValues, OneFormThatIsSetEqualsAnotherThatIsDeclaredAndATwinDoesNot) {
  PostgresServer server;
  server.sql(readme_grants("postgres", "sql"));
  const json document =
      json::parse(std::ifstream(DRIFTD_SOURCE_DIR "/plugins/postgres/schema.json"))["kinds"]["setting"];
  const auto schema = core::KindSchema::parse(document.dump()).value();
  const auto differs = [&](const json& declared, const json& seen) {
    const core::ExpectedAttributes wanted{{core::Path{}, core::parse(declared.dump()).value()}};
    return !core::diff_expected(wanted, core::parse(seen.dump()).value(), *schema).changes.empty();
  };
  const Form forms[] = {{"work_mem", "64MB", "bytes", "65536kB", "64000kB"},
                        {"maintenance_work_mem", "1GB", "bytes", "1024MB", "1000MB"},
                        {"effective_cache_size", "16384", "bytes", "128MB", "16384kB"},
                        {"wal_writer_flush_after", "1MB", "bytes", 1048576, 1000000},
                        {"max_wal_size", "1GB", "bytes", "1024MB", "1025MB"},
                        {"log_rotation_size", "10MB", "bytes", "10240kB", "10240MB"},
                        {"track_activity_query_size", "2kB", "bytes", "2048B", "2000B"},
                        {"statement_timeout", "1min", "duration", "60000ms", "61s"},
                        {"checkpoint_timeout", "300", "duration", "5min", "300ms"},
                        {"wal_sender_timeout", "1h", "duration", "60min", "1d"},
                        {"log_rotation_age", "1d", "duration", "24h", "1440"},
                        {"vacuum_cost_delay", "2.5", "duration", "2500us", "2.5s"},
                        {"deadlock_timeout", "1000000us", "duration", "1s", "1min"},
                        {"random_page_cost", "1.10", "number", 1.1, 1.2},
                        {"seq_page_cost", "1", "number", "1.0", "1.01"},
                        {"autovacuum_max_workers", "3", "number", 3, 4},
                        {"autovacuum", "TRUE", "flag", "yes", "off"},
                        {"log_connections", "1", "flag", true, false},
                        {"log_min_messages", "ERROR", "value", "error", "warning"},
                        {"log_min_duration_statement", "-1", "duration", -1, 0}};
  for (const auto& form : forms) {
    server.sql(std::string("ALTER SYSTEM SET ") + form.name + " = '" + form.set + "'");
  }
  server.sql("SELECT pg_reload_conf()");
  server.restart();
  auto probe = postgres_probe(server.endpoint());
  const auto seen = probe.refresh();
  for (const auto& form : forms) {
    const json body = seen.body("setting", form.name);
    EXPECT_FALSE(differs({{form.attribute, form.same}}, body))
        << form.name << " set to " << form.set << " is read as " << body << " and must be equal to " << form.same;
    EXPECT_TRUE(differs({{form.attribute, form.other}}, body))
        << form.name << " set to " << form.set << " is read as " << body << " and must differ from " << form.other;
    const json line = seen.body("file_setting", std::string("postgresql.auto.conf:") + form.name);
    EXPECT_EQ(line["state"], "in_effect") << form.name << ": " << line;
  }
}

}  // namespace
}  // namespace driftd::test
