// SPDX-License-Identifier: Apache-2.0
// Tries a policy on changes that were judged before, and explains which rule decides about an attribute. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/drift.hpp"
#include "core/judge/rules.hpp"

namespace driftd::core {

/// What a policy does with a change.
struct PolicyVerdict {
  std::optional<Action> action;  ///< absent: an ignore rule covers it, so it is not judged
  std::string where;             ///< the rule, or `default for class config`
};
/// Returns what `rules`, all of which hold, would do with one change of a past drift. Of a resource that came or went
/// only the change at kIdentityPath may be tried: it decides about all others. An ignore rule that covers only a part
/// of the change's value is not tried, because values of the history are not compared again. `of_states`: the backend
/// is a Terraform state, whose history tells only by the action `auto` that a change came with an apply.
PolicyVerdict try_policy(const Rules& rules, const Drift& past, const Change& change, bool of_states);
/// Returns true if no policy chooses the action of this drift: a question about the backend itself, about many
/// deletions, or about who reports the backend.
bool has_fixed_action(const Drift& drift);

/// One rule of a policy beside an attribute, in the order in which rules are tried.
struct RuleTrace {
  std::string where, says;  ///< `driftd.yaml:14:17`, `auto for kind topic, path config.*`
  bool applies = false;
  std::string why_not;  ///< `its kind is another one`, `it begins at …`; empty if it applies, or an earlier one decides
};
/// Returns every ignore and policy rule, and last the default of the class. The first that applies decides.
std::vector<RuleTrace> trace_rules(const Rules& rules, const ResourceId& id, const Change& change, Nanos now_ns);

}  // namespace driftd::core
