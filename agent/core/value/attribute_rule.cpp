// SPDX-License-Identifier: Apache-2.0
#include "core/value/attribute_rule.hpp"

#include <tuple>

namespace driftd::core {
namespace {

auto reading(const AttributeRule& rule) {
  return std::tie(rule.type, rule.unit, rule.collection, rule.keys, rule.fold, rule.trim_space, rule.trim_eol,
                  rule.is_volatile, rule.computed, rule.sensitive, rule.write_only);
}

auto second_reading(const AttributeRule& rule) {
  return std::tie(rule.open, rule.ordered, rule.single, rule.inside, rule.fold_names, rule.hollow, rule.trim_runs,
                  rule.trim_slash, rule.trim_dot, rule.split, rule.words, rule.encoding, rule.unicode);
}

}  // namespace

bool is_document(ValueType type) {
  return type == ValueType::json || type == ValueType::yaml || type == ValueType::ini || type == ValueType::xml;
}

bool same_interpretation(const AttributeRule& a, const AttributeRule& b) {
  return reading(a) == reading(b) && second_reading(a) == second_reading(b);
}

AttributeRule element_rule(const AttributeRule& list) {
  AttributeRule out = list;
  out.collection = Collection::none;
  out.path = Glob();
  out.split.clear();
  out.single = out.open = out.ordered = false;
  return out;
}

}  // namespace driftd::core
