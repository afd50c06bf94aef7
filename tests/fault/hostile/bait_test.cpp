// SPDX-License-Identifier: Apache-2.0
// Attacks on the person who approves drifts. The attacker may change a watched system: first to something harmless,
// and after the person has looked, to something else.
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
    start_agent("  - name: ledger\n    provider: redis\n    interval: 300ms\n    settings: { address: \"" +
                    victim_.address() + "\", username: driftd, password: \"${env:VICTIM}\" }\n",
                {"ledger"}, {{"VICTIM", "victim-canary"}});
  }
  void rights(const std::string& name, std::vector<std::string> rules) const {
    rules.insert(rules.begin(), {"ACL", "SETUSER", name});
    ASSERT_EQ(victim_.command(rules), "OK");
  }
  /// Waits until the drift of that user contains the text `mark`, and returns it.
  json drift_of(const std::string& name, const std::string& mark) const {
    json out;
    const auto appeared = [&] {
      for (const auto& one : agent_->rows({"drifts", "--backend", "ledger", "--id", name})) {
        if (one.dump().find(mark) != std::string::npos) out = one;
      }
      return !out.is_null();
    };
    EXPECT_TRUE(eventually(appeared)) << name << ": " << mark;
    return out;
  }
  /// Sends a decision. Returns the HTTP status and the body of the answer.
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
  ASSERT_EQ(now.at("id"), bait.at("id")) << "it is the same drift with another value";
  const Output refused = agent_->cli({"approve", bait.at("ref"), "--reason", "ping is fine"});
  EXPECT_EQ(refused.code, 1);
  for (const char* part : {"conflict", "moved since you looked", "flushall"}) EXPECT_THAT(refused.err, HasSubstr(part));
  for (const char* verb : {"approve", "reject", "ignore"}) {
    const std::string old_digest = bait.at("digest"), digest = now.at("digest");
    const auto [status, answer] = post(now, verb, {{"digest", old_digest}});
    EXPECT_EQ(status, "409") << answer;
    EXPECT_THAT(answer, HasSubstr("flushall"));
    EXPECT_EQ(post(now, verb, {{"digest", old_digest.substr(0, 12)}}).first, "409")
        << "the beginning of the old digest";
    EXPECT_EQ(post(now, verb, {{"digest", other.at("digest")}}).first, "409") << "the digest of another drift";
    for (const json& body :
         {json::object(), json{{"digest", ""}}, json{{"digest", nullptr}}, json{{"digest", digest.substr(0, 7)}},
          json{{"digest", "*"}}, json{{"digest", digest + "0"}}, json{{"digest", json::array({digest})}},
          json{{"digest", digest.substr(0, 7) + "%"}}}) {
      EXPECT_EQ(post(now, verb, body).first, "400") << verb << " " << body.dump();
    }
  }
  expect_undecided("app");
  expect_undecided("other");
  EXPECT_THAT(agent_->cli({"audit"}).out, HasSubstr("moved since you looked"));
  EXPECT_EQ(post(now, "approve", {{"digest", now.at("digest").get<std::string>().substr(0, 8)}}).first, "200")
      << "the beginning of the current digest decides";
  expect_unharmed();
}

/// The value changes to and fro as fast as it is read. A decision applies to the value that it names, or to none.
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
    EXPECT_EQ(again.at("digest"), bait.at("digest")) << "the same value has the same digest";
    EXPECT_EQ(post(bait, "approve", {{"digest", bad.at("digest")}}).first, "409");
  }
  expect_undecided("app");
  EXPECT_EQ(post(bait, "approve", {{"digest", bait.at("digest")}}).first, "200");
  rights("app", {"+flushall"});
  EXPECT_TRUE(drift_appears("ledger", "flushall", "app")) << "only ping was approved";
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
