// SPDX-License-Identifier: Apache-2.0
// An expression of SQL as a tree, for types::sql(), and what of it means the same. No other room includes this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace driftd::core::types {

struct SqlNode {
  enum class Kind {
    text,      ///< a literal in quotes
    typed,     ///< a literal in quotes without the cast that it had to another type, such as `date`
    number,    ///< a literal
    constant,  ///< true, false, null
    name,      ///< of a column, or a word such as current_user
    array,     ///< its elements are `parts`
    other      ///< the operator `text` over `parts`
  } kind = Kind::other;
  std::string text;            ///< of a literal or name: as it is written; of an array: "array"
  std::vector<SqlNode> parts;  ///< operands; empty for literals and names

  bool is(std::string_view name) const { return kind == Kind::other && text == name; }
  friend bool operator==(const SqlNode&, const SqlNode&) = default;
};

/// Returns the tree in canonical text: `(and a (= b 1))`. Its size is at most a few times that of the source.
std::string shown(const SqlNode& node);
SqlNode leaf(SqlNode::Kind kind, std::string text);
SqlNode with_operator(std::string name, std::vector<SqlNode> operands);
/// Joins two operands. `a and b and c` is one row of three, however it is nested; `x >= 1 and x <= 2` in such a row is
/// `x between 1 and 2`, `x < 1 or x > 2` is `x not between 1 and 2`.
SqlNode joined(const std::string& name, SqlNode left, SqlNode right);
/// `not x = 1` is `x <> 1`, also where x is null.
SqlNode negation(SqlNode node);
/// Returns `node::type`, without the cast if the server adds such a cast and it does not change the value. `type` is
/// what sql_type() returns.
SqlNode cast(SqlNode node, const std::string& type);
/// Returns the name that the server prints for a type without its `(n)` and `[]`: `int4` is `integer`.
std::string sql_type(const std::string& name);

}  // namespace driftd::core::types
