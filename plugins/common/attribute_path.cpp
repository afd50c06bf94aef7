// SPDX-License-Identifier: Apache-2.0
#include "common/attribute_path.hpp"

#include <algorithm>

#include "driftd/sdk/types.hpp"

namespace driftd::common {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(std::string_view path, const std::string& expected) {
  throw sdk::Failure(DRIFTD_INVALID, "apply: path '" + std::string(path) + "': expected " + expected);
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Returns the end of the JSON string that begins at `from`, behind its closing quote; npos if it is not closed.
std::size_t end_of_quoted(std::string_view text, std::size_t from) {
  for (std::size_t at = from + 1; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return std::string_view::npos;
}

/// Returns the end of a part that ends at `stop` outside of quotes.
std::size_t end_of_part(std::string_view text, std::size_t from, char stop) {
  for (std::size_t at = from; at < text.size();) {
    if (text[at] == stop) return at;
    at = text[at] == '"' ? end_of_quoted(text, at) : at + 1;
  }
  return std::string_view::npos;
}

std::string unquoted(std::string_view path, std::string_view text) {
  if (!text.starts_with('"')) return std::string(text);
  const json value = json::parse(text, nullptr, false);
  if (!value.is_string()) refuse(path, "a JSON string between the quotes");
  return value.get<std::string>();
}

/// Splits `name=x,port=80`.
PathStep selector_step(std::string_view path, std::string_view text) {
  PathStep out{PathStep::Kind::selector, {}, 0};
  while (!text.empty()) {
    const std::size_t end = std::min(end_of_part(text, 0, ','), text.size());
    const std::string_view part = text.substr(0, end);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) refuse(path, "key=value between '[' and ']'");
    out.keys.emplace_back(part.substr(0, equals), unquoted(path, part.substr(equals + 1)));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return out;
}

PathStep bracket_step(std::string_view path, std::string_view inner) {
  if (inner.starts_with('"') && end_of_quoted(inner, 0) == inner.size())
    return {PathStep::Kind::member, unquoted(path, inner)};
  const bool digits = !inner.empty() && inner.size() <= 9 && inner.find_first_not_of("0123456789") == inner.npos;
  if (digits) return {PathStep::Kind::index, {}, std::stoul(std::string(inner))};
  if (inner.empty()) refuse(path, "something between '[' and ']'");
  return selector_step(path, inner);
}

/// Returns the text of a scalar as selectors write it.
std::string scalar_text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

bool has_keys(const json& element, const PathStep& step) {
  return std::all_of(step.keys.begin(), step.keys.end(), [&](const auto& key) {
    const json* at = element.is_object() ? &element : nullptr;
    if (at != nullptr && !at->contains(key.first)) {  // `metadata.name` names a member of a member
      std::string pointer = "/" + key.first;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      const json::json_pointer where(pointer);
      return at->contains(where) ? scalar_text(at->at(where)) == key.second : key.second == "null";
    }
    return at != nullptr && scalar_text(at->at(key.first)) == key.second;
  });
}

}  // namespace

AttributePath parse_attribute_path(std::string_view text) {
  AttributePath out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '[') {
      const std::size_t end = end_of_part(text, at + 1, ']');
      if (end == std::string_view::npos) refuse(text, "']'");
      out.push_back(bracket_step(text, text.substr(at + 1, end - at - 1)));
      at = end + 1;
      continue;
    }
    if (!out.empty() && text[at++] != '.') refuse(text, "'.' or '['");
    const std::size_t begin = at;
    while (at < text.size() && is_plain(text[at])) ++at;
    if (at == begin) refuse(text, "a name of letters, digits, '_' and '-'; others are written [\"...\"]");
    out.push_back({PathStep::Kind::member, std::string(text.substr(begin, at - begin))});
  }
  if (out.empty()) refuse(text, "a path, found nothing");
  return out;
}

std::size_t element_index(const json& list, const PathStep& step) {
  if (step.kind == PathStep::Kind::index) return std::min(step.at, list.size());
  if (step.kind == PathStep::Kind::member) return list.size();
  const auto at = std::find_if(list.begin(), list.end(), [&](const json& one) { return has_keys(one, step); });
  return static_cast<std::size_t>(at - list.begin());
}

const json* find_at(const json& body, const AttributePath& path) {
  const json* out = &body;
  for (const auto& step : path) {
    if (step.kind == PathStep::Kind::member) {
      if (!out->is_object() || !out->contains(step.name)) return nullptr;
      out = &out->at(step.name);
      continue;
    }
    const std::size_t at = out->is_array() ? element_index(*out, step) : 0;
    if (!out->is_array() || at >= out->size()) return nullptr;
    out = &out->at(at);
  }
  return out;
}

void assign_at(json& body, const AttributePath& path, const json& value) {
  json* at = &body;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool last = i + 1 == path.size(), member = path[i].kind == PathStep::Kind::member;
    if (at->is_null() && !value.is_null()) *at = member ? json::object() : json::array();
    if (at->is_null()) return;  // nothing is there to take away
    if (member ? !at->is_object() : !at->is_array())
      throw sdk::Failure(DRIFTD_INVALID, "apply: a path leads through a value that has no such parts");
    const std::size_t index = member ? 0 : element_index(*at, path[i]);
    const bool there = member ? at->contains(path[i].name) : index < at->size();
    if (last && value.is_null()) {
      if (there && member) at->erase(path[i].name);
      if (there && !member) at->erase(index);
      return;
    }
    if (!there && !member) at->push_back(nullptr);
    at = member ? &(*at)[path[i].name] : &(*at)[index];
  }
  *at = value;
}

json parse_change_value(const std::string& text) {
  if (text.empty()) return nullptr;
  json out = json::parse(text, nullptr, false);
  if (out.is_discarded()) throw sdk::Failure(DRIFTD_INVALID, "apply: the value of a change is not JSON");
  return out;
}

bool holds_at(const json& body, const AttributePath& path, const json& wanted) {
  const json* found = find_at(body, path);
  return found == nullptr ? wanted.is_null() : *found == wanted;
}

}  // namespace driftd::common
