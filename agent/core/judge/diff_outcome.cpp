// SPDX-License-Identifier: Apache-2.0
// What becomes of an attribute: a change, equal, unknown, filled in, and its line of the trace.
#include <algorithm>

#include "core/judge/hint.hpp"
#include "core/judge/walk.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

const std::string kWithheld = R"("[REDACTED]")";

}  // namespace

void Walk::report_change(const Path& path, const AttributeRule& rule, const Sides& sides, bool beside_masked) {
  const auto* unread = find_unread_below(path, sides.before);
  if (unread == nullptr) unread = find_unread_below(path, sides.after);
  if (unread != nullptr) return unknown(path, sides, rule, "part of it is unreadable: " + unread->reason);
  if (!beside_masked && sides.after != nullptr && forms_.masked_inside(path, *sides.after))
    return unknown(path, sides, rule, "part of it is masked by the system");
  if (const auto reason = beyond_bounds(path, sides))
    return unknown(path, sides, rule, "cannot be compared: " + *reason);
  change(path, rule, sides);
}

std::optional<std::string> Walk::beyond_bounds(const Path& path, const Sides& sides) const {
  if (sides.before == nullptr || sides.after == nullptr) return std::nullopt;
  const auto reason = forms_.beyond_bounds(path, *sides.before);
  return reason ? reason : forms_.beyond_bounds(path, *sides.after);
}

const Walk::UnreadPath* Walk::find_unread(const Path& path) const {
  const auto it =
      std::find_if(unread_.begin(), unread_.end(), [&](const UnreadPath& unread) { return unread.path.matches(path); });
  return it == unread_.end() ? nullptr : &*it;
}

const Walk::UnreadPath* Walk::find_unread_below(const Path& path, const Value* value) const {
  if (value == nullptr || unread_.empty()) return nullptr;
  if (const auto* here = find_unread(path)) return here;
  if (const auto* object = value->object()) {
    for (const auto& [name, member] : *object) {
      if (const auto* found = find_unread_below(path.child(name), &member)) return found;
    }
  }
  if (const auto* array = value->array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (const auto* found = find_unread_below(path.child(i), &(*array)[i])) return found;
    }
  }
  return nullptr;
}

bool Walk::is_masked(const AttributeRule& rule, const Value* value) const {
  return value != nullptr && forms_.masked(rule, *value);
}

void Walk::change(const Path& path, const AttributeRule& rule, const Sides& sides) {
  const bool redacted = (sides.before && as_digest(*sides.before)) || (sides.after && as_digest(*sides.after));
  const auto text = [](const Value* v) { return v ? std::optional(render(*v)) : std::nullopt; };
  auto before = text(sides.before);
  if (redacted && options_.keys && sides.before && !contains_digest(*sides.before)) {
    const auto made = sealed_digest(*sides.before, options_.id, path, schema_, *options_.keys, true);
    if (!made) return unknown(path, sides, rule, "cannot be compared: " + made.error().message);
    before = render(*made);  // the old value was clear text; as a withheld one it must not leave the agent any more
  }
  out_.changes.push_back({path.render(), schema_.cls(path), before, text(sides.after), redacted});
  note(path, sides, rule, "drift",
       sides.before == nullptr  ? "added"
       : sides.after == nullptr ? "removed"
                                : "normal forms differ" + hint_for(rule, sides));
}

std::string Walk::hint_for(const AttributeRule& rule, const Sides& sides) const {
  if (trace_ == nullptr || contains_digest(*sides.before) || contains_digest(*sides.after)) return {};
  const std::string text = hint(rule, *sides.before, *sides.after);
  return text.empty() ? "" : "; " + text;
}

void Walk::equal(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason) {
  if (forms_.raw_differs(sides.before, sides.after)) ++suppressed_;
  note(path, sides, rule, "equal", std::move(reason));
}

void Walk::suppress(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason) {
  ++suppressed_;
  note(path, sides, rule, "equal", std::move(reason));
}

void Walk::unknown(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason) {
  out_.unknown.push_back({path.render(), reason});
  note(path, sides, rule, "unknown", std::move(reason));
}

void Walk::fill(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason, bool same) {
  out_.filled.push_back({path.render(), *sides.after, same});
  note(path, sides, rule, "equal", std::move(reason));
}

void Walk::note(const Path& path, const Sides& sides, const AttributeRule& rule, std::string verdict,
                std::string reason) const {
  if (trace_ == nullptr) return;
  // a secret is a digest, but the default of a sensitive attribute is in the schema in clear
  const auto holds_secret = [&](const AttributeRule& other) { return other.sensitive && other.path.lies_below(path); };
  const auto secret = [&](const Value& v) {
    if (rule.sensitive) return !as_digest(v) && !v.is_null() && !forms_.masked(rule, v) && !(v == Value(""));
    return rule.default_value && v == *rule.default_value && (v.object() != nullptr || v.array() != nullptr) &&
           std::any_of(schema_.rules().begin(), schema_.rules().end(), holds_secret);
  };
  const auto raw = [&](const Value* v) { return v == nullptr ? "" : secret(*v) ? kWithheld : presentable(*v); };
  const auto norm = [&](const Value* v) {
    return v == nullptr ? "" : secret(*v) ? kWithheld : presentable_json(forms_.of(path, *v));
  };
  trace_->push_back({path.render(), raw(sides.before), raw(sides.after), norm(sides.before), norm(sides.after),
                     render(rule), std::move(verdict), std::move(reason)});
}

}  // namespace driftd::core
