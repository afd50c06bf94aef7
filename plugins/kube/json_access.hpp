// SPDX-License-Identifier: Apache-2.0
// Reading of JSON whose members may be missing or of another type.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

namespace driftd::kube {

using nlohmann::json;

/// Returns the value at a.b.c, or null.
inline const json& find(const json& tree, std::initializer_list<const char*> path) {
  static const json kNull;
  const json* at = &tree;
  for (const char* name : path) {
    if (!at->is_object()) return kNull;
    const auto found = at->find(name);
    if (found == at->end()) return kNull;
    at = &*found;
  }
  return *at;
}
/// Returns the text at this path; empty if it is missing or of another type.
inline std::string text(const json& tree, std::initializer_list<const char*> path) {
  const json& found = find(tree, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}
/// Returns the list at this path, or an empty one.
inline const json& list(const json& tree, std::initializer_list<const char*> path) {
  static const json kNone = json::array();
  const json& found = find(tree, path);
  return found.is_array() ? found : kNone;
}
/// Sets `name` in `to` unless the value is null.
inline void put(json& to, const char* name, const json& value) {
  if (!value.is_null()) to[name] = value;
}

}  // namespace driftd::kube
