// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/drift.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace driftd::core {

/// `match:` of a policy, ignore rule or expectation. An absent member matches everything.
struct Match {
  std::optional<Glob> kind, id, path;
  std::optional<ChangeClass> cls;
  bool resource(const ResourceId& resource) const;  ///< kind and id only
  bool matches(const ResourceId& resource, const Path& path, ChangeClass cls) const;
};

struct PolicyRule {
  Match match;
  Action action = Action::manual;
  int approvals = 1;                       ///< how many persons must approve what it matches
  std::string where;                       ///< position in the config, `driftd.yaml:14:17`
  std::optional<Nanos> from_ns, until_ns;  ///< when it holds: from the first on, and before the second; absent: always
  bool holds(Nanos now_ns) const { return (!from_ns || *from_ns <= now_ns) && (!until_ns || now_ns < *until_ns); }
};

struct IgnoreRule {
  Match match;  ///< has a path; never hides a deletion
  std::string where;
};

/// Attributes that must hold whatever the baseline says.
struct Expectation {
  Match match;                                     ///< kind and id only
  std::vector<std::pair<Path, Value>> attributes;  ///< path → expected value (`where:` of the config)
  std::string where;
};

/// All rules of one backend, compiled. Immutable, shared by threads, replaced as a whole on reload.
struct Rules {
  std::vector<IgnoreRule> ignore;
  std::vector<PolicyRule> policy;              ///< first match wins
  std::map<ChangeClass, Action> class_policy;  ///< defaults per class (semantics 11)
  bool config_policy_set = false;              ///< the user wrote `policy.config`: no default for Terraform states
  std::vector<Expectation> expect;
  std::uint64_t generation = 0;  ///< hash of all rules; resources that were judged under another one are judged again
};

struct PolicyChoice {
  Action action;
  std::string where;  ///< the rule, or `default for class config`
  int approvals = 1;
};
PolicyChoice choose_policy(const Rules& rules, const ResourceId& id, const Path& path, ChangeClass cls,
                           bool applied_state);
/// Returns the rules that hold at a moment: those without the policy rules that have not begun or have ended. Their
/// generation differs from that of the rules that hold at a moment with other ones.
Rules rules_at(const Rules& rules, Nanos now_ns);
/// Returns when the next policy rule begins or ends after `now_ns`; absent if none does.
std::optional<Nanos> next_turn(const Rules& rules, Nanos now_ns);
/// Returns how many persons must approve a drift: the most that the rule of one of its changes asks for.
/// [approvals.cpp]
int approvals_needed(const Rules& rules, const Drift& drift);
/// Returns the ignore rule that covers `path`, or nullptr.
const IgnoreRule* find_ignore(const Rules& rules, const ResourceId& id, const Path& path, ChangeClass cls);

}  // namespace driftd::core
