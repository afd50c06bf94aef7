// SPDX-License-Identifier: Apache-2.0
// A decision names the value that it is about, and leaves its line in the audit log.
#include "unit/engine/on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using core::DriftStatus;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Decisions : public EngineOnTheStore {
 protected:
  void moves_to(int partitions) {
    line_->world->resources[thing(1)] = R"({"partitions":)" + std::to_string(partitions) + "}";
    refresh();
  }
  core::Drift drift() { return line_->drifts().at(0); }
  Result<core::Drift> says(Decision::Verb verb, std::optional<std::string> digest, std::string id = {}) {
    Decision out = decision(verb);
    out.digest = std::move(digest);
    out.reason = "because";
    out.caller = {1000, 1000, 4711, "SUDO_USER:kim"};
    return line_->decide_as_is(id.empty() ? drift().id : id, out);
  }
  std::string baseline_of(const core::ResourceId& id) {
    const auto rows = line_->wait(line_->store().resources("", "", 100));
    for (const auto& row : rows.value()) {
      if (row.resource.id == id) return row.resource.baseline.value_or("");
    }
    return {};
  }
};

TEST_F(Decisions, WithoutTheValueItIsAboutIsRefused) {
  baseline();
  moves_to(9);
  for (const auto verb : {Decision::Verb::approve, Decision::Verb::reject, Decision::Verb::ignore}) {
    const auto refused = says(verb, std::nullopt);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid);
  }
  EXPECT_EQ(drift().status, DriftStatus::pending);
}

TEST_F(Decisions, BaitAndSwitchIsRefusedAndSaysWhatStandsNow) {
  baseline();
  moves_to(222);
  const std::string looked_at = line_->binding(drift());
  moves_to(999'999);
  for (const std::string& digest : {looked_at, looked_at.substr(0, 12)}) {
    for (const auto verb :
         {Decision::Verb::approve, Decision::Verb::reject, Decision::Verb::ignore, Decision::Verb::undo}) {
      const auto refused = says(verb, digest);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, Code::conflict);
      EXPECT_THAT(refused.error().message,
                  AllOf(HasSubstr("moved since you looked"), HasSubstr("partitions 3 → 999999")));
    }
  }
  EXPECT_EQ(drift().status, DriftStatus::pending);
  EXPECT_EQ(baseline_of(thing(1)), R"({"partitions":3})");
  EXPECT_TRUE(says(Decision::Verb::approve, line_->binding(drift()).substr(0, 8)));
}

TEST_F(Decisions, TooShortOrMalformedDigestsAreRefused) {
  baseline();
  moves_to(9);
  const std::string whole = line_->binding(drift());
  std::string upper = whole.substr(0, 8);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  std::vector<std::string> wrong = {
      "", "a", whole.substr(0, 7), whole + "0", whole.substr(0, 7) + "*", whole.substr(0, 7) + "%"};
  if (upper != whole.substr(0, 8)) wrong.push_back(upper);
  for (const auto& digest : wrong) {
    const auto refused = says(Decision::Verb::approve, digest);
    ASSERT_FALSE(refused) << digest;
    EXPECT_EQ(refused.error().code, Code::invalid) << digest;
    EXPECT_THAT(refused.error().message, HasSubstr("at least 8 lower-case hex"));
  }
  EXPECT_EQ(drift().status, DriftStatus::pending);
}

TEST_F(Decisions, TheBindingIsOfThisDriftAndThisInstallation) {
  baseline();
  line_->world->resources[thing(2)] = R"({"partitions":9})";
  moves_to(9);
  const auto both = line_->drifts();
  ASSERT_THAT(both, SizeIs(2));
  EXPECT_EQ(both[0].digest, both[1].digest) << "the same path and value";
  EXPECT_NE(line_->binding(both[0]), line_->binding(both[1]));
  EXPECT_NE(line_->binding(both[0]).substr(0, 8), both[0].digest.substr(0, 8))
      << "it is keyed: nobody computes it in advance";
  EXPECT_EQ(says(Decision::Verb::approve, both[0].digest, both[0].id).error().code, Code::conflict);
}

TEST_F(Decisions, ABeginningOfTheIdIsEnough) {
  baseline();
  moves_to(9);
  const core::Drift before = drift();
  EXPECT_TRUE(says(Decision::Verb::approve, line_->binding(before), before.id.substr(0, 8)));
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(Decisions, LeaveALineWithWhoWhatAndTheValues) {
  baseline();
  moves_to(9);
  const core::Drift before = drift();
  ASSERT_TRUE(says(Decision::Verb::ignore, line_->binding(before)));
  ASSERT_TRUE(says(Decision::Verb::undo, std::nullopt));
  ASSERT_TRUE(says(Decision::Verb::reject, line_->binding(before)));
  ASSERT_TRUE(says(Decision::Verb::undo, std::nullopt));
  ASSERT_TRUE(says(Decision::Verb::approve, line_->binding(before)));
  const auto lines = line_->audit();
  std::vector<std::string> verbs;
  for (const auto& one : lines) verbs.push_back(one.verb);
  EXPECT_THAT(verbs, testing::ElementsAre("ignored", "undid ignore", "rejected", "undid reject", "approved"));
  const core::AuditRow& line = lines.front();
  EXPECT_EQ(line.actor, "uid:0");
  EXPECT_EQ(line.caller.uid, 1000);
  EXPECT_EQ(line.caller.claimed, "SUDO_USER:kim");
  EXPECT_EQ(line.subject, before.id);
  EXPECT_EQ(line.backend, "b");
  EXPECT_EQ(line.resource, "thing/t1");
  EXPECT_EQ(line.digest, line_->binding(before));
  EXPECT_EQ(line.changes, R"([{"new":9,"old":3,"path":"partitions"}])");
  EXPECT_EQ(line.reason, "because");
}

TEST_F(Decisions, OneThatRanOutIsInTheLog) {
  baseline();
  moves_to(9);
  Decision ignore = decision(Decision::Verb::ignore);
  ignore.expires_ns = ignore.at_ns + 300'000'000;
  ASSERT_TRUE(line_->decide(drift().id, ignore));
  ASSERT_TRUE(eventually([&] {
    refresh();
    return drift().status == DriftStatus::pending;
  }));
  const auto lines = line_->audit();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].expires_ns, ignore.expires_ns);
  EXPECT_EQ(lines[1].verb, "expired ignore");
  EXPECT_EQ(lines[1].actor, "driftd");
  EXPECT_THAT(lines[1].reason, HasSubstr("decided by uid:0"));
}

TEST_F(Decisions, OneThatCannotBeAuditedIsNotMade) {
  baseline();
  moves_to(9);
  tamper(dir_.file("data/store.db"),
         "CREATE TRIGGER no BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no more lines'); END");
  const auto refused = says(Decision::Verb::approve, line_->binding(drift()));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no more lines"));
  EXPECT_EQ(drift().status, DriftStatus::pending);
  refresh();
  EXPECT_EQ(drift().status, DriftStatus::pending) << "the baseline did not move either";
}

TEST_F(Decisions, UndoOfAnApprovalIsStoredAuditedAndPublished) {
  baseline();
  moves_to(9);
  const core::Drift before = drift();
  ASSERT_TRUE(says(Decision::Verb::approve, line_->binding(before)));
  ASSERT_EQ(baseline_of(thing(1)), R"({"partitions":9})");
  restart();
  refresh();
  const auto undone = says(Decision::Verb::undo, std::nullopt, before.id);
  ASSERT_TRUE(undone) << undone.error().message;
  EXPECT_EQ(baseline_of(thing(1)), R"({"partitions":3})");
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(drift().id, before.id) << "and the next reading opens no other";
  EXPECT_EQ(drift().status, DriftStatus::pending);
  EXPECT_EQ(line_->audit().back().verb, "undid approve");
  ASSERT_TRUE(says(Decision::Verb::approve, line_->binding(drift())));
  EXPECT_EQ(baseline_of(thing(1)), R"({"partitions":9})");
}

TEST_F(Decisions, UndoOfAnApprovalIsRefusedOnceTheValueMoved) {
  baseline();
  moves_to(9);
  const core::Drift before = drift();
  ASSERT_TRUE(says(Decision::Verb::approve, line_->binding(before)));
  moves_to(10);
  const auto refused = says(Decision::Verb::undo, std::nullopt, before.id);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("moved after its approval"));
  EXPECT_EQ(baseline_of(thing(1)), R"({"partitions":9})");
}

TEST_F(Decisions, SecondApprovalOfAnotherPersonAcceptsAlsoAfterARestart) {
  core::Rules rules;
  core::PolicyRule two;
  two.approvals = 2;
  rules.policy = {two};
  rules.generation = 2;
  baseline();
  restart(rules);
  moves_to(9);
  ASSERT_EQ(drift().approvals_needed, 2);
  ASSERT_TRUE(says(Decision::Verb::approve, line_->binding(drift())));
  EXPECT_EQ(baseline_of(thing(1)), R"({"partitions":3})");
  restart(rules);
  refresh();
  ASSERT_THAT(drift().approvals, SizeIs(1));
  EXPECT_EQ(says(Decision::Verb::approve, line_->binding(drift())).error().code, Code::conflict);
  Decision other = decision(Decision::Verb::approve);
  other.actor = "bob";
  other.digest = line_->binding(drift());
  ASSERT_TRUE(line_->decide_as_is(drift().id, other));
  EXPECT_EQ(baseline_of(thing(1)), R"({"partitions":9})");
  std::vector<std::string> verbs;
  for (const auto& one : line_->audit()) verbs.push_back(one.verb);
  EXPECT_THAT(verbs, testing::ElementsAre("approved 1 of 2", "approved"));
}

}  // namespace
}  // namespace driftd::test
