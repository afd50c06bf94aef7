// SPDX-License-Identifier: Apache-2.0
// pg_hba.conf and pg_ident.conf: what becomes of their rows, and which files are equal under the schema.
#include <gtest/gtest.h>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/drift.hpp"
#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"
#include "postgres/catalog.hpp"
#include "postgres/mapping.hpp"

namespace driftd::postgres {
namespace {

using nlohmann::json;
using Row = std::vector<std::optional<std::string>>;

Rows hba(std::vector<Row> rows) {
  return {{"line", "type", "databases", "users", "address", "netmask", "method", "options", "error"}, std::move(rows)};
}

Row rule(const std::string& databases, const std::string& users, const std::optional<std::string>& address,
         const std::optional<std::string>& netmask, const std::string& method = "scram-sha-256",
         const std::optional<std::string>& options = std::nullopt) {
  return {"1", address ? "host" : "local", databases, users, address, netmask, method, options, std::nullopt};
}

Row plain(const std::string& user) { return rule(R"(["all"])", "[\"" + user + "\"]", "10.0.0.0", "255.0.0.0"); }

json body_of(const Rows& rows) { return json::parse(map_hba(rows).at(0).body); }

core::Difference compare(const char* kind, const std::string& before, const std::string& after) {
  std::ifstream in(DRIFTD_SOURCE_DIR "/plugins/postgres/schema.json");
  const auto schema = core::KindSchema::parse(json::parse(in).at("kinds").at(kind).dump()).value();
  return core::diff(core::parse(before).value(), core::parse(after).value(), *schema, {});
}

std::size_t changes(std::vector<Row> before, std::vector<Row> after) {
  return compare("hba", map_hba(hba(std::move(before))).at(0).body, map_hba(hba(std::move(after))).at(0).body)
      .changes.size();
}

TEST(Hba, TheFileIsOneRecordWithItsRulesInOrder) {
  const json body = body_of(hba({rule(R"(["all"])", R"(["postgres"])", {}, {}, "peer"),
                                 rule(R"(["shop","bi"])", R"(["+readers"])", "10.1.2.3", "255.255.0.0")}));
  EXPECT_EQ(body["rules"], json::parse(R"([{"type":"local","databases":"all","users":"postgres","method":"peer"},
    {"type":"host","databases":["shop","bi"],"users":"+readers","address":"10.1.2.3/16","method":"scram-sha-256"}])"));
}

TEST(Hba, AddressesAreNetworksKeywordsOrHosts) {
  const auto address = [](const char* text, const std::optional<std::string>& mask) {
    json out = body_of(hba({rule("[]", "[]", text, mask)}))["rules"][0];
    return json{{"address", out["address"]}, {"netmask", out["netmask"]}, {"host", out["host"]}};
  };
  EXPECT_EQ(address("::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")["address"], "::1/128");
  EXPECT_EQ(address("0.0.0.0", "0.0.0.0")["address"], "0.0.0.0/0");
  EXPECT_EQ(address("all", {})["address"], "all");
  EXPECT_EQ(address(".example.com", {})["host"], ".example.com");
  for (const char* gap : {"255.0.255.0", "255.254.255.0", "0.0.0.255", "253.0.0.0"}) {
    EXPECT_EQ(address("10.0.0.0", gap)["address"], "10.0.0.0") << gap;
    EXPECT_EQ(address("10.0.0.0", gap)["netmask"], gap);
  }
}

TEST(Hba, FilesThatMeanTheSameAreEqual) {
  EXPECT_EQ(changes({rule(R"(["a","b"])", R"(["x","y"])", "10.0.0.0", "255.0.0.0")},
                    {rule(R"(["b","a"])", R"(["y","x","x"])", "10.9.9.9", "255.0.0.0")}),
            0u);
  EXPECT_EQ(
      changes({rule(R"(["a"])", R"(["x"])", "Host.Example", {})}, {rule(R"(["a"])", R"(["x"])", "host.example", {})}),
      0u);
  EXPECT_EQ(changes({rule(R"(["a"])", R"(["x"])", "2001:db8::", "ffff:ffff::")},
                    {rule(R"(["a"])", R"(["x"])", "2001:0db8:0::0", "ffff:ffff::")}),
            0u);
  EXPECT_EQ(changes({rule(R"(["a"])", R"(["x"])", {}, {}, "peer", R"(["map=m","clientcert=verify-ca"])")},
                    {rule(R"(["a"])", R"(["x"])", {}, {}, "peer", R"(["clientcert=verify-ca","map=m"])")}),
            0u);
}

TEST(Hba, EachTwinIsOneChange) {
  const Row base = rule(R"(["a"])", R"(["x"])", "10.0.0.0", "255.0.0.0");
  for (const Row& twin :
       {rule(R"(["A"])", R"(["x"])", "10.0.0.0", "255.0.0.0"),
        rule(R"(["a","b"])", R"(["x"])", "10.0.0.0", "255.0.0.0"),
        rule(R"(["a"])", R"(["+x"])", "10.0.0.0", "255.0.0.0"), rule(R"(["a"])", R"(["x"])", "11.0.0.0", "255.0.0.0"),
        rule(R"(["a"])", R"(["x"])", "10.0.0.0", "255.128.0.0"), rule(R"(["a"])", R"(["x"])", "all", {}),
        rule(R"(["a"])", R"(["x"])", "10.0.0.0", "255.0.0.0", "trust"),
        rule(R"(["a"])", R"(["x"])", "10.0.0.0", "255.0.0.0", "scram-sha-256", R"(["map=m"])")}) {
    EXPECT_EQ(changes({base}, {twin}), 1u) << body_of(hba({twin}));
  }
  EXPECT_EQ(changes({rule(R"(["a"])", R"(["x"])", "all", {})}, {rule(R"(["a"])", R"(["x"])", "ALL", {})}), 1u)
      << "ALL is a host of this name";
  EXPECT_EQ(changes({rule(R"(["a"])", R"(["x"])", "::ffff:10.0.0.1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")},
                    {rule(R"(["a"])", R"(["x"])", "10.0.0.1", "255.255.255.255")}),
            1u)
      << "the server matches an IPv4 client against IPv4 rules only";
}

TEST(Hba, ARuleThatIsPutOnTopRemovedOrMovedIsOneChange) {
  std::vector<Row> file;
  for (int i = 0; i < 100; ++i) file.push_back(plain("u" + std::to_string(i)));
  std::vector<Row> more = file, moved = file;
  more.insert(more.begin(), plain("intruder"));
  std::rotate(moved.begin(), moved.begin() + 99, moved.end());
  EXPECT_EQ(changes(file, more), 1u);
  EXPECT_EQ(changes(more, file), 1u);
  EXPECT_EQ(changes(file, moved), 1u);
}

TEST(Hba, SecretsAreBesideTheRulesUnderANameThatStays) {
  const Row ldap =
      rule(R"(["all"])", R"(["all"])", "10.0.0.0", "255.0.0.0", "ldap", R"(["ldapserver=l","ldapbindpasswd=canary"])");
  const json alone = body_of(hba({ldap})), second = body_of(hba({plain("u"), ldap}));
  EXPECT_EQ(alone["rules"][0]["options"], json({{"ldapserver", "l"}}));
  EXPECT_EQ(alone["secrets"], json({{"host all all 10.0.0.0/8 ldap", {{"ldapbindpasswd", "canary"}}}}));
  EXPECT_EQ(alone["secrets"], second["secrets"]);
  EXPECT_EQ(body_of(hba({ldap, ldap}))["secrets"].size(), 2u);
  std::ifstream in(DRIFTD_SOURCE_DIR "/plugins/postgres/schema.json");
  const auto schema = core::KindSchema::parse(json::parse(in).at("kinds").at("hba").dump()).value();
  const auto path = core::Path{}.child("secrets").child("host all all 10.0.0.0/8 ldap").child("ldapbindpasswd");
  EXPECT_TRUE(schema->rule(path).sensitive);
  EXPECT_EQ(schema->cls(path), core::ChangeClass::credential);
}

TEST(Hba, ABrokenLineShowsItsErrorAndThatItMovesIsNoChange) {
  const auto broken = [](const char* line) {
    return Row{line, {}, {}, {}, {}, {}, {}, {}, "invalid authentication method \"x\""};
  };
  EXPECT_EQ(body_of(hba({broken("7")}))["rules"],
            json::parse(R"([{"error":"invalid authentication method \"x\"","line":7}])"));
  EXPECT_EQ(changes({broken("7")}, {broken("9")}), 0u);
  EXPECT_EQ(changes({plain("u")}, {plain("u"), broken("9")}), 1u);
}

TEST(Hba, AnEmptyFileHasNoRulesAndSaysWhetherItWasReloaded) {
  const Records out = map_hba({{"line", "edited_not_reloaded"}, {{std::nullopt, "t"}}});
  EXPECT_EQ(json::parse(out.at(0).body)["rules"], json::array());
  EXPECT_EQ(out[0].metadata.at("edited_not_reloaded"), "true");
}

/// A list that is shown in part would call the rest deleted, or equal.
TEST(Hba, ALineThatIsTooLongMakesTheRulesUnread) {
  const Records out = map_hba(hba({plain("a"), rule(std::string(kTooLong), R"(["x"])", {}, {})}));
  EXPECT_EQ(out.at(0).body, "{}");
  ASSERT_EQ(out[0].unread.size(), 2u);
  EXPECT_EQ(out[0].unread[0].path, "rules");
  EXPECT_EQ(out[0].unread[0].code, DRIFTD_BUDGET);
}

TEST(Hba, TenThousandRulesAreReadAndComparedInTimeAndMoreThanARecordHoldsAreUnread) {
  std::vector<Row> file;
  for (int i = 0; i < 10'000; ++i) {
    file.push_back(
        rule(R"(["all"])", "[\"u" + std::to_string(i) + "\"]", "10.0.0.0", "255.0.0.0", "cert", R"(["map=m"])"));
  }
  const auto begun = std::chrono::steady_clock::now();
  std::vector<Row> more = file;
  more.insert(more.begin(), plain("intruder"));
  EXPECT_TRUE(map_hba(hba(file)).at(0).unread.empty());
  EXPECT_EQ(changes(file, more), 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
  std::vector<Row> many(20'000, plain("u"));
  const Records out = map_hba(hba(many));
  ASSERT_EQ(out.at(0).unread.size(), 1u);
  EXPECT_EQ(out[0].unread[0].path, "rules");
  EXPECT_NE(out[0].unread[0].reason.find("90,000 values"), std::string::npos);
  EXPECT_EQ(out[0].metadata.at("rules"), "20000");
}

Rows ident(std::vector<Row> rows) {
  return {{"line", "map", "system_user", "database_user", "error"}, std::move(rows)};
}

TEST(Ident, MappingsAreASet) {
  const auto text = [](std::vector<Row> rows) { return map_ident(ident(std::move(rows)), {}, DRIFTD_OK).at(0).body; };
  const Row one{"1", "m", "/^(.*)@x$", "\\1", std::nullopt}, other{"2", "m", "root", "postgres", std::nullopt};
  EXPECT_TRUE(compare("ident", text({one, other}), text({other, one})).changes.empty());
  EXPECT_EQ(compare("ident", text({one, other}), text({one})).changes.size(), 1u);
  EXPECT_EQ(compare("ident", text({one}), text({{"1", "m", "/^(.*)@x$", "postgres", std::nullopt}})).changes.size(),
            1u);
}

TEST(Ident, ThatCannotBeReadIsUnreadAndNotEmpty) {
  const Records out = map_ident(ident({}), "needs a right", DRIFTD_DENIED);
  EXPECT_EQ(out.at(0).body, "{}");
  EXPECT_EQ(out[0].unread.at(0).path, "mappings");
  EXPECT_EQ(out[0].unread[0].code, DRIFTD_DENIED);
}

}  // namespace
}  // namespace driftd::postgres
