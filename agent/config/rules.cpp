// SPDX-License-Identifier: Apache-2.0
// Reads policy, ignore and expect into core::Rules.
#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/instant.hpp"
#include "config/parts.hpp"
#include "config/secrets.hpp"
#include "core/judge/expected.hpp"

namespace driftd::config {
namespace {

const std::vector<std::string> kClasses = {"config", "credential", "endpoint"};
const std::vector<std::string> kActions = {"auto", "manual", "ignore", "enforce"};

std::optional<core::Action> read_action(Report& report, const Node& node, const std::string& what) {
  if (node.kind == Node::Kind::scalar) {
    if (auto action = core::parse_action(node.text)) return *action;
  }
  report.error(node.at, "unknown policy of " + what, one_of(kActions), describe(node), suggest(node.text, kActions));
  return std::nullopt;
}

std::optional<core::ChangeClass> read_class(Report& report, const std::string& text, Position at) {
  if (text == "health") {
    report.error(at, "class 'health' has no policy: health never opens a drift", one_of(kClasses), "", "remove it");
    return std::nullopt;
  }
  if (auto cls = core::parse_class(text)) return *cls;
  report.error(at, "unknown class '" + text + "'", one_of(kClasses), "", suggest(text, kClasses));
  return std::nullopt;
}

std::optional<core::Glob> read_path(Report& report, const std::string& text, Position at) {
  auto glob = core::Glob::parse_path(text);
  if (glob) return *glob;
  report.error(at, "path '" + text + "' is not valid: " + glob.error().message,
               "a path such as config[\"a.b\"] or **.updated_at");
  return std::nullopt;
}

/// Reads kind and id, and if asked for, path and class.
core::Match read_match(Section match, bool path_and_class) {
  core::Match out;
  if (const auto kind = match.text("kind"); !kind.empty()) out.kind = core::Glob::of_name(kind);
  if (const auto id = match.text("id"); !id.empty()) out.id = core::Glob::of_name(id);
  if (path_and_class) {
    if (const auto path = match.text("path"); !path.empty())
      out.path = read_path(match.report(), path, match.at("path"));
    if (const auto cls = match.text("class"); !cls.empty())
      out.cls = read_class(match.report(), cls, match.at("class"));
  }
  match.close();
  return out;
}

void read_class_policies(Report& report, const Node& map, const std::string& path, core::Rules& rules) {
  for (const auto& name : kClasses) report.known[path + ".policy"].insert(name);
  for (const auto& member : map.members) {
    const auto cls = read_class(report, member.key, member.at);
    if (!cls) continue;
    const auto action = read_action(report, member.value, "class '" + member.key + "'");
    if (!action) continue;
    if (*cls == core::ChangeClass::credential && *action == core::Action::enforce) {
      report.error(member.at, "class 'credential' cannot have the policy 'enforce': credentials are never put back",
                   "auto, manual or ignore");
      continue;
    }
    rules.class_policy[*cls] = *action;
    if (*cls == core::ChangeClass::config) rules.config_policy_set = true;
  }
}

/// Reads `from` or `until` of a policy rule.
std::optional<Nanos> read_moment(Section& rule, const std::string& key) {
  const std::string text = rule.text(key);
  if (text.empty()) return std::nullopt;
  if (const auto moment = parse_nanos(text)) return moment;
  rule.report().error(rule.at(key), "'" + key + "' of a policy rule is no moment",
                      "a time with its zone, such as 2026-12-24T18:00:00+01:00", "'" + text + "'");
  return std::nullopt;
}

void read_times(Section& rule, core::PolicyRule& to) {
  to.from_ns = read_moment(rule, "from");
  to.until_ns = read_moment(rule, "until");
  if (!to.until_ns) return;
  if (to.from_ns && *to.from_ns >= *to.until_ns) {
    rule.report().error(rule.at("until"), "a policy rule ends before it begins", "an 'until' after its 'from'",
                        "from " + render_time(*to.from_ns) + " until " + render_time(*to.until_ns));
  } else if (*to.until_ns <= SystemClock().wall()) {
    rule.report().warn(rule.at("until"), "this policy rule ended at " + render_time(*to.until_ns), "remove the rule");
  }
}

void read_policy_rule(Section rule, std::vector<core::PolicyRule>& to) {
  core::PolicyRule out;
  out.match = read_match(rule.section("match"), true);
  out.where = rule.report().where(rule.at());
  const Node* action = rule.find("action");
  if (action == nullptr && rule.present())
    rule.report().error(rule.at(), "a policy rule has no 'action'", one_of(kActions));
  std::optional<core::Action> read;
  if (action != nullptr) read = read_action(rule.report(), *action, "a rule");
  read_times(rule, out);
  out.approvals = static_cast<int>(rule.integer("approvals", 1, 1, 10));
  if (out.approvals > 1 && read && *read != core::Action::manual) {
    rule.report().error(
        rule.at("approvals"),
        "'approvals' of a rule whose action is '" + std::string(core::render(*read)) + "': nobody is asked there",
        "action: manual", "", "remove 'approvals', or use manual");
  }
  rule.close();
  if (!read) return;
  out.action = *read;
  to.push_back(std::move(out));
}

void read_policies(Section& section, core::Rules& rules) {
  const Node* policy = section.find("policy");
  if (policy == nullptr) return;
  if (policy->kind == Node::Kind::map) return read_class_policies(section.report(), *policy, section.path(), rules);
  if (policy->kind != Node::Kind::list) {
    return section.wrong("policy", *policy, "a map of class to policy, or a list of rules { match: …, action: … }");
  }
  std::vector<core::PolicyRule> own;
  for (const auto& item : policy->items) {
    read_policy_rule(Section(section.report(), &item, section.path() + ".policy[]", "a policy rule"), own);
  }
  rules.policy.insert(rules.policy.begin(), own.begin(), own.end());
}

void read_ignore_rule(Section& section, const Node& item, std::vector<core::IgnoreRule>& to) {
  Report& report = section.report();
  core::IgnoreRule rule;
  rule.where = report.where(item.at);
  if (item.kind == Node::Kind::map) {
    Section entry(report, &item, section.path() + ".ignore[]", "an ignore rule");
    const Position at = entry.at();
    rule.match = read_match(std::move(entry), true);
    if (!rule.match.path && item.find("path") == nullptr) {
      report.error(at, "an ignore rule has no 'path'", "a path: a rule can never hide whole resources", "",
                   "add path: \"**\" to ignore every attribute");
    }
  } else if (const auto text = plain_text(report, item, "an ignore rule", "a path, or { kind, id, path, class }")) {
    rule.match.path = read_path(report, *text, item.at);
  }
  if (rule.match.path) to.push_back(std::move(rule));
}

void read_expectation(Section entry, std::vector<core::Expectation>& to) {
  core::Expectation out;
  Report& report = entry.report();
  out.where = report.where(entry.at());
  out.match = read_match(entry.section("match"), false);
  const Node* where = entry.find("where");
  const bool usable = where != nullptr && where->kind == Node::Kind::map && !where->members.empty();
  if (!usable && entry.present()) {
    report.error(where == nullptr ? entry.at() : where->at, "an expectation has no 'where'", "a map of paths to values",
                 where == nullptr ? "" : describe(*where));
  }
  for (const auto& member : usable ? where->members : std::vector<Node::Member>{}) {
    const Status wanted = core::add_expected(out.attributes, member.key, to_value(member.value));
    if (!wanted)
      report.error(member.at, wanted.error().message, "a path such as config[\"min.insync.replicas\"], once");
  }
  entry.close();
  if (!out.attributes.empty()) to.push_back(std::move(out));
}

void append(std::string& text, const core::Match& match) {
  const auto part = [&](const std::optional<core::Glob>& glob) {
    text += glob ? "=" + glob->text() : "-";
    text += '\0';
  };
  part(match.kind);
  part(match.id);
  part(match.path);
  text += match.cls ? core::render(*match.cls) : "-";
  text += '\0';
}

}  // namespace

void read_rules(Section& section, core::Rules& rules, bool with_expectations) {
  read_policies(section, rules);
  for (const Node* item : section.items("ignore")) read_ignore_rule(section, *item, rules.ignore);
  if (!with_expectations) return;
  for (const Node* item : section.items("expect")) {
    read_expectation(Section(section.report(), item, section.path() + ".expect[]", "an expectation"), rules.expect);
  }
}

std::uint64_t generation_of(const core::Rules& rules) {
  std::string text = rules.config_policy_set ? "set" : "default";
  for (const auto& [cls, action] : rules.class_policy) {
    text += std::string(core::render(cls)) + "=" + std::string(core::render(action)) + ";";
  }
  for (const auto& rule : rules.policy) {
    text += "policy:" + std::string(core::render(rule.action)) + ":";
    if (rule.approvals > 1) text += "approvals=" + std::to_string(rule.approvals) + ":";
    append(text, rule.match);
    if (rule.from_ns) text += "from:" + std::to_string(*rule.from_ns);
    if (rule.until_ns) text += "until:" + std::to_string(*rule.until_ns);
  }
  for (const auto& rule : rules.ignore) {
    text += "ignore:";
    append(text, rule.match);
  }
  for (const auto& expectation : rules.expect) {
    text += "expect members:";  // versions the meaning of an expectation: change this text if the meaning changes
    append(text, expectation.match);
    for (const auto& [path, value] : expectation.attributes) text += path.render() + "=" + core::render(value) + '\0';
  }
  return digest(0, {text}).low;
}

}  // namespace driftd::config
