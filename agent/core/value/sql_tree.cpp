// SPDX-License-Identifier: Apache-2.0
#include "core/value/sql_tree.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/value/sql_tokens.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

using Kind = SqlNode::Kind;
using Words = std::set<std::string_view>;

constexpr std::size_t kMaxNameBytes = 63;  ///< the type `name` cuts off what is longer

void append_shown(std::string& out, const SqlNode& node) {
  if (node.kind != Kind::array && node.kind != Kind::other) {
    out += node.text;
    return;
  }
  out += "(" + node.text;
  for (const auto& part : node.parts) {
    out += ' ';
    append_shown(out, part);
  }
  out += ')';
}

/// Appends to a row of `and` or `or`. Two comparisons that are a range become one.
void append(SqlNode& row, SqlNode part) {
  const bool is_and = row.text == "and";
  if (!row.parts.empty()) {
    SqlNode& last = row.parts.back();
    const bool range = last.is(is_and ? ">=" : "<") && part.is(is_and ? "<=" : ">") && last.parts[0] == part.parts[0];
    if (range) {
      last.text = is_and ? "between" : "not between";
      last.parts.push_back(std::move(part.parts[1]));
      return;
    }
  }
  row.parts.push_back(std::move(part));
}

SqlNode kept(SqlNode node, const std::string& type) {
  std::vector<SqlNode> parts;
  parts.push_back(std::move(node));
  parts.push_back(leaf(Kind::name, type));
  return with_operator("cast", std::move(parts));
}

bool is_whole(std::string_view number) {
  return number.find_first_not_of("-0123456789") == std::string_view::npos &&
         number.find_first_of("0123456789") != std::string_view::npos;
}

bool is_integer_type(std::string_view type) { return type == "integer" || type == "bigint" || type == "smallint"; }

/// A date in the form of ISO 8601, which a cast to date does not change.
bool is_plain_date(std::string_view text) {
  return text.size() == 10 && text[4] == '-' && text[7] == '-' && all_digits(text.substr(0, 4)) &&
         all_digits(text.substr(5, 2)) && all_digits(text.substr(8, 2));
}

/// Returns the constant that the server reads from a text. Empty if it refuses the text.
std::string_view boolean_word(std::string_view text) {
  static const Words kTrue = {"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"},
                     kFalse = {"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"};
  const std::string word = lower(strip(text));
  return kTrue.contains(word) ? "true" : kFalse.contains(word) ? "false" : "";
}

/// The server adds a cast to each literal in quotes that it reads as another type. Those that may change the value are
/// kept: to types of a certain size, to `date` with a time, and to numbers of texts that are none.
SqlNode cast_text(SqlNode node, const std::string& type) {
  static const Words kTexts = {"text", "character varying", "bpchar", "name", "unknown"},
                     kKept = {"bit",    "bit varying", "character", "\"char\"",        "date", "boolean", "integer",
                              "bigint", "smallint",    "numeric",   "double precision"};
  const std::string_view text = std::string_view(node.text).substr(1, node.text.size() - 2);
  if (type.find_first_of("([") != std::string::npos) return kept(std::move(node), type);
  if (kTexts.contains(type)) return type == "name" && text.size() > kMaxNameBytes ? kept(std::move(node), type) : node;
  const bool number = type == "numeric" || type == "double precision" || is_integer_type(type);
  if (number && decimal(text) && (is_whole(sql_number(text)) || !is_integer_type(type)))
    return leaf(Kind::number, sql_number(text));
  if (const auto word = type == "boolean" ? boolean_word(text) : ""; !word.empty())
    return leaf(Kind::constant, std::string(word));
  if (kKept.contains(type) && !(type == "date" && is_plain_date(text))) return kept(std::move(node), type);
  node.kind = Kind::typed;
  return node;
}

/// `real` has less digits than a literal.
SqlNode cast_number(SqlNode node, const std::string& type) {
  const bool drops = type == "numeric" || type == "double precision" ||
                     ((is_integer_type(type) || type == "real") && is_whole(node.text));
  return drops ? node : kept(std::move(node), type);
}

/// A null of any type is null, and the server adds its type.
bool is_same_constant(std::string_view constant, std::string_view type) {
  return constant == "null" ? type.find('(') == std::string_view::npos : type == "boolean";
}

/// A cast of an array is one of each of its elements.
SqlNode cast_array(SqlNode node, const std::string& type) {
  if (!type.ends_with("[]")) return kept(std::move(node), type);
  const std::string of = type.substr(0, type.find('['));
  SqlNode out = leaf(Kind::array, node.text);
  for (const auto& part : node.parts) {
    out.parts.push_back(part.kind == Kind::array ? cast_array(part, type) : cast(part, of));
    if (out.parts.back().is("cast")) return kept(std::move(node), type);
  }
  return out;
}

}  // namespace

std::string shown(const SqlNode& node) {
  std::string out;
  append_shown(out, node);
  return out;
}

SqlNode leaf(SqlNode::Kind kind, std::string text) { return {kind, std::move(text), {}}; }
SqlNode with_operator(std::string name, std::vector<SqlNode> operands) {
  return {Kind::other, std::move(name), std::move(operands)};
}

SqlNode joined(const std::string& name, SqlNode left, SqlNode right) {
  const bool is_row = name == "and" || name == "or";
  SqlNode out = is_row && left.is(name) ? std::move(left) : with_operator(name, {});
  if (out.parts.empty()) out.parts.push_back(std::move(left));
  if (!is_row) {
    out.parts.push_back(std::move(right));
    return out;
  }
  if (right.is(name)) {
    for (auto& part : right.parts) append(out, std::move(part));
  } else {
    append(out, std::move(right));
  }
  if (out.parts.size() > 1) return out;
  SqlNode only = std::move(out.parts.front());
  return only;
}

SqlNode negation(SqlNode node) {
  static const std::map<std::string_view, std::string_view> kOpposites = {
      {"=", "<>"}, {"<>", "="}, {"between", "not between"}, {"not between", "between"}};
  const auto opposite = node.kind == Kind::other ? kOpposites.find(node.text) : kOpposites.end();
  if (opposite != kOpposites.end()) {
    node.text = opposite->second;
    return node;
  }
  std::vector<SqlNode> parts;
  parts.push_back(std::move(node));
  return with_operator("not", std::move(parts));
}

SqlNode cast(SqlNode node, const std::string& type) {
  switch (node.kind) {
    case Kind::text:
      return cast_text(std::move(node), type);
    case Kind::number:
      return cast_number(std::move(node), type);
    case Kind::constant:
      return is_same_constant(node.text, type) ? node : kept(std::move(node), type);
    case Kind::name:  // the server casts names of type varchar to text
      return type == "text" ? node : kept(std::move(node), type);
    case Kind::array:
      return cast_array(std::move(node), type);
    default:
      return kept(std::move(node), type);
  }
}

std::string sql_type(const std::string& name) {
  static const std::map<std::string_view, std::string_view> kNames = {{"int", "integer"},
                                                                      {"int4", "integer"},
                                                                      {"int8", "bigint"},
                                                                      {"int2", "smallint"},
                                                                      {"float", "double precision"},
                                                                      {"float8", "double precision"},
                                                                      {"float4", "real"},
                                                                      {"decimal", "numeric"},
                                                                      {"dec", "numeric"},
                                                                      {"bool", "boolean"},
                                                                      {"varchar", "character varying"},
                                                                      {"char varying", "character varying"},
                                                                      {"char", "character"},
                                                                      {"varbit", "bit varying"},
                                                                      {"timestamp", "timestamp without time zone"},
                                                                      {"timestamptz", "timestamp with time zone"},
                                                                      {"time", "time without time zone"},
                                                                      {"timetz", "time with time zone"}};
  static constexpr std::string_view kCatalog = "pg_catalog.";
  const auto own = std::string_view(name).substr(name.starts_with(kCatalog) ? kCatalog.size() : 0);
  const auto found = kNames.find(own);
  return std::string(found == kNames.end() ? own : found->second);
}

}  // namespace driftd::core::types
