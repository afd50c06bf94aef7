// SPDX-License-Identifier: Apache-2.0
// What somebody may do who can write what an approver looks at: something harmless first, and something else in its
// place.
#include "attacked.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class HostileBait : public Attacked {
 protected:
  HostileBait() {
    victim_.grant_readme("victim-canary");
    for (const char* name : {"app", "other"}) rights(name, {"-@all", "+get"});
  }
  void watch() {
    begin("  - name: ledger\n    provider: redis\n    interval: 300ms\n    settings: { address: \"" +
              victim_.address() + "\", username: driftd, password: \"${env:VICTIM}\" }\n",
          {"ledger"}, {{"VICTIM", "victim-canary"}});
  }
  void rights(const std::string& name, std::vector<std::string> rules) const {
    rules.insert(rules.begin(), {"ACL", "SETUSER", name});
    ASSERT_EQ(victim_.command(rules), "OK");
  }
  /// The one drift of that user, once it speaks of `mark`.
  json drift_of(const std::string& name, const std::string& mark) const {
    json out;
    const auto there = [&] {
      for (const auto& one : agent_->rows({"drifts", "--backend", "ledger", "--id", name})) {
        if (one.dump().find(mark) != std::string::npos) out = one;
      }
      return !out.is_null();
    };
    EXPECT_TRUE(eventually(there)) << name << ": " << mark;
    return out;
  }
  /// HTTP status and what it says.
  std::pair<std::string, std::string> post(const json& drift, const std::string& verb, const json& body) const {
    const Output out = run({"curl", "-sS", "-w", "\n%{http_code}", "--unix-socket", agent_->socket(), "-d", body.dump(),
                            "http://localhost/v1/drifts/" + drift.at("id").get<std::string>() + "/" + verb});
    const auto line = out.out.rfind('\n');
    return {out.out.substr(line + 1), out.out.substr(0, line)};
  }
  void expect_undecided(const std::string& name) const {
    const auto open = agent_->rows({"drifts", "--backend", "ledger", "--id", name});
    ASSERT_EQ(open.size(), 1u);
    EXPECT_EQ(open[0].at("status"), "pending") << open[0].dump();
  }

  RedisServer victim_;
};

TEST_F(HostileBait, WhatStandsNowIsNotApprovedByWhoLookedAtSomethingElse) {
  ASSERT_NO_FATAL_FAILURE(watch());
  rights("app", {"+ping"});
  rights("other", {"+ping"});
  const json bait = drift_of("app", "+ping"), other = drift_of("other", "+ping");
  rights("app", {"-ping", "+flushall"});
  const json now = drift_of("app", "+flushall");
  ASSERT_EQ(now.at("id"), bait.at("id")) << "one drift, another value";
  const Output refused = agent_->cli({"approve", bait.at("ref"), "--reason", "ping is fine"});
  EXPECT_EQ(refused.code, 1);
  for (const char* part : {"conflict", "moved since you looked", "flushall"}) EXPECT_THAT(refused.err, HasSubstr(part));
  for (const char* verb : {"approve", "reject", "ignore"}) {
    const std::string whole = bait.at("digest"), right = now.at("digest");
    const auto [moved, why] = post(now, verb, {{"digest", whole}});
    EXPECT_EQ(moved, "409") << why;
    EXPECT_THAT(why, HasSubstr("flushall"));
    EXPECT_EQ(post(now, verb, {{"digest", whole.substr(0, 12)}}).first, "409") << "shortened, of what was";
    EXPECT_EQ(post(now, verb, {{"digest", other.at("digest")}}).first, "409") << "of another drift of the same value";
    for (const json& body : {json::object(), json{{"digest", ""}}, json{{"digest", nullptr}},
                             json{{"digest", right.substr(0, 7)}}, json{{"digest", "*"}}, json{{"digest", right + "0"}},
                             json{{"digest", json::array({right})}}, json{{"digest", right.substr(0, 7) + "%"}}}) {
      EXPECT_EQ(post(now, verb, body).first, "400") << verb << " " << body.dump();
    }
  }
  expect_undecided("app");
  expect_undecided("other");
  EXPECT_THAT(agent_->cli({"audit"}).out, HasSubstr("moved since you looked"));
  EXPECT_EQ(post(now, "approve", {{"digest", now.at("digest").get<std::string>().substr(0, 8)}}).first, "200")
      << "who saw it decides";
  expect_unharmed();
}

/// To and fro, as fast as it is read: whatever is decided is what was named, or nothing.
TEST_F(HostileBait, AValueThatFlipsIsNeverApprovedAsTheOther) {
  ASSERT_NO_FATAL_FAILURE(watch());
  rights("app", {"+ping"});
  const json bait = drift_of("app", "+ping");
  for (int round = 0; round < 6; ++round) {
    rights("app", {"-ping", "+flushall"});
    const json bad = drift_of("app", "+flushall");
    EXPECT_EQ(post(bait, "approve", {{"digest", bait.at("digest")}}).first, "409");
    rights("app", {"-flushall", "+ping"});
    const json again = drift_of("app", "+ping");
    EXPECT_EQ(again.at("digest"), bait.at("digest")) << "the same value has the same name";
    EXPECT_EQ(post(bait, "approve", {{"digest", bad.at("digest")}}).first, "409");
  }
  expect_undecided("app");
  EXPECT_EQ(post(bait, "approve", {{"digest", bait.at("digest")}}).first, "200");
  rights("app", {"+flushall"});
  EXPECT_TRUE(told("ledger", "flushall", "app")) << "ping was approved, and nothing else";
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
