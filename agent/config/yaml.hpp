// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "config/errors.hpp"

namespace driftd::config {

/// One node of a YAML document with its place. Aliases are expanded.
struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Position at;
  std::string text;     ///< of a scalar
  bool quoted = false;  ///< the scalar is text whatever it looks like
  std::vector<Node> items;
  struct Member;
  std::vector<Member> members;  ///< in the order of the file, duplicates included

  /// First member of that name, or nullptr.
  const Node* find(std::string_view key) const;
};
struct Node::Member {
  std::string key;
  Position at;  ///< of the key
  Node value;
};

inline constexpr std::size_t kMaxFileBytes = 1u << 20;  ///< of a config file
inline constexpr std::size_t kMaxNodes = 50'000;        ///< after aliases are expanded
inline constexpr std::size_t kMaxTreeBytes = 8u << 20;  ///< bytes of its text after aliases are expanded
inline constexpr std::size_t kMaxDepth = 64;            ///< of lists and maps in each other

/// Parses one document. Refused with a position: more than 1 MiB, bytes that are not UTF-8, NUL and other control
/// characters, tabs in an indentation, a second document, keys that are not text, tags, an alias bomb. All tabs and
/// control characters are reported at once; of grammar mistakes the first.
tl::expected<Node, std::vector<ConfigError>> parse_yaml(std::string_view text, const std::string& file);

/// `text 'on'`, `a list`, `nothing` … for "found"; `secret`: the value itself is not shown.
std::string describe(const Node& node, bool secret = false);

}  // namespace driftd::config
