// SPDX-License-Identifier: Apache-2.0
#include "core/value/rule_names.hpp"

#include "core/value/schema.hpp"

namespace driftd::core {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

std::string_view name_of(ValueType type) { return name_of(kTypes, type); }

std::string render(const AttributeRule& rule) {
  std::string out(name_of(rule.type));
  if (!rule.unit.empty()) out += "(" + rule.unit + ")";
  for (const auto other : rule.or_types) out += " or " + std::string(name_of(other));
  if (rule.ordered) out += " ordered";
  if (rule.closed) out += " closed";
  if (rule.may_open()) out += rule.open ? " open" : " open for some names";
  if (rule.at_least) out += " at least";
  if (!rule.other_defaults.empty()) out += " with other defaults";
  if (!rule.between.empty()) out += " between " + render(rule.between[0]) + " and " + render(rule.between[1]);
  if (rule.collection != Collection::none) out += " " + std::string(name_of(kCollections, rule.collection));
  if (rule.split) out += rule.split->empty() ? " of characters" : " split at " + render(Value(*rule.split));
  if (rule.flat) out += " in elements, too";
  if (rule.covers) out += " with patterns that cover others";
  if (!rule.expands.empty()) out += " with elements that stand for several";
  if (!rule.other_expands.empty()) out += " or, in other versions, for others";
  if (rule.in_effect) out += " of which the last that names a thing counts";
  if (!rule.may_hold.empty()) out += " that may hold " + joined(rule.may_hold);
  if (rule.inside) out += " read inside";
  if (rule.encoding != Encoding::none) out += " or its " + std::string(name_of(kEncodings, rule.encoding));
  if (!rule.accepts.empty()) out += " that accepts others";
  if (rule.unordered_runs) out += " with runs in any order";
  if (rule.digest != DigestForm::none) out += " or its " + std::string(name_of(kDigestForms, rule.digest));
  if (rule.unicode != UnicodeForm::none) out += " in " + std::string(name_of(kUnicodeForms, rule.unicode));
  if (!rule.words.empty()) out += " of words";
  if (!rule.same.empty()) out += " with values that are the same";
  if (rule.rule_by) out += " read by " + rule.rule_by->of;
  if (!rule.netmask_of.empty()) out += " with the netmask of " + rule.netmask_of;
  if (!rule.into.empty()) out += " counted as " + rule.into + (rule.overrides ? ", in its place" : "");
  if (rule.fold) out += " folded";
  if (rule.fold_names) out += " with folded names";
  const bool trims = rule.trim_space || rule.trim_eol || rule.trim_runs || rule.trim_slash || rule.trim_dot ||
                     rule.trim_quotes || !rule.prefixes.empty() || !rule.suffixes.empty();
  if (trims) out += " trimmed";
  return out + (rule.path.text().empty() ? " by default" : " of \"" + rule.path.text() + "\"");
}

}  // namespace driftd::core
