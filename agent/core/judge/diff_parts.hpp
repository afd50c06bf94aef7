// SPDX-License-Identifier: Apache-2.0
// Normal forms of whole subtrees under a schema; part of diff(). No other room includes this.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/value/schema.hpp"

namespace driftd::core {

/// Normal forms by path. Borrows the schema; pure.
class Forms {
 public:
  explicit Forms(const KindSchema& schema) : schema_(schema) {}

  /// Canonical text of a subtree, children by their own rules, volatile, defaulted and empty members left out. A value
  /// that is not of its rule's type stands as {"$raw": structure}.
  std::string of(const Path& path, const Value& value) const;
  bool same(const Path& path, const Value& a, const Value& b) const { return of(path, a) == of(path, b); }
  /// Equal once digests under different keys are taken for equal.
  bool same_but_keys(const Path& path, const Value& a, const Value& b) const;
  static bool raw_differs(const Value* a, const Value* b);

  /// The value that an attribute has in effect: empty equivalents are absent, absent is the default; nullptr: nothing.
  const Value* effective(const AttributeRule& rule, const Value* value) const;
  bool masked(const AttributeRule& rule, const Value& value) const;
  bool masked_inside(const Path& path, const Value& value) const;
  /// Why the value cannot be brought into its normal form within the bounds; nothing where it can, or is not of its
  /// type.
  std::optional<std::string> beyond_bounds(const Path& path, const Value& value) const;
  /// Objects under this rule are compared member by member.
  bool is_structure(const AttributeRule& rule) const {
    return rule.type != ValueType::json && rule.type != ValueType::yaml;
  }

  struct Element {
    std::string selector;  ///< `name=x`
    const Value* value = nullptr;
    std::size_t at = 0;  ///< its place in the list
  };
  using Keyed = std::map<std::string, Element>;  ///< by the normal form of the keys
  /// The elements by their keys; nothing when one lacks a key or two share one.
  std::optional<Keyed> keyed(const AttributeRule& rule, const Path& path, const Value::Array& array) const;

  /// What a digest below an element of a list is stable_path to: its keys where the schema keys the list, nothing where
  /// order means nothing, else its place. So an element that moves keeps the digests in it.
  struct ElementPaths {
    bool unordered = false;
    std::vector<std::string> selectors;  ///< of a list by keys, by place
    Path of(const Path& list, std::size_t at) const;
  };
  ElementPaths element_paths(const Path& list, const Value::Array& array) const;
  /// The path that a digest at `path` of `body` is stable_path to; a person or a change may name it by place or by key.
  Path stable_path(const Value& body, const Path& path) const;

 private:
  /// An element of a list that is read by a rule of its own, not by the list's.
  bool has_own_form(const Path& element, const Value& value) const;
  std::string leaf(const AttributeRule& rule, const Value& value) const;
  std::string object(const Path& path, const Value::Object& value) const;
  std::string array(const Path& path, const AttributeRule& rule, const Value::Array& value) const;
  const KindSchema& schema_;
};

}  // namespace driftd::core
