// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "config/errors.hpp"

namespace driftd::config {

/// One node of a YAML document with its position. Aliases are expanded.
struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Position at;
  std::string text;     ///< text of a scalar
  bool quoted = false;  ///< the scalar is text even if it looks like a number
  std::vector<Node> items;
  struct Member;
  std::vector<Member> members;  ///< in the order of the file, duplicates included

  /// Returns the first member of that name, or null.
  const Node* find(std::string_view key) const;
};
struct Node::Member {
  std::string key;
  Position at;  ///< position of the key
  Node value;
};

inline constexpr std::size_t kMaxFileBytes = 1u << 20;  ///< maximum size of a config file
inline constexpr std::size_t kMaxNodes = 50'000;        ///< maximum after aliases are expanded
inline constexpr std::size_t kMaxTreeBytes = 8u << 20;  ///< maximum text bytes after aliases are expanded
inline constexpr std::size_t kMaxDepth = 64;            ///< maximum nesting of lists and maps

/// Parses one document. Returns an error with its position for: more than 1 MiB, bytes that are not UTF-8, NUL and
/// other control characters, tabs in an indentation, a second document, keys that are not text, tags, and alias bombs.
/// Reports all tabs and control characters at once, but only the first grammar mistake.
tl::expected<Node, std::vector<ConfigError>> parse_yaml(std::string_view text, const std::string& file);

/// Describes a node for "found": `text 'on'`, `a list`, `nothing` … If `secret`, the value is not shown.
std::string describe(const Node& node, bool secret = false);

}  // namespace driftd::config
