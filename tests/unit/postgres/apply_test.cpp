// SPDX-License-Identifier: Apache-2.0
// From attributes back to statements.
#include "postgres/apply_mapping.hpp"

#include <gmock/gmock.h>

#include "common/apply_steps.hpp"
#include "postgres/guc.hpp"

namespace driftd::postgres {
namespace {

using common::CannotSet;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Marks what libpq would quote.
Quote quote() {
  return {[](const std::string& name) { return "<" + name + ">"; },
          [](const std::string& text) { return "'" + text + "'"; }};
}

std::vector<std::string> sql(const Statements& from) {
  std::vector<std::string> out;
  for (const auto& one : from) out.push_back(one.sql);
  return out;
}
std::vector<std::string> undo(const Statements& from) {
  std::vector<std::string> out;
  for (const auto& one : from) out.push_back(one.undo);
  return out;
}

sdk::Apply role_change(const std::vector<sdk::Change>& changes) { return {false, {"role", "app"}, "", "k", changes}; }
Statements role(const std::vector<sdk::Change>& changes, const json& now = json::object(), int version = 150000) {
  return role_statements(quote(), role_change(changes), now, version);
}
std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const CannotSet& why) {
    return why.what();
  }
  return "accepted";
}

TEST(PostgresPutBack, AttributesOfARoleAreOneStatement) {
  const auto out = role({{0, "superuser", "true", "false"},
                         {1, "login", "false", "true"},
                         {2, "connection_limit", "-1", "5"},
                         {3, "valid_until", "null", "\"2030-01-01T00:00:00.000000Z\""}});
  EXPECT_THAT(sql(out), ElementsAre("ALTER ROLE <app> NOSUPERUSER LOGIN CONNECTION LIMIT 5 VALID UNTIL "
                                    "'2030-01-01T00:00:00.000000Z'"));
  EXPECT_THAT(undo(out), ElementsAre("ALTER ROLE <app> SUPERUSER NOLOGIN CONNECTION LIMIT -1 VALID UNTIL 'infinity'"));
}

TEST(PostgresPutBack, SettingsOfARoleAreSetAndReset) {
  const auto out = role({{0, "settings.work_mem", "\"1GB\"", "\"64MB\""},
                         {1, "settings[\"app.user\"]", "\"x\"", ""},
                         {2, "database_settings.shop.search_path", "", R"("\"$user\", public")"}});
  EXPECT_THAT(sql(out), ElementsAre("ALTER ROLE <app> SET <work_mem> = '64MB'", "ALTER ROLE <app> RESET <app>.<user>",
                                    "ALTER ROLE <app> IN DATABASE <shop> SET <search_path> = '$user', 'public'"));
  EXPECT_THAT(undo(out),
              ElementsAre("ALTER ROLE <app> SET <work_mem> = '1GB'", "ALTER ROLE <app> SET <app>.<user> = 'x'",
                          "ALTER ROLE <app> IN DATABASE <shop> RESET <search_path>"));
}

TEST(PostgresPutBack, MembershipsAreGrantedAndRevokedByDifference) {
  const json now{{"memberships", {{{"role", "a"}, {"admin", false}}, {{"role", "b"}, {"admin", true}}}}};
  const json wanted{{{"role", "b"}, {"admin", false}}, {{"role", "c"}, {"admin", true}}};
  const auto out = role({{0, "memberships", now["memberships"].dump(), wanted.dump()}}, now);
  EXPECT_THAT(sql(out), ElementsAre("REVOKE <a> FROM <app>", "REVOKE ADMIN OPTION FOR <b> FROM <app>",
                                    "GRANT <c> TO <app> WITH ADMIN OPTION"));
  EXPECT_THAT(undo(out),
              ElementsAre("GRANT <a> TO <app>", "GRANT <b> TO <app> WITH ADMIN OPTION", "REVOKE <c> FROM <app>"));
}

TEST(PostgresPutBack, FromSixteenOnAMembershipHasThreeOptions) {
  const json now{{"memberships", json::array()}};
  const json wanted = json::array({{{"role", "b"}, {"admin", false}, {"inherit", false}, {"set", true}}});
  EXPECT_THAT(sql(role({{0, "memberships", "[]", wanted.dump()}}, now, 160000)),
              ElementsAre("GRANT <b> TO <app> WITH ADMIN FALSE, INHERIT FALSE, SET TRUE"));
}

TEST(PostgresPutBack, WhatNoStatementSetsRefusesTheWholeRequest) {
  const sdk::Change good{0, "login", "true", "false"};
  for (const auto& bad :
       {sdk::Change{1, "verifier", "\"a\"", "\"b\""}, sdk::Change{1, "password_type", "\"md5\"", "\"none\""},
        sdk::Change{1, "valid_until", "\"infinity\"", "null"}, sdk::Change{1, "oid", "1", "2"},
        sdk::Change{1, "settings.driftd_password", "\"a\"", "\"b\""}, sdk::Change{1, "settings", "{}", "{}"},
        sdk::Change{1, "superuser", "true", "\"PASSWORD 'x'\""},
        sdk::Change{1, "connection_limit", "1", "\"1 SUPERUSER\""},
        sdk::Change{1, "settings[\"a\\\\x00\"]", "", "\"b\""}}) {
    EXPECT_THAT(refusal([&] { role({good, bad}); }), testing::Ne("accepted")) << bad.path;
  }
}

TEST(PostgresPutBack, GrantsAreTheDifferenceOfWhatIsHeld) {
  const auto grant = [](const char* who, const char* what, bool grantable) {
    return json{{"grantee", who}, {"privilege", what}, {"grantable", grantable}};
  };
  const json now{grant("PUBLIC", "CONNECT", false), grant("o", "CREATE", false), grant("x", "CREATE", true)};
  const json wanted{grant("o", "CREATE", false), grant("x", "CREATE", false), grant("y", "TEMPORARY", true)};
  const auto out = grant_statements(quote(), "DATABASE <d>", now, wanted);
  EXPECT_THAT(sql(out), ElementsAre("REVOKE CONNECT ON DATABASE <d> FROM PUBLIC",
                                    "REVOKE GRANT OPTION FOR CREATE ON DATABASE <d> FROM <x>",
                                    "GRANT TEMPORARY ON DATABASE <d> TO <y> WITH GRANT OPTION"));
  EXPECT_THAT(undo(out), ElementsAre("GRANT CONNECT ON DATABASE <d> TO PUBLIC",
                                     "GRANT CREATE ON DATABASE <d> TO <x> WITH GRANT OPTION",
                                     "REVOKE TEMPORARY ON DATABASE <d> FROM <y>"));
  EXPECT_THAT(sql(grant_statements(quote(), "DATABASE <d>", now, now)), IsEmpty());
  EXPECT_THAT(refusal([&] {
                grant_statements(quote(), "DATABASE <d>", now,
                                 json::array({grant("x", "ALL; DROP DATABASE d", false)}));
              }),
              HasSubstr("is not a privilege"));
}

TEST(PostgresPutBack, ANewOwnersRightsMoveWithTheDatabase) {
  const json now{{"owner", "old"}, {"grants", {{{"grantee", "old"}, {"privilege", "CREATE"}, {"grantable", false}}}}};
  const json wanted = json::array({{{"grantee", "new"}, {"privilege", "CREATE"}, {"grantable", false}}});
  const sdk::Apply request{false,
                           {"database", "d"},
                           "",
                           "k",
                           {{0, "grants", now["grants"].dump(), wanted.dump()}, {1, "owner", "\"old\"", "\"new\""}}};
  EXPECT_THAT(sql(database_statements(quote(), request, now)), ElementsAre("ALTER DATABASE <d> OWNER TO <new>"));
}

TEST(PostgresPutBack, ASettingsTextMeansItsAttribute) {
  const std::vector<Guc> kGucs{{"16384", "8kB", "integer"}, {"-1", "ms", "integer"}, {"300", "s", "integer"},
                               {"0.5", "ms", "real"},       {"on", "", "bool"},      {"4", "", "real"},
                               {"100", "", "integer"},      {"0600", "", "integer"}, {"a, 'b'", "", "string"},
                               {"1GB", "", "enum"}};
  for (const auto& guc : kGucs) {
    const TypedGuc shown = typed(guc);
    const std::string text = guc_text(shown.attribute, json::parse(shown.json));
    EXPECT_TRUE(same_value(text, guc)) << guc.setting << " " << guc.unit << " became " << text;
  }
  EXPECT_THAT(refusal([] { guc_text("bytes", nullptr); }), HasSubstr("cannot be unset"));
  EXPECT_THAT(refusal([] { guc_text("unit", 1); }), HasSubstr("no such attribute"));
}

TEST(PostgresPutBack, AListOfNamesIsOneLiteralEach) {
  EXPECT_EQ(guc_literals(quote(), "search_path", R"("$user", "a, ""b""", public)"), "'$user', 'a, \"b\"', 'public'");
  EXPECT_EQ(guc_literals(quote(), "search_path", ""), "''");
  EXPECT_EQ(guc_literals(quote(), "search_path", "\"\""), "''");
  EXPECT_EQ(guc_literals(quote(), "log_destination", "stderr, csvlog"), "'stderr, csvlog'");
}

}  // namespace
}  // namespace driftd::postgres
