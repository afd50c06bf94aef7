// SPDX-License-Identifier: Apache-2.0
// No approval is ever applied to a value that its approver was not shown: random interleavings of moves, looks,
// approvals with whatever was once shown, undo, expiry, claims and restarts, against an oracle that knows values only.
#include <random>
#include <set>

#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using Verb = Decision::Verb;

constexpr const char* kPeople[] = {"ann", "bob", "carl"};

/// What the oracle knows: which values of `a` each person was shown, and the values that were the baseline.
struct ShownWorld : ResourceFixture {
  struct Look {
    std::string id, digest, value;
  };

  explicit ShownWorld(unsigned seed, int approvals) : random(seed), needed(approvals) {
    PolicyRule rule = policy("**", Action::manual);
    rule.approvals = approvals;
    rules.policy = {rule};
    context.established = false;
    observed = baseline = "0";
    accepted.push_back("0");
    read();
    context.established = true;
  }

  int dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random); }
  const char* anyone() { return kPeople[dice(3)]; }
  void read() { sees(R"({"a":)" + observed + R"(,"b":1})"); }
  std::string value_of_baseline() const { return parse(*row.baseline)->find("a")->number()->token; }

  void move() {
    observed = std::to_string(dice(4));
    if (dice(4) != 0) read();  // else the agent has not read it yet
  }
  void look(const std::string& who) {
    if (row.open.empty()) return;
    looks[who].push_back({drift().id, drift().digest, *drift().changes.at(0).new_value});
  }
  void decides_by_memory(const std::string& who, Verb verb) {
    const auto& seen = looks[who];
    if (seen.empty()) return;
    const Look what = seen[static_cast<std::size_t>(dice(static_cast<int>(seen.size())))];
    Decision decision{verb, who, "", what.digest, {}, now()};
    if (dice(3) == 0 && (verb != Verb::approve || needed > 1)) decision.expires_ns = now() + 1 + dice(5) * kSecond;
    decision.take_over = dice(4) == 0;
    const auto out = decide(row, what.id, decision);
    if (!out) return;
    const Drift& after = out->transitions.front().drift;
    row = out->next;
    if (verb != Verb::approve) return;
    shown_to[after.id + after.digest].insert(who);
    if (after.status != DriftStatus::approved) return;
    ++approvals;
    accepted.push_back(what.value);
    check_accepted(after);
    ended.push_back(after);
  }
  /// The value that became the baseline was shown to each who approved it, and to enough of them.
  void check_accepted(const Drift& approved) {
    const std::string now_accepted = value_of_baseline();
    std::set<std::string> knew;
    for (const auto& who : approvers(approved)) {
      for (const auto& one : looks[who]) {
        if (one.value == now_accepted) knew.insert(who);
      }
    }
    if (static_cast<int>(knew.size()) < needed || knew.size() != approvers(approved).size()) ++violations;
  }
  std::set<std::string> approvers(const Drift& approved) const {
    if (needed == 1) return {approved.actor};
    std::set<std::string> out;
    for (const auto& one : approved.approvals) out.insert(one.actor);
    return out;
  }
  void undo(const std::string& who) {
    const bool of_an_approval = dice(2) == 0 && !ended.empty();
    if (of_an_approval) {
      const auto out = undo_approval(row, ended[static_cast<std::size_t>(dice(static_cast<int>(ended.size())))],
                                     {Verb::undo, who, "", {}, {}, now()});
      if (!out) return;
      row = out->next;
      ++undone;
      if (std::find(accepted.begin(), accepted.end(), value_of_baseline()) == accepted.end()) ++violations;
    } else if (!row.open.empty()) {
      const auto out = decide(row, drift().id, {Verb::undo, who, "", {}, {}, now()});
      if (out) row = out->next;
    }
  }
  void claim_or_release(const std::string& who) {
    if (row.open.empty()) return;
    Claim one;
    one.actor = who;
    one.at_ns = now();
    if (dice(3) != 0) one.until_ns = now() + 1 + dice(4) * kSecond;
    one.take_over = dice(5) == 0;
    const auto out = claim(row, drift().id, one);
    if (out) row = *out;
  }
  void step() {
    const std::string who = anyone();
    const std::string before = value_of_baseline();
    const std::size_t done = approvals + undone;
    wait(dice(3) * kSecond);
    switch (dice(9)) {
      case 0:
      case 1:
        move();
        break;
      case 2:
      case 3:
        look(who);
        break;
      case 4:
      case 5:
        decides_by_memory(who, Verb::approve);
        break;
      case 6:
        decides_by_memory(who, dice(2) == 0 ? Verb::reject : Verb::ignore);
        break;
      case 7:
        undo(who);
        break;
      default:
        claim_or_release(who);
        row = expire_decisions(row, now()).next;
    }
    if (done == approvals + undone && value_of_baseline() != before) ++violations;  // nobody approved that
  }

  std::mt19937 random;
  int needed;
  std::string observed, baseline;
  std::map<std::string, std::vector<Look>> looks;
  std::map<std::string, std::set<std::string>> shown_to;
  std::vector<std::string> accepted;
  std::vector<Drift> ended;
  std::size_t approvals = 0, undone = 0, violations = 0;
};

TEST(Shown, NoApprovalMovesTheBaselineToAValueThatItsApproverWasNotShown) {
  std::size_t approvals = 0, undone = 0;
  for (unsigned seed = 0; seed < 12'000; ++seed) {
    ShownWorld world(seed, seed % 3 == 0 ? 2 : 1);
    for (int step = 0; step < 60; ++step) {
      world.step();
      ASSERT_EQ(world.violations, 0u) << "seed " << seed << ", step " << step;
    }
    approvals += world.approvals;
    undone += world.undone;
  }
  EXPECT_GT(approvals, 10'000u) << "else nothing was tried";
  EXPECT_GT(undone, 1'000u);
}

}  // namespace
}  // namespace driftd::core
