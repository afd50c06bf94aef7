// SPDX-License-Identifier: Apache-2.0
#include "config/rules_text.hpp"

#include "base/clock.hpp"

namespace driftd::config {
namespace {

using core::Value;

Value match_json(const core::Match& match) {
  Value::Object out;
  if (match.kind) out.emplace("kind", match.kind->text());
  if (match.id) out.emplace("id", match.id->text());
  if (match.path) out.emplace("path", match.path->text());
  if (match.cls) out.emplace("class", std::string(core::render(*match.cls)));
  return Value(std::move(out));
}

Value number(std::int64_t value) { return Value(Value::Number{std::to_string(value)}); }

/// As a backend could write it.
Value enforce_json(const core::EnforceSettings& settings) {
  Value::Array windows;
  for (const auto& window : settings.windows) windows.emplace_back(window.text);
  return Value(Value::Object{{"minimum_age", std::to_string(settings.minimum_age.count()) + "s"},
                             {"windows", Value(std::move(windows))},
                             {"per_cycle", number(settings.per_cycle)},
                             {"per_hour", number(settings.per_hour)},
                             {"owner", settings.owner}});
}

}  // namespace

Value rules_json(const core::Rules& rules, const core::EnforceSettings& enforce, const ValueMark& mark) {
  Value::Object classes;
  for (const auto& [cls, action] : rules.class_policy) {
    classes.emplace(std::string(core::render(cls)), std::string(core::render(action)));
  }
  Value::Array policy, ignore, expect;
  for (const auto& rule : rules.policy) {
    Value::Object one{{"match", match_json(rule.match)}, {"action", std::string(core::render(rule.action))}};
    if (rule.approvals > 1) one.emplace("approvals", number(rule.approvals));
    if (rule.from_ns) one.emplace("from", render_time(*rule.from_ns));
    if (rule.until_ns) one.emplace("until", render_time(*rule.until_ns));
    policy.emplace_back(std::move(one));
  }
  for (const auto& rule : rules.ignore) ignore.push_back(match_json(rule.match));
  for (const auto& expectation : rules.expect) {
    Value::Array paths, values;
    for (const auto& [path, value] : expectation.attributes) {
      paths.emplace_back(path.render());
      values.emplace_back(mark(core::render(value)));
    }
    expect.emplace_back(Value::Object{{"match", match_json(expectation.match)},
                                      {"paths", Value(std::move(paths))},
                                      {"values", Value(std::move(values))}});
  }
  Value::Object out{{"defaults", Value(std::move(classes))},
                    {"policy", Value(std::move(policy))},
                    {"ignore", Value(std::move(ignore))},
                    {"expect", Value(std::move(expect))}};
  if (enforce.allowed()) out.emplace("enforce", enforce_json(enforce));
  return Value(std::move(out));
}

}  // namespace driftd::config
