// SPDX-License-Identifier: Apache-2.0
// The lexical structure of SQL as in the manual of PostgreSQL 17, 4.1.
#include "core/value/sql_tokens.hpp"

#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::size_t kMaxTokens = 5'000;
constexpr std::size_t kMaxOperator = 63;  ///< characters, as of any name

bool is_sql_digit(char c) { return c >= '0' && c <= '9'; }
bool is_sql_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_sql_digit(c) || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  Result<std::vector<SqlToken>> read() {
    while (true) {
      DRIFTD_CHECK(skip_blanks());
      if (rest_.empty()) return std::move(out_);
      if (out_.size() == kMaxTokens) return too_large("more than " + std::to_string(kMaxTokens) + " words of SQL");
      DRIFTD_CHECK(next());
    }
  }

 private:
  Status skip_blanks() {
    while (!rest_.empty()) {
      if (rest_.starts_with("--")) {
        rest_.remove_prefix(std::min(rest_.find_first_of("\r\n"), rest_.size()));
      } else if (rest_.starts_with("/*")) {
        DRIFTD_CHECK(skip_comment());
      } else if (!strip(rest_.substr(0, 1)).empty()) {
        return {};
      } else {
        rest_.remove_prefix(1);
      }
    }
    return {};
  }

  /// Comments nest.
  Status skip_comment() {
    std::size_t open = 1, at = 2;
    while (open > 0) {
      at = rest_.find_first_of("*/", at);
      if (at == std::string_view::npos || at + 1 == rest_.size()) return type_mismatch("the end of a comment", rest_);
      const auto two = rest_.substr(at, 2);
      open += two == "/*" ? 1u : 0u;
      open -= two == "*/" ? 1u : 0u;
      at += two == "/*" || two == "*/" ? 2 : 1;
    }
    rest_.remove_prefix(at);
    return {};
  }

  Status next() {
    const char c = rest_.front();
    if (c == '\'' || c == '"') return quoted(c);
    if (is_sql_digit(c) || (c == '.' && rest_.size() > 1 && is_sql_digit(rest_[1]))) return number();
    if (is_sql_word(c)) return word();
    const std::size_t size = rest_.starts_with("::") ? 2 : operator_size();
    std::string text(rest_.substr(0, size));
    if (text == "!=") text = "<>";
    out_.push_back({SqlToken::Kind::symbol, std::move(text)});
    rest_.remove_prefix(size);
    return {};
  }

  /// An operator does not run into a comment. It ends in a sign only if it has one of some other characters: `#-` is an
  /// operator, `*-` is two.
  std::size_t operator_size() const {
    std::size_t size = 0;
    while (size < std::min(rest_.size(), kMaxOperator) && kSqlOperators.find(rest_[size]) != std::string_view::npos &&
           !rest_.substr(size).starts_with("--") && !rest_.substr(size).starts_with("/*"))
      ++size;
    const bool may_end_in_sign = rest_.substr(0, size).find_first_of("~!@#%^&|`?") != std::string_view::npos;
    while (size > 1 && !may_end_in_sign && (rest_[size - 1] == '+' || rest_[size - 1] == '-')) --size;
    return std::max<std::size_t>(size, 1);
  }

  Status quoted(char quote) {
    std::string text;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] != quote) {
        text += rest_[i];
        continue;
      }
      if (i + 1 < rest_.size() && rest_[i + 1] == quote) {
        text += quote;
        ++i;
        continue;
      }
      rest_.remove_prefix(i + 1);
      out_.push_back({quote == '"' ? SqlToken::Kind::quoted : SqlToken::Kind::text, std::move(text)});
      return {};
    }
    return type_mismatch("a closing quote", rest_);
  }

  /// `12`, `.5`, `1e-5`; also `0x1f` and `1_000`, which are compared as they are written.
  Status number() {
    std::size_t size = 1;
    while (size < rest_.size() && (is_sql_word(rest_[size]) || rest_[size] == '.' || is_sign_of_exponent(size))) ++size;
    out_.push_back({SqlToken::Kind::number, sql_number(rest_.substr(0, size))});
    rest_.remove_prefix(size);
    return {};
  }
  bool is_sign_of_exponent(std::size_t at) const {
    const bool sign = (rest_[at] == '-' || rest_[at] == '+') && (rest_[at - 1] == 'e' || rest_[at - 1] == 'E');
    const bool decimal = rest_.substr(0, at - 1).find_first_not_of("0123456789._") == std::string_view::npos;
    return sign && decimal && at + 1 < rest_.size() && is_sql_digit(rest_[at + 1]);
  }

  Status word() {
    std::size_t size = 1;
    while (size < rest_.size() && is_sql_word(rest_[size])) ++size;
    const auto text = rest_.substr(0, size), after = rest_.substr(size);
    const bool escapes = (size == 1 && after.starts_with('\'')) ||  // E'…', B'…': not read
                         (lower(text) == "u" && (after.starts_with("&'") || after.starts_with("&\"")));
    if (escapes || text.find('$') == 0) return type_mismatch("SQL without escapes", rest_);
    out_.push_back({SqlToken::Kind::word, lower(text)});
    rest_.remove_prefix(size);
    return {};
  }

  std::string_view rest_;
  std::vector<SqlToken> out_;
};

/// Returns true for the words that are no names of columns, functions or types without quotes: those that the server
/// prints in quotes (appendix C: reserved, and not reserved with a restriction), and two that have a meaning behind
/// GROUP BY.
bool is_key_word(std::string_view plain_name) {
  static constexpr std::string_view kWords =
      " all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both "
      "case cast char character check coalesce collate collation column concurrently constraint create cross cube "
      "current_catalog current_date current_role current_schema current_time current_timestamp current_user dec "
      "decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign "
      "freeze from full grant greatest group grouping having ilike in initially inner int integer intersect "
      "interval into is isnull join json json_array json_arrayagg json_exists json_object json_objectagg json_query "
      "json_scalar json_serialize json_table json_value lateral leading least left like limit localtime "
      "localtimestamp merge_action national natural nchar none normalize not notnull null nullif numeric offset on "
      "only or order out outer overlaps overlay placing position precision primary real references returning right "
      "rollup row select session_user setof similar smallint some substring symmetric system_user table tablesample "
      "then time timestamp to trailing treat trim true union unique user using values varchar variadic verbose when "
      "where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi "
      "xmlroot xmlserialize xmltable ";
  return kWords.find(" " + std::string(plain_name) + " ") != std::string_view::npos;
}

}  // namespace

Result<std::vector<SqlToken>> sql_tokens(std::string_view text) { return Tokens(text).read(); }

bool is_plain_name(std::string_view name) {
  return !name.empty() && !is_sql_digit(name.front()) &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

std::string sql_number(std::string_view text) {
  const auto number = decimal(text);
  if (!number) return lower(text);
  const bool whole = number->find_first_not_of("-0123456789") == std::string::npos;
  return whole && text.find_first_of(".eE") != std::string_view::npos ? *number + ".0" : *number;
}

std::string in_quotes(char quote, std::string_view text) {
  std::string out(1, quote);
  for (const char c : text) out += c == quote ? std::string(2, c) : std::string(1, c);
  return out + quote;
}

std::string shown(const SqlToken& token) {
  if (token.kind == SqlToken::Kind::text) return in_quotes('\'', token.text);
  const bool needed = token.kind == SqlToken::Kind::quoted && (!is_plain_name(token.text) || is_key_word(token.text));
  return needed ? in_quotes('"', token.text) : token.text;
}

}  // namespace driftd::core::types
