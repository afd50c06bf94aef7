// SPDX-License-Identifier: Apache-2.0
// Numbers that may differ within bounds: an autoscaler moves them, a volume grows.
#include "core/judge/diff_bounds.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/judge/siblings.hpp"
#include "core/value/types.hpp"

namespace driftd::core {
namespace {

/// A number as digits on both sides of the point, which compare as text once they have the same lengths.
struct Plain {
  bool negative = false;
  std::string whole, fraction;
};

/// Reads a normal form such as `-12.5`. Empty for what is no plain number.
std::optional<Plain> plain(std::string_view form) {
  Plain out;
  if (form.starts_with('-')) {
    out.negative = true;
    form.remove_prefix(1);
  }
  const auto dot = std::min(form.find('.'), form.size());
  out.whole = form.substr(0, dot);
  out.fraction = dot == form.size() ? "" : form.substr(dot + 1);
  const bool fraction = out.fraction.empty() || types::all_digits(out.fraction);
  return types::all_digits(out.whole) && fraction ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<bool> less(const std::string& a, const std::string& b) {
  auto left = plain(a), right = plain(b);
  if (!left || !right) return std::nullopt;
  if (left->negative != right->negative) return left->negative;
  const auto whole = std::max(left->whole.size(), right->whole.size());
  const auto digits = [whole](Plain& one, std::size_t fraction) {
    one.fraction.resize(fraction, '0');
    return std::string(whole - one.whole.size(), '0') + one.whole + one.fraction;
  };
  const auto fraction = std::max(left->fraction.size(), right->fraction.size());
  const std::string one = digits(*left, fraction), other = digits(*right, fraction);
  return left->negative ? other < one : one < other;
}

/// Returns the parts of the normal form of a version, `"1.2.3-rc1"`. Empty for one that is not made of numbers.
std::vector<std::string> version_parts(std::string_view form) {
  std::vector<std::string> out;
  if (form.size() < 2 || form.front() != '"') return out;
  form = form.substr(1, form.size() - 2);
  for (std::size_t at = 0; at <= form.size();) {
    const auto end = std::min(form.find('.', at), form.size());
    if (!types::all_digits(form.substr(at, end - at))) return {};
    out.emplace_back(form.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::optional<bool> less_version(const std::string& a, const std::string& b) {
  const auto left = version_parts(a), right = version_parts(b);
  if (left.empty() || right.empty()) return std::nullopt;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const auto one = i < left.size() ? left[i] : "0", other = i < right.size() ? right[i] : "0";
    if (one != other) return less(one, other);
  }
  return false;
}

}  // namespace

std::string within_bounds(const Forms& forms, const KindSchema& schema, const Path& path, const AttributeRule& given,
                          const Value* old_value, const Value* new_value, const Value* owner_before,
                          const Value* owner) {
  const AttributeRule* variant = forms.variant(path, given, owner);
  const Value* decided = owner_before != nullptr && given.rule_by ? owner_before->find(given.rule_by->of) : nullptr;
  const bool said = decided != nullptr && !is_hollow(*decided);  // else the later side says how it is meant
  if (said && variant != forms.variant(path, given, owner_before)) variant = nullptr;
  const AttributeRule& rule = variant != nullptr && variant->at_least ? *variant : given;
  const bool bounded = rule.at_least || !rule.between.empty();
  if (!bounded || old_value == nullptr || new_value == nullptr) return {};
  const std::string before = forms.leaf(rule, *old_value), after = forms.leaf(rule, *new_value);
  if (before == after || (rule.type != ValueType::version && !plain(before))) return {};
  if (rule.at_least) {
    const auto smaller = rule.type == ValueType::version ? less_version(after, before) : less(after, before);
    return smaller && !*smaller ? "at least what was agreed" : "";
  }
  const auto bound = [&](const Value& one) -> std::optional<std::string> {
    const Value* value = one.string() == nullptr ? &one : owner != nullptr ? owner->find(*one.string()) : nullptr;
    if (value == nullptr || value->is_null()) return std::nullopt;
    const AttributeRule& how = one.string() == nullptr ? rule : schema.rule(path.parent().child(*one.string()));
    return forms.leaf(how, *value);
  };
  const auto low = bound(rule.between[0]), high = bound(rule.between[1]);
  if (!low || !high) return {};
  const auto below = less(after, *low), above = less(*high, after);
  const bool inside = below && above && !*below && !*above;
  return inside ? "between " + render(rule.between[0]) + " and " + render(rule.between[1]) : "";
}

}  // namespace driftd::core
