// SPDX-License-Identifier: Apache-2.0
#include "core/judge/normal_forms.hpp"

#include <algorithm>
#include <set>

#include "core/redact.hpp"

namespace driftd::core {
namespace {

void collect_keys(const Value& value, std::set<std::string>& out) {
  if (const auto digest = as_digest(value)) {
    out.insert(digest->key_id + ":" + std::to_string(digest->revision));
    return;
  }
  if (const auto* object = value.object()) {
    for (const auto& [name, member] : *object) collect_keys(member, out);
  }
  if (const auto* array = value.array()) {
    for (const auto& element : *array) collect_keys(element, out);
  }
}

void strip_digests(Value& value) {
  if (as_digest(value)) {
    value = Value("$hmac");
    return;
  }
  if (auto* object = value.object()) {
    for (auto& [name, member] : *object) strip_digests(member);
  }
  if (auto* array = value.array()) {
    for (auto& element : *array) strip_digests(element);
  }
}

/// Returns `x` as it is if it needs no quotes, else as a JSON string.
std::string selector_value(const Value& value) {
  const std::string text = value.string() ? *value.string() : render(value);
  const bool plain = !text.empty() && text.find_first_of("\"[],=\\ \t\n\r") == std::string::npos;
  return plain ? text : render(Value(text));
}

/// Returns the rule for the scalar elements of a list.
AttributeRule element_rule(const AttributeRule& rule) {
  AttributeRule out = rule;
  out.collection = Collection::none;
  out.path = Glob();
  return out;
}

std::optional<std::string> leaf_beyond_bounds(const AttributeRule& rule, const Value& value) {
  const auto normal = normalise(rule, value);
  return normal || normal.error().code != Code::budget ? std::nullopt : std::optional(normal.error().message);
}

}  // namespace

bool Forms::has_own_form(const Path& element, const Value& value) const {
  return schema_.find_rule(element) != nullptr || value.object() || value.array() || as_digest(value);
}

std::string Forms::leaf(const AttributeRule& rule, const Value& value) const {
  auto normal = normalise(rule, value);
  if (normal) return *normal;
  static const AttributeRule kPlain;
  return "{\"$raw\":" + normalise(kPlain, value).value_or(render(value)) + "}";
}

std::string Forms::object(const Path& path, const Value::Object& value) const {
  std::string out;
  for (const auto& [name, member] : value) {
    const Path child = path.child(name);
    const auto& rule = schema_.rule(child);
    const Value* shown = rule.is_volatile ? nullptr : effective(rule, &member);
    if (shown == nullptr) continue;
    if (rule.default_value && shown == &*rule.default_value) continue;
    const std::string form = of(child, *shown);  // once: twice a level would be 2^depth for a rule like `**`
    if (rule.default_value && is_default(rule, child, form)) continue;
    out += (out.empty() ? "" : ",") + render(Value(name)) + ":" + form;
  }
  return "{" + out + "}";
}

std::string Forms::default_form(const AttributeRule& rule, const Path& path) const {
  ++rendered_schema_values_;
  return of(path, *rule.default_value);
}

bool Forms::is_default(const AttributeRule& rule, const Path& path, const std::string& form) const {
  // A default has no objects (KindSchema refuses them), so only the elements of a list can have rules of their own.
  const bool list = is_structure(rule) && rule.default_value->array() != nullptr;
  const auto element_rule = list ? schema_.find_element_rule(path) : std::optional<const AttributeRule*>(nullptr);
  if (!element_rule) return form == default_form(rule, path);
  const auto [kept, is_new] = default_forms_.try_emplace({&rule, *element_rule});
  if (is_new) kept->second = default_form(rule, path);
  return form == kept->second;
}

const std::set<std::string>& Forms::empty_forms(const AttributeRule& rule) const {
  const auto [kept, is_new] = empty_forms_.try_emplace(&rule);
  if (!is_new) return kept->second;
  for (const auto& value : rule.empty_equivalents) kept->second.insert(leaf(rule, value));
  rendered_schema_values_ += rule.empty_equivalents.size();
  return kept->second;
}

std::string Forms::array(const Path& path, const AttributeRule& rule, const Value::Array& value) const {
  const AttributeRule element = element_rule(rule);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Path child = path.child(i);
    parts.push_back(has_own_form(child, value[i]) ? of(child, value[i]) : leaf(element, value[i]));
  }
  return join_collection(rule.collection, std::move(parts));
}

std::string Forms::of(const Path& path, const Value& value) const {
  if (as_digest(value)) return render(value);
  const auto& rule = schema_.rule(path);
  if (!is_structure(rule)) return leaf(rule, value);
  if (const auto* members = value.object()) return object(path, *members);
  if (const auto* elements = value.array()) return array(path, rule, *elements);
  return leaf(rule, value);
}

bool Forms::same_but_keys(const Path& path, const Value& a, const Value& b) const {
  std::set<std::string> left, right;
  collect_keys(a, left);
  collect_keys(b, right);
  if (left.empty() || right.empty() || left == right) return false;
  Value x = a, y = b;
  strip_digests(x);
  strip_digests(y);
  return same(path, x, y);
}

bool Forms::raw_differs(const Value* a, const Value* b) {
  if (a == nullptr || b == nullptr) return a != b;
  return !(*a == *b);
}

const Value* Forms::effective(const AttributeRule& rule, const Value* value) const {
  if (value != nullptr && !rule.empty_equivalents.empty() && !as_digest(*value)) {
    if (empty_forms(rule).contains(leaf(rule, *value))) value = nullptr;
  }
  if (value == nullptr && rule.default_value) return &*rule.default_value;
  return value;
}

bool Forms::masked(const AttributeRule& rule, const Value& value) const {
  return std::any_of(rule.masked.begin(), rule.masked.end(), [&](const Value& sentinel) { return sentinel == value; });
}

bool Forms::masked_inside(const Path& path, const Value& value) const {
  if (masked(schema_.rule(path), value)) return true;
  if (const auto* object = value.object()) {
    return std::any_of(object->begin(), object->end(),
                       [&](const auto& m) { return masked_inside(path.child(m.first), m.second); });
  }
  const auto* array = value.array();
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if (masked_inside(path.child(i), (*array)[i])) return true;
  }
  return false;
}

std::optional<std::string> Forms::beyond_bounds(const Path& path, const Value& value) const {
  const auto& rule = schema_.rule(path);
  if (as_digest(value)) return std::nullopt;
  if (const auto* members = is_structure(rule) ? value.object() : nullptr) {
    for (const auto& [name, member] : *members) {
      if (auto reason = beyond_bounds(path.child(name), member)) return reason;
    }
    return std::nullopt;
  }
  const auto* elements = is_structure(rule) ? value.array() : nullptr;
  if (elements == nullptr) return leaf_beyond_bounds(rule, value);
  for (std::size_t i = 0; i < elements->size(); ++i) {
    const Path child = path.child(i);
    const auto& element = (*elements)[i];
    auto reason =
        has_own_form(child, element) ? beyond_bounds(child, element) : leaf_beyond_bounds(element_rule(rule), element);
    if (reason) return reason;
  }
  return std::nullopt;
}

std::optional<Forms::Keyed> Forms::keyed(const AttributeRule& rule, const Path& path, const Value::Array& array) const {
  Keyed out;
  for (std::size_t i = 0; i < array.size(); ++i) {
    std::string key;
    Element element{{}, &array[i], i};
    for (const auto& name : rule.keys) {
      const Value* member = array[i].find(name);
      const Path child = path.child(i).child(name);
      if (member != nullptr && as_digest(*member)) return std::nullopt;
      const Value* shown = effective(schema_.rule(child), member);
      if (shown == nullptr || shown->object() || shown->array()) return std::nullopt;
      key += of(child, *shown) + ",";
      element.selector += (element.selector.empty() ? "" : ",") + name + "=" + selector_value(*shown);
    }
    if (!out.emplace(std::move(key), std::move(element)).second) return std::nullopt;
  }
  return out;
}

Path Forms::ElementPaths::of(const Path& list, std::size_t at) const {
  if (unordered) return list.selected("*");
  return selectors.empty() ? list.child(at) : list.selected(selectors[at]);
}

Forms::ElementPaths Forms::element_paths(const Path& list, const Value::Array& array) const {
  const AttributeRule& rule = schema_.rule(list);
  ElementPaths out;
  out.unordered = rule.collection == Collection::set || rule.collection == Collection::multiset;
  const auto by_key = rule.collection == Collection::map_by_keys ? keyed(rule, list, array) : std::nullopt;
  if (!by_key) return out;
  out.selectors.resize(array.size());
  for (const auto& [key, element] : *by_key) out.selectors[element.at] = element.selector;
  return out;
}

Path Forms::stable_path(const Value& body, const Path& path) const {
  Path out;
  const Value* value = &body;
  for (const auto& segment : path.segments()) {
    const auto* array = value == nullptr ? nullptr : value->array();
    value = value == nullptr ? nullptr : find(*value, Path().with(segment));
    const bool element = array != nullptr && value != nullptr;
    out = element ? element_paths(out, *array).of(out, static_cast<std::size_t>(value - array->data()))
                  : out.with(segment);
  }
  return out;
}

}  // namespace driftd::core
