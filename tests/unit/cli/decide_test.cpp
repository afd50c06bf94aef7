// SPDX-License-Identifier: Apache-2.0
// A decision names its value, lists say what they leave out, and the audit log prints readable lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::cli {
namespace {

using test::FakeAgent;
using test::FakeControl;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

CommandResult asked(const FakeAgent& agent, std::vector<std::string> arguments, std::istream* answers = nullptr) {
  arguments.insert(arguments.begin(), {"--socket", agent.socket()});
  return driftd(std::move(arguments), {}, false, answers);
}

class Decide : public testing::Test {
 protected:
  Decide() { agent.reader()->open = {{test::pending_drift("d-0123456789abcdef"), "cache"}}; }
  FakeAgent agent;
  const std::string binding = FakeControl::binding_of("d-0123456789abcdef");
  const std::string ref = "d-0123456789abcdef@" + binding.substr(0, 12);
};

TEST_F(Decide, DriftsPrintWhatADecisionTakes) {
  EXPECT_THAT(asked(agent, {"drifts"}).out, HasSubstr(ref));
  EXPECT_EQ(asked(agent, {"approve", ref}).code, kOk);
  EXPECT_EQ(agent.control()->decisions.at(0).digest, binding.substr(0, 12));
}

TEST_F(Decide, ABareIdIsRefusedWithTheDriftAsItStandsAndTheCommand) {
  for (const char* verb : {"approve", "reject", "ignore"}) {
    const CommandResult outcome = asked(agent, {verb, "d-0123456789abcdef"});
    EXPECT_EQ(outcome.code, kUsage);
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("flags"), HasSubstr("9223372036854775808"), HasSubstr("[REDACTED]")));
    EXPECT_THAT(outcome.err, HasSubstr("driftd " + std::string(verb) + " " + ref));
  }
  EXPECT_THAT(asked(agent, {"-o", "json", "approve", "d-0123456789abcdef"}).err,
              HasSubstr("a decision needs the digest of its value"));
  EXPECT_TRUE(agent.control()->decisions.empty());
}

TEST_F(Decide, APersonAtATerminalIsShownTheValueAndAsked) {
  for (const char* no : {"\n", "n\n", "", "maybe\n"}) {
    std::istringstream answers(no);
    const CommandResult outcome = asked(agent, {"approve", "d-0123"}, &answers);
    EXPECT_EQ(outcome.code, kFinding) << no;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("9223372036854775808"), HasSubstr("approve this? [y/N]")));
    EXPECT_THAT(outcome.err, HasSubstr("nothing was decided"));
  }
  EXPECT_TRUE(agent.control()->decisions.empty());
  std::istringstream yes("y\n");
  EXPECT_EQ(asked(agent, {"approve", "d-0123"}, &yes).code, kOk);
  EXPECT_EQ(agent.control()->decisions.at(0).digest, binding) << "of the value that was shown";
}

/// Whoever writes a value decides where in it the news is; it is seen wherever that is.
TEST_F(Decide, LongValuesAreCutWhereTheyAreTheSame) {
  core::Drift drift = test::pending_drift("d-0123456789abcdef");
  const std::string same(500, 'x');
  drift.changes = {{"rules", core::ChangeClass::config, "\"" + same + "allow-few" + same + "\"",
                    "\"" + same + "allow-all" + same + "\"", false},
                   {"tail", core::ChangeClass::config, "\"" + same + "\u00e9a\"", "\"" + same + "\u00e9b\"", false},
                   {"more", core::ChangeClass::config, "\"" + same + "\"", "\"" + same + "; and more\"", false}};
  agent.reader()->open = {{drift, "cache"}};
  const std::string out = asked(agent, {"drifts"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("allow-few"), HasSubstr("allow-all"), HasSubstr("\u00e9a\""), HasSubstr("\u00e9b\""),
                         HasSubstr("; and more")));
  EXPECT_THAT(out, AllOf(Not(HasSubstr(same)), Not(HasSubstr("\\x")))) << "short, and no half of a character";
}

TEST_F(Decide, APersonSeesTheWholeValueBeforeAYes) {
  core::Drift drift = test::pending_drift("d-0123456789abcdef");
  const std::string before = "one" + std::string(200, 'a'),
                    now = "two" + std::string(200, 'b') + "\u202e" + "three" + std::string(200, 'c') + "end";
  drift.changes = {
      {"short", core::ChangeClass::config, "1", "2", false},
      {"rules", core::ChangeClass::config, core::render(core::Value(before)), core::render(core::Value(now)), false}};
  agent.reader()->open = {{drift, "cache"}};
  std::istringstream answers("n\n");
  const std::string out = asked(agent, {"approve", "d-0123"}, &answers).out;
  const std::string whole = out.substr(out.find("rules, whole:"));
  EXPECT_THAT(whole, AllOf(HasSubstr(before), HasSubstr(std::string(200, 'b') + "\\u202ethree"), HasSubstr("cend")));
  EXPECT_THAT(out, Not(HasSubstr("short, whole:")));
  core::Drift huge = drift;
  huge.changes[1].new_value = core::render(core::Value(std::string(100'000, 'z')));
  agent.reader()->open = {{huge, "cache"}};
  std::istringstream again("n\n");
  EXPECT_THAT(asked(agent, {"approve", "d-0123"}, &again).out,
              HasSubstr("… and 91810 bytes more: driftd drifts -o json"))
      << "what is not shown is said";
}

TEST_F(Decide, BeginningsOfIdsMustBeUniqueAndKnown) {
  agent.reader()->open.push_back({test::pending_drift("d-0123ffffffffffff"), "cache"});
  EXPECT_THAT(asked(agent, {"approve", "d-0123"}).err, HasSubstr("several open drifts begin with d-0123"));
  EXPECT_THAT(asked(agent, {"approve", "d-9"}).err, HasSubstr("not_found: no drift d-9"));
  EXPECT_TRUE(agent.control()->decisions.empty());
}

TEST_F(Decide, UndoNeedsNoValue) { EXPECT_EQ(asked(agent, {"undo", "d-0123456789abcdef"}).code, kOk); }

TEST_F(Decide, AMovedValueIsAConflictWithItsText) {
  const CommandResult outcome = asked(agent, {"approve", "d-stale@abcdef01"});
  EXPECT_EQ(outcome.code, kFinding);
  EXPECT_THAT(outcome.err, HasSubstr("conflict: the value moved"));
}

TEST_F(Decide, CutListsAndGlobsThatBringNothingSaySo) {
  agent.reader()->total = 405;
  EXPECT_THAT(asked(agent, {"drifts", "--limit", "1"}).out, HasSubstr("404 more of 405"));
  EXPECT_THAT(asked(agent, {"drifts"}).out, Not(HasSubstr("more of")));
  for (const char* list : {"resources", "deadletter"}) {
    std::vector<std::string> words{list, "--limit", "1"};
    if (std::string(list) == "deadletter") words.insert(words.begin() + 1, "ls");
    EXPECT_THAT(asked(agent, words).out, HasSubstr("more of 405")) << list;
  }
  const CommandResult unknown = asked(agent, {"drifts", "--backend", "cahce"});
  EXPECT_EQ(unknown.code, kFinding);
  EXPECT_THAT(unknown.err, HasSubstr("there is no backend 'cahce'; known: cache"));
  agent.reader()->open.clear();
  const CommandResult glob = asked(agent, {"drifts", "--backend", "ord*"});
  EXPECT_EQ(glob.code, kOk);
  EXPECT_THAT(glob.err, HasSubstr("nothing was found for backend 'ord*'"));
}

TEST_F(Decide, APageOfEventsThatEndedByItsSizeSaysHowToGoOn) {
  agent.reader()->append(1);
  agent.reader()->append(2);
  EXPECT_THAT(asked(agent, {"events", "--after", "0"}).err, IsEmpty());
  agent.reader()->stored.back().resource = "config_map/" + std::string(2u << 20, 'x');
  agent.reader()->total = 405;
  EXPECT_THAT(asked(agent, {"events", "--after", "0"}).err,
              HasSubstr("is full with 2 events; the next ones: --after 2"));
  EXPECT_THAT(asked(agent, {"events"}).err, HasSubstr("those before 1: --after with a smaller number"));
}

TEST_F(Decide, AQueueThatIsCutSaysSo) {
  agent.reader()->total = 1700;
  EXPECT_THAT(asked(agent, {"queue"}).out,
              HasSubstr("1700 more of 1700 are not shown: driftd drifts --status pending --limit 10000"));
  EXPECT_EQ(agent.reader()->counted.back().filter.status, core::DriftStatus::pending);
  agent.reader()->total = 0;
  EXPECT_THAT(asked(agent, {"queue"}).out, Not(HasSubstr("more of")));
}

TEST_F(Decide, AuditSaysWhoDidWhatToWhatAndWhoWasRefused) {
  const CommandResult outcome = asked(agent, {"audit"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("BACKEND"), HasSubstr("RESOURCE"), HasSubstr("root (claims SUDO_USER:kim)"),
                                 HasSubstr("undid ignore"), HasSubstr("cache"), HasSubstr("acl_user/app"),
                                 HasSubstr("flags \"on\" → 9223372036854775808"), HasSubstr("planned"),
                                 HasSubstr("denied: user mallory")));
}

TEST_F(Decide, AuditVerifySaysWhereTheChainIsBroken) {
  core::AuditProof whole;
  whole.whole = true;
  whole.lines = 3;
  whole.head_id = 5;
  whole.head_hash = "feed";
  agent.reader()->proof = whole;
  const CommandResult good = asked(agent, {"audit", "--verify"});
  EXPECT_EQ(good.code, kOk);
  EXPECT_THAT(good.out, AllOf(HasSubstr("whole: 3 lines"), HasSubstr("line 5 with hash feed")));
  whole.whole = false;
  whole.broken = "line 4 was changed after it was written";
  agent.reader()->proof = whole;
  const CommandResult bad = asked(agent, {"audit", "--verify"});
  EXPECT_EQ(bad.code, kFinding);
  EXPECT_THAT(bad.out, HasSubstr("BROKEN: line 4 was changed"));
}

TEST_F(Decide, StatusAndProbesWorkBesideIdleConnectionsOnThePort) {
  std::vector<std::unique_ptr<test::Child>> idle;
  const std::string url = "telnet://127.0.0.1:" + std::to_string(agent.server->port());
  for (int i = 0; i < 64; ++i) {
    idle.push_back(
        std::make_unique<test::Child>(std::vector<std::string>{"curl", "-s", "-m", "60", url}, test::Child::Options{}));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(asked(agent, {"status"}).code, kOk) << idle.size();
    EXPECT_EQ(asked(agent, {"status", "--probe", "live"}).code, kOk);
    EXPECT_EQ(asked(agent, {"status", "--probe", "ready"}).code, kOk);
  }
}

}  // namespace
}  // namespace driftd::cli
