// SPDX-License-Identifier: Apache-2.0
// When two texts of a setting mean the same. tests/integration/postgres asks a server the same questions.
#include "postgres/guc_types.hpp"

#include <gtest/gtest.h>

namespace driftd::postgres {
namespace {

GucTypes types() {
  return GucTypes(Rows{{"name", "vartype", "unit", "words"},
                       {{"work_mem", "integer", "kB", std::nullopt},
                        {"shared_buffers", "integer", "8kB", std::nullopt},
                        {"statement_timeout", "integer", "ms", std::nullopt},
                        {"vacuum_cost_delay", "real", "ms", std::nullopt},
                        {"random_page_cost", "real", std::nullopt, std::nullopt},
                        {"max_connections", "integer", std::nullopt, std::nullopt},
                        {"enable_seqscan", "bool", std::nullopt, std::nullopt},
                        {"synchronous_commit", "enum", std::nullopt, R"(["local","remote_write","on","off"])"},
                        {"wal_level", "enum", std::nullopt, R"(["minimal","replica","logical"])"},
                        {"DateStyle", "string", std::nullopt, std::nullopt},
                        {"search_path", "string", std::nullopt, std::nullopt},
                        {"shared_preload_libraries", "string", std::nullopt, std::nullopt},
                        {"cluster_name", "string", std::nullopt, std::nullopt},
                        {"my.flag", "bool", std::nullopt, std::nullopt}}});
}

struct Case {
  const char *guc, *one, *other;
};

TEST(GucTypes, TextsThatMeanTheSameAreTheSame) {
  const GucTypes known = types();
  for (const auto& [guc, one, other] : {Case{"work_mem", "64MB", "65536kB"},
                                        {"work_mem", "64MB", "65536"},
                                        {"work_mem", " 64 MB ", "0.0625GB"},
                                        {"work_mem", "0x10000", "0200000"},
                                        {"work_mem", "100000B", "98kB"},
                                        {"work_mem", "-1", "-1.0"},
                                        {"WORK_MEM", "64MB", "65536kB"},
                                        {"shared_buffers", "16384", "128MB"},
                                        {"shared_buffers", "1500kB", "188"},
                                        {"statement_timeout", "1min", "60s"},
                                        {"statement_timeout", "60000", "60000000us"},
                                        {"vacuum_cost_delay", "2500us", "2.5"},
                                        {"random_page_cost", "1.10", "1.1"},
                                        {"random_page_cost", "4", "4e0"},
                                        {"max_connections", "1e2", "100"},
                                        {"enable_seqscan", "on", "TRUE"},
                                        {"enable_seqscan", "of", "n"},
                                        {"enable_seqscan", "1", "yes"},
                                        {"synchronous_commit", "REMOTE_WRITE", "remote_write"},
                                        {"synchronous_commit", "on", "true"},
                                        {"wal_level", "Replica", "replica"},
                                        {"datestyle", "ISO, MDY", "mdy,iso"},
                                        {"search_path", R"("$user", public)", R"("$user",Public)"},
                                        {"search_path", R"("public")", "public"},
                                        {"search_path", R"("a""b" ,c)", R"("a""b",c)"},
                                        {"shared_preload_libraries", "a,b", R"("a", b)"}}) {
    EXPECT_TRUE(known.same(guc, one, other)) << guc << ": " << one << " and " << other;
    EXPECT_TRUE(known.same(guc, other, one)) << guc << ": " << other << " and " << one;
  }
}

TEST(GucTypes, ATwinIsAnotherValue) {
  const GucTypes known = types();
  for (const auto& [guc, one, other] : {Case{"work_mem", "64MB", "64GB"},
                                        {"work_mem", "64MB", "65537kB"},
                                        {"work_mem", "64MB", "64"},
                                        {"work_mem", "64MB", "64mb"},
                                        {"work_mem", "64MB", "64min"},
                                        {"work_mem", "10", "010"},
                                        {"work_mem", "", "0"},
                                        {"shared_buffers", "128MB", "16385"},
                                        {"statement_timeout", "1min", "1"},
                                        {"statement_timeout", "1min", "61s"},
                                        {"random_page_cost", "1.1", "1.11"},
                                        {"random_page_cost", "nan", "NaN"},
                                        {"max_connections", "100", "100kB"},
                                        {"enable_seqscan", "on", "off"},
                                        {"enable_seqscan", "o", "on"},
                                        {"synchronous_commit", "on", "local"},
                                        {"wal_level", "on", "true"},
                                        {"search_path", "a, b", "b, a"},
                                        {"search_path", R"("Public")", "public"},
                                        {"search_path", "a, b", R"("a, b")"},
                                        {"search_path", "a,", "a"},
                                        {"shared_preload_libraries", "a,b", "b,a"},
                                        {"shared_preload_libraries", "A", "a"},
                                        {"cluster_name", "a", "A"},
                                        {"cluster_name", "a b", "ab"},
                                        {"my.flag", "on", "true"},
                                        {"unknown", "on", "true"}}) {
    EXPECT_FALSE(known.same(guc, one, other)) << guc << ": " << one << " and " << other;
  }
}

TEST(GucTypes, WithoutTheServersTypesOnlyTheSameTextIsTheSame) {
  EXPECT_FALSE(GucTypes().same("work_mem", "64MB", "65536kB"));
  EXPECT_TRUE(GucTypes().same("work_mem", "64MB", "64MB"));
}

TEST(GucTypes, AnAttributeNamesItsGuc) {
  EXPECT_EQ(guc_of_attribute("role", "app", "settings.work_mem"), "work_mem");
  EXPECT_EQ(guc_of_attribute("role", "app", R"(settings["my.flag"])"), "my.flag");
  EXPECT_EQ(guc_of_attribute("role", "app", "database_settings.shop.work_mem"), "work_mem");
  EXPECT_EQ(guc_of_attribute("role", "app", R"(database_settings["a\"].b"].work_mem)"), "work_mem");
  EXPECT_EQ(guc_of_attribute("database", "shop", "settings.search_path"), "search_path");
  EXPECT_EQ(guc_of_attribute("setting", "search_path", "value"), "search_path");
  EXPECT_EQ(guc_of_attribute("file_setting", "conf.d/a.conf:work_mem#2", "setting"), "work_mem");
  EXPECT_EQ(guc_of_attribute("file_setting", "a:b.conf:my.flag", "setting"), "my.flag");
}

TEST(GucTypes, OtherAttributesNameNone) {
  EXPECT_EQ(guc_of_attribute("role", "app", "settings"), "");
  EXPECT_EQ(guc_of_attribute("role", "app", "database_settings.shop"), "");
  EXPECT_EQ(guc_of_attribute("role", "work_mem", "valid_until"), "");
  EXPECT_EQ(guc_of_attribute("database", "shop", "database_settings.shop.work_mem"), "");
  EXPECT_EQ(guc_of_attribute("file_setting", "a.conf:work_mem", "state"), "");
  EXPECT_EQ(guc_of_attribute("schema", "work_mem", "value"), "");
}

}  // namespace
}  // namespace driftd::postgres
