// SPDX-License-Identifier: Apache-2.0
#include "core/judge/normal_forms.hpp"

#include <algorithm>
#include <set>

#include "core/judge/siblings.hpp"
#include "core/redact.hpp"
#include "core/value/types.hpp"

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

std::optional<std::string> leaf_beyond_bounds(const AttributeRule& rule, const Value& value) {
  const auto normal = normalise(rule, value);
  return normal || normal.error().code != Code::budget ? std::nullopt : std::optional(normal.error().message);
}

/// Returns the path of a key below its element, and the object that holds it; nullptr if there is none. In dialect 2 a
/// name that the object does not have is a path: `metadata.name`.
std::pair<Path, const Value*> key_place(const AttributeRule& rule, Path at, const Value& element,
                                        std::string_view name) {
  const Value* owner = &element;
  for (auto dot = name.find('.'); rule.dialect > 1 && dot != std::string_view::npos; dot = name.find('.')) {
    if (owner != nullptr && owner->find(name) != nullptr) break;
    at = at.child(name.substr(0, dot));
    owner = owner == nullptr ? nullptr : owner->find(name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  return {at.child(name), owner};
}

/// Returns the first value of the group of `same` that has this value. nullptr if none has it, or if it is the first.
const Value* first_of_same(const AttributeRule& rule, const Value& value) {
  for (const auto& group : rule.same) {
    const auto found = std::find(group.begin(), group.end(), value);
    if (found != group.end()) return found == group.begin() ? nullptr : &group.front();
  }
  return nullptr;
}

/// Returns true if a difference of such a member need not be a drift, so that elements are paired without it.
bool is_left_out_of_pairing(const AttributeRule& rule) {
  return rule.computed || rule.write_only || !rule.generated_from.empty() || !rule.masked.empty() ||
         !rule.hidden.empty() || !rule.other_defaults.empty() || rule.may_open() || rule.at_least ||
         !rule.between.empty() || rule.rule_by;
}

}  // namespace

bool is_hollow(const Value& value) {
  if (value.is_null() || (value.string() && value.string()->empty())) return true;
  if (as_digest(value)) return false;
  if (const auto* array = value.array()) return std::all_of(array->begin(), array->end(), is_hollow);
  const auto* object = value.object();
  return object != nullptr &&
         std::all_of(object->begin(), object->end(), [](const auto& member) { return is_hollow(member.second); });
}

bool Forms::has_own_form(const Path& element, const Value& value) const {
  const bool own = schema_.dialect() == 1 && schema_.find_rule(element) != nullptr;
  return own || value.object() || value.array() || as_digest(value);
}

std::string Forms::leaf(const AttributeRule& rule, const Value& value) const {
  if (coarse_ && rule.type == ValueType::reference) {
    if (known_names_) return "0";
    const auto text = types::scalar_text(value);
    if (text) return render(Value(types::last_part(types::fold_and_trim(rule, *text), rule.unit)));
  }
  if (coarse_ && rule.type == ValueType::version && rule.unit == "declared") return "0";
  if (coarse_ && (rule.digest != DigestForm::none || !rule.accepts.empty())) return "0";
  const Value* meant = first_of_same(rule, value);
  auto normal = normalise(rule, meant != nullptr ? *meant : value);
  const bool looks_raw = normal && rule.dialect > 1 && normal->starts_with("{\"$raw\":");
  if (normal) return looks_raw ? "{\"$" + normal->substr(2) : *normal;
  if (rule.dialect > 1) return "{\"$raw\":" + types::structure(rule, value) + "}";  // with the rule's trim and fold
  static const AttributeRule kPlain;
  return "{\"$raw\":" + normalise(kPlain, value).value_or(render(value)) + "}";
}

std::string Forms::object(const Path& path, const Value& given) const {
  const auto whole = gathered(path, given);
  const Value& owner = whole ? *whole : given;
  const bool second = schema_.dialect() > 1;
  const AttributeRule* rule = second ? &schema_.rule(path) : nullptr;
  const bool fold_names = second && rule->fold_names && !has_twin_names(owner);
  const bool leaves_out = second && coarse_ && rule->may_open();
  std::string out;
  std::map<std::string, std::string> folded;  // names that differ in case alone must meet, so they are sorted again
  for (const auto& [name, member] : *owner.object()) {
    if (leaves_out && rule->allows(name)) continue;
    auto form = member_form(fold_names ? folded_child(path, name) : path.child(name), member, owner);
    if (!form) continue;
    if (fold_names) {
      folded.emplace(types::lower(name), *std::move(form));
    } else {
      // a value that is not of its type is {"$raw": …}; no object may look like that
      const std::string shown = second && name == "$raw" ? "$$raw" : name;
      out += (out.empty() ? "" : ",") + render(Value(shown)) + ":" + *form;
    }
  }
  for (const auto& [name, form] : folded) out += (out.empty() ? "" : ",") + render(Value(name)) + ":" + form;
  return "{" + out + "}";
}

bool Forms::has_twin_names(const Value& object) {
  std::set<std::string> names;
  return !std::all_of(object.object()->begin(), object.object()->end(),
                      [&](const auto& member) { return names.insert(types::lower(member.first)).second; });
}

Path Forms::folded_child(const Path& path, std::string_view name) const {
  const Path lower = path.child(types::lower(name));
  const Path as_written = path.child(name);
  // the pattern that names the member may be written in another case than the member
  std::optional<Path> other;
  for (const auto& rule : schema_.rules()) {
    const std::string spelling = spelling_of(rule.path, path, name);
    if (spelling == name) return as_written;
    if (other) continue;
    if (!spelling.empty()) other = path.child(spelling);
    if (!rule.path.matches(as_written) && rule.path.matches(lower)) other = lower;
  }
  return other.value_or(as_written);
}

std::optional<std::string> Forms::member_form(const Path& path, const Value& member, const Value& owner) const {
  const auto& rule = schema_.rule(path);
  if (rule.is_volatile || (coarse_ && (is_left_out_of_pairing(rule) || !schema_.names(path)))) return std::nullopt;
  const Value* shown = effective(rule, &member, &owner);
  const Value* usual = default_of(rule, &owner);
  if (shown == nullptr || shown == usual) return std::nullopt;
  const auto* read = variant(path, rule, &owner);
  if (read != nullptr && read->is_volatile) return "\"$volatile\"";  // as the other side may not be
  const auto meant = beside(path, rule, *shown, &owner);
  std::string form = of(path, meant ? *meant : *shown);  // once: twice a level would be 2^depth for a rule like `**`
  if (usual == nullptr) return form;
  const bool own = rule.default_value && usual == &*rule.default_value;
  const bool is_usual = own ? is_default(rule, path, form) : form == of(path, *usual);
  return is_usual ? std::nullopt : std::optional(std::move(form));
}

Result<std::optional<Value>> Forms::opened(const AttributeRule& rule, const Value& value) const {
  if (rule.dialect < 2 || value.is_null() || as_digest(value)) return std::nullopt;
  const auto* text = value.string();
  if (rule.inside && text != nullptr) {
    auto read = types::read_document(rule, *text);
    if (read) return std::optional(without_digests_of_text(*std::move(read)));
    return read.error().code == Code::budget ? Result<std::optional<Value>>(fail(read.error())) : std::nullopt;
  }
  const Value* meant = first_of_same(rule, value);
  const Value& given = meant != nullptr ? *meant : value;
  std::optional<Value> out = meant != nullptr ? std::optional(*meant) : std::nullopt;
  if (const auto* parts_of = given.string(); rule.split && parts_of != nullptr) {
    const bool quoted = rule.trim_quotes && parts_of->size() > 1 && parts_of->front() == '"' && parts_of->back() == '"';
    DRIFTD_TRY(Value::Array parts, split(quoted ? parts_of->substr(1, parts_of->size() - 2) : *parts_of, *rule.split));
    out = Value(std::move(parts));
  } else if (given.array() == nullptr && (rule.single || (rule.split && given.object() == nullptr))) {
    auto as_text = rule.split ? types::scalar_text(given) : Result<std::string>(fail(Code::invalid, ""));
    out = Value(Value::Array{as_text ? Value(*std::move(as_text)) : given});
  }
  if (rule.flat && given.array() != nullptr) {
    DRIFTD_TRY(Value::Array parts, parts_of_elements(*given.array(), *rule.split));
    out = Value(std::move(parts));
  }
  const Value& shown = out ? *out : value;
  if (shown.array() == nullptr || (rule.expands.empty() && !rule.covers && !rule.unordered_runs)) return out;
  DRIFTD_TRY(Value::Array elements, elements_meant(rule, *shown.array(), version_));
  return std::optional(Value(std::move(elements)));
}

std::string Forms::default_form(const AttributeRule& rule, const Path& path) const {
  ++rendered_schema_values_;
  ++rendering_default_;
  std::string out = of(path, *rule.default_value);
  --rendering_default_;
  return out;
}

bool Forms::is_default(const AttributeRule& rule, const Path& path, const std::string& form) const {
  if (rule.dialect > 1 && rule.default_value->object() != nullptr) return form == default_form(rule, path);
  // Any other default has no objects (dialect 1) or few, so only the elements of a list can have rules of their own.
  const bool list = is_structure(rule) && !coarse_ && rule.default_value->array() != nullptr;
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
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Path child = path.child(i);
    parts.push_back(has_own_form(child, value[i]) ? of(child, value[i])
                                                  : leaf(scalar_rule(path, rule, child), value[i]));
  }
  return join_collection(rule.ordered ? Collection::list : rule.collection, std::move(parts));
}

const AttributeRule& Forms::scalar_rule(const Path& path, const AttributeRule& rule, const Path& element) const {
  if (schema_.dialect() > 1) return schema_.scalar_rule(path, element);
  const auto [kept, is_new] = element_rules_.try_emplace(&rule);
  if (is_new) kept->second = element_rule(rule);
  return kept->second;
}

std::string Forms::of(const Path& path, const Value& value) const {
  if (as_digest(value)) return render(value);
  const auto& rule = schema_.rule(path);
  if (!is_structure(rule)) return leaf(rule, value);
  const auto read = opened(rule, value);
  const Value& shown = read && *read ? **read : value;
  const InText inside(*this, rule);
  if (shown.object()) return object(path, shown);
  if (const auto* elements = shown.array()) return array(path, rule, *elements);
  return leaf(rule, rule.inside ? value : shown);  // a scalar in a text is read with its text
}

std::string Forms::element(const Path& list, std::size_t at, const Value& value) const {
  const Path path = list.child(at);
  return has_own_form(path, value) ? of(path, value) : leaf(schema_.scalar_rule(list, path), value);
}

std::string Forms::coarse(const Path& list, std::size_t at, const Value& value) const {
  coarse_ = true;
  std::string out = element(list, at, value);
  coarse_ = false;
  return out;
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

const Value* Forms::effective(const AttributeRule& rule, const Value* value, const Value* owner) const {
  if (value != nullptr && rule.dialect > 1 && value->is_null() && in_text_ == 0) value = nullptr;
  if (value != nullptr && rule.hollow && is_hollow(*value)) value = nullptr;
  if (value != nullptr && !rule.empty_equivalents.empty() && !as_digest(*value)) {
    if (empty_forms(rule).contains(leaf(rule, *value))) value = nullptr;
  }
  return value == nullptr ? default_of(rule, owner) : value;
}

bool Forms::masked(const AttributeRule& rule, const Value& value) const {
  const auto* text = value.string();
  const bool hidden = text != nullptr && std::any_of(rule.hidden.begin(), rule.hidden.end(),
                                                     [&](const Glob& pattern) { return pattern.matches(*text); });
  return hidden ||
         std::any_of(rule.masked.begin(), rule.masked.end(), [&](const Value& sentinel) { return sentinel == value; });
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

std::optional<std::string> Forms::beyond_bounds(const Path& path, const Value& given) const {
  const auto& rule = schema_.rule(path);
  if (as_digest(given)) return std::nullopt;
  const auto read = opened(rule, given);
  if (!read) return read.error().message;
  const Value& value = *read ? **read : given;
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
    auto reason = has_own_form(child, element) ? beyond_bounds(child, element)
                                               : leaf_beyond_bounds(scalar_rule(path, rule, child), element);
    if (reason) return reason;
  }
  return std::nullopt;
}

std::optional<Forms::Keyed> Forms::keyed(const AttributeRule& rule, const Path& path, const Value::Array& array) const {
  Keyed out;
  for (std::size_t i = 0; i < array.size(); ++i) {
    std::string key;
    Element element{{}, {}, &array[i], i};
    for (const auto& name : rule.keys) {
      const auto [child, owner] = key_place(rule, path.child(i), array[i], name);
      const Value* member = owner == nullptr ? nullptr : owner->find(std::get<std::string>(child.segments().back()));
      if (member != nullptr && as_digest(*member)) return std::nullopt;
      const Value* shown = effective(schema_.rule(child), member, owner);
      if (shown == nullptr || shown->object() || shown->array()) return std::nullopt;
      key += of(child, *shown) + ",";
      if (element.name.empty()) element.name = types::scalar_text(*shown).value_or("");
      element.selector += (element.selector.empty() ? "" : ",") + name + "=" + selector_value(*shown);
    }
    if (!out.emplace(std::move(key), std::move(element)).second) return std::nullopt;
  }
  return out;
}

Path::Segment Forms::ElementPaths::segment(std::size_t at) const {
  if (unordered) return Path::Selector{"*"};
  return selectors.empty() ? Path::Segment(Path::Index{at}) : Path::Segment(Path::Selector{selectors[at]});
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
