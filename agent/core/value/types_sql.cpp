// SPDX-License-Identifier: Apache-2.0
// Expressions of SQL as PostgreSQL prints them back: with casts of literals, and with parentheses around everything.
// Precedence as in the manual of PostgreSQL 17, 4.1.6. What is no plain expression (a query, a window) is compared
// token by token.
#include <array>
#include <optional>
#include <set>

#include "core/value/sql_tokens.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr int kMaxSqlDepth = 100;

/// A part of an expression in canonical text.
struct Part {
  enum class Kind { literal, name, array, other } kind = Kind::other;
  std::string text;
  std::size_t commas = 0;  ///< between the elements of an array
};

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
    auto out = climb(0, 0);
    return out && at_ == tokens_.size() ? std::optional(out->text) : std::nullopt;
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

  std::optional<Part> climb(int strength, int depth) {
    if (depth > kMaxSqlDepth) return std::nullopt;
    auto left = prefix(depth);
    while (left) {
      if (auto after = postfix(*left, strength, depth)) {
        if (after->text.empty()) return std::nullopt;
        left = std::move(after);
        continue;
      }
      const Infix found = infix();
      if (found.strength <= strength) break;
      at_ += found.words;
      const bool list = (found.name == "=" || found.name == "<>") && (is("any") || is("all"));
      if (list) {
        left = of_array(*left, found.name == "<>", depth);
        continue;
      }
      const auto right = climb(found.strength, depth + 1);
      if (!right) return std::nullopt;
      left = Part{Part::Kind::other, joined(found.name, left->text, right->text)};
    }
    return left;
  }

  /// `a and b and c` is one row of three, however it is nested.
  static std::string joined(const std::string& name, const std::string& left, const std::string& right) {
    const bool flat = name == "and" || name == "or";
    const std::string open = "(" + name + " ";
    const auto inner = [&](const std::string& part) {
      return flat && part.starts_with(open) ? part.substr(open.size(), part.size() - open.size() - 1) : part;
    };
    return open + inner(left) + " " + inner(right) + ")";
  }

  /// What follows an operand. Empty if nothing does; an empty text if it cannot be read.
  std::optional<Part> postfix(const Part& left, int strength, int depth) {
    const Part wrong;
    if (take("::")) {
      const auto type = type_name();
      return type ? cast(left, *type) : wrong;
    }
    if (strength < 4 && is("is")) return of_is(left);
    const bool negated = is("not") && (is("in", 1) || is("between", 1));
    if (strength >= 6 || (!negated && !is("in") && !is("between"))) return std::nullopt;
    at_ += negated ? 1 : 0;
    Part out;
    if (take("in")) {
      if (!take("(")) return wrong;
      const auto elements = list(")", depth);
      if (!elements) return wrong;
      out.text = in_list(left.text, *elements, commas_);
    } else {
      take("between");
      const auto low = climb(6, depth + 1);
      if (!low || !take("and")) return wrong;
      const auto high = climb(6, depth + 1);
      if (!high) return wrong;
      out.text = joined("and", "(>= " + left.text + " " + low->text + ")", "(<= " + left.text + " " + high->text + ")");
    }
    if (negated) out.text = negation(out.text);
    return out;
  }

  std::optional<Part> of_is(const Part& left) {
    take("is");
    const bool negated = take("not");
    for (const auto* word : {"null", "true", "false", "unknown"}) {
      if (!take(word)) continue;
      const std::string text = "(is " + left.text + " " + word + ")";
      return Part{Part::Kind::other, negated ? "(not " + text + ")" : text};
    }
    return Part{};
  }

  /// `x = ANY (ARRAY[…])` is `x IN (…)`, `x <> ALL (ARRAY[…])` is `x NOT IN (…)`.
  std::optional<Part> of_array(const Part& left, bool negated, int depth) {
    const bool all = is("all");
    ++at_;
    const std::size_t begin = at_;
    if (!take("(")) return std::nullopt;
    const auto array = climb(0, depth + 1);
    if (!array || !take(")")) return std::nullopt;
    if (array->kind == Part::Kind::array && all == negated) {
      const std::string elements = array->text.substr(6, array->text.size() - 7);
      const std::string text = in_list(left.text, elements, array->commas);
      return Part{Part::Kind::other, negated ? negation(text) : text};
    }
    const std::string name = std::string(all ? "all" : "any") + (negated ? "<>" : "=");
    return at_ > begin ? std::optional(Part{Part::Kind::other, "(" + name + " " + left.text + " " + array->text + ")"})
                       : std::nullopt;
  }

  /// Reads `a, b)`; returns ` a b`.
  std::optional<std::string> list(std::string_view end, int depth) {
    std::string out;
    commas_ = 0;
    if (take(end)) return out;
    std::size_t elements = 0;
    do {
      ++elements;
      const auto one = climb(0, depth + 1);
      if (!one) return std::nullopt;
      out += " " + one->text;
    } while (take(","));
    commas_ = elements - 1;
    return take(end) ? std::optional(std::move(out)) : std::nullopt;
  }

  /// `NOT x = 1` is `x <> 1`, also where x is null.
  static std::string negation(const std::string& text) {
    if (text.starts_with("(= ")) return "(<> " + text.substr(3);
    return text.starts_with("(<> ") ? "(= " + text.substr(4) : "(not " + text + ")";
  }

  /// `x IN (1)` is `x = 1`. `elements` begins with a space; `commas` are between them.
  static std::string in_list(const std::string& left, const std::string& elements, std::size_t commas) {
    return (commas == 0 ? "(= " : "(in ") + left + elements + ")";
  }

  /// `CASE x WHEN a THEN b ELSE c END`.
  std::optional<Part> case_of(int depth) {
    std::string out = "(case";
    if (!is("when")) {
      const auto value = climb(0, depth + 1);
      if (!value) return std::nullopt;
      out += " " + value->text;
    }
    for (const auto* word : {"when", "else"}) {
      while (take(word)) {
        const auto part = climb(0, depth + 1);
        if (!part) return std::nullopt;
        out += " " + std::string(word) + " " + part->text;
        if (word != std::string_view("when")) continue;
        if (!take("then")) return std::nullopt;
        const auto then = climb(0, depth + 1);
        if (!then) return std::nullopt;
        out += " then " + then->text;
      }
    }
    return take("end") ? std::optional(Part{Part::Kind::other, out + ")"}) : std::nullopt;
  }

  std::optional<Part> prefix(int depth) {
    if (depth > kMaxSqlDepth || at_ >= tokens_.size()) return std::nullopt;
    if (take("not")) {
      const auto inner = climb(3, depth + 1);
      return inner ? std::optional(Part{Part::Kind::other, negation(inner->text)}) : std::nullopt;
    }
    if (is("-") || is("+")) return sign(depth);
    if (take("case")) return case_of(depth);
    if (take("(")) {
      const auto inner = climb(0, depth + 1);
      if (!inner) return std::nullopt;
      if (take(")")) return inner;
      const auto others = take(",") ? list(")", depth) : std::nullopt;
      return others ? std::optional(Part{Part::Kind::other, "(row " + inner->text + *others + ")"}) : std::nullopt;
    }
    const SqlToken& token = tokens_[at_];
    if (token.kind == SqlToken::Kind::text || token.kind == SqlToken::Kind::number) {
      ++at_;
      return Part{Part::Kind::literal, shown(token)};
    }
    if (is("array") && is("[", 1)) {
      at_ += 2;
      const auto elements = list("]", depth);
      return elements ? std::optional(Part{Part::Kind::array, "(array" + *elements + ")", commas_}) : std::nullopt;
    }
    return name(depth);
  }

  std::optional<Part> sign(int depth) {
    const bool minus = tokens_[at_++].text == "-";
    const auto inner = climb(12, depth + 1);
    if (!inner) return std::nullopt;
    if (!minus) return inner;
    const bool number = inner->kind == Part::Kind::literal && !inner->text.starts_with('\'');
    return Part{number ? Part::Kind::literal : Part::Kind::other,
                number ? "-" + inner->text : "(- " + inner->text + ")"};
  }

  std::optional<Part> name(int depth) {
    static const std::set<std::string, std::less<>> kReserved = {
        "select", "case", "cast", "exists",    "interval", "when", "then", "else",  "end",     "from", "where",
        "row",    "and",  "or",   "in",        "between",  "like", "is",   "as",    "any",     "all",  "over",
        "filter", "date", "time", "timestamp", "collate",  "at",   "with", "order", "distinct"};
    std::string out;
    do {
      if (at_ >= tokens_.size()) return std::nullopt;
      const SqlToken& token = tokens_[at_];
      const bool word = token.kind == SqlToken::Kind::word && !kReserved.contains(token.text);
      if (!word && token.kind != SqlToken::Kind::quoted) return std::nullopt;
      out += (out.empty() ? "" : ".") + shown(token);
      ++at_;
    } while (take("."));
    if (!take("(")) {
      const bool constant = out == "true" || out == "false" || out == "null";
      return Part{constant ? Part::Kind::literal : Part::Kind::name, std::move(out)};
    }
    if (is("*") && is(")", 1)) {
      at_ += 2;
      return Part{Part::Kind::other, "(call " + out + " *)"};
    }
    const auto arguments = list(")", depth);
    return arguments ? std::optional(Part{Part::Kind::other, "(call " + out + *arguments + ")"}) : std::nullopt;
  }

  std::optional<std::string> type_name() {
    static const std::set<std::string, std::less<>> kMore = {"varying", "precision", "with", "without", "time", "zone"};
    if (at_ >= tokens_.size() ||
        (tokens_[at_].kind != SqlToken::Kind::word && tokens_[at_].kind != SqlToken::Kind::quoted))
      return std::nullopt;
    std::string out = shown(tokens_[at_++]);
    while (at_ < tokens_.size()) {
      const SqlToken& token = tokens_[at_];
      if (token.kind == SqlToken::Kind::word && kMore.contains(token.text)) {
        out += " " + token.text;
        ++at_;
      } else if (is("(") && at_ + 2 < tokens_.size() && tokens_[at_ + 1].kind == SqlToken::Kind::number && is(")", 2)) {
        out += "(" + tokens_[at_ + 1].text + ")";
        at_ += 3;
      } else if (is("[") && is("]", 1)) {
        out += "[]";
        at_ += 2;
      } else {
        break;
      }
    }
    return out;
  }

  /// The server adds casts to literals and arrays of them, and casts names of kind varchar to text.
  static Part cast(const Part& part, const std::string& type) {
    const bool added = part.kind == Part::Kind::literal || (part.kind == Part::Kind::array && type.ends_with("[]")) ||
                       (part.kind == Part::Kind::name && type == "text");
    static const std::set<std::string, std::less<>> kNumbers = {"integer", "bigint", "smallint",        "int",
                                                                "numeric", "real",   "double precision"};
    const bool text = part.kind == Part::Kind::literal && part.text.starts_with('\'');
    if (text && kNumbers.contains(type)) {
      const auto number = decimal(std::string_view(part.text).substr(1, part.text.size() - 2));
      return number ? Part{Part::Kind::literal, *number} : part;
    }
    return added ? part : Part{Part::Kind::other, "(cast " + part.text + " " + type + ")"};
  }

  const std::vector<SqlToken>& tokens_;
  std::size_t at_ = 0;
  std::size_t commas_ = 0;  ///< of the list that was read last
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
