// SPDX-License-Identifier: Apache-2.0
// `driftd policy test` and `policy explain`, over a history in a file and without an agent.
#include <gmock/gmock.h>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "support/process.hpp"

namespace driftd::cli {
namespace {

using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHistory = R"({"drifts":[
  {"id":"d-1","backend":"orders","kind":"topic","resource":"topic/orders","class":"config","against":"baseline",
   "policy":"manual","operation":"changed","status":"approved","opened":"2026-11-01T10:00:00.000Z",
   "changes":[{"path":"partitions","class":"config"},{"path":"retention","class":"config"}]},
  {"id":"d-2","backend":"orders","kind":"topic","resource":"topic/gone","class":"config","against":"baseline",
   "policy":"manual","operation":"deleted","status":"pending","opened":"2026-11-02T10:00:00.000Z",
   "changes":[{"path":"[\"$identity\"]","class":"config"},{"path":"retention","class":"config"}]},
  {"id":"d-3","backend":"orders","kind":"scope","resource":"scope/topic","class":"config","against":"baseline",
   "policy":"manual","operation":"changed","status":"pending","opened":"2026-11-02T10:00:00.000Z",
   "changes":[{"path":"gone","class":"config"}]},
  {"id":"d-4","backend":"elsewhere","kind":"topic","resource":"topic/a","class":"config","against":"baseline",
   "policy":"manual","operation":"changed","status":"pending","opened":"2026-11-02T10:00:00.000Z",
   "changes":[{"path":"retention","class":"config"}]}],"total":4,"truncated":false})";

class PolicyCommand : public testing::Test {
 protected:
  std::string config(const std::string& policy) {
    return dir_.write("d.yaml", "backends:\n- name: orders\n  provider: kafka\n  policy:\n" + policy);
  }
  CommandResult test(const std::string& policy, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"policy",       "test",      "--file",
                                       config(policy), "--history", dir_.write("history.json", kHistory)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return driftd(arguments);
  }
  TempDir dir_;
};

TEST_F(PolicyCommand, SaysWhatWouldHaveBeenOtherwiseAndByWhichRule) {
  const CommandResult tried = test("  - { match: { kind: topic, path: retention }, action: auto }\n");
  EXPECT_EQ(tried.code, kFinding);
  EXPECT_THAT(tried.out, AllOf(HasSubstr("d-1"), HasSubstr("retention"), HasSubstr("d.yaml:5:5")));
  EXPECT_THAT(tried.out, HasSubstr("3 drifts with 3 attributes since 2026-11-01 10:00:00: 2 as they were; "
                                   "1 asked → accepted; 1 questions that no policy answers"));
  EXPECT_THAT(tried.out, Not(HasSubstr("d-2"))) << "a deletion is decided by the rule on the resource itself";
  EXPECT_THAT(tried.out, Not(HasSubstr("d-4"))) << "the file has no such backend";
}

TEST_F(PolicyCommand, APolicyThatDecidesAsTheOldOneIsNoFinding) {
  const CommandResult tried = test("  - { match: { kind: role }, action: auto }\n  - { action: manual }\n");
  EXPECT_EQ(tried.code, kOk);
  EXPECT_THAT(tried.out, HasSubstr("3 as they were"));
  EXPECT_THAT(tried.out, HasSubstr("decides about nothing of it: "));
  EXPECT_THAT(tried.out, HasSubstr("d.yaml:5:5"));
}

TEST_F(PolicyCommand, ARuleOnEverythingDecidesAboutDeletionsToo) {
  const CommandResult tried = test("  - { action: ignore }\n");
  EXPECT_THAT(tried.out, AllOf(HasSubstr("d-2"), HasSubstr("(deleted)"), HasSubstr("3 asked → told once")));
}

/// Beside the identity of a resource that was made anew, each attribute that differs is decided by its own rule.
TEST_F(PolicyCommand, AttributesOfARecreatedResourceAreTriedToo) {
  const std::string history = dir_.write("recreated.json", R"({"drifts":[
    {"id":"d-5","backend":"orders","kind":"topic","resource":"topic/orders","class":"config","against":"baseline",
     "policy":"manual","operation":"recreated","status":"pending","opened":"2026-11-01T10:00:00.000Z",
     "changes":[{"path":"[\"$identity\"]","class":"config"},{"path":"retention","class":"config"}]}],"total":1})");
  const std::string file = config("  - { match: { path: retention }, action: auto }\n");
  const CommandResult tried = driftd({"policy", "test", "--file", file, "--history", history});
  EXPECT_EQ(tried.code, kFinding);
  EXPECT_THAT(tried.out, HasSubstr("1 drifts with 2 attributes since 2026-11-01 10:00:00: 1 as they were; "
                                   "1 asked → accepted"));
}

TEST_F(PolicyCommand, TimedRulesAreTriedAtTheTimeOfEachDriftOrAtAnother) {
  const std::string rule = "  - { action: auto, from: 2026-11-02T00:00:00Z, until: 2099-01-01T00:00:00Z }\n";
  EXPECT_THAT(test(rule).out, HasSubstr("2 as they were; 1 asked → accepted"));
  EXPECT_THAT(test(rule, {"--at", "2027-01-01T00:00:00Z"}).out, HasSubstr("3 asked → accepted"));
  const CommandResult wrong = test(rule, {"--at", "tomorrow"});
  EXPECT_EQ(wrong.code, kUsage);
  EXPECT_THAT(wrong.err, HasSubstr("--at 'tomorrow' is no time"));
}

TEST_F(PolicyCommand, AnswersInJson) {
  const CommandResult tried = test("  - { match: { path: retention }, action: auto }\n", {"-o", "json"});
  EXPECT_THAT(tried.out, AllOf(HasSubstr(R"("differ":1)"), HasSubstr(R"("did":"manual")"),
                               HasSubstr(R"("would":"auto")"), HasSubstr(R"("attributes":3)")));
}

TEST_F(PolicyCommand, WithoutAHistoryOrAnAgentSaysWhatToDo) {
  const std::string file = config("  - { action: auto }\n");
  const CommandResult no_file = driftd({"policy", "test", "--file", file, "--history", dir_.file("none.json")});
  EXPECT_EQ(no_file.code, kUsage);
  EXPECT_THAT(no_file.err, HasSubstr("`driftd drifts --all -o json` prints a history"));
  const CommandResult no_history =
      driftd({"policy", "test", "--file", file, "--history", dir_.write("x.json", R"({"events":[]})")});
  EXPECT_THAT(no_history.err, HasSubstr("it has no member `drifts`"));
  const CommandResult no_agent = driftd({"--socket", dir_.file("none.sock"), "policy", "test", "--file", file});
  EXPECT_EQ(no_agent.code, kUnreachable);
}

TEST_F(PolicyCommand, ExplainsEachRuleInOrder) {
  const std::string file = config(
      "  - { match: { kind: role }, action: ignore }\n  - { match: { path: ret* }, action: auto }\n"
      "  - { action: manual }\n");
  const CommandResult told =
      driftd({"policy", "explain", "--file", file, "orders", "topic/orders", "retention", "--class", "config"});
  EXPECT_EQ(told.code, kOk) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("ignore for kind role  the kind is topic"),
                              HasSubstr("auto for path ret*  decides"), HasSubstr("later rules are not reached")));
  const CommandResult gone =
      driftd({"policy", "explain", "--file", file, "orders", "topic/orders", "--class", "config"});
  EXPECT_THAT(gone.out, AllOf(HasSubstr("(the resource itself)"), HasSubstr("manual for everything  decides")));
  const CommandResult other = driftd({"policy", "explain", "--file", file, "bills", "topic/orders", "a"});
  EXPECT_EQ(other.code, kUsage);
  EXPECT_THAT(other.err, HasSubstr("no backend 'bills'; it has orders"));
}

}  // namespace
}  // namespace driftd::cli
