// SPDX-License-Identifier: Apache-2.0
#include "postgres/mapping.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "postgres/queries.hpp"

namespace driftd::postgres {
namespace {

using nlohmann::json;

const std::vector<std::string> kSettingColumns{"name", "setting", "unit", "vartype", "source", "pending_restart"};

TEST(Mapping, ASettingThatOurOwnSessionOverridesIsUnreadNotChanged) {
  const Records out = map_settings({kSettingColumns, {{"work_mem", "65536", "kB", "integer", "user", "f"}}});
  EXPECT_EQ(out.at(0).body, "{}");
  ASSERT_EQ(out[0].unread.size(), 1U);
  EXPECT_EQ(out[0].unread[0].path, "bytes");
  EXPECT_EQ(out[0].unread[0].code, DRIFTD_UNSUPPORTED);
}

TEST(Mapping, AConninfoIsMarkedSensitive) {
  const Records out =
      map_settings({kSettingColumns,
                    {{"primary_conninfo", "host=a password=b", std::nullopt, "string", "configuration file", "f"}}});
  EXPECT_EQ(out.at(0).sensitive, std::vector<std::string>{"value"});
}

TEST(Mapping, PendingRestartIsStatusNotBody) {
  const Records out = map_settings({kSettingColumns, {{"port", "1", std::nullopt, "integer", "default", "t"}}});
  EXPECT_EQ(json::parse(out.at(0).body), json({{"number", 1}}));
  EXPECT_EQ(json::parse(out[0].status), json({{"pending_restart", true}}));
}

TEST(Mapping, SetconfigKeepsEqualsSignsInValues) {
  EXPECT_EQ(render_setconfig(R"(["a=1","b.c=x=y","d="])"), R"({"a":"1","b.c":"x=y","d":""})");
}

Rows role(const std::optional<std::string>& verifier) {
  return {{"oid", "name", "superuser", "login", "connection_limit", "memberships", "settings", "database_settings",
           "verifier", "password_type"},
          {{"16384", "app", "f", "t", "-1", R"([{"role":"readers","admin":true}])", R"(["app.token=canary"])",
            R"({"my.db":["work_mem=1MB"]})", verifier, verifier ? "scram-sha-256" : "none"}}};
}

TEST(Mapping, ARoleCarriesMembershipsSettingsAndItsOid) {
  const Records out = map_roles(role("d1"), {});
  const json body = json::parse(out.at(0).body);
  EXPECT_EQ(out[0].external_name, "16384");
  EXPECT_EQ(body["memberships"], json::parse(R"([{"role":"readers","admin":true}])"));
  EXPECT_EQ(body["database_settings"]["my.db"]["work_mem"], "1MB");
  EXPECT_EQ(body["verifier"], "d1");
  EXPECT_EQ(out[0].sensitive, std::vector<std::string>{"settings[\"app.token\"]"});
}

/// Any role may give itself settings of megabytes: they are unread, and its other attributes are judged as usual.
TEST(Mapping, SettingsOfARoleThatAreTooLongHideNeitherItsRightsNorTheListing) {
  std::string long_one = "[\"search_path=";
  for (int i = 0; i < 160'000; ++i) long_one += "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + std::to_string(i) + ",";
  long_one += "\"]";
  ASSERT_GT(long_one.size(), 4u << 20);
  const Records out = map_roles(
      {{"name", "oid", "superuser", "settings"}, {{"mallory", "1", "t", long_one}, {"zz", "2", "f", "[]"}}}, {});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_LT(out[0].body.size(), 4096u);
  EXPECT_EQ(json::parse(out[0].body)["superuser"], true);
  ASSERT_EQ(out[0].unread.size(), 1u);
  EXPECT_EQ(out[0].unread[0].path, "settings");
  EXPECT_TRUE(out[1].unread.empty());
}

/// If the server did not send a value that is too long, only that attribute is unread, and it is never empty.
TEST(Mapping, WhatIsTooLongToBeSentIsUnreadAndNotEmpty) {
  const Records roles =
      map_roles({{"name", "superuser", "settings", "database_settings", "memberships"},
                 {{"mallory", "t", "too long", R"({"shop":null,"a b":null,"own":["work_mem=1MB"]})", "too long"}}},
                {});
  std::vector<std::string> paths;
  for (const auto& one : roles.at(0).unread) {
    paths.push_back(one.path);
    EXPECT_EQ(one.code, DRIFTD_BUDGET);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"memberships", "settings", "database_settings[\"a b\"]",
                                             "database_settings.shop"}));
  const json body = json::parse(roles[0].body);
  EXPECT_FALSE(body.contains("settings") || body.contains("memberships"));
  EXPECT_EQ(body["database_settings"], json::parse(R"({"own":{"work_mem":"1MB"}})"));
  EXPECT_EQ(body["superuser"], true);
  const Records setting = map_settings(
      {{"name", "setting", "vartype", "source", "too_long"}, {{"x", std::nullopt, "string", "default", "t"}}});
  EXPECT_EQ(setting.at(0).body, "{}");
  EXPECT_EQ(setting[0].unread.at(0).path, "value");
  const Records line =
      map_file_settings({{"name", "setting", "sourcefile", "too_long"}, {{"x", std::nullopt, "f", "t"}}});
  EXPECT_EQ(line.at(0).unread.size(), 2u);
  EXPECT_EQ(json::parse(line[0].body), json::parse(R"({"error":null})"));
}

TEST(Mapping, MoreSecretsThanARecordMayNameMakeTheWholeSettingsSecret) {
  json list = json::array();
  for (int i = 0; i < 5000; ++i) list.push_back("my.secret" + std::to_string(i) + "=x");
  const Records out = map_roles({{"name", "oid", "settings"}, {{"mallory", "1", list.dump()}}}, {});
  EXPECT_EQ(out.at(0).sensitive, std::vector<std::string>{"settings"});
}

TEST(Mapping, AVerifierThatMayNotBeReadIsUnreadAndNamesTheRight) {
  Origin from;
  from.verifier_right = verifier_right(Verifiers::function);
  const Records out = map_roles(role(std::nullopt), from);
  EXPECT_FALSE(json::parse(out.at(0).body).contains("verifier"));
  ASSERT_EQ(out[0].unread.size(), 2U);
  EXPECT_EQ(out[0].unread[0].code, DRIFTD_DENIED);
  EXPECT_NE(out[0].unread[0].reason.find("driftd.role_verifiers()"), std::string::npos);
}

TEST(Mapping, ARoleWithoutAPasswordSaysNone) {
  EXPECT_EQ(json::parse(map_roles(role(std::nullopt), {}).at(0).body)["verifier"], "none");
}

struct FileCase {
  const char* name;
  std::vector<std::optional<std::string>> row;
  const char* state;
};

void PrintTo(const FileCase& tested, std::ostream* out) { *out << tested.name; }

class FileState : public testing::TestWithParam<FileCase> {};

TEST_P(FileState, SaysWhatBecameOfTheLine) {
  const Rows rows{{"name", "setting", "applied", "error", "current", "unit", "vartype", "source", "pending_restart",
                   "sourcefile", "folder"},
                  {GetParam().row}};
  const Records out = map_file_settings(rows);
  EXPECT_EQ(json::parse(out.at(0).body)["state"], GetParam().state);
  EXPECT_EQ(out[0].id, "conf.d/a.conf:work_mem");
}

std::vector<std::optional<std::string>> line(const char* setting, const char* applied, std::optional<std::string> error,
                                             const char* source, const char* pending) {
  return {"work_mem", setting, applied, error, "4096", "kB", "integer", source, pending, "/pg/conf.d/a.conf", "/pg"};
}

INSTANTIATE_TEST_SUITE_P(
    Lines, FileState,
    testing::Values(FileCase{"InEffect", line("4MB", "t", {}, "configuration file", "f"), "in_effect"},
                    FileCase{"Uncommented", line("4MB", "t", {}, "default", "f"), "in_effect"},
                    FileCase{"Edited", line("8MB", "t", {}, "configuration file", "f"), "edited_not_reloaded"},
                    FileCase{"Added", line("8MB", "t", {}, "default", "f"), "edited_not_reloaded"},
                    FileCase{"LaterLine", line("8MB", "f", {}, "configuration file", "f"), "overridden"},
                    FileCase{"CommandLine", line("8MB", "t", {}, "command line", "f"), "overridden"},
                    FileCase{"Restart", line("8MB", "f", "cannot", "configuration file", "t"), "needs_restart"},
                    FileCase{"Wrong", line("x", "f", "bad value", "configuration file", "f"), "error"}),
    [](const auto& tested) { return tested.param.name; });

std::vector<std::string> states(const Records& records) {
  std::vector<std::string> out;
  for (const auto& record : records)
    out.push_back(record.id + " " + json::parse(record.body)["state"].get<std::string>());
  return out;
}

TEST(Mapping, OneWrongLineLeavesTheStateOfTheOthersAsItIs) {
  Rows rows{{"name", "setting", "applied", "error", "current", "unit", "vartype", "source", "pending_restart",
             "sourcefile", "folder"},
            {line("8MB", "f", {}, "configuration file", "f"), line("4MB", "f", {}, "configuration file", "f")}};
  const std::vector<std::optional<std::string>> max = {
      "max_connections", "100", "f", {}, "100", {}, "integer", "configuration file", "f", "/pg/postgresql.conf", "/pg"};
  const std::vector<std::optional<std::string>> wrong = {{}, {}, "f", "syntax error",        {},   {},
                                                         {}, {}, {},  "/pg/postgresql.conf", "/pg"};
  rows.rows.push_back(max);
  rows.rows.push_back(wrong);
  const Records out = map_file_settings(rows);
  EXPECT_EQ(states(out),
            (std::vector<std::string>{"conf.d/a.conf:work_mem overridden", "conf.d/a.conf:work_mem#2 in_effect",
                                      "postgresql.conf:max_connections in_effect", "postgresql.conf:line- error"}));
  EXPECT_EQ(out[3].metadata.count("refused"), 1U);
  EXPECT_EQ(out[2].metadata.count("refused"), 0U);
}

}  // namespace
}  // namespace driftd::postgres
