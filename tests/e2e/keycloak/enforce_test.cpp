// SPDX-License-Identifier: Apache-2.0
// The agent follows a real Keycloak by its admin events and puts values back, through the real provider in its worker.
#include <gmock/gmock.h>
#include <algorithm>
#include <random>

#include "support/agent.hpp"
#include "support/keycloak.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

/// One server for all tests, and a realm of its own for each.
class KeycloakEnforced : public testing::Test {
 protected:
  static KeycloakServer& server() {
    static KeycloakServer kServer;
    return kServer;
  }
  static std::vector<std::string> roles(const std::vector<std::string>& more = {}) {
    std::vector<std::string> out{"view-realm", "view-clients", "view-users", "view-identity-providers", "view-events"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  KeycloakEnforced() {
    static int count = 0;
    realm_ = "shop" + std::to_string(++count);
    server().make_realm(realm_);
    server().make_account(realm_, "keycloak-canary", roles({"manage-clients"}));
    server().admin("POST", "/" + realm_ + "/clients", {{"clientId", "app"}, {"description", "ours"}});
    path_ = "/" + realm_ + "/clients/" + server().client_uuid(realm_, "app");
  }
  /// `more` are lines of the backend.
  void start(const std::string& more = "    policy: { config: enforce }\n", const std::string& settings = {}) {
    agent_ = std::make_unique<Agent>(
        dir_,
        "enforce: { enabled: true, minimum_age: 0s, per_hour: 1000, per_cycle: 100 }\ndefaults:\n  interval: 300ms\n"
        "backends:\n  - name: sso\n    provider: keycloak\n    enforce: true\n" +
            more + "    settings: { url: \"" + server().url() + "\", realms: [" + realm_ +
            "], poll_interval_ms: 300, include: [realm, client], auth: { realm: " + realm_ +
            ", client_id: driftd, client_secret: \"${env:KEYCLOAK_SECRET}\" }" + settings + " }\n",
        std::map<std::string, std::string>{{"KEYCLOAK_SECRET", "keycloak-canary"}});
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"sso"}); }, seconds(60))) << agent_->log();
  }
  void set(const std::string& description) { server().admin("PUT", path_, {{"description", description}}); }
  bool is(const std::string& description) { return server().get(path_).value("description", "") == description; }
  std::vector<std::string> states() {
    std::vector<std::string> out;
    for (const auto& one : agent_->rows({"operations"})) out.push_back(one.value("state", ""));
    return out;
  }
  /// Requests of the agent that concern the realm, from this index on.
  std::vector<std::string> requests(std::size_t from = 0) const {
    std::vector<std::string> out;
    for (auto& each : server().requests()) {
      if (each.find("/realms/" + realm_) == std::string::npos) continue;
      if (from > 0)
        --from;
      else
        out.push_back(std::move(each));
    }
    return out;
  }
  static std::size_t events_in(const std::vector<std::string>& requests) {
    return static_cast<std::size_t>(std::count_if(requests.begin(), requests.end(), [](const auto& each) {
      return each.find("/admin-events?") != std::string::npos;
    }));
  }

  TempDir dir_;
  std::string realm_, path_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(KeycloakEnforced, ADriftIsSeenAtTheNextQuestionAndIsEqualAgain) {
  ASSERT_NO_FATAL_FAILURE(start());
  const std::size_t before = requests().size();
  set("theirs");  // takes longer than an interval on a busy machine: what was asked meanwhile could not know yet
  const auto meanwhile = static_cast<std::ptrdiff_t>(requests(before).size());
  ASSERT_TRUE(eventually([&] { return is("ours") && states() == std::vector<std::string>{"done"}; }, seconds(60)))
      << agent_->cli({"enforce", "status"}).out << agent_->log();
  const auto asked = requests(before);
  const auto read = std::find_if(asked.begin(), asked.end(), [&](const auto& each) {
    return each.find(path_.substr(realm_.size() + 1)) != std::string::npos;
  });
  ASSERT_NE(read, asked.end());
  const auto since = std::min(asked.begin() + meanwhile, read);
  EXPECT_LE(events_in({since, read}), 2u) << "one may have been on its way when the client was changed";
  const auto one = agent_->rows({"operations"}).at(0);
  EXPECT_THAT(one.dump(), AllOf(HasSubstr("kcadm.sh update clients/"), HasSubstr("theirs"), HasSubstr("ours")));
  const auto drifts = agent_->rows({"drifts", "--all"});
  ASSERT_EQ(drifts.size(), 1u);
  EXPECT_EQ(drifts[0].value("status", ""), "enforced");
  EXPECT_EQ(agent_->ask({"audit", "verify"}).value("whole", false), true);
}

TEST_F(KeycloakEnforced, AnIdleAgentAsksOneQuestionAnInterval) {
  ASSERT_NO_FATAL_FAILURE(start());
  // What was changed just before the first list is read once more, three seconds later: ten intervals and some more.
  constexpr std::ptrdiff_t kQuiet = 15;
  std::vector<std::string> quiet;
  auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually(
      [&] {
        begin = std::chrono::steady_clock::now();
        quiet = requests();
        return quiet.size() > kQuiet && events_in({quiet.end() - kQuiet, quiet.end()}) == kQuiet;
      },
      seconds(60)));
  ASSERT_TRUE(eventually([&] { return requests(quiet.size()).size() >= 10; }, seconds(60)));
  const auto asked = requests(quiet.size());
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(events_in(asked), asked.size()) << "something else was asked";
  EXPECT_LE(asked.size(), static_cast<std::size_t>(took / std::chrono::milliseconds(300)) + 2);
}

TEST_F(KeycloakEnforced, AMissingRoleIsSaidAndNothingIsHalfDone) {
  server().set_roles(realm_, roles());
  ASSERT_NO_FATAL_FAILURE(start());
  set("theirs");
  ASSERT_TRUE(eventually(
      [&] {
        const auto held = agent_->ask({"enforce", "status"}).at("backends").at(0).at("held");
        return held.dump().find("manage-clients") != std::string::npos;
      },
      seconds(60)))
      << agent_->cli({"enforce", "status"}).out;
  EXPECT_TRUE(is("theirs"));
  EXPECT_EQ(agent_->rows({"drifts"}).at(0).value("status", ""), "pending");
}

TEST_F(KeycloakEnforced, AResourceOfAnotherOwnerIsNotTouched) {
  server().admin("PUT", path_, {{"attributes", {{"driftd.owner", "another/agent"}}}});
  ASSERT_NO_FATAL_FAILURE(start());
  set("theirs");
  ASSERT_TRUE(eventually(
      [&] {
        const auto held = agent_->ask({"enforce", "status"}).at("backends").at(0).at("held");
        return held.dump().find("driftd.io/owner=another/agent") != std::string::npos;
      },
      seconds(60)))
      << agent_->cli({"enforce", "status"}).out;
  EXPECT_TRUE(is("theirs"));
}

TEST_F(KeycloakEnforced, AdminEventsAreTurnedOnByAnExpectationWithConsent) {
  server().set_events(realm_, false);
  server().set_roles(realm_, roles({"manage-realm"}));
  ASSERT_NO_FATAL_FAILURE(
      start("    expect:\n      - { match: { kind: realm }, where: { adminEventsEnabled: true } }\n"
            "    policy:\n      - { match: { kind: realm, path: adminEventsEnabled }, action: enforce }\n",
            ", sweep_interval_s: 1, apply: { turn_on_admin_events: true }"));
  EXPECT_TRUE(eventually([&] { return server().get("/" + realm_).value("adminEventsEnabled", false); }, seconds(60)))
      << agent_->cli({"enforce", "status"}).out << agent_->cli({"drifts"}).out;
}

/// SIGKILL at moments that walk through the whole operation.
TEST_F(KeycloakEnforced, AKilledAgentTellsTheTruthAtItsNextStart) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(agent_->stop(), 0);
  std::mt19937 random(18);
  for (int round = 0; round < 6; ++round) {
    set(round % 2 == 0 ? "theirs" : "of a third");
    agent_->start();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500 + random() % 3000);
    (void)eventually([&] { return std::chrono::steady_clock::now() >= until || is("ours"); }, seconds(10));
    agent_->kill();
  }
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"sso"}); }, seconds(60))) << agent_->log();
  const auto settled = [&] {
    const auto status = agent_->ask({"enforce", "status"}).at("backends").at(0);
    return status.at("open").empty() && (agent_->rows({"drifts"}).empty() || !status.at("held").empty());
  };
  ASSERT_TRUE(eventually(settled, seconds(60))) << agent_->cli({"enforce", "status"}).out;
  EXPECT_FALSE(states().empty()) << "no round came as far as an operation";
  for (const auto& one : agent_->rows({"operations", "--limit", "1000"})) {
    const std::string state = one.value("state", "");
    EXPECT_TRUE(state == "done" || state == "failed" || state == "conflict" || state == "undone") << one.dump();
  }
  EXPECT_EQ(is("ours"), agent_->rows({"drifts"}).empty());
  EXPECT_EQ(agent_->ask({"audit", "verify"}).value("whole", false), true);
}

}  // namespace
}  // namespace driftd::test
