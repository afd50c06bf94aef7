// SPDX-License-Identifier: Apache-2.0
#include "core/judge/diff.hpp"

#include <algorithm>
#include <map>

#include "core/judge/diff_bounds.hpp"
#include "core/judge/walk.hpp"
#include "core/redact.hpp"
#include "core/value/types.hpp"

namespace driftd::core {
namespace {

bool has_secret(const Change& change) { return is_of_secret(change.old_value) || is_of_secret(change.new_value); }

bool same_text(const Value& a, const Value& b) {
  const auto text = [](const Value& v) {
    return v.string() ? *v.string() : v.array() || v.object() || v.is_null() ? std::string() : render(v);
  };
  return !text(a).empty() && text(a) == text(b);
}

/// An object without members is a value of its own. In dialect 2, members that are null do not count.
bool has_members(const Value& object, int dialect) {
  return std::any_of(object.object()->begin(), object.object()->end(),
                     [&](const auto& member) { return dialect == 1 || !member.second.is_null(); });
}

/// Returns true if the later side does not show a `write_only` value. It may show it as null or as empty.
bool is_hidden(const Forms& forms, const AttributeRule& rule, const Sides& sides) {
  const auto says_something = [&](const Value* value) {
    if (value == nullptr || value->is_null()) return false;
    return rule.dialect == 1 || as_digest(*value) || forms.effective(rule, value, nullptr) != nullptr;
  };
  if (rule.dialect == 1 && sides.after == nullptr) return true;
  return !says_something(sides.after) && says_something(sides.before);
}

/// A path that cannot be parsed covers everything, because unknown must never become a drift.
Glob glob_of(const std::string& text) {
  auto glob = Glob::parse_path(text);
  return glob ? std::move(*glob) : Glob::parse_path("**").value();
}

bool is_generated(const AttributeRule& rule, const Value& value, const Value* owner) {
  if (rule.generated_from.empty()) return false;
  const Value* prefix = owner == nullptr ? nullptr : owner->find(rule.generated_from);
  if (prefix == nullptr || prefix->is_null() || *prefix == Value("")) return true;  // all of it is generated
  return prefix != nullptr && prefix->string() != nullptr && value.string() != nullptr &&
         value.string()->starts_with(*prefix->string());
}

/// Returns true if the elements that both lists have are in the same order.
bool same_order(const Forms::Keyed& left, const Forms::Keyed& right) {
  std::map<std::size_t, std::size_t> order;  // index in the earlier list -> index in the later one
  for (const auto& [key, element] : left) {
    if (const auto other = right.find(key); other != right.end()) order.emplace(element.at, other->second.at);
  }
  return std::is_sorted(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
}

/// Returns true if the later value is one that the absent earlier one has in another version (`other_defaults`).
bool is_other_default(const Forms& forms, const Path& path, const AttributeRule& rule, const Sides& sides) {
  const bool absent = sides.before == nullptr || sides.before->is_null();
  if (!absent || sides.after == nullptr || as_digest(*sides.after)) return false;
  return std::any_of(rule.other_defaults.begin(), rule.other_defaults.end(),
                     [&](const Value& one) { return forms.same(path, one, *sides.after); });
}

}  // namespace

Walk::Walk(const KindSchema& schema, const DiffOptions& options)
    : schema_(schema),
      options_(options),
      forms_(schema, options.known != nullptr) {
  for (const auto& unread : options.unread) unread_.push_back({glob_of(unread.path), unread.reason});
  for (const auto& path : options.was_unread) was_unread_.push_back(glob_of(path));
  const bool all_is_compared = unread_.empty() && !options.declared_only && options.trace == nullptr;
  sight_counts_ = all_is_compared && schema.same_values_are_equal();
}

Difference Walk::run(const Value& before, const Value& after) {
  static const Value kNothing{Value::Object{}};
  bodies_ = {&before, &after};
  compare_members(Path(), before.object() ? before : kNothing, after.object() ? after : kNothing);
  const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  std::stable_sort(out_.changes.begin(), out_.changes.end(), by_path);
  std::stable_sort(out_.unknown.begin(), out_.unknown.end(), by_path);
  return std::move(out_);
}

void Walk::compare_members(const Path& path, const Value& old_members, const Value& new_members) {
  const auto old_gathered = forms_.gathered(path, old_members), new_gathered = forms_.gathered(path, new_members);
  const Value& before = old_gathered ? *old_gathered : old_members;
  const Value& after = new_gathered ? *new_gathered : new_members;
  const bool second = schema_.dialect() > 1;
  const bool fold_names = second && schema_.rule(path).fold_names;
  if (fold_names && !Forms::has_twin_names(before) && !Forms::has_twin_names(after))
    return compare_folded_members(path, before, after);
  const AttributeRule* open = second && schema_.rule(path).may_open() ? &schema_.rule(path) : nullptr;
  const Value::Object &olds = *before.object(), &news = *after.object();
  auto left = olds.begin();
  auto right = news.begin();
  while (left != olds.end() || right != news.end()) {  // both are sorted by name
    const int order = left == olds.end() ? 1 : right == news.end() ? -1 : left->first.compare(right->first);
    const Sides sides{order <= 0 ? &left->second : nullptr, order >= 0 ? &right->second : nullptr};
    const std::string& name = order <= 0 ? left->first : right->first;
    const bool compared = order <= 0 || open == nullptr || !open->allows(name);
    if (compared && !same_at_sight(sides)) compare_attribute(path.child(name), sides, {&before, &after});
    if (order <= 0) ++left;
    if (order >= 0) ++right;
  }
}

bool Walk::same_at_sight(const Sides& sides) const {
  return sight_counts_ && sides.before != nullptr && sides.after != nullptr && *sides.before == *sides.after;
}

void Walk::compare_folded_members(const Path& path, const Value& before, const Value& after) {
  std::map<std::string, std::pair<std::string_view, Sides>> members;
  for (const auto& [name, member] : *before.object()) members[types::lower(name)] = {name, {&member, nullptr}};
  const AttributeRule& rule = schema_.rule(path);
  for (const auto& [name, member] : *after.object()) {
    // what is expected of an element or a text is all of it
    const bool open = (options_.declared_only && !rule.closed && !in_element_) || rule.allows(name);
    if (open && !members.contains(types::lower(name))) continue;
    auto& [shown, sides] = members[types::lower(name)];
    if (sides.before == nullptr) shown = name;
    sides.after = &member;
  }
  for (const auto& [folded, member] : members)
    compare_attribute(forms_.folded_child(path, member.first), member.second, {&before, &after});
}

void Walk::compare_attribute(const Path& path, Sides sides, const Sides& owners) {
  const AttributeRule& rule = schema_.rule(path);
  if (rule.is_volatile) return suppress(path, sides, rule, "volatile");
  if (const auto* unread = find_unread(path))
    return unknown(path, sides, rule, unread->reason.empty() ? "unreadable" : unread->reason);
  if (rule.write_only && is_hidden(forms_, rule, sides))
    return unknown(path, sides, rule, "write-only: the system never shows it");
  if (is_masked(rule, sides.after)) return unknown(path, sides, rule, "masked by the system");
  if (!rule.hidden.empty() && options_.declared_only && is_masked(rule, sides.before))
    return unknown(path, sides, rule, "what is declared is hidden");
  if (const auto reason = newly_known(path, rule, sides, owners); !reason.empty())
    return fill(path, sides, rule, reason);
  const bool was_null = rule.dialect > 1 && sides.before != nullptr && sides.before->is_null();
  if (rule.computed && was_null && !options_.declared_only &&
      forms_.effective(rule, sides.after, owners.after) != nullptr)
    return unknown(path, sides, rule, "null before: nobody declared it, or the system did not have it");
  if (is_other_default(forms_, path, rule, sides)) return unknown(path, sides, rule, "a default of another version");
  const bool only_later = sides.before == nullptr || was_null;
  sides = {forms_.effective(rule, sides.before, owners.before), forms_.effective(rule, sides.after, owners.after)};
  if (only_later && sides.before == nullptr && sides.after != nullptr && !schema_.names(path))
    return unknown(path, sides, rule, "neither declared nor known to the schema");
  if (const auto reason =
          within_bounds(forms_, schema_, path, rule, sides.before, sides.after, owners.before, owners.after);
      !reason.empty())
    return rule.between.empty() ? fill(path, sides, rule, reason) : equal(path, sides, rule, reason);
  if (!same_in_other_version(path, rule, sides, owners)) compare_beside(path, rule, sides, owners);
}

bool Walk::same_in_other_version(const Path& path, const AttributeRule& rule, const Sides& sides, const Sides& owners) {
  const auto* variant = forms_.variant(path, rule, owners.before, bodies_.before);
  const std::size_t others = (variant != nullptr ? variant : &rule)->other_expands.size();
  if (others == 0 || apart([&] { compare_beside(path, rule, sides, owners); })) return false;
  for (std::size_t version = 1; version <= others; ++version) {
    forms_.read_as_version(version);
    const auto inner = apart([&] { compare_beside(path, rule, sides, owners); });
    forms_.read_as_version(0);
    if (!inner) continue;
    append(out_, *inner);
    equal(path, sides, rule, "the same as another version expands it");
    return true;
  }
  return false;
}

void Walk::compare_beside(const Path& path, const AttributeRule& rule, const Sides& sides, const Sides& owners) {
  const auto* variant = forms_.variant(path, rule, owners.before, bodies_.before);
  const auto* other = forms_.variant(path, rule, owners.after, bodies_.after);
  const bool same =
      variant == other || (variant != nullptr && other != nullptr && same_interpretation(*variant, *other));
  if (!same) return compare(path, rule, sides);  // what decides differs, and is a change of its own
  if (variant != nullptr && variant->is_volatile)
    return suppress(path, sides, rule, "volatile, as " + rule.rule_by->of + " says");
  const auto meant = [&](const Value* value, const Value* owner, const Value* body) {
    return value == nullptr ? std::nullopt : forms_.beside(path, rule, *value, owner, body);
  };
  const auto before = meant(sides.before, owners.before, bodies_.before);
  const auto after = meant(sides.after, owners.after, bodies_.after);
  if (!before && !after) return compare(path, rule, sides);
  const auto effective = [&](const std::optional<Value>& value, const Value* given) {
    return value ? forms_.effective(rule, &*value, nullptr) : given;
  };
  const Sides read{effective(before, sides.before), effective(after, sides.after)};
  const auto inner = apart([&] { compare(path, rule, read); });
  if (!inner) return report_change(path, rule, sides);  // with the values as they are, not as they are read
  append(out_, *inner);
  equal(path, sides, rule, "the same beside the other members");
}

std::string Walk::newly_known(const Path& path, const AttributeRule& rule, const Sides& sides,
                              const Sides& owners) const {
  if (sides.after == nullptr) return {};
  if (sides.before == nullptr && is_generated(rule, *sides.after, owners.before))
    return "generated from " + rule.generated_from;
  // what an expected element does not have is not expected; elsewhere nothing is absent that is not expected to be
  if (options_.declared_only) {
    const bool whole = in_element_ || (!path.empty() && schema_.rule(path.parent()).closed);
    return whole && rule.computed && sides.before == nullptr ? "computed" : "";
  }
  if (is_masked(rule, sides.before)) return "masked before";
  if (sides.before != nullptr) return {};
  if (rule.since > options_.old_revision) return "brought by schema revision " + std::to_string(rule.since);
  if (rule.computed) return "computed by the system";
  const bool unread =
      std::any_of(was_unread_.begin(), was_unread_.end(), [&](const Glob& glob) { return glob.matches(path); });
  return unread ? "readable for the first time" : "";
}

void Walk::compare(const Path& path, const AttributeRule& rule, const Sides& sides) {
  const auto& [before, after] = sides;
  if (before == nullptr && after == nullptr) return equal(path, sides, rule, "default or empty");
  if ((before && as_digest(*before)) || (after && as_digest(*after))) return compare_digests(path, rule, sides);
  if (before != nullptr && after != nullptr) return compare_present(path, rule, sides);
  const Value& one = before != nullptr ? *before : *after;
  const bool object = one.object() != nullptr && has_members(one, rule.dialect) && forms_.is_structure(rule);
  return object ? compare_subtree(path, rule, sides) : report_change(path, rule, sides);
}

void Walk::compare_present(const Path& path, const AttributeRule& rule, const Sides& sides) {
  const auto& [before, after] = sides;
  if (!rule.same.empty() && forms_.same(path, *before, *after))
    return equal(path, sides, rule, "the same by the schema");
  if (before->object() && after->object() && forms_.is_structure(rule) && !rule.single)
    return compare_members(path, *before, *after);
  if (rule.collection == Collection::map_by_keys && compare_by_key(path, rule, sides)) return;
  if (options_.declared_only && rule.type == ValueType::any && same_text(*before, *after))
    return equal(path, sides, rule, "same text");
  if (forms_.same(path, *before, *after)) return equal(path, sides, rule, "same normal form");
  if (forms_.same_but_keys(path, *before, *after)) {
    if (options_.declared_only)
      return unknown(path, sides, rule, "secret: only its digest is known, which no declared value can equal");
    return fill(path, sides, rule, "digests under another key");
  }
  if (other_basis(rule)) return fill(path, sides, rule, "cannot be compared: another " + rule.basis);
  if (rule.dialect > 1) return compare_closely(path, rule, sides);
  report_change(path, rule, sides);
}

bool Walk::compare_by_key(const Path& path, const AttributeRule& rule, const Sides& sides) {
  if (rule.inside && (sides.before->string() || sides.after->string())) return false;  // a text is one change
  const auto old_read = forms_.opened(rule, *sides.before), new_read = forms_.opened(rule, *sides.after);
  if (!old_read || !new_read) return false;
  const auto* before = (*old_read ? **old_read : *sides.before).array();
  const auto* after = (*new_read ? **new_read : *sides.after).array();
  if (before == nullptr || after == nullptr) return false;
  const auto left = forms_.keyed(rule, path, *before), right = forms_.keyed(rule, path, *after);
  if (!left || !right || (rule.ordered && !same_order(*left, *right))) return false;
  compare_elements(path, rule, *left, *right);
  return true;
}

bool Walk::other_basis(const AttributeRule& rule) const {
  if (rule.basis.empty()) return false;
  const Value* before = bodies_.before->find(rule.basis);
  const Value* after = bodies_.after->find(rule.basis);
  return before != nullptr && after != nullptr && !forms_.same(Path().child(rule.basis), *before, *after);
}

void Walk::compare_subtree(const Path& path, const AttributeRule& rule, const Sides& sides) {
  static const Value kNothing{Value::Object{}};
  Difference outer = std::exchange(out_, {});
  const int suppressed = std::exchange(suppressed_, 0);
  const std::size_t steps = trace_ ? trace_->size() : 0;
  compare_members(path, sides.before ? *sides.before : kNothing, sides.after ? *sides.after : kNothing);
  const ChangeClass cls = schema_.cls(path);
  // dialect 2: what the system adds to a new object, and what is never compared in it, belongs to the one change
  const bool plain = schema_.dialect() > 1 || (suppressed_ == 0 && out_.filled.empty());
  const bool whole = plain && out_.unknown.empty() && !out_.changes.empty() &&
                     std::all_of(out_.changes.begin(), out_.changes.end(),
                                 [&](const Change& change) { return change.cls == cls && !has_secret(change); });
  Difference inner = std::exchange(out_, std::move(outer));
  suppressed_ += suppressed;
  if (whole && trace_) trace_->erase(trace_->begin() + static_cast<std::ptrdiff_t>(steps), trace_->end());
  if (whole) return change(path, rule, sides);
  std::move(inner.changes.begin(), inner.changes.end(), std::back_inserter(out_.changes));
  std::move(inner.unknown.begin(), inner.unknown.end(), std::back_inserter(out_.unknown));
  std::move(inner.filled.begin(), inner.filled.end(), std::back_inserter(out_.filled));
}

Difference diff(const Value& old_body, const Value& new_body, const KindSchema& schema, const DiffOptions& options) {
  return Walk(schema, options).run(old_body, new_body);
}

}  // namespace driftd::core
