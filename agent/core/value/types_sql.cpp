// SPDX-License-Identifier: Apache-2.0
// Expressions of SQL as PostgreSQL prints them back: with casts of literals, and with parentheses around everything.
// Precedence as in the manual of PostgreSQL 17, 4.1.6. What is no plain expression (a query, a window) is compared
// token by token.
#include <array>
#include <optional>
#include <set>

#include "core/value/sql_tokens.hpp"
#include "core/value/sql_tree.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr int kMaxSqlDepth = 100;

using Kind = SqlNode::Kind;

struct Infix {
  int strength = 0;       ///< 0: it is none
  std::size_t words = 1;  ///< tokens
  std::string name;
};

/// Parses by precedence climbing. Returns nothing for what it does not know.
class Expression {
 public:
  explicit Expression(const std::vector<SqlToken>& tokens) : tokens_(tokens) {}

  std::optional<std::string> read() {
    const auto out = climb(0, 0);
    return out && at_ == tokens_.size() ? std::optional(shown(*out)) : std::nullopt;
  }

 private:
  bool is(std::string_view text, std::size_t ahead = 0) const {
    if (at_ + ahead >= tokens_.size()) return false;
    const SqlToken& token = tokens_[at_ + ahead];
    const bool bare = token.kind == SqlToken::Kind::word || token.kind == SqlToken::Kind::symbol;
    return bare && token.text == text;
  }
  bool take(std::string_view text) {
    const bool found = is(text);
    at_ += found ? 1 : 0;
    return found;
  }

  Infix infix() const {
    if (is("or")) return {1, 1, "or"};
    if (is("and")) return {2, 1, "and"};
    for (const auto* one : {"=", "<", ">", "<=", ">=", "<>"}) {
      if (is(one)) return {5, 1, one};
    }
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kLikes = {
        {{"like", "~~"}, {"ilike", "~~*"}}};
    for (const auto& [word, symbol] : kLikes) {
      if (is(word)) return {6, 1, std::string(symbol)};
      if (is("not") && is(word, 1)) return {6, 2, "!" + std::string(symbol)};
    }
    if (is("+") || is("-")) return {8, 1, tokens_[at_].text};
    if (is("*") || is("/") || is("%")) return {9, 1, tokens_[at_].text};
    if (is("^")) return {10, 1, "^"};
    const bool symbol = at_ < tokens_.size() && tokens_[at_].kind == SqlToken::Kind::symbol &&
                        kSqlOperators.find(tokens_[at_].text.front()) != std::string_view::npos;
    return symbol ? Infix{7, 1, tokens_[at_].text} : Infix{};
  }

  std::optional<SqlNode> climb(int strength, int depth) {
    if (depth > kMaxSqlDepth) return std::nullopt;
    auto left = prefix(depth);
    while (left) {
      if (follows(strength)) {
        left = postfix(std::move(*left), depth);
        continue;
      }
      const Infix found = infix();
      if (found.strength <= strength) break;
      at_ += found.words;
      const bool list = (found.name == "=" || found.name == "<>") && (is("any") || is("all"));
      if (list) {
        left = of_array(std::move(*left), found.name == "<>", depth);
        continue;
      }
      auto right = climb(found.strength, depth + 1);
      if (!right) return std::nullopt;
      left = joined(found.name, std::move(*left), std::move(*right));
    }
    return left;
  }

  /// Returns true if what comes belongs to the operand before it: a cast, IS, IN or BETWEEN.
  bool follows(int strength) const {
    if (is("::") || (strength < 4 && is("is"))) return true;
    const std::size_t ahead = is("not") ? 1 : 0;
    return strength < 6 && (is("in", ahead) || is("between", ahead));
  }

  std::optional<SqlNode> postfix(SqlNode left, int depth) {
    if (take("::")) {
      const auto type = type_name();
      return type ? std::optional(cast(std::move(left), *type)) : std::nullopt;
    }
    if (take("is")) return of_is(std::move(left));
    const bool negated = take("not");
    std::optional<SqlNode> out;
    if (take("in")) {
      auto elements = take("(") ? list(")", depth) : std::nullopt;
      if (elements) out = in_list(std::move(left), std::move(*elements));
    } else if (take("between")) {
      auto low = climb(6, depth + 1);
      auto high = low && take("and") ? climb(6, depth + 1) : std::nullopt;
      if (high) out = node("between", std::move(left), std::move(*low), std::move(*high));
    }
    if (out && negated) out = negation(std::move(*out));
    return out;
  }

  /// `x IS NOT NULL` is not `NOT x IS NULL`: both are false for a row of which only a part is null.
  std::optional<SqlNode> of_is(SqlNode left) {
    const bool negated = take("not");
    for (const auto* word : {"null", "true", "false", "unknown"}) {
      if (!take(word)) continue;
      const bool null = word == std::string_view("null");
      SqlNode out = node(negated && null ? "is not" : "is", std::move(left), leaf(Kind::constant, word));
      if (negated && !null) out = negation(std::move(out));
      return out;
    }
    return std::nullopt;
  }

  /// `x = ANY (ARRAY[…])` is `x IN (…)`, `x <> ALL (ARRAY[…])` is `x NOT IN (…)`.
  std::optional<SqlNode> of_array(SqlNode left, bool negated, int depth) {
    const bool all = is("all");
    ++at_;
    if (!take("(")) return std::nullopt;
    auto array = climb(0, depth + 1);
    if (!array || !take(")")) return std::nullopt;
    if (array->kind == Kind::array && all == negated) {
      SqlNode out = in_list(std::move(left), std::move(array->parts));
      if (negated) out = negation(std::move(out));
      return out;
    }
    return node(std::string(all ? "all" : "any") + (negated ? "<>" : "="), std::move(left), std::move(*array));
  }

  /// Reads `a, b)`.
  std::optional<std::vector<SqlNode>> list(std::string_view end, int depth) {
    std::vector<SqlNode> out;
    if (take(end)) return out;
    do {
      auto one = climb(0, depth + 1);
      if (!one) return std::nullopt;
      out.push_back(std::move(*one));
    } while (take(","));
    return take(end) ? std::optional(std::move(out)) : std::nullopt;
  }

  template <class... Operands>
  static SqlNode node(std::string name, Operands... operands) {
    std::vector<SqlNode> parts;
    (parts.push_back(std::move(operands)), ...);
    return with_operator(std::move(name), std::move(parts));
  }
  static SqlNode with_first(std::string name, SqlNode first, std::vector<SqlNode> others) {
    others.insert(others.begin(), std::move(first));
    return with_operator(std::move(name), std::move(others));
  }

  /// `x IN (1)` is `x = 1`.
  static SqlNode in_list(SqlNode left, std::vector<SqlNode> elements) {
    const bool single = elements.size() == 1;
    return with_first(single ? "=" : "in", std::move(left), std::move(elements));
  }

  /// `CASE x WHEN a THEN b ELSE c END`.
  std::optional<SqlNode> case_of(int depth) {
    SqlNode out = with_operator("case", {});
    const auto add = [&] {
      auto part = climb(0, depth + 1);
      if (part) out.parts.push_back(std::move(*part));
      return part.has_value();
    };
    if (!is("when") && !add()) return std::nullopt;
    while (take("when")) {
      out.parts.push_back(leaf(Kind::name, "when"));
      if (!add() || !take("then")) return std::nullopt;
      out.parts.push_back(leaf(Kind::name, "then"));
      if (!add()) return std::nullopt;
    }
    if (take("else")) {
      out.parts.push_back(leaf(Kind::name, "else"));
      if (!add()) return std::nullopt;
    }
    return take("end") ? std::optional(std::move(out)) : std::nullopt;
  }

  std::optional<SqlNode> prefix(int depth) {
    if (depth > kMaxSqlDepth || at_ >= tokens_.size()) return std::nullopt;
    if (take("not")) {
      auto inner = climb(3, depth + 1);
      return inner ? std::optional(negation(std::move(*inner))) : std::nullopt;
    }
    if (is("-") || is("+")) return sign(depth);
    if (take("case")) return case_of(depth);
    if (take("(")) {
      auto inner = climb(0, depth + 1);
      if (!inner || take(")")) return inner;
      auto others = take(",") ? list(")", depth) : std::nullopt;
      return others ? std::optional(with_first("row", std::move(*inner), std::move(*others))) : std::nullopt;
    }
    const SqlToken& token = tokens_[at_];
    if (token.kind == SqlToken::Kind::text || token.kind == SqlToken::Kind::number) {
      ++at_;
      return leaf(token.kind == SqlToken::Kind::text ? Kind::text : Kind::number, shown(token));
    }
    for (const auto& [word, open, close] :
         {std::array<std::string_view, 3>{"array", "[", "]"}, std::array<std::string_view, 3>{"row", "(", ")"}}) {
      if (!is(word) || !is(open, 1)) continue;
      at_ += 2;
      auto elements = list(close, depth);
      if (!elements) return std::nullopt;
      return SqlNode{word == "array" ? Kind::array : Kind::other, std::string(word), std::move(*elements)};
    }
    auto typed = typed_text();
    return typed ? typed : name(depth);
  }

  /// Reads `interval '1 day'`, which is `'1 day'::interval`.
  std::optional<SqlNode> typed_text() {
    const std::size_t begin = at_;
    const bool may_be_type = tokens_[at_].kind == SqlToken::Kind::quoted || is_free_word();
    const auto type = may_be_type ? type_name() : std::nullopt;
    if (type && at_ < tokens_.size() && tokens_[at_].kind == SqlToken::Kind::text)
      return cast(leaf(Kind::text, shown(tokens_[at_++])), *type);
    at_ = begin;
    return std::nullopt;
  }

  std::optional<SqlNode> sign(int depth) {
    const bool minus = tokens_[at_++].text == "-";
    auto inner = climb(12, depth + 1);
    if (!inner || !minus) return inner;
    if (inner->kind != Kind::number) return node("-", std::move(*inner));
    const bool negative = inner->text.starts_with('-');
    if (inner->text.find_first_not_of("-.0") != std::string::npos)  // -0 is 0
      inner->text = negative ? inner->text.substr(1) : "-" + inner->text;
    return inner;
  }

  bool is_free_word() const {
    static const std::set<std::string, std::less<>> kReserved = {
        "select",  "case", "cast",  "exists",   "when", "then", "else", "end", "from",   "where",
        "row",     "and",  "or",    "in",       "is",   "as",   "any",  "all", "filter", "collate",
        "between", "like", "order", "distinct", "over", "at",   "with", "not"};
    return tokens_[at_].kind == SqlToken::Kind::word && !kReserved.contains(tokens_[at_].text);
  }

  std::optional<SqlNode> name(int depth) {
    std::string out;
    const bool single_word = tokens_[at_].kind == SqlToken::Kind::word;
    do {
      if (at_ >= tokens_.size()) return std::nullopt;
      if (!is_free_word() && tokens_[at_].kind != SqlToken::Kind::quoted) return std::nullopt;
      out += (out.empty() ? "" : ".") + shown(tokens_[at_]);
      ++at_;
    } while (take("."));
    if (!take("(")) {
      const bool constant = single_word && (out == "true" || out == "false" || out == "null");
      return leaf(constant ? Kind::constant : Kind::name, std::move(out));
    }
    if (is("*") && is(")", 1)) {
      at_ += 2;
      return node("call", leaf(Kind::name, std::move(out)), leaf(Kind::name, "*"));
    }
    auto arguments = list(")", depth);
    if (!arguments) return std::nullopt;
    return with_first("call", leaf(Kind::name, std::move(out)), std::move(*arguments));
  }

  /// Reads `character varying(3)[]` and `public.status`. Returns the name that the server prints.
  std::optional<std::string> type_name() {
    static const std::set<std::string, std::less<>> kMore = {"varying", "precision", "with", "without", "time", "zone"};
    const auto is_name = [&] {
      return at_ < tokens_.size() &&
             (tokens_[at_].kind == SqlToken::Kind::word || tokens_[at_].kind == SqlToken::Kind::quoted);
    };
    if (!is_name()) return std::nullopt;
    std::string out = shown(tokens_[at_++]), size, dimensions;
    while (take(".")) {
      if (!is_name()) return std::nullopt;
      out += "." + shown(tokens_[at_++]);
    }
    while (at_ < tokens_.size()) {
      const SqlToken& token = tokens_[at_];
      if (token.kind == SqlToken::Kind::word && kMore.contains(token.text)) {
        out += " " + token.text;
        ++at_;
      } else if (const auto found = size_of_type(); size.empty() && dimensions.empty() && !found.empty()) {
        size = found;
      } else if (is("[") && is("]", 1)) {
        dimensions += "[]";
        at_ += 2;
      } else {
        break;
      }
    }
    return sql_type(out) + size + dimensions;
  }

  /// Reads `(10,2)`. Empty if there is no such thing here.
  std::string size_of_type() {
    const auto number = [&](std::size_t ahead) {
      return at_ + ahead < tokens_.size() && tokens_[at_ + ahead].kind == SqlToken::Kind::number;
    };
    if (!is("(") || !number(1)) return "";
    const bool two = is(",", 2) && number(3);
    if (!is(")", two ? 4 : 2)) return "";
    std::string out = "(" + tokens_[at_ + 1].text + (two ? "," + tokens_[at_ + 3].text : "") + ")";
    at_ += two ? 5 : 3;
    return out;
  }

  const std::vector<SqlToken>& tokens_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::string> sql(std::string_view text) {
  if (text.size() > kMaxJson) return too_large("more than 2 MiB");
  DRIFTD_TRY(const std::vector<SqlToken> tokens, sql_tokens(text));
  if (const auto tree = Expression(tokens).read()) return render(Value(*tree));
  std::string out;
  for (const auto& token : tokens) out += (out.empty() ? "" : " ") + shown(token);
  return render(Value(std::move(out)));
}

}  // namespace driftd::core::types
