// SPDX-License-Identifier: Apache-2.0
// Changed rules are audited once, with the former and the new ones, at a start as at a reload.
#include <gmock/gmock.h>

#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using Rules = std::map<std::string, std::string>;

class AuditRulesTest : public StoreTest {
 protected:
  void read(Rules rules) {
    const auto written = bench.wait(bench->audit_rules(std::move(rules), "driftd.yaml"));
    ASSERT_TRUE(written) << written.error().message;
  }
  std::vector<core::AuditRow> lines() { return bench.get(bench->audit(100)); }
  static std::string policy(const std::string& action) {
    return R"({"ignore":[],"policy":[{"action":")" + action + R"("}]})";
  }
};

TEST_F(AuditRulesTest, OnlyWhatChangedHasALine) {
  read({{"cache", policy("manual")}, {"db", policy("auto")}});
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_EQ(lines()[0].verb, "set rules");
  read({{"cache", policy("manual")}, {"db", policy("auto")}});
  EXPECT_EQ(lines().size(), 2U) << "the same again";
  restart();
  read({{"cache", policy("auto")}, {"db", policy("auto")}});
  ASSERT_EQ(lines().size(), 3U) << "changed while the agent did not run";
  const auto changed = lines()[2];
  EXPECT_EQ(changed.verb, "changed rules");
  EXPECT_EQ(changed.backend, "cache");
  EXPECT_EQ(changed.actor, "driftd");
  EXPECT_EQ(changed.changes, R"([{"new":[{"action":"auto"}],"old":[{"action":"manual"}],"path":"policy"}])");
  read({{"cache", policy("auto")}});
  ASSERT_EQ(lines().size(), 4U);
  EXPECT_EQ(lines()[3].verb, "removed rules");
  EXPECT_EQ(lines()[3].backend, "db");
  EXPECT_TRUE(bench.get(bench->verify_audit({})).whole);
}

/// It allows to write to a system, and what is not allowed has no entry.
TEST_F(AuditRulesTest, WhatMayBePutBackIsPartOfTheRules) {
  const auto rules = [](const std::string& enforce) { return R"({"ignore":[],"policy":[])" + enforce + "}"; };
  read({{"cache", rules("")}});
  read({{"cache", rules(R"(,"enforce":{"per_hour":20})")}});
  read({{"cache", rules(R"(,"enforce":{"per_hour":50})")}});
  read({{"cache", rules("")}});
  ASSERT_EQ(lines().size(), 4U);
  EXPECT_EQ(lines()[1].verb, "changed rules");
  EXPECT_EQ(lines()[1].changes, R"([{"new":{"per_hour":20},"path":"enforce"}])");
  EXPECT_EQ(lines()[2].changes, R"([{"new":{"per_hour":50},"old":{"per_hour":20},"path":"enforce"}])");
  EXPECT_EQ(lines()[3].changes, R"([{"old":{"per_hour":50},"path":"enforce"}])");
}

TEST_F(AuditRulesTest, ALineThatCannotBeWrittenComesWithTheNextStart) {
  tamper(file(), "CREATE TRIGGER no BEFORE INSERT ON audited_rules BEGIN SELECT RAISE(ABORT, 'refused'); END");
  EXPECT_FALSE(bench.wait(bench->audit_rules({{"cache", policy("auto")}}, "driftd.yaml")));
  EXPECT_EQ(lines().size(), 0U);
  tamper(file(), "DROP TRIGGER no");
  restart();
  read({{"cache", policy("auto")}});
  EXPECT_EQ(lines().size(), 1U);
}

TEST_F(AuditRulesTest, LongRulesAreCut) {
  read({{"cache", R"({"ignore":[")" + std::string(100'000, 'a') + R"("]})"}});
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_LT(lines()[0].changes.size(), 20'000U);
  EXPECT_THAT(lines()[0].changes, HasSubstr("…"));
}

/// Whoever pads the rules must not be able to hide what follows.
TEST_F(AuditRulesTest, AChangeBehindTheCutIsShown) {
  const auto rules = [](const std::string& last) {
    return R"({"policy":[{"action":"manual","path":")" + std::string(40'000, 'a') + R"("},{"action":")" + last +
           R"(","path":"**"}]})";
  };
  read({{"cache", rules("manual")}});
  read({{"cache", rules("auto")}});
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_THAT(lines()[1].changes, HasSubstr(R"(\"auto\")"));
  EXPECT_THAT(lines()[1].changes, HasSubstr(R"(\"manual\")"));
  EXPECT_LT(lines()[1].changes.size(), 40'000U);
}

}  // namespace
}  // namespace driftd::test
