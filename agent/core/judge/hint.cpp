// SPDX-License-Identifier: Apache-2.0
#include "core/judge/hint.hpp"

#include <array>
#include <functional>

#include "core/value/schema.hpp"

namespace driftd::core {
namespace {

struct Amendment {
  std::string_view says;  ///< why the values would be equal, and the member of the rule that says so
  std::function<void(AttributeRule&)> apply;
};

const std::vector<Amendment>& amendments() {
  static const std::vector<Amendment> kAmendments = {
      {R"(the same but for case: "fold": "ascii")", [](AttributeRule& r) { r.fold = true; }},
      {R"(the same but for white space at the ends: "trim": "space")", [](AttributeRule& r) { r.trim_space = true; }},
      {R"(the same but for line ends: "trim": "eol")", [](AttributeRule& r) { r.trim_eol = true; }},
      {R"(the same but for runs of white space: "trim": "runs")", [](AttributeRule& r) { r.trim_runs = true; }},
      {R"(the same but for a slash at the end: "trim": "slash")", [](AttributeRule& r) { r.trim_slash = true; }},
      {R"(the same but for a dot at the end: "trim": "dot")", [](AttributeRule& r) { r.trim_dot = true; }},
      {R"(the same but for quotes at the ends: "trim": "quotes")", [](AttributeRule& r) { r.trim_quotes = true; }},
      {R"(the same members in another order: "collection": "multiset")",
       [](AttributeRule& r) { r.collection = Collection::multiset; }},
      {R"(the same members but for order and repetition: "collection": "set")",
       [](AttributeRule& r) { r.collection = Collection::set; }},
      {R"(a scalar and a list of it: "collection": "scalar_or_list")",
       [](AttributeRule& r) { r.collection = Collection::scalar_or_list; }},
      {R"(base64 and its text: "encoding": "base64")", [](AttributeRule& r) { r.encoding = Encoding::base64; }},
      {R"(the same characters: "unicode": "nfc")", [](AttributeRule& r) { r.unicode = UnicodeForm::nfc; }}};
  return kAmendments;
}

/// The types that are tried, the usual ones first.
constexpr std::array kTypes = {ValueType::string,   ValueType::decimal,  ValueType::boolean, ValueType::json,
                               ValueType::bytes,    ValueType::duration, ValueType::cidr,    ValueType::host,
                               ValueType::endpoint, ValueType::url,      ValueType::version, ValueType::timestamp,
                               ValueType::pem,      ValueType::cron,     ValueType::base64,  ValueType::yaml,
                               ValueType::xml,      ValueType::image,    ValueType::sql,     ValueType::hcl};

bool same_under(const AttributeRule& rule, const Value& before, const Value& after) {
  const auto left = normalise(rule, before), right = normalise(rule, after);
  return left && right && *left == *right;
}

std::string not_of_its_type(const AttributeRule& rule, const Value& before, const Value& after) {
  for (const auto* side : {&before, &after}) {
    const auto read = normalise(rule, *side);
    if (read || read.error().code == Code::budget) continue;
    // "expected a duration, found 'x'": only what was expected. Other errors quote keys or places of the value.
    const std::string& why = read.error().message;
    const std::string expected = why.starts_with("expected ") ? why.substr(0, why.find(", found"))
                                                              : "expected " + std::string(name_of(rule.type));
    return std::string(side == &before ? "the old" : "the new") + " value is not of its type (" + expected + ")";
  }
  return {};
}

}  // namespace

std::string hint(const AttributeRule& rule, const Value& before, const Value& after) {
  if (const std::string why = not_of_its_type(rule, before, after); !why.empty()) return why;
  for (const auto& amendment : amendments()) {
    AttributeRule other = rule;
    other.dialect = 2;
    amendment.apply(other);
    if (same_under(other, before, after)) return std::string(amendment.says);
  }
  if (rule.type != ValueType::any && rule.type != ValueType::string) return {};
  for (const auto type : kTypes) {
    AttributeRule other = rule;
    other.dialect = 2;
    other.type = type;
    if (same_under(other, before, after)) return "the same as \"type\": \"" + std::string(name_of(type)) + "\"";
  }
  AttributeRule characters = rule;
  characters.dialect = 2;
  characters.split = "";
  characters.collection = Collection::set;
  const bool texts = before.string() != nullptr && after.string() != nullptr;
  return texts && same_under(characters, before, after)
             ? R"(the same characters in another order: "split": "", "collection": "set")"
             : "";
}

}  // namespace driftd::core
