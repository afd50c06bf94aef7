// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
  int approvals = 1;  ///< how many persons must approve what it matches
  std::string where;  ///< position in the config, `driftd.yaml:14:17`
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
/// Returns how many persons must approve a drift: the most that the rule of one of its changes asks for.
/// [approvals.cpp]
int approvals_needed(const Rules& rules, const Drift& drift);
/// Returns the ignore rule that covers `path`, or nullptr.
const IgnoreRule* find_ignore(const Rules& rules, const ResourceId& id, const Path& path, ChangeClass cls);

}  // namespace driftd::core
