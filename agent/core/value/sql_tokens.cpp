// SPDX-License-Identifier: Apache-2.0
#include "core/value/sql_tokens.hpp"

#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::size_t kMaxTokens = 5'000;

bool is_sql_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  Result<std::vector<SqlToken>> read() {
    while (skip_blanks()) {
      if (out_.size() == kMaxTokens) return too_large("more than " + std::to_string(kMaxTokens) + " words of SQL");
      DRIFTD_CHECK(next());
    }
    return std::move(out_);
  }

 private:
  bool skip_blanks() {
    while (!rest_.empty()) {
      if (rest_.starts_with("--")) {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.starts_with("/*")) {
        rest_.remove_prefix(std::min(rest_.find("*/", 2), rest_.size() - 2) + 2);
      } else if (!strip(rest_.substr(0, 1)).empty()) {
        return true;
      } else {
        rest_.remove_prefix(1);
      }
    }
    return false;
  }

  Status next() {
    const char c = rest_.front();
    if (c == '\'' || c == '"') return quoted(c);
    if (is_sql_word(c)) return word();
    std::size_t size = 1;
    if (rest_.starts_with("::")) size = 2;
    while (kSqlOperators.find(c) != std::string_view::npos && size < rest_.size() && continues(size)) ++size;
    std::string text(rest_.substr(0, size));
    if (text == "!=") text = "<>";
    out_.push_back({SqlToken::Kind::symbol, std::move(text)});
    rest_.remove_prefix(size);
    return {};
  }

  /// An operator does not run into a comment, nor into a sign: `a*-1`.
  bool continues(std::size_t at) const {
    const auto rest = rest_.substr(at);
    const bool sign = rest.front() == '-' || rest.front() == '+';
    return kSqlOperators.find(rest.front()) != std::string_view::npos && !rest.starts_with("--") &&
           !rest.starts_with("/*") && !sign;
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

  Status word() {
    std::size_t size = 1;
    const bool number = rest_.front() >= '0' && rest_.front() <= '9';
    while (size < rest_.size() && (is_sql_word(rest_[size]) || (number && rest_[size] == '.'))) ++size;
    const auto text = rest_.substr(0, size);
    const bool escapes = size == 1 && size < rest_.size() && rest_[1] == '\'';  // E'…', B'…': not read
    if (escapes || text.find('$') == 0) return type_mismatch("SQL without escapes", rest_);
    if (number) {
      out_.push_back({SqlToken::Kind::number, decimal(text).value_or(std::string(text))});
    } else {
      out_.push_back({SqlToken::Kind::word, lower(text)});
    }
    rest_.remove_prefix(size);
    return {};
  }

  std::string_view rest_;
  std::vector<SqlToken> out_;
};

std::string in_quotes(char quote, std::string_view text) {
  std::string out(1, quote);
  for (const char c : text) out += c == quote ? std::string(2, c) : std::string(1, c);
  return out + quote;
}

}  // namespace

Result<std::vector<SqlToken>> sql_tokens(std::string_view text) { return Tokens(text).read(); }

std::string shown(const SqlToken& token) {
  if (token.kind == SqlToken::Kind::text) return in_quotes('\'', token.text);
  // a name in quotes that needs none is the same name
  const bool plain = !token.text.empty() && lower(token.text) == token.text &&
                     token.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  return token.kind == SqlToken::Kind::quoted && !plain ? in_quotes('"', token.text) : token.text;
}

}  // namespace driftd::core::types
