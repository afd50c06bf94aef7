// SPDX-License-Identifier: Apache-2.0
// Lists, texts that are read, and values with several forms (dialect 2).
#include <algorithm>
#include <map>
#include <set>

#include "core/judge/known_names.hpp"
#include "core/judge/walk.hpp"
#include "core/value/types.hpp"

namespace driftd::core {
namespace {

constexpr std::size_t kMaxPairs = 100'000;  ///< pairs of elements in one comparison of two bodies

/// Returns true if `open` names this element of a list without keys. The name is its text, which only a scalar has.
bool allows(const AttributeRule& rule, const Value& element) {
  const auto text = types::scalar_text(element);
  return text ? rule.allows(*text) : rule.open;
}

struct ListElement {
  std::string form;
  const Value* value = nullptr;
  std::size_t at = 0;  ///< index in the list
};

/// `once`: elements with the same normal form are one.
std::vector<ListElement> elements_of(const Forms& forms, const Path& path, const Value::Array& list, bool once) {
  std::vector<ListElement> out;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string form = forms.element(path, i, list[i]);
    const bool is_new = seen.insert(form).second;
    if (is_new || !once) out.push_back({std::move(form), &list[i], i});
  }
  return out;
}

/// Returns true if both are references, and known as names of one thing.
bool is_known(const KnownNames* known, const AttributeRule& rule, const Value& before, const Value& after) {
  const bool texts = before.string() != nullptr && after.string() != nullptr;
  return known != nullptr && rule.type == ValueType::reference && texts &&
         known->same(rule.refers, *before.string(), *after.string());
}

}  // namespace

void Walk::compare_closely(const Path& path, const AttributeRule& rule, const Sides& sides) {
  const auto& [before, after] = sides;
  if (rule.split) return compare_opened(path, rule, sides);  // its parts have several forms, not the text
  if (names_no_version(rule, *before) || names_no_version(rule, *after))
    return unknown(path, sides, rule, "a version that names none cannot be compared");
  if (equivalent(rule, *before, *after)) return equal(path, sides, rule, "another form of the same");
  if (accepts(rule, *before, *after)) return equal(path, sides, rule, "accepted in its place");
  if (is_known(options_.known, rule, *before, *after)) return equal(path, sides, rule, "known as names of one thing");
  compare_opened(path, rule, sides);
}

void Walk::compare_opened(const Path& path, const AttributeRule& rule, const Sides& sides) {
  const auto& [before, after] = sides;
  const auto left = forms_.opened(rule, *before), right = forms_.opened(rule, *after);
  if (!left || !right) return report_change(path, rule, sides);
  const Value& one = *left ? **left : *before;
  const Value& other = *right ? **right : *after;
  const bool lists = one.array() != nullptr && other.array() != nullptr && forms_.is_structure(rule);
  const bool objects = (*left || *right) && one.object() != nullptr && other.object() != nullptr;
  if (!lists && !objects) return report_change(path, rule, sides);
  const Forms::InText inside(forms_, rule);
  const auto inner = lists ? match(path, rule, *one.array(), *other.array()) : quietly(path, {&one, &other});
  // What is masked was left aside, so something else differs. This is not known if there were too many pairs to try, or
  // several masked elements, which look alike.
  if (!inner) return report_change(path, rule, sides, pairs_ <= kMaxPairs && masked_elements(path, other) < 2);
  std::move(inner->unknown.begin(), inner->unknown.end(), std::back_inserter(out_.unknown));
  if (inner->filled.empty() || options_.declared_only) return equal(path, sides, rule, "equal part by part");
  fill(path, sides, rule, "equal but for what the system added");
}

std::size_t Walk::masked_elements(const Path& path, const Value& value) const {
  if (value.array() == nullptr) return 0;
  std::size_t out = 0;
  for (std::size_t i = 0; i < value.array()->size(); ++i)
    out += forms_.masked_inside(path.child(i), (*value.array())[i]) ? 1 : 0;
  return out;
}

std::optional<Difference> Walk::quietly(const Path& path, const Sides& sides) {
  const bool was_in_element = std::exchange(in_element_, true);
  auto out = apart([&] { compare_members(path, *sides.before, *sides.after); });
  in_element_ = was_in_element;
  return out;
}

std::optional<Difference> Walk::same_element(const Path& list, const Value& left, const Value& right, std::size_t at) {
  const Path path = list.child(at);
  const bool was_in_element = std::exchange(in_element_, true);
  auto out = apart([&] {
    if (forms_.has_own_form(path, left) || forms_.has_own_form(path, right)) {
      return compare_attribute(path, {&left, &right}, {});
    }
    const AttributeRule& element = schema_.scalar_rule(list, path);
    if (is_masked(element, &left) || is_masked(element, &right))
      return unknown(path, {&left, &right}, element, "masked by the system");
    const bool same = forms_.leaf(element, left) == forms_.leaf(element, right) || equivalent(element, left, right) ||
                      accepts(element, left, right) || is_known(options_.known, element, left, right);
    if (!same) change(path, element, {&left, &right});
  });
  in_element_ = was_in_element;
  return out;
}

std::optional<Difference> Walk::match(const Path& path, const AttributeRule& rule, const Value::Array& left,
                                      const Value::Array& right) {
  const bool set = rule.collection == Collection::set;
  // elements of a map that have no keys of their own are a multiset
  const bool multiset =
      rule.collection == Collection::multiset || (rule.collection == Collection::map_by_keys && !rule.ordered);
  if (!set && !multiset) return match_in_order(path, rule, left, right);
  const auto before = elements_of(forms_, path, left, set), after = elements_of(forms_, path, right, set);
  if (rule.may_open() ? before.size() > after.size() : before.size() != after.size()) return std::nullopt;
  std::multimap<std::string, std::size_t> exact, coarse;
  for (std::size_t i = 0; i < after.size(); ++i) {
    exact.emplace(after[i].form, i);
    coarse.emplace(forms_.coarse(path, after[i].at, *after[i].value), i);
  }
  std::vector<bool> taken(after.size());
  std::vector<const ListElement*> rest;  // without one that has the same form
  for (const auto& one : before) {
    const auto same = exact.find(one.form);
    if (same == exact.end()) rest.push_back(&one);
    if (same == exact.end()) continue;
    taken[same->second] = true;
    exact.erase(same);
  }
  Difference out;
  for (const auto* one : rest) {
    std::optional<Difference> inner;
    const auto [begin, end] = coarse.equal_range(forms_.coarse(path, one->at, *one->value));
    for (auto at = begin; at != end && !inner; ++at) {
      if (taken[at->second]) continue;
      if (++pairs_ > kMaxPairs) return std::nullopt;
      inner = same_element(path, *one->value, *after[at->second].value, one->at);
      if (inner) taken[at->second] = true;
    }
    if (!inner) return std::nullopt;
    append(out, std::move(*inner));
  }
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (!taken[i] && !allows(rule, *after[i].value)) return std::nullopt;
  }
  return out;
}

std::optional<Difference> Walk::match_in_order(const Path& path, const AttributeRule& rule, const Value::Array& left,
                                               const Value::Array& right) {
  if (rule.may_open() ? left.size() > right.size() : left.size() != right.size()) return std::nullopt;
  Difference out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::optional<Difference> inner;
    for (; at < right.size() && !inner; ++at) {
      inner = same_element(path, left[i], right[at], i);
      if (!inner && !allows(rule, right[at])) return std::nullopt;
    }
    if (!inner) return std::nullopt;
    append(out, std::move(*inner));
  }
  for (; at < right.size(); ++at) {
    if (!allows(rule, right[at])) return std::nullopt;
  }
  return out;
}

void Walk::append(Difference& to, Difference from) {
  std::move(from.unknown.begin(), from.unknown.end(), std::back_inserter(to.unknown));
  std::move(from.filled.begin(), from.filled.end(), std::back_inserter(to.filled));
}

void Walk::compare_elements(const Path& path, const AttributeRule& rule, const Forms::Keyed& left,
                            const Forms::Keyed& right) {
  for (const auto& [key, element] : left) {
    const auto other = right.find(key);
    compare_element(path, &element, other == right.end() ? nullptr : &other->second);
  }
  for (const auto& [key, element] : right) {
    if (!left.contains(key) && !rule.allows(element.name)) compare_element(path, nullptr, &element);
  }
}

void Walk::compare_element(const Path& path, const Forms::Element* left, const Forms::Element* right) {
  const Path named = path.selected((left != nullptr ? left : right)->selector);
  const Sides sides{left ? left->value : nullptr, right ? right->value : nullptr};
  const UnreadPath* unread = left ? find_unread_below(path.child(left->at), left->value) : nullptr;
  if (unread == nullptr && right != nullptr) unread = find_unread_below(path.child(right->at), right->value);
  if (unread != nullptr)
    return unknown(named, sides, schema_.rule(named), "part of it is unreadable: " + unread->reason);
  const bool was_in_element = std::exchange(in_element_, true);
  const AttributeRule& rule = schema_.rule(named);
  const bool both = left != nullptr && right != nullptr;
  // An element that came or went is a change also if each of its members by itself were none.
  const bool silent =
      !both && !rule.is_volatile && !rule.computed && apart([&] { compare_attribute(named, sides, {}); });
  if (silent)
    report_change(named, rule, sides);
  else
    compare_attribute(named, sides, {});
  in_element_ = was_in_element;
}

}  // namespace driftd::core
