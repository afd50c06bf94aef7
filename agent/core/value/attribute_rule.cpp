// SPDX-License-Identifier: Apache-2.0
#include "core/value/attribute_rule.hpp"

#include <algorithm>
#include <tuple>

namespace driftd::core {
namespace {

auto reading(const AttributeRule& rule) {
  return std::tie(rule.type, rule.unit, rule.collection, rule.keys, rule.fold, rule.trim_space, rule.trim_eol,
                  rule.is_volatile, rule.computed, rule.sensitive, rule.write_only);
}

auto second_reading(const AttributeRule& rule) {
  return std::tie(rule.open, rule.closed, rule.ordered, rule.single, rule.inside, rule.fold_names, rule.hollow,
                  rule.trim_runs, rule.trim_slash, rule.trim_dot, rule.trim_quotes, rule.prefixes, rule.suffixes,
                  rule.or_types, rule.split, rule.flat, rule.expands, rule.other_expands, rule.in_effect, rule.covers,
                  rule.same, rule.words, rule.encoding, rule.unicode, rule.into, rule.netmask_of, rule.may_hold,
                  rule.at_least, rule.between, rule.digest, rule.overrides, rule.unordered_runs);
}

bool same_variants(const std::optional<RuleBy>& a, const std::optional<RuleBy>& b) {
  if (!a || !b) return !a && !b;
  return a->of == b->of && std::equal(a->values.begin(), a->values.end(), b->values.begin(), b->values.end(),
                                      [](const auto& one, const auto& other) {
                                        return one.first == other.first &&
                                               same_interpretation(*one.second, *other.second);
                                      });
}

}  // namespace

bool is_document(ValueType type) {
  return type == ValueType::json || type == ValueType::yaml || type == ValueType::ini || type == ValueType::xml ||
         type == ValueType::hcl;
}

bool same_interpretation(const AttributeRule& a, const AttributeRule& b) {
  const auto same_accepts = [](const auto& one, const auto& other) {
    return one.first == other.first &&
           std::equal(one.second.begin(), one.second.end(), other.second.begin(), other.second.end(),
                      [](const Glob& x, const Glob& y) { return x.text() == y.text(); });
  };
  const bool accepts = std::equal(a.accepts.begin(), a.accepts.end(), b.accepts.begin(), b.accepts.end(), same_accepts);
  return accepts && reading(a) == reading(b) && second_reading(a) == second_reading(b) &&
         same_variants(a.rule_by, b.rule_by);
}

AttributeRule element_rule(const AttributeRule& list) {
  AttributeRule out = list;
  out.collection = Collection::none;
  out.path = Glob();
  out.split.reset();
  out.single = out.open = out.ordered = out.covers = out.flat = out.in_effect = false;
  out.open_names.clear();
  out.expands.clear();
  out.other_expands.clear();
  out.may_hold.clear();
  return out;
}

bool AttributeRule::allows(std::string_view name) const {
  return open || std::any_of(open_names.begin(), open_names.end(), [&](const Glob& one) { return one.matches(name); });
}

std::optional<std::string_view> find_pattern(const std::vector<std::string_view>& patterns, std::string_view text) {
  std::optional<std::string_view> out;
  for (const auto pattern : patterns) {
    if (pattern == text) return pattern;
    const bool is_pattern = !text.empty() && pattern.find('*') != std::string_view::npos;
    if (!is_pattern || (out && out->size() >= pattern.size())) continue;
    if (Glob::of_name(pattern).matches(text)) out = pattern;
  }
  return out;
}

}  // namespace driftd::core
