// SPDX-License-Identifier: Apache-2.0
#include "core/judge/policy_trial.hpp"

#include "base/clock.hpp"
#include "core/enforce/plan.hpp"
#include "core/judge/stages.hpp"

namespace driftd::core {
namespace {

/// `kind topic, path config.*`; `everything` for a match without members.
std::string render_match(const Match& match) {
  std::string out;
  const auto part = [&out](const char* name, const std::string& text) {
    out += (out.empty() ? "" : ", ") + std::string(name) + " " + text;
  };
  if (match.kind) part("kind", match.kind->text());
  if (match.id) part("id", match.id->text());
  if (match.path) part("path", match.path->text());
  if (match.cls) part("class", std::string(render(*match.cls)));
  return out.empty() ? "everything" : out;
}

std::string why_not(const Match& match, const ResourceId& id, const Path& path, ChangeClass cls) {
  if (match.matches(id, path, cls)) return "";
  if (match.kind && !match.kind->matches(id.kind)) return "the kind is " + id.kind;
  if (match.id && !match.id->matches(id.id)) return "the id is " + id.id;
  if (match.cls && *match.cls != cls) return "the class is " + std::string(render(cls));
  return path.empty() ? "the resource itself came or went: only the path ** covers that" : "the path is another one";
}

std::string why_not_now(const PolicyRule& rule, Nanos now_ns) {
  if (rule.holds(now_ns)) return "";
  const bool over = rule.until_ns && *rule.until_ns <= now_ns;
  return over ? "it ended at " + render_time(*rule.until_ns) : "it begins at " + render_time(*rule.from_ns);
}

/// Returns why enforce asks a person about this change, as far as that can be told without the schema of its kind.
std::string why_never(Action action, const ResourceId& id, const Change& change, Operation operation) {
  return action == Action::enforce ? never_put_back(change, operation, *KindSchema::unknown(id.kind)) : std::string();
}

}  // namespace

PolicyVerdict try_policy(const Rules& rules, const Drift& past, const Change& change, bool of_states) {
  const Path path = attribute_path(change.path);
  if (const auto* ignored = find_ignore(rules, past.resource, path, change.cls)) return {std::nullopt, ignored->where};
  const bool applied = of_states && past.action == Action::automatic;
  const PolicyChoice chosen = choose_policy(rules, past.resource, path, change.cls, applied);
  const std::string never = why_never(chosen.action, past.resource, change, past.operation);
  if (!never.empty()) return {Action::manual, chosen.where + ", but enforce cannot put it back: " + never};
  const bool forbidden = chosen.action == Action::automatic && past.against == Against::expectation;
  return {forbidden ? Action::manual : chosen.action,
          forbidden ? chosen.where + ", but auto cannot accept what an expectation forbids" : chosen.where};
}

bool has_fixed_action(const Drift& drift) {
  const std::string& kind = drift.resource.kind;
  return kind == "backend" || kind == "scope" || kind == "claim";
}

std::vector<RuleTrace> trace_rules(const Rules& rules, const ResourceId& id, const Change& change, Nanos now_ns) {
  const Path path = attribute_path(change.path);
  std::vector<RuleTrace> out;
  bool decided = false;
  const auto add = [&](RuleTrace trace) {
    trace.applies = !decided && trace.why_not.empty();
    decided = decided || trace.applies;
    out.push_back(std::move(trace));
  };
  const auto said = [&](Action action) {
    std::string never = why_never(action, id, change, Operation::changed);
    if (path.empty() && !never.empty()) never = "driftd neither creates nor deletes resources";
    return std::string(render(action)) + (never.empty() ? "" : " (which asks: " + never + ")");
  };
  for (const auto& rule : rules.ignore) {
    std::string reason = path.empty() ? "a rule on attributes hides no resource that came or went"
                                      : why_not(rule.match, id, path, change.cls);
    add({rule.where, "not judged: " + render_match(rule.match), false, std::move(reason)});
  }
  for (const auto& rule : rules.policy) {
    std::string reason = why_not(rule.match, id, path, change.cls);
    if (reason.empty()) reason = why_not_now(rule, now_ns);
    add({rule.where, said(rule.action) + " for " + render_match(rule.match), false, std::move(reason)});
  }
  const Rules defaults{{}, {}, rules.class_policy, rules.config_policy_set, {}, 0};
  const PolicyChoice last = choose_policy(defaults, id, path, change.cls, false);
  add({last.where, said(last.action), false, ""});
  return out;
}

}  // namespace driftd::core
