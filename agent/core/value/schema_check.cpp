// SPDX-License-Identifier: Apache-2.0
// Refuses rules that cannot mean what they say.
#include <algorithm>
#include <optional>

#include "core/value/schema_parts.hpp"
#include "core/value/types.hpp"

namespace driftd::core {
namespace {

constexpr std::size_t kMaxNames = 32;    ///< of may_hold, groups of same
constexpr std::size_t kMaxWords = 500;   ///< of expands
constexpr std::size_t kMaxVersions = 4;  ///< of expands, besides the first

/// Returns what a unit of this type may be. Empty if the type reads no unit.
std::string_view units_of(ValueType type) {
  switch (type) {
    case ValueType::decimal:
      return "kubernetes";
    case ValueType::bytes:
      return "postgres:BASE, redis, kubernetes, si, iec, or a base such as 8kB";
    case ValueType::duration:
      return "postgres:BASE, redis:BASE, kafka:BASE, iso8601, or a base: ns, us, ms, s, min, h, d";
    case ValueType::percent:
      return "ratio";
    case ValueType::endpoint:
      return "a port, or a scheme that has a usual one";
    case ValueType::version:
      return "major, minor, declared";
    case ValueType::timestamp:
      return "s, ms, us, ns";
    case ValueType::reference:
      return "arn, path, azure, name, image, domain";
    default:
      return {};
  }
}

bool is_unit(ValueType type, const std::string& unit) {
  if (unit.empty()) return type != ValueType::reference;
  if (type == ValueType::bytes) return types::bytes("1", unit).has_value();
  if (type == ValueType::duration) return unit == "iso8601" || types::duration("1", unit).has_value();
  if (type == ValueType::endpoint)
    return types::endpoint("host.example", unit).value_or("") != types::endpoint("host.example", "").value_or("");
  const std::string_view known = units_of(type);
  for (std::size_t start = 0; start < known.size();) {
    const auto comma = std::min(known.find(", ", start), known.size());
    if (known.substr(start, comma - start) == unit) return true;
    start = comma + 2;
  }
  return false;
}

bool is_list(Collection collection) { return collection != Collection::none && collection != Collection::map_by_keys; }

/// Returns true if `inner` continues the pattern `outer`.
bool lies_below(std::string_view inner, std::string_view outer) {
  return inner.size() > outer.size() && inner.starts_with(outer) &&
         (inner[outer.size()] == '.' || inner[outer.size()] == '[');
}

std::string fault_of(const AttributeRule& rule);

bool is_number(ValueType type) {
  return type == ValueType::integer || type == ValueType::decimal || type == ValueType::bytes ||
         type == ValueType::duration;
}

/// Returns what is wrong with what a rule says of other members or elements.
std::string fault_of_siblings(const AttributeRule& rule) {
  if (rule.at_least && !is_number(rule.type) && rule.type != ValueType::version)
    return "at_least: only types int, decimal, bytes, duration and version have an order";
  if (!rule.between.empty() && !is_number(rule.type))
    return "between: only types int, decimal, bytes and duration can be between bounds";
  if (!rule.refers.empty() && rule.type != ValueType::reference) return "refers: only type reference reads it";
  if (rule.closed && rule.open) return "closed: only one of open and closed";
  if ((rule.at_least || !rule.between.empty()) && (!rule.or_types.empty() || rule.collection != Collection::none))
    return "at_least, between: one type and no collection has an order";
  if (!rule.into.empty() && rule.into.find_first_of(".[*\"") != std::string::npos)
    return "into: expected the name of one member of the same object";
  if (rule.overrides && rule.into.empty()) return R"(overrides: only "into" reads it)";
  if (!rule.into.empty() && (rule.sensitive || rule.write_only || rule.cls))
    return "into: what is sensitive, and the class, are said of the member as which it counts";
  if (rule.may_hold.size() > kMaxNames || rule.same.size() > kMaxNames || rule.expands.size() > kMaxWords)
    return "may_hold, same, expands: may_hold and same have at most " + std::to_string(kMaxNames) +
           " entries, expands at most " + std::to_string(kMaxWords);
  if (rule.in_effect && (rule.collection != Collection::list || rule.expands.empty()))
    return R"(in_effect: needs "collection": "list", and what names stand for (expands))";
  if (!rule.other_expands.empty() && (rule.in_effect || rule.default_value || rule.other_expands.size() > kMaxVersions))
    return "expands: only a list without in_effect and default has other versions, at most " +
           std::to_string(kMaxVersions);
  if (rule.flat && !rule.split) return R"(flat: only "split" reads it)";
  if (rule.unordered_runs && rule.collection != Collection::list)
    return R"(unordered_runs: only "collection": "list" reads it)";
  if (rule.at_least && !rule.between.empty()) return "between: only one of at_least and between";
  if (!rule.may_hold.empty() && rule.collection != Collection::set)
    return R"(may_hold: only "collection": "set" reads it)";
  if (rule.covers && rule.collection != Collection::set) return R"(covers: only "collection": "set" reads it)";
  if (!rule.expands.empty() && !is_list(rule.collection)) return "expands: needs a collection: list, set or multiset";
  if (!rule.netmask_of.empty() && rule.type != ValueType::cidr && rule.type != ValueType::inet)
    return "netmask_of: only types cidr and inet read it";
  const bool secret = rule.sensitive || rule.write_only;
  if (secret && (rule.rule_by || !rule.may_hold.empty() || !rule.same.empty() || !rule.accepts.empty()))
    return "sensitive: only a digest is kept of a secret, so it cannot be read beside other members or as the same";
  const auto only_stars = [](const std::string& text) { return text.find_first_not_of('*') == std::string::npos; };
  const auto two_stars = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '*') > 1 && text.find("\\*") == std::string::npos;
  };
  if (std::any_of(rule.prefixes.begin(), rule.prefixes.end(), two_stars) ||
      std::any_of(rule.suffixes.begin(), rule.suffixes.end(), two_stars))
    return "prefixes, suffixes: a pattern has at most one *";
  if (std::any_of(rule.prefixes.begin(), rule.prefixes.end(), only_stars) ||
      std::any_of(rule.suffixes.begin(), rule.suffixes.end(), only_stars))
    return "prefixes, suffixes: a pattern of nothing but * would take the whole text";
  if (rule.default_by && rule.default_by->of.starts_with('/'))
    return "default_by.of: only rule_by reads a member of the body (/name)";
  if (!rule.rule_by) return {};
  if (rule.rule_by->of == "/" || rule.rule_by->of.find('/', 1) != std::string::npos)
    return "rule_by.of: expected the name of a member of the same object, or /name of one of the body";
  for (const auto& [text, variant] : rule.rule_by->values) {
    if (variant->at_least && rule.rule_by->of.starts_with('/'))
      return "rule_by.values." + text + ".at_least: only a member of the same object chooses it";
    if (variant->type == ValueType::reference || (variant->type == ValueType::version && variant->unit == "declared"))
      return "rule_by.values." + text + ".type: one that has several equal forms cannot be chosen by a member";
    if (const std::string fault = fault_of(*variant); !fault.empty()) return "rule_by.values." + text + "." + fault;
  }
  return {};
}

/// Returns why the attribute cannot have this default. Empty if it can.
std::string fault_of_default(const AttributeRule& rule, const Value& given) {
  if (given.is_null() || rule.inside) return {};
  const AttributeRule element = element_rule(rule);
  const auto* elements = given.array();
  for (const auto& value : elements != nullptr ? *elements : Value::Array{given}) {
    const auto read = normalise(elements != nullptr ? element : rule, value);
    if (!read) return "is not of its type: " + read.error().message;
  }
  return {};
}

/// Returns what is wrong with a rule by itself, as `member: why`. Empty if nothing is.
std::string fault_of(const AttributeRule& rule) {
  const std::string units(units_of(rule.type));
  if (!rule.unit.empty() && units.empty()) return "unit: its type reads no unit";
  if (!is_unit(rule.type, rule.unit))
    return "unit: expected " + units + ", found " + (rule.unit.empty() ? "nothing" : "'" + rule.unit + "'");
  const bool has_tokens = !rule.true_tokens.empty() || !rule.false_tokens.empty();
  if (has_tokens && rule.type != ValueType::boolean) return "tokens: only type bool reads them";
  if (!rule.keys.empty() && rule.collection != Collection::map_by_keys)
    return R"(keys: only "collection": "map" reads them)";
  if (rule.ordered && rule.collection != Collection::map_by_keys)
    return R"(ordered: only "collection": "map" reads it; a list is always ordered)";
  if (rule.single && rule.path.text().find("**") != std::string::npos)
    return "single: a pattern with ** would also cover the elements of the list of one";
  if (rule.split && !is_list(rule.collection)) return "split: needs a collection: list, set or multiset";
  if (rule.inside && !is_document(rule.type) && rule.type != ValueType::properties)
    return "inside: only types json, yaml, ini, xml, hcl and properties are read inside";
  for (const auto other : rule.or_types) {
    const bool scalar = !is_document(other) && other != ValueType::reference && other != ValueType::any;
    if (!scalar || is_document(rule.type) || rule.type == ValueType::reference || rule.type == ValueType::any)
      return "type: a list of types can only have types of scalars with one form (no any, json, reference …)";
  }
  if (rule.default_value.has_value() + rule.default_by.has_value() + !rule.default_of.empty() > 1)
    return "default: only one of default, default_by and default_of can be the default";
  if (const std::string fault = fault_of_siblings(rule); !fault.empty()) return fault;
  if (rule.default_value) {
    if (const std::string fault = fault_of_default(rule, *rule.default_value); !fault.empty())
      return "default: " + fault;
  }
  if (rule.sensitive && !rule.other_defaults.empty()) return "other_defaults: only a digest is kept of a secret";
  for (const auto& value : rule.other_defaults) {
    if (const std::string fault = fault_of_default(rule, value); !fault.empty()) return "other_defaults: " + fault;
  }
  return {};
}

/// Returns true if a member may say that the value is a text with parts.
bool reads_text_by_member(const AttributeRule& rule) {
  return rule.rule_by && std::any_of(rule.rule_by->values.begin(), rule.rule_by->values.end(), [](const auto& one) {
           const AttributeRule& variant = *one.second;
           return is_document(variant.type) || variant.type == ValueType::properties || variant.split;
         });
}

/// Returns what is wrong with the place as which a member counts.
std::string fault_of_into(const AttributeRule& rule, const KindSchema& schema) {
  const std::string& text = rule.path.text();
  const auto dot = text.rfind('.');
  const std::string name = text.substr(dot == std::string::npos ? 0 : dot + 1);
  if (name.find('*') != std::string::npos) return "into: each member that counts as another one needs a name";
  const std::string target = (dot == std::string::npos ? "" : text.substr(0, dot + 1)) + rule.into;
  if (target == text) return "into: a member cannot count as itself";
  const bool chain = std::any_of(schema.rules().begin(), schema.rules().end(), [&](const AttributeRule& other) {
    return other.path.text() == target && !other.into.empty();
  });
  return chain ? "into: " + target + " counts as another member, too" : "";
}

/// Returns what is wrong with the members whose values a set may hold. One that may change without a drift would let
/// the set change without one.
std::string fault_of_held(const AttributeRule& rule, const KindSchema& schema) {
  const std::string& text = rule.path.text();
  const auto dot = text.rfind('.');
  for (const auto& name : rule.may_hold) {
    const std::string held = (dot == std::string::npos ? "" : text.substr(0, dot + 1)) + name;
    if (held == text) return "may_hold: a set cannot hold itself";
    for (const auto& other : schema.rules()) {
      const bool moves = other.is_volatile || other.at_least || !other.between.empty();
      if (other.path.text() == held && moves) return "may_hold: " + held + " may change without a drift";
    }
  }
  return {};
}

/// Returns what is wrong with a rule beside the others of the document.
std::string fault_beside(const AttributeRule& rule, const KindSchema& schema) {
  const auto& rules = schema.rules();
  const std::string& text = rule.path.text();
  if (const std::string fault = rule.into.empty() ? "" : fault_of_into(rule, schema); !fault.empty()) return fault;
  for (const auto& other : rules) {
    const bool secret = rule.sensitive || rule.write_only;
    const bool reads = other.inside || other.fold_names || other.split.has_value() || reads_text_by_member(other);
    if (reads && (secret || (other.inside && rule.cls)) && rule.path.may_lie_below(other.path))
      return "*: this rule may cover a part of \"" + other.path.text() +
             "\", which is read as a whole; a part of it has no class and is not sensitive by itself: mark all of it";
    if (!lies_below(text, other.path.text())) continue;
    const std::string outer = "\"" + other.path.text() + "\"";
    if (other.is_volatile && !rule.is_volatile) return "*: this rule is never used: " + outer + " above it is volatile";
    if (!other.into.empty())
      return "*: this rule is never used: " + outer + " counts as " + other.into + "; write it for that member";
    if ((is_document(other.type) || other.type == ValueType::properties) && !other.inside)
      return "*: this rule is never used: " + outer + R"( is a text; add "inside": true to it)";
  }
  if (const std::string fault = fault_of_held(rule, schema); !fault.empty()) return fault;
  if (rule.basis.empty()) return {};
  const auto basis = Path::parse(rule.basis);
  const bool known = basis && std::any_of(rules.begin(), rules.end(), [&](const AttributeRule& other) {
                       return other.path.text() == rule.basis || other.path.text() == basis->render();
                     });
  return known ? "" : "basis: no rule of this document is about " + rule.basis;
}

}  // namespace

namespace {

/// Returns a path that the pattern matches, with 0 for `[*]`. Empty if it has another wildcard.
std::optional<Path> example_of(std::string text) {
  for (auto at = text.find("[*]"); at != std::string::npos; at = text.find("[*]", at)) text.replace(at, 3, "[0]");
  if (text.find('*') != std::string::npos) return std::nullopt;
  const auto path = Path::parse(text);
  return path ? std::optional(*path) : std::nullopt;
}

/// Returns what is wrong with the sum of the patterns that match such a path, of which each alone is right.
std::string fault_of_sum(const AttributeRule& rule, const KindSchema& schema) {
  const auto example = schema.dialect() > 1 ? example_of(rule.path.text()) : std::nullopt;
  const AttributeRule* sum = example ? schema.find_rule(*example) : nullptr;
  const std::string fault = sum == nullptr ? "" : fault_of(*sum);
  return fault.empty() ? "" : fault + " (of all patterns that match " + example->render() + ")";
}

}  // namespace

Status KindSchema::check() const {
  for (const auto& rule : rules_) {
    std::string fault = fault_of(rule);
    if (fault.empty()) fault = fault_of_sum(rule, *this);
    if (fault.empty()) fault = fault_beside(rule, *this);
    if (fault.empty()) continue;
    return fail(Code::invalid, "schema of " + kind_ + ", attributes.\"" + rule.path.text() + "\"." + fault);
  }
  const bool known = identity_.empty() || std::any_of(rules_.begin(), rules_.end(), [this](const AttributeRule& rule) {
                       return rule.path.text() == identity_;
                     });
  if (!known)
    return fail(Code::invalid, "schema of " + kind_ + ", identity: no rule of this document is about " + identity_);
  return {};
}

}  // namespace driftd::core
