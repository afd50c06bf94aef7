// SPDX-License-Identifier: Apache-2.0
// The registry follows the configuration without a restart: backends are added, changed and removed by a reload.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "line_fixture.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Reload : public Line {
 protected:
  /// Rewrites the configuration and reloads it.
  static Output reload(const Agent& agent, const std::string& text) {
    std::ofstream(agent.config()) << text;
    return run({Agent::binary(), "reload", "--config", agent.config()});
  }
  static std::string with(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  /// Returns the events about a backend itself, `created`, `updated` and `deleted`, in order.
  static std::vector<std::string> registrations(const Agent& agent, const std::string& backend) {
    std::vector<std::string> out;
    std::istringstream lines(agent.cli({"events", "--limit", "1000", "-o", "json"}).out);
    for (std::string line; std::getline(lines, line);) {
      const auto event = nlohmann::json::parse(line, nullptr, false);
      const std::string subject = event.is_object() ? event.value("subject", "") : "";
      for (const char* what : {"created", "updated", "deleted"}) {
        if (subject == "backend." + backend + "." + what) out.emplace_back(what);
      }
    }
    return out;
  }
  static std::int64_t cycles(const Agent& agent, const std::string& backend) {
    return agent.backend(backend)->at("cycles").get<std::int64_t>();
  }
};

TEST_F(Reload, ABackendIsAddedChangedAndRemovedWhileTheOthersGoOn) {
  Agent a = agent("200ms", terraform_backend(state_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  const std::string alone = read_file(a.config());
  const auto pid = [&](const std::string& name) { return a.backend(name)->at("worker").at("pid"); };
  const auto platform = pid("platform");
  const std::string both = with(alone, terraform_backend(state_), terraform_backend(state_) + redis_backend(redis_));

  const Output added = reload(a, both);
  ASSERT_EQ(added.code, 0) << added.err;
  EXPECT_THAT(added.out, HasSubstr("backends.cache (added)"));
  EXPECT_EQ(added.err, "");
  ASSERT_TRUE(eventually([&] { return a.established({"cache"}); }, seconds(60))) << a.log();
  EXPECT_THAT(a.backend("cache")->at("defined_at").get<std::string>(), HasSubstr(a.config() + ":"));
  EXPECT_EQ(reload(a, both).out, "reloaded\n");

  // The rules, the interval and the labels need no other worker.
  const auto cache = pid("cache");
  const Output relabelled =
      reload(a, with(both, "name: cache\n", "name: cache\n    labels: { region: eu }\n    interval: 100ms\n"));
  ASSERT_EQ(relabelled.code, 0) << relabelled.err;
  EXPECT_THAT(relabelled.out, HasSubstr("backends.cache (labels, interval)"));
  EXPECT_EQ(pid("cache"), cache);
  EXPECT_EQ(a.backend("cache")->at("interval_ms"), 100);
  EXPECT_EQ(a.backend("cache")->at("labels").at("region"), "eu");

  // Its settings need one; a drift stays open through it.
  redis_.command({"CONFIG", "SET", "maxmemory", "64mb"});
  ASSERT_TRUE(eventually([&] { return drifts(a, "cache").size() == 1; }, seconds(30))) << a.log();
  const Output reopened = reload(a, with(both, "username: driftd", "call_timeout_ms: 9000, username: driftd"));
  ASSERT_EQ(reopened.code, 0) << reopened.err;
  EXPECT_THAT(reopened.out, HasSubstr("backends.cache (settings, labels, interval)"));
  EXPECT_NE(pid("cache"), cache);
  ASSERT_TRUE(eventually([&] { return a.backend("cache")->at("state") == "ok"; }, seconds(30))) << a.log();
  EXPECT_EQ(drifts(a, "cache").size(), 1u);

  const Output removed = reload(a, alone);
  ASSERT_EQ(removed.code, 0) << removed.err;
  EXPECT_THAT(removed.out, HasSubstr("backends.cache (removed)"));
  EXPECT_FALSE(a.backend("cache").has_value());
  EXPECT_THAT(drifts(a, "cache"), IsEmpty());
  EXPECT_EQ(a.rows({"drifts", "--all"}).at(0).at("status"), "retired");
  EXPECT_THAT(registrations(a, "cache"), ElementsAre("created", "updated", "updated", "deleted"));
  EXPECT_THAT(registrations(a, "platform"), ElementsAre("created"));
  EXPECT_EQ(pid("platform"), platform);
  const auto before = cycles(a, "platform");
  EXPECT_TRUE(eventually([&] { return cycles(a, "platform") > before + 2; }));

  // A restart makes nothing else of it.
  a.kill();
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, seconds(60))) << a.log();
  EXPECT_THAT(registrations(a, "cache"), ElementsAre("created", "updated", "updated", "deleted"));
  EXPECT_EQ(a.rows({"backends"}).size(), 1u);
}

/// It allows to write to systems, so that the audit log says from what to what.
TEST_F(Reload, WhatMayBePutBackHasALineOfTheAuditLogWithOldAndNew) {
  Agent a = agent("200ms", terraform_backend(state_) + redis_backend(redis_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform", "cache"}));
  const std::string without = read_file(a.config());
  const std::string here = with(without, "name: cache\n", "name: cache\n    enforce: { per_hour: 7 }\n");
  const auto last = [&] {
    const auto lines = a.rows({"audit", "--limit", "1000"});
    std::string out;
    for (const auto& line : lines) {
      if (line.at("verb") == "changed rules")
        out = line.at("backend").get<std::string>() + " " + line.at("changes").dump();
    }
    return out;
  };
  ASSERT_EQ(reload(a, here).code, 0);
  EXPECT_EQ(last(), "") << "the agent as a whole does not allow it yet";
  ASSERT_EQ(reload(a, here + "enforce: { enabled: true, minimum_age: 5m }\n").code, 0);
  EXPECT_THAT(last(),
              testing::AllOf(HasSubstr("cache"), HasSubstr(R"("minimum_age":"300s")"), HasSubstr(R"("per_hour":7)"),
                             HasSubstr(R"("new":)"), testing::Not(HasSubstr(R"("old":)"))));
  ASSERT_EQ(reload(a, here + "enforce: { enabled: true, minimum_age: 1m, windows: [\"Sat 02:00-04:00\"] }\n").code, 0);
  EXPECT_THAT(last(), testing::AllOf(HasSubstr(R"("minimum_age":"300s")"), HasSubstr(R"("minimum_age":"60s")"),
                                     HasSubstr("Sat 02:00-04:00")));
  ASSERT_EQ(reload(a, without).code, 0);
  EXPECT_THAT(last(), testing::AllOf(HasSubstr(R"("old":)"), testing::Not(HasSubstr(R"("new":)"))));
}

TEST_F(Reload, ARuleWhosePathNoAttributeHasIsNamedWithItsPlace) {
  Agent a = agent("200ms", terraform_backend(state_) + redis_backend(redis_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform", "cache"}));
  const std::string rules =
      "    policy: [{ match: { path: config.maxmemory }, action: manual }]\n    ignore: [maxmemory-policy]\n";
  const std::string text = with(read_file(a.config()), "name: cache\n", "name: cache\n" + rules);
  ASSERT_EQ(reload(a, text).code, 0);
  const auto line =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("ignore: [max")), '\n');
  const std::string warning = a.config() + ":" + std::to_string(line + 1) +
                              ":14: backend 'cache': this rule does nothing: no attribute of any kind has this path; "
                              "expected config.maxmemory-policy; found 'maxmemory-policy'";
  EXPECT_THAT(a.log(), HasSubstr(warning));
  const Output valid = a.cli({"validate", a.config()});
  EXPECT_EQ(valid.code, 0) << valid.err;
  EXPECT_THAT(valid.out + valid.err, HasSubstr(warning));
  EXPECT_THAT(valid.out + valid.err, testing::Not(HasSubstr("'config.maxmemory'")));
}

TEST_F(Reload, AWrongFileChangesNothingAndNamesThePlace) {
  Agent a = agent("200ms", terraform_backend(state_) + redis_backend(redis_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform", "cache"}));
  const std::string good = read_file(a.config());
  const auto pid = a.backend("cache")->at("worker").at("pid");
  const auto line_of = [](const std::string& text, const std::string& what) {
    return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(what)), '\n') + 1;
  };
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"username: driftd", "usernam: driftd"}, {"provider: redis", "provider: [redis]"}}) {
    // the other backend would go, and a third one come
    std::string wrong = with(good, from, to);
    wrong = with(wrong, terraform_backend(state_),
                 "  - name: third\n    provider: terraform\n    settings: { path: " + state_ + " }\n");
    const Output refused = reload(a, wrong);
    EXPECT_EQ(refused.code, 2) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr(a.config() + ":" + std::to_string(line_of(wrong, to)) + ":"));
    EXPECT_EQ(a.rows({"backends"}).size(), 2u);
    EXPECT_FALSE(a.backend("third").has_value());
    EXPECT_EQ(a.backend("cache")->at("worker").at("pid"), pid);
  }
  EXPECT_THAT(registrations(a, "platform"), ElementsAre("created"));
  EXPECT_THAT(registrations(a, "cache"), ElementsAre("created"));
}

TEST_F(Reload, ARenamedBackendKeepsItsState) {
  Agent a = agent("200ms", terraform_backend(state_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  replace_file(state_, tfstate(7, 8));
  ASSERT_TRUE(eventually([&] { return !drifts(a, "platform").empty(); })) << a.log();
  const auto uid = a.backend("platform")->at("uid");
  const Output renamed = reload(a, with(read_file(a.config()), "name: platform", "name: infra\n    was: platform"));
  ASSERT_EQ(renamed.code, 0) << renamed.err;
  EXPECT_FALSE(a.backend("platform").has_value());
  ASSERT_TRUE(a.backend("infra").has_value()) << a.log();
  EXPECT_EQ(a.backend("infra")->at("uid"), uid);
  EXPECT_EQ(drifts(a, "infra").size(), 1u);
  EXPECT_THAT(registrations(a, "infra"), ElementsAre("updated"));
}

}  // namespace
}  // namespace driftd::test
