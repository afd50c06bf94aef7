// SPDX-License-Identifier: Apache-2.0
#include "core/judge/rules.hpp"

namespace driftd::core {
namespace {

/// The empty path is the resource itself. Only the pattern `**` covers it, not a rule on attributes.
bool covers(const Glob& glob, const Path& path) { return path.empty() ? glob.text() == "**" : glob.matches(path); }

Action default_of(ChangeClass cls) { return cls == ChangeClass::config ? Action::manual : Action::automatic; }

}  // namespace

bool Match::resource(const ResourceId& resource) const {
  return (!kind || kind->matches(resource.kind)) && (!id || id->matches(resource.id));
}

bool Match::matches(const ResourceId& resource_id, const Path& attribute, ChangeClass change_class) const {
  return resource(resource_id) && (!cls || *cls == change_class) && (!path || covers(*path, attribute));
}

PolicyChoice choose_policy(const Rules& rules, const ResourceId& id, const Path& path, ChangeClass cls,
                           bool applied_state) {
  for (const auto& rule : rules.policy) {
    if (rule.match.matches(id, path, cls)) return {rule.action, rule.where, rule.approvals};
  }
  const std::string where = "default for class " + std::string(render(cls));
  if (cls == ChangeClass::config && applied_state && !rules.config_policy_set) {
    return {Action::automatic, where + " after an apply"};
  }
  const auto found = rules.class_policy.find(cls);
  return {found == rules.class_policy.end() ? default_of(cls) : found->second, where};
}

const IgnoreRule* find_ignore(const Rules& rules, const ResourceId& id, const Path& path, ChangeClass cls) {
  if (path.empty()) return nullptr;  // the resource itself: a deletion cannot be hidden
  for (const auto& rule : rules.ignore) {
    if (rule.match.path && rule.match.matches(id, path, cls)) return &rule;
  }
  return nullptr;
}

}  // namespace driftd::core
