// SPDX-License-Identifier: Apache-2.0
// What a value means beside the other members of its object, and what the elements of a list mean beside each other.
#include <algorithm>

#include "base/escape.hpp"
#include "core/judge/normal_forms.hpp"
#include "core/redact.hpp"
#include "core/value/types.hpp"

namespace driftd::core {

/// Returns the elements that the list stands for (`expands`), without those that another one covers (`covers`).
Value::Array elements_meant(const AttributeRule& rule, const Value::Array& elements);

namespace {

constexpr std::size_t kMaxCovered = 100'000;  ///< comparisons of one list's elements with its patterns

/// Returns the text of a member; "" if it is absent or no scalar.
std::string text_of_member(const Value* owner, std::string_view name) {
  const Value* member = owner == nullptr ? nullptr : owner->find(name);
  return member == nullptr ? "" : types::scalar_text(*member).value_or("");
}

/// Returns the value as another member says that it is read: in its normal form. One that cannot be read stays.
std::optional<Value> read_as(const AttributeRule& rule, const Value& value) {
  if (value.array() != nullptr && !rule.expands.empty()) {
    AttributeRule plain = rule;
    plain.expands.clear();
    return read_as(plain, Value(elements_meant(rule, *value.array())));
  }
  if (const auto* elements = value.array(); elements != nullptr && rule.collection == Collection::none) {
    Value::Array out;
    for (const auto& element : *elements) out.push_back(read_as(rule, element).value_or(element));
    return Value(std::move(out));
  }
  const auto normal = normalise(rule, value);
  const auto out = normal ? parse(*normal) : Result<Value>(fail(Code::invalid, ""));
  return out ? std::optional(*out) : std::nullopt;
}

}  // namespace

const AttributeRule* Forms::variant(const AttributeRule& rule, const Value* owner) {
  if (!rule.rule_by) return nullptr;
  const auto* found = find_value(*rule.rule_by, text_of_member(owner, rule.rule_by->of));
  return found == nullptr ? nullptr : found->get();
}

const Value* Forms::default_of(const AttributeRule& rule, const Value* owner) const {
  // a default with members inside one inside one …: 2^depth of them could be rendered
  const bool too_deep = rendering_default_ > 0 && rule.default_value && rule.default_value->object() != nullptr;
  if (rule.default_value) return too_deep ? nullptr : &*rule.default_value;
  if (owner == nullptr) return nullptr;
  if (!rule.default_of.empty()) return owner->find(rule.default_of);
  return rule.default_by ? find_value(*rule.default_by, text_of_member(owner, rule.default_by->of)) : nullptr;
}

std::optional<Value> Forms::beside(const Path& path, const AttributeRule& rule, const Value& value,
                                   const Value* owner) const {
  if (owner == nullptr || as_digest(value)) return std::nullopt;
  if (const auto* read = variant(rule, owner)) return read_as(*read, value);
  if (!rule.netmask_of.empty()) {
    const std::string mask = text_of_member(owner, rule.netmask_of);
    const auto* text = value.string();
    const bool bare = text != nullptr && text->find('/') == std::string::npos;
    return bare && !mask.empty() ? std::optional(Value(*text + "/" + mask)) : std::nullopt;
  }
  if (rule.may_hold.empty()) return std::nullopt;
  const auto read = opened(rule, value);
  const Value& shown = read && *read ? **read : value;
  if (shown.array() == nullptr) return std::nullopt;
  const AttributeRule& element = scalar_rule(path, rule, path.child(std::size_t{0}));
  Value::Array out = *shown.array();
  for (const auto& name : rule.may_hold) {
    const Value* member = owner->find(name);
    if (member == nullptr || member->is_null() || as_digest(*member)) continue;
    const std::string form = leaf(element, *member);
    std::erase_if(out, [&](const Value& one) { return !as_digest(one) && leaf(element, one) == form; });
  }
  return out.size() == shown.array()->size() ? std::nullopt : std::optional(Value(std::move(out)));
}

std::optional<Value> Forms::gathered(const Path& path, const Value& object) const {
  if (!schema_.has_into() || object.object() == nullptr) return std::nullopt;
  std::optional<Value> out;
  for (const auto& [name, member] : *object.object()) {
    const std::string& into = schema_.rule(path.child(name)).into;
    if (into.empty() || into == name || as_digest(member)) continue;
    const Value* there = object.find(into);
    const bool disagree = there != nullptr && !there->is_null() && !there->object() && !(*there == member);
    if (disagree && !member.is_null()) continue;  // two values of one thing: both are compared
    if (!out) out = object;
    out->object()->erase(name);
    if (member.is_null()) continue;
    Value& target = out->object()->try_emplace(into).first->second;
    const Path place = path.child(into);
    const auto* members = member.object();
    if (members == nullptr || (!target.is_null() && target.object() == nullptr)) {
      target = member;
      continue;
    }
    if (target.is_null()) target = Value(Value::Object{});
    for (const auto& [key, one] : *members) {
      const bool encodes = one.string() != nullptr && schema_.rule(place.child(key)).encoding == Encoding::base64;
      target.object()->insert_or_assign(key, encodes ? Value(base64(*one.string())) : one);
    }
  }
  return out;
}

void Forms::gather(const Path& path, Value& value) const {
  if (!schema_.has_into()) return;
  if (auto made = gathered(path, value)) value = *std::move(made);
  if (auto* object = value.object()) {
    for (auto& [name, member] : *object) gather(path.child(name), member);
  }
  if (auto* array = value.array()) {
    for (std::size_t i = 0; i < array->size(); ++i) gather(path.child(i), (*array)[i]);
  }
}

Value::Array elements_meant(const AttributeRule& rule, const Value::Array& elements) {
  const auto text = [&](const Value& one) {
    const auto read = types::scalar_text(one);
    return read ? types::fold_and_trim(rule, *read) : std::string();
  };
  Value::Array out;
  for (const auto& element : elements) {
    const auto many = std::find_if(rule.expands.begin(), rule.expands.end(), [&](const auto& one) {
      return types::fold_and_trim(rule, one.first) == text(element) && element.string() != nullptr;
    });
    if (many == rule.expands.end()) out.push_back(element);
    if (many == rule.expands.end()) continue;
    for (const auto& one : many->second) out.emplace_back(one);
  }
  if (!rule.covers) return out;
  std::vector<std::pair<std::size_t, Glob>> patterns;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (text(out[i]).find('*') != std::string::npos) patterns.emplace_back(i, Glob::of_name(text(out[i])));
  }
  if (patterns.size() * out.size() > kMaxCovered) return out;
  Value::Array left;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::string own = text(out[i]);
    const bool covered = std::any_of(patterns.begin(), patterns.end(), [&](const auto& one) {
      return one.first != i && one.second.matches(own) && text(out[one.first]) != own;
    });
    if (!covered) left.push_back(out[i]);
  }
  return left;
}

}  // namespace driftd::core
