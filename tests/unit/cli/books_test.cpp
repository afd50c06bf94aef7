// SPDX-License-Identifier: Apache-2.0
// `driftd books`: the two equations, as the agent's own counters fill them.
#include <gmock/gmock.h>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::cli {
namespace {

using test::FakeAgent;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CommandResult books(const FakeAgent& agent, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--socket", agent.socket(), "books"});
  return driftd(std::move(more));
}

/// Three events, and three changes that became none.
void judge(FakeAgent& agent) {
  agent.metrics.event_drafted("cache", 3);
  agent.metrics.suppressed("cache", "ignore-rule", 2);
  agent.metrics.suppressed("cache", "equivalent", 1);
}

TEST(Books, AreExactWhenEverythingIsAccountedFor) {
  FakeAgent agent;
  judge(agent);
  for (int i = 0; i < 3; ++i) agent.metrics.event_published("cache", "config.updated");
  agent.metrics.drafts_ended("cache", 3);
  agent.reader()->totals = {{"bus", 12, 12, 0, 0, 0}, {"ops", 10, 6, 0, 1, 3, {{"dead_letter", 1}, {"retention", 2}}}};
  const CommandResult closed = books(agent);
  EXPECT_EQ(closed.code, kOk);
  EXPECT_THAT(closed.out,
              AllOf(HasSubstr("6 observed = 3 emitted + 3 suppressed (equivalent 1, ignore-rule 2): exact\n"),
                    HasSubstr("3 (dead_letter 1, retention 2)"), HasSubstr("\nexact\n"), Not(HasSubstr("pending"))));
}

TEST(Books, SayWhatIsInProgress) {
  FakeAgent agent;
  judge(agent);
  agent.metrics.event_published("cache", "config.updated");
  agent.metrics.event_withdrawn("cache", 1);
  agent.reader()->totals = {{"ops", 10, 6, 3, 1, 0}};
  const CommandResult closed = books(agent);
  EXPECT_EQ(closed.code, kOk);
  EXPECT_THAT(
      closed.out,
      AllOf(HasSubstr("6 observed = 1 emitted + 3 suppressed (equivalent 1, ignore-rule 2) + 1 to judge again: 1 "
                      "in a commit\n"),
            HasSubstr("3 pending"), testing::EndsWith("in progress\n")));
}

TEST(Books, ThatDoNotAddUpExitWith1) {
  FakeAgent agent;
  agent.reader()->totals = {{"bus", 12, 12, 0, 0, 0}, {"ops", 10, 7, 1, 0, 0}};
  const CommandResult lost = books(agent);
  EXPECT_EQ(lost.code, kFinding);
  EXPECT_THAT(lost.out, AllOf(HasSubstr("WRONG by 2"), HasSubstr("\nWRONG: this is a defect")));
  agent.reader()->totals = {};
  agent.metrics.event_published("cache", "config.updated");  // more than judging ever gave to the store
  const CommandResult invented = books(agent);
  EXPECT_EQ(invented.code, kFinding);
  EXPECT_THAT(invented.out, HasSubstr("WRONG by -1"));
}

TEST(Books, AreWrongIfADraftOfAnEndedCommitIsNeitherPublishedNorWithdrawn) {
  FakeAgent agent;
  judge(agent);
  agent.metrics.event_drafted("cache", 5);  // in a commit that is under way
  agent.metrics.event_published("cache", "config.updated");
  agent.metrics.event_withdrawn("cache", 1);
  agent.metrics.drafts_ended("cache", 3);
  const CommandResult lost = books(agent);
  EXPECT_EQ(lost.code, kFinding);
  EXPECT_THAT(lost.out, AllOf(HasSubstr("+ 1 to judge again: WRONG by 1"), HasSubstr("\nWRONG: this is a defect")));
}

TEST(Books, AreWrongIfAnEventWasDroppedWithoutAReason) {
  FakeAgent agent;
  agent.reader()->totals = {{"ops", 10, 7, 0, 1, 2, {{"retention", 1}}}};
  const CommandResult closed = books(agent);
  EXPECT_EQ(closed.code, kFinding);
  EXPECT_THAT(closed.out, HasSubstr("WRONG by 1"));
}

TEST(Books, AreReadByPrograms) {
  FakeAgent agent;
  judge(agent);
  agent.reader()->totals = {{"ops", 10, 7, 1, 0, 0}};
  const CommandResult json = books(agent, {"--json"});
  EXPECT_EQ(json.code, kFinding);
  EXPECT_EQ(
      json.out,
      R"({"exact":false,"judged":{"difference":0,"emitted":0,"in_commit":3,"in_progress":3,"observed":6,"suppressed":)"
      R"({"equivalent":1,"ignore-rule":2},"withdrawn":0},"sinks":[{"acked":7,"dead":0,"difference":2,"dropped":0,)"
      R"("dropped_by":{},"emitted":10,"in_progress":1,"pending":1,"sink":"ops"}],"wrong":true})"
      "\n");
  EXPECT_EQ(books(agent, {"-o", "json"}).out, json.out);
}

}  // namespace
}  // namespace driftd::cli
