// SPDX-License-Identifier: Apache-2.0
// What a value means beside the other members of its object, and what the elements of a list mean beside each other.
#include "core/judge/siblings.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/digest.hpp"
#include "core/judge/normal_forms.hpp"
#include "core/redact.hpp"
#include "core/value/types.hpp"

namespace driftd::core {

std::string spelling_of(const Glob& pattern, const Path& object, std::string_view name) {
  const std::string folded = types::lower(pattern.text()), sought = types::lower(name);
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
  for (auto at = folded.find(sought); at != folded.npos; at = folded.find(sought, at + 1)) {
    const auto end = at + sought.size();
    if ((at > 0 && in_name(folded[at - 1])) || (end < folded.size() && in_name(folded[end]))) continue;
    std::string spelled = pattern.text().substr(at, sought.size());
    const Path path = object.child(spelled);
    if (pattern.matches(path) || pattern.lies_below(path)) return spelled;
  }
  return {};
}

Value without_digests_of_text(Value read) {
  if (auto* object = read.object()) {
    Value::Object out;
    for (auto& [name, member] : *object)
      out.emplace(name == "$hmac" ? "$hmac of a text" : name, without_digests_of_text(std::move(member)));
    return Value(std::move(out));
  }
  if (auto* array = read.array()) {
    for (auto& element : *array) element = without_digests_of_text(std::move(element));
  }
  return read;
}

namespace {

constexpr std::size_t kMaxCovered = 100'000;  ///< comparisons of one list's elements with its patterns

/// Returns the text of a member, of an object or a list as JSON; "" if it is absent.
std::string text_of_member(const Value* owner, std::string_view name) {
  const Value* member = owner == nullptr ? nullptr : owner->find(name);
  if (member == nullptr || member->is_null()) return "";
  auto text = types::scalar_text(*member);
  return text ? *std::move(text) : render(*member);
}

/// Returns a value as another member says that it is read: its normal form, marked, so that it equals no value that is
/// not of this type. A value that cannot be read stays.
Value read_one(const AttributeRule& rule, const Value& value) {
  const auto normal = normalise(rule, value);
  return normal ? Value(Value::Object{{"$read", Value(*normal)}}) : value;
}

/// Returns a value or the elements of a list as another member says that they are read.
Result<Value> read_as(const AttributeRule& rule, const Value& value, std::size_t version) {
  std::optional<Value::Array> parts;
  if (value.array() != nullptr) parts = *value.array();
  if (value.string() != nullptr && rule.split) {
    DRIFTD_TRY(parts, split(*value.string(), *rule.split));
  }
  if (!parts) return read_one(rule, value);
  if (!rule.expands.empty()) {
    DRIFTD_TRY(parts, elements_meant(rule, *parts, version));
  }
  const AttributeRule element = element_rule(rule);
  for (auto& one : *parts) one = read_one(element, one);
  const bool set = rule.collection == Collection::set, unordered = set || rule.collection == Collection::multiset;
  const auto by_text = [](const Value& a, const Value& b) { return render(a) < render(b); };
  if (unordered) std::sort(parts->begin(), parts->end(), by_text);
  if (set) parts->erase(std::unique(parts->begin(), parts->end()), parts->end());
  return Value(*std::move(parts));
}

/// Returns the elements that no pattern among them matches. Of patterns that match each other, the first stays. `text`
/// gives the text of an element; only texts are patterns, and are covered.
template <class Text>
Value::Array uncovered(Value::Array elements, const Text& text) {
  std::vector<std::optional<std::string>> texts;
  std::vector<std::pair<std::size_t, Glob>> patterns;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    texts.push_back(text(elements[i]));
    if (texts[i] && texts[i]->find('*') != std::string::npos) patterns.emplace_back(i, Glob::of_name(*texts[i]));
  }
  if (patterns.size() * elements.size() > kMaxCovered) return elements;
  std::vector<bool> covered(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    covered[i] = texts[i] && std::any_of(patterns.begin(), patterns.end(), [&](const auto& one) {
                   return one.first != i && !covered[one.first] && one.second.matches(*texts[i]);
                 });
  }
  Value::Array out;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!covered[i]) out.push_back(std::move(elements[i]));
  }
  return out;
}

/// Sorts texts that begin with the same character and stand side by side.
void sort_runs(Value::Array& elements) {
  const auto front = [](const Value& one) {
    return one.string() == nullptr || one.string()->empty() ? '\0' : one.string()->front();
  };
  for (auto from = elements.begin(); from != elements.end();) {
    const auto to = std::find_if(from, elements.end(), [&](const Value& one) { return front(one) != front(*from); });
    if (front(*from) != '\0')
      std::sort(from, to, [](const Value& a, const Value& b) { return *a.string() < *b.string(); });
    from = to;
  }
}

/// Returns what a list of `+name` and `-name` comes to: the last that names a thing counts, a name of `expands` stands
/// for its things, or for everything (`*`). What agrees with the last that named everything is left out; before all
/// there is nothing. Empty if a name is not known: nobody can say then what another one takes from it.
std::optional<Value::Array> in_effect(const AttributeRule& rule, const Value::Array& elements) {
  std::set<std::string_view> things;
  for (const auto& [name, meaning] : rule.expands) things.insert(meaning.begin(), meaning.end());
  std::string everything = "-";
  std::map<std::string, char> signs;
  for (const auto& element : elements) {
    if (element.string() == nullptr) return std::nullopt;
    std::string text = types::fold_and_trim(rule, *element.string());
    if (const auto word = rule.words.find(types::lower(text)); word != rule.words.end()) text = word->second;
    if (text.size() < 2 || (text.front() != '+' && text.front() != '-')) return std::nullopt;
    const std::string name = text.substr(1);
    const auto group = rule.expands.find(name);
    if (group == rule.expands.end() && (name == "*" || !things.contains(name))) return std::nullopt;
    if (group == rule.expands.end()) {
      signs[name] = text.front();
    } else if (group->second == std::vector<std::string>{"*"}) {
      everything = text;
      signs.clear();
    } else {
      for (const auto& thing : group->second) signs[thing] = text.front();
    }
  }
  Value::Array out;
  if (everything.front() == '+') out.emplace_back(everything);
  for (const auto& [name, sign] : signs) {
    if (sign != everything.front()) out.emplace_back(sign + name);
  }
  return out;
}

/// Adds a value to the one at `place`, as which it counts: an object member by member. Returns the members that
/// contradict one that is there; with `overrides` they take its place instead.
Value merged(const KindSchema& schema, const Path& place, const Value& member, Value& target, bool overrides) {
  if (member.object() == nullptr) {
    target = member;
    return {};
  }
  Value::Object left;
  if (target.is_null()) target = Value(Value::Object{});
  for (const auto& [key, one] : *member.object()) {
    if (overrides && one.is_null()) continue;  // it says nothing
    const bool encodes = one.string() != nullptr && schema.rule(place.child(key)).encoding == Encoding::base64;
    Value made = encodes ? Value(base64(*one.string())) : one;
    const auto [at, is_new] = target.object()->try_emplace(key, made);
    if (!is_new && overrides) at->second = std::move(made);
    if (!is_new && !overrides && !(at->second == made)) left.emplace(key, one);
  }
  return Value(std::move(left));
}

}  // namespace

template <class T>
const T* Forms::by_member(const Path& path, const ByMember<T>& by, const Value* owner) const {
  const bool of_body = by.of.starts_with('/');
  const std::string name = by.of.substr(of_body ? 1 : 0);
  std::string text = text_of_member(owner, name);
  if (const auto exact = by.values.find(text); exact != by.values.end()) return &exact->second;
  const Value* member = owner == nullptr ? nullptr : owner->find(name);
  if (member != nullptr && is_hollow(*member)) text.clear();  // [] and {} are as absent
  if (const T* found = find_value(by, text)) return found;
  const Path decider = of_body ? Path().child(name) : path.parent().child(name);
  const AttributeRule& decides = schema_.rule(decider);
  if (text.empty() && decides.default_value) {  // an absent member is what it is by default
    text = types::scalar_text(*decides.default_value).value_or("");
    if (const T* found = find_value(by, text)) return found;
  }
  auto& meanings = meanings_[{&by, &decides}];  // its values, by their normal form under the rule of the member
  const bool was_coarse = std::exchange(coarse_, false);
  if (meanings.empty()) {
    for (const auto& [value, what] : by.values) meanings.emplace(leaf(decides, Value(value)), value);
  }
  const auto meant = meanings.find(leaf(decides, Value(text)));
  coarse_ = was_coarse;
  return meant == meanings.end() ? nullptr : &by.values.find(meant->second)->second;
}

const AttributeRule* Forms::variant(const Path& path, const AttributeRule& rule, const Value* owner,
                                    const Value* body) const {
  const bool of_body = rule.rule_by && rule.rule_by->of.starts_with('/');
  if (of_body && body == nullptr) return nullptr;
  const auto* found = rule.rule_by ? by_member(path, *rule.rule_by, of_body ? body : owner) : nullptr;
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

std::optional<Value> Forms::beside(const Path& path, const AttributeRule& rule, const Value& value, const Value* owner,
                                   const Value* body) const {
  if (owner == nullptr || as_digest(value)) return std::nullopt;
  if (const auto* read = variant(path, rule, owner, body)) {
    auto out = read_as(*read, value, version_);
    return out ? std::optional(*std::move(out)) : std::nullopt;
  }
  if (!rule.netmask_of.empty()) {
    const std::string mask = text_of_member(owner, rule.netmask_of);
    const auto* text = value.string();
    const bool bare = text != nullptr && text->find('/') == std::string::npos;
    const bool whole = bare && !mask.empty() && types::cidr(*text + "/" + mask, true);  // a host name has no netmask
    return whole ? std::optional(Value(*text + "/" + mask)) : std::nullopt;
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
    const AttributeRule& rule = schema_.rule(path.child(name));
    const std::string& into = rule.into;
    if (into.empty() || into == name || as_digest(member)) continue;
    const Value* there = (out ? *out : object).find(into);
    const bool free = there == nullptr || there->is_null();
    // two values of one thing: both stay and are compared, or the one that counts could be hidden behind the other
    const bool merges = !free && member.object() != nullptr && there->object() != nullptr && !as_digest(*there);
    if (!free && !merges && !rule.overrides && !member.is_null() && !(*there == member)) continue;
    if (!out) out = object;
    Value::Object& members = *out->object();
    members.erase(name);
    if (member.is_null() || (!free && !merges && !rule.overrides)) continue;
    if (!free && !merges) members[into] = Value();  // it overrides a value that it cannot be merged with
    const Value left = merged(schema_, path.child(into), member, members[into], rule.overrides);
    if (left.object() != nullptr && !left.object()->empty()) members[name] = left;
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

Result<Value::Array> elements_meant(const AttributeRule& rule, const Value::Array& elements, std::size_t version) {
  const auto text = [&](const Value& one) {
    return one.string() == nullptr ? std::nullopt : std::optional(types::fold_and_trim(rule, *one.string()));
  };
  if (rule.in_effect) {
    if (auto out = in_effect(rule, elements)) return *std::move(out);
  }
  std::map<std::string, const std::vector<std::string>*> meanings;
  if (version > 0 && version <= rule.other_expands.size()) {
    for (const auto& [word, meaning] : rule.other_expands[version - 1])
      meanings.emplace(types::fold_and_trim(rule, word), &meaning);
  }
  for (const auto& [word, meaning] : rule.expands) meanings.emplace(types::fold_and_trim(rule, word), &meaning);
  Value::Array out;
  for (const auto& element : elements) {
    const auto own = text(element);
    const auto found = own ? meanings.find(*own) : meanings.end();
    if (found == meanings.end()) out.push_back(element);
    if (found == meanings.end()) continue;
    for (const auto& one : *found->second) out.emplace_back(one);
    if (out.size() > types::kMaxElements)
      return types::too_large("more than " + std::to_string(types::kMaxElements) + " elements");
  }
  if (rule.unordered_runs) sort_runs(out);
  return rule.covers ? uncovered(std::move(out), text) : out;
}

}  // namespace driftd::core
