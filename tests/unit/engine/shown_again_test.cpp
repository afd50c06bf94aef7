// SPDX-License-Identifier: Apache-2.0
// No approval is ever applied to a value that its approver was not shown: the interleavings of tests/unit/judge with
// the real engine and store below them. Among the steps are restarts, kills before and after each commit, commits that
// the store refuses, and processes that start from a copy of the store's files as they were at a commit. The oracle
// knows values only.
#include <filesystem>
#include <random>

#include "unit/engine/on_the_store.hpp"

namespace driftd::test {
namespace {

using Verb = core::Decision::Verb;
using std::chrono::seconds;

constexpr const char* kPeople[] = {"ann", "bob", "carl"};
constexpr int kResources = 2;

class ShownAgain : public EngineOnTheStore {
 protected:
  /// What a person saw of a drift.
  struct Look {
    int number = 0;
    std::string id, digest, value;
  };
  /// What the oracle knows of a resource: the accepted value, and which person approved which value that they saw.
  struct Known {
    std::string accepted = "0";
    std::map<std::string, std::set<std::string>> approved_by;  ///< value → persons who asked for it, having seen it
  };

  int dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random_); }
  core::Rules rules() const {
    core::Rules out;
    core::PolicyRule rule;
    rule.match.path = core::Glob::parse_path("**").value();
    rule.action = core::Action::manual;
    rule.approvals = needed_;
    out.policy = {rule};
    out.generation = 7;
    return out;
  }
  void begin(unsigned seed) {
    random_.seed(seed);
    needed_ = seed % 2 == 0 ? 1 : 2;
    for (int i = 0; i < kResources; ++i) move(i, "0");
    line_->start(false, rules());
    ASSERT_TRUE(line_->refresh().complete());
    known_.assign(kResources, Known{});
  }
  void again() {
    const Nanos ahead = line_->clock->wall() - SystemClock().wall();
    another_process();
    line_->clock->pass(std::chrono::nanoseconds(ahead));
    line_->start(false, rules());
    ++restarts_;
  }
  void move(int number, const std::string& value) { line_->world->resources[thing(number)] = R"({"a":)" + value + "}"; }
  std::vector<core::ResourceRow> rows(EngineLine& line) const {
    auto out = line.wait(line.store().resources("", "thing", 100));
    EXPECT_TRUE(out);
    return out.value_or(std::vector<core::ResourceRow>{});
  }
  void look(const std::string& who) {
    for (const auto& drift : line_->drifts()) {
      if (drift.changes.size() != 1 || dice(2) == 0) continue;
      const int number = std::stoi(drift.resource.id.substr(1));
      looks_[who].push_back({number, drift.id, line_->binding(drift), *drift.changes[0].new_value});
    }
  }
  void decide_by_memory(const std::string& who, Verb verb) {
    const auto& seen = looks_[who];
    if (seen.empty()) return;
    const std::size_t back = std::min<std::size_t>(seen.size(), 6);
    const Look what = seen[seen.size() - 1 - static_cast<std::size_t>(dice(static_cast<int>(back)))];
    core::Decision decision;
    decision.verb = verb;
    decision.actor = who;
    decision.digest = what.digest;
    decision.at_ns = line_->clock->wall();
    decision.take_over = dice(3) == 0;
    if (dice(3) == 0 && (verb != Verb::approve || needed_ > 1))
      decision.expires_ns = decision.at_ns + std::chrono::nanoseconds(seconds(1 + dice(20))).count();
    const bool done = line_->decide_as_is(what.id, std::move(decision)).has_value();
    if (verb != Verb::approve || (!done && !uncertain_)) return;
    known_[static_cast<std::size_t>(what.number)].approved_by[what.value].insert(who);
    if (done) ++approvals_;
  }
  void undo(const std::string& who) {
    auto drifts = line_->drifts(true);
    const bool of_an_approval = dice(2) == 0;
    std::erase_if(drifts, [&](const core::Drift& drift) {
      return of_an_approval ? drift.status != core::DriftStatus::approved : !drift.open();
    });
    if (drifts.empty()) return;
    core::Decision decision;
    decision.verb = Verb::undo;
    decision.actor = who;
    decision.at_ns = line_->clock->wall();
    const auto newer = [](const core::Drift& a, const core::Drift& b) { return a.updated_ns < b.updated_ns; };
    const core::Drift drift = *std::max_element(drifts.begin(), drifts.end(), newer);
    if (of_an_approval) undone_to_[drift.resource.id].insert(*drift.changes.at(0).old_value);
    if (!line_->decide_as_is(drift.id, std::move(decision))) return;
    ++undone_;
    if (of_an_approval && !uncertain_) must_be_[drift.resource.id] = *drift.changes.at(0).old_value;
  }
  void claim(const std::string& who) {
    const auto drifts = line_->drifts();
    if (drifts.empty()) return;
    core::Claim claim;
    claim.actor = who;
    claim.at_ns = line_->clock->wall();
    if (dice(3) != 0) claim.until_ns = claim.at_ns + std::chrono::nanoseconds(seconds(1 + dice(20))).count();
    claim.take_over = dice(4) == 0;
    (void)line_->wait(line_->engine().claim(drifts.front().id, std::move(claim)));
  }
  /// A step of a person or of the system.
  void act() {
    const std::string who = kPeople[dice(3)];
    switch (dice(8)) {
      case 0:
        move(dice(kResources), std::to_string(dice(4)));
        break;
      case 1:
        move(dice(kResources), std::to_string(dice(4)));
        refresh();
        break;
      case 2:
      case 3:
        look(who);
        break;
      case 4:
        decide_by_memory(who, Verb::approve);
        break;
      case 5:
        decide_by_memory(who, dice(3) != 0 ? Verb::approve : dice(2) == 0 ? Verb::reject : Verb::ignore);
        break;
      case 6:
        undo(who);
        break;
      default:
        claim(who);
        line_->clock->pass(seconds(dice(30)));
        refresh();
    }
  }
  /// The same under a process that is killed after some of its commits, and started again.
  void act_and_be_killed() {
    line_->on_core([&] { return line_->cut().commits_left = dice(3); });
    uncertain_ = true;
    act();
    act();
    uncertain_ = false;
    again();
  }
  /// The same while the store refuses one commit and goes on.
  void act_and_be_refused() {
    line_->on_core([&] { return line_->cut().commits_left = dice(2); });
    uncertain_ = true;
    act();
    uncertain_ = false;
    line_->on_core([&] { return line_->cut().commits_left = -1; });
  }
  /// A process that starts from a copy of the files, made between two commits: what it holds was accepted, too.
  void check_copy() {
    TempDir copied;
    std::filesystem::copy(dir_.path(), copied.path(), std::filesystem::copy_options::recursive);
    EngineLine line(copied);
    *line.world = *line_->world;
    line.start(false, rules());
    for (const auto& row : rows(line)) check_row(row, false);
    EXPECT_TRUE(line.wait(line.store().verify_audit({})).value().whole);
    ++copies_;
  }
  /// A baseline may change only to a value that enough persons approved who were shown it, or back by an undo.
  void check_row(const core::ResourceRow& row, bool adopt) {
    const auto number = static_cast<std::size_t>(std::stoi(row.resource.id.id.substr(1)));
    if (number >= known_.size()) return;
    Known& known = known_[number];
    const std::string now = core::parse(*row.resource.baseline)->find("a")->number()->token;
    if (const auto must = must_be_.find(row.resource.id.id); must != must_be_.end()) {
      EXPECT_EQ(now, must->second) << "an undo brings back what was accepted before";
    }
    if (now == known.accepted) return;
    const bool approved = static_cast<int>(known.approved_by[now].size()) >= needed_;
    const bool back = undone_to_[row.resource.id.id].contains(now);
    EXPECT_TRUE(approved || back) << core::render(row.resource.id) << " became " << now << ", before "
                                  << known.accepted;
    if (!adopt) return;
    known.accepted = now;
    known.approved_by.clear();  // whoever wants it again must ask again
  }
  void check() {
    for (const auto& row : rows(*line_)) check_row(row, true);
    undone_to_.clear();
    must_be_.clear();
  }

  std::mt19937 random_;
  int needed_ = 1;
  bool uncertain_ = false;                                  ///< the process may be killed before it answers
  std::map<std::string, std::string> must_be_;              ///< by resource: after an undo that was answered
  std::map<std::string, std::set<std::string>> undone_to_;  ///< by resource: what an undo of this step would bring back
  std::map<std::string, std::vector<Look>> looks_;
  std::vector<Known> known_;
  int approvals_ = 0, undone_ = 0, restarts_ = 0, copies_ = 0;
};

TEST_F(ShownAgain, NoApprovalMovesTheBaselineToAnUnseenValueAcrossRestartsAndKills) {
  const char* long_run = std::getenv("DRIFTD_SHOWN_SEEDS");
  const unsigned seeds = long_run != nullptr ? static_cast<unsigned>(std::atoi(long_run)) : 10;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    begin(seed);
    for (int step = 0; step < 150; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const int what = dice(50);
      if (what == 0) again();
      if (what == 1 || what == 2) act_and_be_killed();
      if (what == 3) act_and_be_refused();
      if (what == 4) check_copy();
      if (what > 4) act();
      check();
      if (HasFailure()) return;
    }
    looks_.clear();
    line_.reset();
    std::filesystem::remove_all(dir_.path());
    std::filesystem::create_directory(dir_.path());
    open();
  }
  EXPECT_GT(approvals_, static_cast<int>(seeds)) << "else nothing was tried";
  EXPECT_GT(undone_, static_cast<int>(seeds) / 2);
  EXPECT_GT(restarts_, static_cast<int>(seeds));
  EXPECT_GT(copies_, static_cast<int>(seeds) / 2);
}

}  // namespace
}  // namespace driftd::test
