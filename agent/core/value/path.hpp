// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace driftd::core {

class Value;

/// An attribute path: `a.b[0].c`, `config["min.insync.replicas"]`, `[name=x]` for an element found by key.
/// A segment is a member name, a list index, or a key selector.
class Path {
 public:
  struct Index {
    std::size_t at;
    friend bool operator==(const Index&, const Index&) = default;
  };
  struct Selector {
    std::string text;
    friend bool operator==(const Selector&, const Selector&) = default;
  };
  using Segment = std::variant<std::string, Index, Selector>;

  Path() = default;
  static Result<Path> parse(std::string_view text);
  Path child(std::string_view member) const;
  Path child(std::size_t index) const;
  Path selected(std::string_view key_equals_value) const;  ///< `name=x`
  Path with(Segment segment) const;                        ///< with this segment behind the others

  void push(Segment segment) { segments_.push_back(std::move(segment)); }  ///< as with(), in place
  void pop() { segments_.pop_back(); }                                     ///< takes the last segment off

  Path parent() const;  ///< without its last segment; empty if the path is empty

  const std::vector<Segment>& segments() const { return segments_; }
  bool empty() const { return segments_.empty(); }
  /// Returns the normal form, in which names with other characters than [A-Za-z0-9_-] are written `["…"]`.
  std::string render() const;
  friend bool operator==(const Path&, const Path&) = default;

 private:
  std::vector<Segment> segments_;
};

/// A pattern for paths or ids, not a regular expression. In a path `*` is one segment and `**` any number of them;
/// inside a segment or an id `*` is any run of characters.
class Glob {
 public:
  static Result<Glob> parse_path(std::string_view text);  ///< over paths; `**.updated_at`, `config.*`
  static Glob of_name(std::string_view text);             ///< over kinds, ids, backend names: `orders.*`

  bool matches(const Path& path) const;
  bool matches(std::string_view name) const;
  enum class Elements { none, some, all };
  /// Returns which elements of a list at `list`, and of lists in it, a path glob matches. It may return `some` where
  /// there is none.
  Elements matches_elements(const Path& list) const;
  /// Returns true if some path that this glob matches lies below `path`. What is behind a `**` lies nowhere.
  bool lies_below(const Path& path) const;
  /// Returns true if some path that this glob matches may lie below one that `outer` matches. It may return true where
  /// there is none.
  bool may_lie_below(const Glob& outer) const;
  /// Orders schema rules that match the same path: more literal segments and fewer wildcards give a higher number.
  int specificity() const;
  const std::string& text() const { return text_; }

 private:
  bool differs_at_sight(const Path& path) const;

  std::string text_;
  bool is_path_ = false;
  bool plain_front_ = false, plain_back_ = false;  ///< the first, the last segment is one name without `*`
  std::vector<std::string> segments_;              ///< path globs: `*`, `**` or a pattern for one segment
};

/// Returns the value at `path`, or nullptr. `[name=x]` selects the element whose member `name` renders as x.
const Value* find(const Value& root, const Path& path);
/// Sets the value at `path` and creates objects on the way, or removes the value if `value` is nullptr. An index may be
/// at most the size of its list.
Status assign(Value& root, const Path& path, const Value* value);

}  // namespace driftd::core
