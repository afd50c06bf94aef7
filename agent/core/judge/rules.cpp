// SPDX-License-Identifier: Apache-2.0
#include "core/judge/rules.hpp"

#include <algorithm>

#include "base/digest.hpp"
#include "core/judge/stages.hpp"

namespace driftd::core {
namespace {

/// The empty path is the resource itself. Only the pattern `**` covers it, not a rule on attributes.
bool covers(const Glob& glob, const Path& path) { return path.empty() ? glob.text() == "**" : glob.matches(path); }

Action default_of(ChangeClass cls) { return cls == ChangeClass::config ? Action::manual : Action::automatic; }

}  // namespace

Path attribute_path(const std::string& text) {
  if (text == kIdentityPath) return {};
  Result<Path> path = Path::parse(text);
  return path ? std::move(*path) : Path{}.child(text);
}

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

Rules rules_at(const Rules& rules, Nanos now_ns) {
  Rules out = rules;
  std::erase_if(out.policy, [now_ns](const PolicyRule& rule) { return !rule.holds(now_ns); });
  if (out.policy.size() == rules.policy.size()) return out;
  std::string held;
  for (const auto& rule : rules.policy) held += rule.holds(now_ns) ? '1' : '0';
  out.generation = digest(rules.generation, {held}).low;
  return out;
}

std::optional<Nanos> next_turn(const Rules& rules, Nanos now_ns) {
  std::optional<Nanos> next;
  for (const auto& rule : rules.policy) {
    for (const auto& edge : {rule.from_ns, rule.until_ns}) {
      if (edge && *edge > now_ns) next = std::min(next.value_or(*edge), *edge);
    }
  }
  return next;
}

const IgnoreRule* find_ignore(const Rules& rules, const ResourceId& id, const Path& path, ChangeClass cls) {
  if (path.empty()) return nullptr;  // the resource itself: a deletion cannot be hidden
  for (const auto& rule : rules.ignore) {
    if (rule.match.path && rule.match.matches(id, path, cls)) return &rule;
  }
  return nullptr;
}

}  // namespace driftd::core
