// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/bounded_build.hpp"

namespace driftd::common {

/// Nobody configures deeper nesting than this, and the walks over a document are recursive.
inline constexpr int kMaxNesting = 128;
inline constexpr std::size_t kMaxBody = 4u << 20;  ///< maximum bytes of a record's body (provider.h)
inline constexpr std::size_t kMaxValues = 90'000;  ///< maximum values in a body; the host accepts 100,000
/// Maximum number of values of a foreign text that become a tree, each about 100 bytes: room for a body of kMaxValues
/// and for its managedFields.
inline constexpr std::size_t kMaxParsed = 3 * kMaxValues;

/// Size of a JSON tree, as far as it can be told without building it.
struct Shape {
  int deepest = 0;         ///< nesting depth of objects and lists
  std::size_t values = 1;  ///< upper bound of the number of values down to kMaxNesting; deeper ones are never built
};

/// Measures the tree that `text` would become. The text need not be valid JSON. Pure.
inline Shape shape_of(std::string_view text) {
  Shape out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    } else if (c == '{' || c == '[') {
      out.deepest = std::max(out.deepest, ++depth);
      if (depth <= kMaxNesting) ++out.values;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth <= kMaxNesting) {
      ++out.values;
    }
  }
  return out;
}

/// Renders the value as text. Bytes that are not UTF-8 become U+FFFD; dump() would throw. Pure.
/// Never throws.
inline std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A parsed document. If `value` is discarded and `why` is empty, the text is not valid JSON.
struct BoundedJson {
  nlohmann::json value;  ///< discarded if the text is not valid JSON or holds more than kMaxParsed values
  bool cut = false;      ///< true if `value` is not the whole document
  std::string why;       ///< reason of the cut
};

/// Returns the reason of a cut above kMaxParsed.
inline std::string too_many_values() { return "it holds more than " + std::to_string(kMaxParsed) + " values"; }

/// Parses foreign JSON into a tree of bounded depth and size; nothing beyond the bounds is built. Pure.
inline BoundedJson parse_bounded(std::string_view text) {
  using nlohmann::json;
  const Shape shape = shape_of(text);
  if (shape.values > kMaxParsed) return {json(json::value_t::discarded), true, too_many_values()};
  if (shape.deepest <= kMaxNesting) return {json::parse(text, nullptr, false), false, {}};
  BoundedBuild build(kMaxNesting, kMaxParsed);
  if (!json::sax_parse(text, &build)) return {json(json::value_t::discarded), true, {}};
  return {build.take(), true, "it nests deeper than " + std::to_string(kMaxNesting) + " levels"};
}

/// Counts the value itself and all values inside it. Pure.
/// It calls itself for each level, so `value` must not nest deeper than kMaxNesting.
inline std::size_t values_in(const nlohmann::json& value) {
  std::size_t out = 1;
  if (value.is_structured()) {
    for (const auto& member : value) out += values_in(member);
  }
  return out;
}

/// Removes the largest members of a body until its text has at most `max_bytes` bytes and it holds at most kMaxValues
/// values. The removed names are appended to `left_out`. Pure.
/// Returns that text. `body` must be an object.
inline std::string fit_members(nlohmann::json& body, std::size_t max_bytes, std::vector<std::string>& left_out) {
  using Sized = std::pair<std::size_t, std::string>;  ///< bytes or values of a member, and its name
  const auto take_off = [&](std::size_t have, std::size_t bound, std::vector<Sized> members) {
    std::sort(members.rbegin(), members.rend());
    for (const auto& [size, name] : members) {
      if (have <= bound) return;
      body.erase(name);
      left_out.push_back(name);
      have -= std::min(have, size);
    }
  };
  std::vector<Sized> members;
  if (const std::size_t values = values_in(body); values > kMaxValues) {
    for (const auto& [name, value] : body.items()) members.emplace_back(values_in(value), name);
    take_off(values, kMaxValues, std::move(members));
  }
  std::string out = json_text(body);
  if (out.size() <= max_bytes) return out;
  members.clear();
  for (const auto& [name, value] : body.items()) members.emplace_back(name.size() + json_text(value).size() + 4, name);
  take_off(out.size(), max_bytes, std::move(members));
  return json_text(body);
}

inline constexpr std::size_t kMaxPaths = 4096;  ///< maximum number of sensitive paths of a record (provider.h)
inline constexpr std::size_t kMaxPath = 4096;   ///< maximum bytes of each path

/// The first segment of an attribute path: `a` of `a.b[0]`, `["x.y"]` of `["x.y"].z`. Pure.
inline std::string first_segment(const std::string& path) {
  if (!path.starts_with("[\"")) return path.substr(0, path.find_first_of(".["));
  std::size_t end = 2;
  while (end < path.size() && path[end] != '"') end += path[end] == '\\' ? 2 : 1;
  return path.substr(0, end + 2);
}

/// Keeps the sensitive paths within the host's limits. If there are too many, or one is too long, whole top-level
/// members become secret instead; if that is not enough, the whole body does. Pure.
/// Nothing that was secret becomes visible; `**` is the path of everything.
inline void bound_paths(std::vector<std::string>& paths) {
  const auto too_long = [](const std::string& path) { return path.size() > kMaxPath; };
  const bool too_many = paths.size() > kMaxPaths;
  if (!too_many && std::none_of(paths.begin(), paths.end(), too_long)) return;
  for (auto& path : paths) {
    if (too_many || too_long(path)) path = first_segment(path);
    if (too_long(path)) path = "**";
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  if (paths.size() > kMaxPaths) paths.assign(1, "**");
}

}  // namespace driftd::common
