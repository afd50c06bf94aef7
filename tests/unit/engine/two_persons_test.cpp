// SPDX-License-Identifier: Apache-2.0
// Questions about a whole backend under a policy that asks for two persons: one person alone settles none of them.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using core::DriftStatus;
using core::Operation;
using testing::IsEmpty;
using testing::SizeIs;

class TwoPersons : public EngineOnTheStore {
 protected:
  /// Starts with a rule for resources of this kind; for all if it is empty.
  void start(const std::string& kind) {
    core::Rules rules;
    core::PolicyRule two;
    two.approvals = 2;
    if (!kind.empty()) two.match.kind = core::Glob::of_name(kind);
    rules.policy = {two};
    rules.generation = 77;
    line_->start(false, rules);
    ASSERT_TRUE(line_->refresh().complete());
  }
  core::Drift asked() {
    const auto open = line_->drifts();
    EXPECT_THAT(open, SizeIs(1));
    return open.empty() ? core::Drift{} : open.front();
  }
  Result<core::Drift> approves(const std::string& who) {
    Decision one = decision(Decision::Verb::approve);
    one.actor = who;
    return line_->decide(asked().id, one);
  }
};

TEST_F(TwoPersons, OneAloneAcceptsNoOtherSystem) {
  line_->world->identity = "system-1";
  start("");
  line_->world->identity = "system-2";
  refresh();
  ASSERT_EQ(asked().resource.kind, "backend");
  const auto first = approves("ann");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, DriftStatus::pending);
  refresh();
  EXPECT_FALSE(report_.status) << "nothing is judged until it is decided";
  EXPECT_EQ(asked().approvals.size(), 1u);
  ASSERT_TRUE(approves("bob"));
  refresh();
  EXPECT_TRUE(report_.status);
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(TwoPersons, OneAloneAcceptsNoMassDeletion) {
  start("");
  remove(0, 12);
  refresh();
  ASSERT_EQ(asked().resource.kind, "scope");
  const auto first = approves("ann");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, DriftStatus::pending);
  refresh();
  EXPECT_THAT(all(Operation::deleted), IsEmpty());
  ASSERT_TRUE(approves("bob"));
  refresh();
  EXPECT_THAT(all(Operation::deleted), SizeIs(12));
}

TEST_F(TwoPersons, WhatNeedsTwoOneByOneNeedsTwoAltogether) {
  start("thing");
  remove(0, 12);
  refresh();
  const auto first = approves("ann");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, DriftStatus::pending) << "each of the twelve asks for two persons";
  refresh();
  EXPECT_THAT(all(Operation::deleted), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
