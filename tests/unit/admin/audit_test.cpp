// SPDX-License-Identifier: Apache-2.0
// Every request that changes something leaves an audit line; a request whose line cannot be written is not carried out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <fstream>
#include <future>

#include "core/value/value.hpp"
#include "support/patience.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Deed {
  const char* path;
  const char* body;
  const char* verb;
  const char* subject;
};
constexpr Deed kDeeds[] = {
    {"/v1/reload", "", "reload", "configuration"},
    {"/v1/refresh", R"({"backend":"cache"})", "refresh", "cache"},
    {"/v1/refresh", "", "refresh", "all backends"},
    {"/v1/replay", R"({"sink":"ops","from_seq":12})", "replay", "ops from 12"},
    {"/v1/deadletters/replay", R"({"sink":"ops","seqs":[4,5]})", "deadletters replay", "ops: [4,5]"},
    {"/v1/deadletters/drop", R"({"sink":"ops"})", "deadletters drop", "ops: all"},
    {"/v1/plugins/resume", R"({"name":"cache","reason":"fixed"})", "plugins resume", "cache"},
};

TEST(Audit, EveryDeedLeavesItsLine) {
  FakeAgent agent;
  for (const auto& deed : kDeeds) {
    agent.control()->lines.clear();
    EXPECT_THAT(agent.curl({"-d", deed.body, kHost + deed.path}).out, EndsWith("200")) << deed.path;
    const auto lines = agent.control()->lines;
    const bool resumes = std::string(deed.path) == "/v1/plugins/resume";  // and a line for each resumed backend
    ASSERT_THAT(lines, SizeIs(resumes ? 3 : 2)) << deed.path;
    EXPECT_EQ(lines[0].verb, std::string("asked ") + deed.verb);
    EXPECT_EQ(lines.back().verb, deed.verb);
    EXPECT_EQ(lines[0].subject, deed.subject);
    EXPECT_EQ(lines.back().outcome, "");
    EXPECT_NE(lines[0].request, "");
    EXPECT_EQ(lines.back().request, lines[0].request) << "the two lines of one request name each other";
    EXPECT_GE(lines.back().at_ns, lines[0].at_ns);
    EXPECT_EQ(lines[0].caller.uid, static_cast<std::int64_t>(::getuid()));
    EXPECT_GT(lines[0].caller.pid, 0);
    EXPECT_GT(lines[0].at_ns, 0);
  }
}

/// `reload` and `silence` alone say little years later.
TEST(Audit, TheLineOfAReloadAndOfASilenceSaysWhichChangeItWas) {
  FakeAgent agent;
  agent.control()->reloaded.applied = {"backend cache: its rules", "resolve"};
  EXPECT_THAT(agent.curl({"-d", "", kHost + "/v1/reload"}).out, EndsWith("200"));
  EXPECT_EQ(agent.control()->lines.back().reason, "backend cache: its rules; resolve");
  const std::string body = R"({"backend":"ord*","seconds":60,"reason":"migration"})";
  EXPECT_THAT(agent.curl({"-d", body, kHost + "/v1/silences/add"}).out, EndsWith("200"));
  EXPECT_EQ(agent.control()->lines.back().subject, "backend ord*, seconds 60") << "the agent adds the id";
  EXPECT_EQ(agent.control()->lines.back().reason, "migration");
  EXPECT_THAT(agent.curl({"-d", R"({"id":"s-1"})", kHost + "/v1/silences/expire"}).out, EndsWith("200"));
  EXPECT_EQ(agent.control()->lines.back().subject, "id s-1");
}

TEST(Audit, WhatLeavesNoLineIsNotDone) {
  FakeAgent agent;
  agent.control()->audit_works = false;
  for (const auto& deed : kDeeds) {
    EXPECT_THAT(agent.curl({"-d", deed.body, kHost + deed.path}).out, HasSubstr("the disk is full")) << deed.path;
  }
  EXPECT_THAT(agent.control()->calls, IsEmpty());
}

/// The request is audited before it is carried out; a later line that cannot be written undoes nothing.
TEST(Audit, ADeedThatIsDoneIsNotAnsweredAsOneThatIsNot) {
  FakeAgent agent;
  agent.control()->most_lines = 1;
  EXPECT_THAT(agent.curl({"-d", R"({"name":"cache"})", kHost + "/v1/plugins/resume"}).out,
              AllOf(HasSubstr(R"("resumed":["cache"])"), EndsWith("200")));
  EXPECT_THAT(agent.control()->calls, SizeIs(1));
}

/// The answer to a refused request says what was refused, and not what happened to the log.
TEST(Audit, ARefusalThatCannotBeWrittenIsStillThatRefusal) {
  FakeAgent agent;
  agent.control()->most_lines = 0;
  EXPECT_THAT(agent.curl({"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/d-stale/approve"}).out,
              AllOf(HasSubstr("the value moved"), HasSubstr("the disk is full"), EndsWith("409")));
}

/// A user directory (LDAP, sssd) that is not reachable: the user is recorded by uid, and no request waits for the name.
TEST(Audit, ANameServiceThatHangsHoldsNoDecisionAndNoProbe) {
  std::promise<void> answer;
  admin::ServerSettings settings;
  settings.user_name = [hangs = answer.get_future().share()](std::uint32_t) {
    hangs.wait();
    return std::string("late");
  };
  FakeAgent agent(settings);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(agent.curl({"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/d-1/approve"}).out, EndsWith("200"));
  EXPECT_THAT(agent.curl({kHost + "/livez"}).out, EndsWith("200"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5) * kPatience);
  ASSERT_THAT(agent.control()->decisions, SizeIs(1));
  EXPECT_EQ(agent.control()->decisions[0].actor, "uid:" + std::to_string(::getuid()));
  answer.set_value();
  EXPECT_TRUE(eventually([&] {
    agent.curl({"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/d-1/approve"});
    return agent.control()->decisions.back().actor == "late";
  }));
}

TEST(Audit, AFailedDeedAndARefusedDecisionSayWhy) {
  FakeAgent agent;
  agent.control()->reload_result = fail(Code::invalid, "driftd.yaml:3:1: unknown key 'nonsense'");
  EXPECT_THAT(agent.curl({"-d", "", kHost + "/v1/reload"}).out, EndsWith("400"));
  EXPECT_THAT(agent.curl({"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/d-stale/approve"}).out,
              EndsWith("409"));
  EXPECT_THAT(agent.curl({"-d", "", kHost + "/v1/drifts/d-1/approve"}).out, EndsWith("400"));
  const auto lines = agent.control()->lines;
  ASSERT_THAT(lines, SizeIs(4)) << "the reload has one before it and one about its failure";
  EXPECT_THAT(lines[1].outcome, HasSubstr("unknown key 'nonsense'"));
  EXPECT_EQ(lines[2].verb, "approve");
  EXPECT_EQ(lines[2].subject, "d-stale");
  EXPECT_EQ(lines[2].digest, "abcdef01");
  EXPECT_THAT(lines[2].outcome, HasSubstr("conflict: the value moved"));
  EXPECT_THAT(lines[3].outcome, HasSubstr("'digest' is missing"));
}

/// The control has it in the transaction of the change.
TEST(Audit, ASilenceHasOneLineWhichTheChangeBrings) {
  FakeAgent agent;
  const std::string body = R"({"backend":"cache","seconds":60,"reason":"planned"})";
  EXPECT_THAT(agent.curl({"-d", body, kHost + "/v1/silences/add"}).out, EndsWith("200"));
  EXPECT_THAT(agent.curl({"-d", R"({"backend":"cache","seconds":0,"reason":"x"})", kHost + "/v1/silences/add"}).out,
              EndsWith("400"));
  const auto lines = agent.control()->lines;
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].verb, "silences add");
  EXPECT_EQ(lines[0].outcome, "");
  EXPECT_EQ(lines[0].reason, "planned");
  EXPECT_THAT(lines[1].outcome, HasSubstr("'seconds' must be from 1")) << "what was turned down has a line, too";
}

TEST(Audit, LookingLeavesNoLine) {
  FakeAgent agent;
  for (const char* path : {"/v1/status", "/v1/drifts", "/v1/audit", "/v1/audit/verify", "/v1/queue", "/livez"}) {
    EXPECT_THAT(agent.curl({kHost + path}).out, EndsWith("200")) << path;
  }
  agent.curl({"-d", R"({"backend":"cache","resource":"acl_user/app"})", kHost + "/v1/explain"});
  EXPECT_THAT(agent.control()->lines, IsEmpty());
}

TEST(Audit, WhoIsBehindSudoIsAClaim) {
  FakeAgent agent;
  const auto claimed = [&](const std::string& header) {
    agent.control()->lines.clear();
    agent.curl({"-H", "Driftd-Sudo-User: " + header, "-d", "", kHost + "/v1/reload"});
    return agent.control()->lines.at(0).caller.claimed;
  };
  const std::string kim = claimed("kim");
  EXPECT_TRUE(kim == "SUDO_USER:kim" || kim.starts_with("loginuid:")) << kim;
  const std::string strange = claimed("kim (and root)");
  EXPECT_TRUE(strange.empty() || strange.starts_with("loginuid:")) << strange;
}

TEST(Audit, AForeignHostHeaderIsInTheLog) {
  FakeAgent agent;
  run({"curl", "-s", "-H", "Host: evil.example", agent.url("/metrics")});
  const auto lines = agent.control()->lines;
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].subject, "Host evil.example");
}

TEST(Audit, SubjectsFromTheUrlAreMadeHarmless) {
  FakeAgent agent;
  agent.curl({"-d", "", kHost + "/v1/drifts/%1b%5b31m%ff/approve"});
  EXPECT_EQ(agent.control()->lines.at(0).subject, "\\x1b[31m\\xff");
}

/// A request cannot make the log unreadable for its readers.
TEST(Audit, OutcomesHoldNoBytesThatWereNotText) {
  FakeAgent agent;
  for (const char* path : {"/v1/drifts/%ff/approve", "/v1/drifts/%ed%a0%80/reject", "/v1/drifts/%c3/undo",
                           "/v1/drifts/%f4%90%80%80/ignore"}) {
    agent.control()->lines.clear();
    agent.control()->decide_fails = true;
    const std::string answer = agent.curl({"-d", R"({"digest":"abcdef01"})", kHost + path}).out;
    EXPECT_TRUE(core::parse(answer.substr(0, answer.rfind('\n')))) << path << ": the answer is no JSON";
    const auto lines = agent.control()->lines;
    ASSERT_THAT(lines, SizeIs(1)) << path;
    EXPECT_THAT(lines[0].outcome, HasSubstr("\\x")) << path;
    EXPECT_TRUE(core::parse(core::render(core::Value(lines[0].outcome)))) << path;
    EXPECT_LT(lines[0].outcome.size(), 5'000u);
  }
}

TEST(Audit, OutcomesAreShort) {
  FakeAgent agent;
  agent.control()->decide_fails = true;
  agent.curl({"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/" + std::string(12'000, 'x') + "/approve"});
  EXPECT_LT(agent.control()->lines.at(0).outcome.size(), 5'000u);
}

TEST(Audit, ReasonsHaveABound) {
  FakeAgent agent;
  const auto says = [&](const std::string& path, std::size_t length) {
    std::ofstream(agent.folder.file("body"))
        << R"({"digest":"abcdef01","reason":")" << std::string(length, 'r') << "\"}";
    return agent.curl({"-d", "@" + agent.folder.file("body"), kHost + path}).out;
  };
  EXPECT_THAT(says("/v1/drifts/d-1/reject", 4096), EndsWith("200"));
  EXPECT_THAT(says("/v1/drifts/d-1/reject", 4097), AllOf(HasSubstr("'reason' has 4097 bytes"), EndsWith("400")));
  ASSERT_THAT(agent.control()->decisions, SizeIs(1));
  std::ofstream(agent.folder.file("body")) << R"({"name":"cache","reason":")" << std::string(4097, 'r') << "\"}";
  EXPECT_THAT(agent.curl({"-d", "@" + agent.folder.file("body"), kHost + "/v1/plugins/resume"}).out, EndsWith("400"));
  EXPECT_THAT(agent.control()->calls, IsEmpty());
}

}  // namespace
}  // namespace driftd::test
