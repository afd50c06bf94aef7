// SPDX-License-Identifier: Apache-2.0
// Reads and writes the value at a path: find() and assign().
#include <algorithm>

#include "core/value/path.hpp"

#include "core/value/value.hpp"

namespace driftd::core {
namespace {

/// Returns a value as selectors write it: a string without quotes, anything else as JSON.
std::string scalar_text(const Value& value) {
  if (const auto* text = value.string()) return *text;
  return render(value);
}

/// Splits a selector `name=x,port=80` at commas outside quotes into (member, value) pairs.
std::vector<std::pair<std::string, std::string>> key_pairs(std::string_view selector) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!selector.empty()) {
    std::size_t end = 0;
    for (bool quoted = false; end < selector.size() && (quoted || selector[end] != ','); ++end) {
      if (quoted && selector[end] == '\\') {
        ++end;
      } else if (selector[end] == '"') {
        quoted = !quoted;
      }
    }
    const auto part = selector.substr(0, end);
    selector.remove_prefix(std::min(selector.size(), end + 1));
    const auto equals = part.find('=');
    const auto text = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    std::string wanted(text);
    if (!text.empty() && text.front() == '"') {
      if (const auto unquoted = parse(text); unquoted && unquoted->string() != nullptr) wanted = *unquoted->string();
    }
    out.emplace_back(part.substr(0, equals), std::move(wanted));
  }
  return out;
}

/// Returns the member of that name; if there is none, the one that the name is the path of: `metadata.name`.
const Value* member_at(const Value& element, std::string_view name) {
  const Value* member = element.find(name);
  const auto dot = name.find('.');
  if (member != nullptr || dot == std::string_view::npos) return member;
  const Value* outer = element.find(name.substr(0, dot));
  return outer == nullptr ? nullptr : member_at(*outer, name.substr(dot + 1));
}

/// Returns true if each member of the selector has its value. `null` also matches a member that is absent.
bool has_keys(const Value& element, const std::vector<std::pair<std::string, std::string>>& pairs) {
  return std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    const Value* member = member_at(element, pair.first);
    return member != nullptr ? scalar_text(*member) == pair.second : pair.second == "null";
  });
}

/// Returns the index of the element that a segment names, or the array's size if there is none.
std::size_t element_index(const Value::Array& array, const Path::Segment& segment) {
  if (const auto* index = std::get_if<Path::Index>(&segment)) return std::min(index->at, array.size());
  const auto* selector = std::get_if<Path::Selector>(&segment);
  if (selector == nullptr) return array.size();
  const auto pairs = key_pairs(selector->text);
  const auto at = std::find_if(array.begin(), array.end(), [&](const Value& v) { return has_keys(v, pairs); });
  return static_cast<std::size_t>(at - array.begin());
}

const Value* step(const Value& value, const Path::Segment& segment) {
  if (const auto* name = std::get_if<std::string>(&segment)) return value.find(*name);
  const auto* array = value.array();
  if (array == nullptr) return nullptr;
  const std::size_t at = element_index(*array, segment);
  return at < array->size() ? &(*array)[at] : nullptr;
}

Status cannot_assign(const Path& path, std::string_view what) {
  return fail(Code::invalid, "cannot set '" + path.render() + "': " + std::string(what));
}

Status assign_at(Value& node, const Path& path, std::size_t depth, const Value* value);

Status assign_member(Value& node, const Path& path, std::size_t depth, const Value* value) {
  if (node.is_null() && value != nullptr) node = Value(Value::Object{});
  auto* object = node.object();
  if (object == nullptr)
    return value == nullptr ? Status{} : cannot_assign(path, "a parent of this path is not an object");
  const auto& name = std::get<std::string>(path.segments()[depth]);
  const bool last = depth + 1 == path.segments().size();
  if (value == nullptr) {
    const auto it = object->find(name);
    if (it == object->end()) return {};
    if (!last) return assign_at(it->second, path, depth + 1, value);
    object->erase(it);
    return {};
  }
  Value& slot = (*object)[name];
  if (!last) return assign_at(slot, path, depth + 1, value);
  slot = *value;
  return {};
}

/// Returns a new element that a selector matches: `{"name": "x"}`.
Value element_for(const Path::Segment& segment) {
  Value::Object object;
  if (const auto* selector = std::get_if<Path::Selector>(&segment)) {
    for (auto& [member, text] : key_pairs(selector->text)) object.emplace(member, Value(text));
  }
  return object.empty() ? Value() : Value(std::move(object));
}

Status assign_element(Value& node, const Path& path, std::size_t depth, const Value* value) {
  const auto& segment = path.segments()[depth];
  if (node.is_null() && value != nullptr) node = Value(Value::Array{});
  auto* array = node.array();
  if (array == nullptr) return value == nullptr ? Status{} : cannot_assign(path, "a parent of this path is not a list");
  const auto* index = std::get_if<Path::Index>(&segment);
  if (index != nullptr && index->at > array->size() && value != nullptr)
    return cannot_assign(path, "the index is behind the end of the list");
  const std::size_t at = element_index(*array, segment);
  const bool last = depth + 1 == path.segments().size();
  if (value == nullptr) {
    if (at == array->size()) return {};
    if (!last) return assign_at((*array)[at], path, depth + 1, value);
    array->erase(array->begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  }
  if (at == array->size()) array->push_back(element_for(segment));
  if (!last) return assign_at((*array)[at], path, depth + 1, value);
  (*array)[at] = *value;
  return {};
}

Status assign_at(Value& node, const Path& path, std::size_t depth, const Value* value) {
  const bool member = std::holds_alternative<std::string>(path.segments()[depth]);
  return member ? assign_member(node, path, depth, value) : assign_element(node, path, depth, value);
}

}  // namespace

const Value* find(const Value& root, const Path& path) {
  const Value* at = &root;
  for (const auto& segment : path.segments()) {
    at = step(*at, segment);
    if (at == nullptr) return nullptr;
  }
  return at;
}

Status assign(Value& root, const Path& path, const Value* value) {
  if (!path.empty()) return assign_at(root, path, 0, value);
  root = value == nullptr ? Value() : *value;
  return {};
}

}  // namespace driftd::core
