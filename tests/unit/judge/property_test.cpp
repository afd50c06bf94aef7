// SPDX-License-Identifier: Apache-2.0
// Random sequences of readings and decisions, checked against a small oracle that knows only values: baseline,
// observed, the policy of each attribute, and the value that a person decided on.
#include <random>
#include <set>
#include <tuple>

#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using Body = std::map<std::string, int>;  ///< attribute → value; absent attributes have no entry

std::string json_of(const Body& body) {
  std::string out = "{";
  for (const auto& [name, value] : body) {
    out += (out.size() > 1 ? ",\"" : "\"") + name + "\":" + std::to_string(value);
  }
  return out + "}";
}

std::optional<int> at(const Body& body, const std::string& name) {
  const auto found = body.find(name);
  return found == body.end() ? std::nullopt : std::optional<int>(found->second);
}

/// Attributes a, b: manual; c: auto; d: ignored by policy; e: under an ignore rule; f: manual with an expectation of 1.
struct Oracle {
  std::optional<Body> baseline, observed;

  std::set<std::string> standing(const std::set<std::string>& names) const {
    std::set<std::string> out;
    for (const auto& name : names) {
      if (at(*baseline, name) != at(*observed, name)) out.insert(name);
    }
    return out;
  }
  bool whole() const { return !baseline || !observed; }  ///< it was created or deleted
  /// Returns which drifts must be open: group → paths. A drift of the whole resource is "whole" without paths.
  std::map<std::string, std::set<std::string>> open() const {
    std::map<std::string, std::set<std::string>> out;
    if (baseline && observed) {
      out["manual"] = standing({"a", "b", "f"});
      out["ignore"] = standing({"d"});
    } else if (baseline || observed) {
      out["whole"] = {};
    }
    if (observed && at(*observed, "f") != 1) out["expect"] = {"f"};
    std::erase_if(out, [](const auto& each) { return each.first != "whole" && each.second.empty(); });
    return out;
  }
};

std::map<std::string, std::set<std::string>> open_of(const StoredResource& row) {
  std::map<std::string, std::set<std::string>> out;
  for (const auto& drift : row.open) {
    const bool whole = drift.operation == Operation::created || drift.operation == Operation::deleted;
    const std::string key = drift.against == Against::expectation ? "expect"
                            : whole                               ? "whole"
                                                                  : std::string(render(drift.action));
    auto& into = out[key];
    if (whole) continue;
    for (const auto& change : drift.changes) into.insert(change.path);
  }
  return out;
}

auto state_of(const Drift& drift) {
  return std::tuple(drift.status, drift.digest, drift.operation, drift.decided_ns.has_value());
}

struct Walk : testing::TestWithParam<unsigned>, ResourceFixture {
  Walk() : random(GetParam()) {
    rules.policy = {policy("c", Action::automatic), policy("d", Action::ignore)};
    rules.ignore = {ignore_rule("e")};
    rules.expect = {expectation("f", "1")};
    context.established = false;
    oracle.baseline = oracle.observed = random_body();
    sees(json_of(*oracle.observed));
    context.established = true;
    look();
  }

  int dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random); }
  Body random_body() {
    Body body;
    for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
      if (const int value = dice(4)) body[name] = value;
    }
    return body;
  }

  Judgement look() { return oracle.observed ? sees(json_of(*oracle.observed)) : is_gone(); }

  /// Changes the world, judges it, and moves the oracle's baseline for `auto`.
  void world() {
    oracle.observed.reset();
    if (dice(8) != 0) oracle.observed = random_body();
    look();
    if (oracle.baseline && oracle.observed) {
      oracle.baseline->erase("c");
      if (const auto c = at(*oracle.observed, "c")) (*oracle.baseline)["c"] = *c;
    }
  }

  void approve(const Drift& drift) {
    if (drift.against == Against::expectation) return;
    if (oracle.whole()) {
      oracle.baseline = oracle.observed;
      return;
    }
    for (const auto& change : drift.changes) {
      oracle.baseline->erase(change.path);
      if (const auto now = at(*oracle.observed, change.path)) (*oracle.baseline)[change.path] = *now;
    }
  }

  void person() {
    if (row.open.empty()) return;
    const std::size_t index = static_cast<std::size_t>(dice(static_cast<int>(row.open.size())));
    const Drift before = drift(index);
    const std::optional<std::string> baseline = row.baseline;
    const auto verb = static_cast<Decision::Verb>(dice(4));
    const auto decided = decides(verb, index, before.digest);
    if (!decided) {
      EXPECT_EQ(decided.error().code, Code::conflict);
    } else if (verb == Decision::Verb::approve) {
      approve(before);
    } else {
      EXPECT_EQ(row.baseline, baseline) << "only an approval moves the baseline";
    }
  }

  void check() {
    EXPECT_EQ(open_of(row), oracle.open());
    ASSERT_EQ(row.baseline.has_value(), oracle.baseline.has_value());
    if (oracle.baseline) {
      EXPECT_EQ(*row.baseline, json_of(*oracle.baseline));
    }
    std::set<std::string> ids;
    for (const auto& drift : row.open) EXPECT_TRUE(ids.insert(drift.id).second);
  }

  std::mt19937 random;
  Oracle oracle;
};

TEST_P(Walk, OpenDriftsAreTheRealDifferencesAndTheBaselineMovesOnlyByAutoAndApprove) {
  for (int step = 0; step < 200 && !HasFailure(); ++step) {
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + " step " + std::to_string(step));
    if (dice(2) == 0) {
      world();
    } else {
      person();
    }
    check();
    EXPECT_THAT(statuses(look()), testing::IsEmpty()) << "the same record a second time says nothing";
    check();
  }
}

TEST_P(Walk, EveryTransitionChangesTheStatusTheDecisionOrTheValuesOfItsDrift) {
  std::map<std::string, Drift> last;
  std::size_t read = 0;
  for (int step = 0; step < 200; ++step) {
    if (dice(2) == 0) {
      world();
    } else {
      person();
    }
    for (; read < log.size(); ++read) {
      const Transition& transition = log[read];
      const auto known = last.find(transition.drift.id);
      ASSERT_EQ(known != last.end(), transition.from.has_value()) << "opened exactly once";
      if (known != last.end()) {
        EXPECT_TRUE(known->second.open()) << "nothing follows an end";
        EXPECT_NE(state_of(known->second), state_of(transition.drift));
      }
      last[transition.drift.id] = transition.drift;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Walk, testing::Range(1u, 51u));

}  // namespace
}  // namespace driftd::core
