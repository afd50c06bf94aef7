// SPDX-License-Identifier: Apache-2.0
#include "core/value/path.hpp"

#include <algorithm>

#include "base/escape.hpp"
#include "core/value/glob_match.hpp"
#include "core/value/value.hpp"

namespace driftd::core {
namespace {

constexpr std::size_t kMaxPatternBytes = 16u << 10;  ///< bytes of a path pattern
constexpr std::size_t kMaxDoubleStars = 4;           ///< `**` in one pattern
constexpr std::size_t kMaxShownBytes = 200;          ///< bytes of a foreign text in an error

/// Returns a foreign text for an error, shortened.
std::string cut(std::string_view text) {
  return std::string(front(text, kMaxShownBytes)) + (text.size() > kMaxShownBytes ? "..." : "");
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}
bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return is_plain(c); });
}

/// One segment as written: bare `name`, quoted `["a.b"]`, index `[0]`, selector `[name=x]`.
struct Token {
  enum class Kind { bare, quoted, index, selector } kind = Kind::bare;
  std::string text;
  std::size_t at = 0;  ///< offset in the path, for errors
};

/// Splits a path or a path glob into segments. `wild` allows `*` in unquoted segments.
class Scanner {
 public:
  Scanner(std::string_view text, bool wild) : text_(text), wild_(wild) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> out;
    if (text_.empty()) return error("expected a path, found nothing");
    while (at_ < text_.size()) {
      DRIFTD_TRY(Token token, segment(out.empty()));
      out.push_back(std::move(token));
    }
    return out;
  }

 private:
  tl::unexpected<Error> error(std::string_view what) const {
    return fail(Code::invalid, "path '" + cut(text_) + "' at " + std::to_string(at_ + 1) + ": " + std::string(what));
  }
  bool is_bare(char c) const { return is_plain(c) || (wild_ && c == '*'); }

  Result<Token> segment(bool first) {
    if (text_[at_] == '[') return bracket();
    if (!first) {
      if (text_[at_] != '.') return error("expected '.' or '['");
      ++at_;
    }
    const std::size_t start = at_;
    while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
    if (at_ == start) {
      return error(wild_ ? "expected a name of letters, digits, '_', '-', '*'; others are written [\"...\"]"
                         : "expected a name of letters, digits, '_', '-'; others are written [\"...\"]");
    }
    return Token{Token::Kind::bare, std::string(text_.substr(start, at_ - start)), start};
  }

  Result<Token> bracket() {
    const std::size_t start = at_++;
    if (at_ < text_.size() && text_[at_] == '"') {
      DRIFTD_TRY(const std::string_view quoted, quoted_text());
      if (at_ >= text_.size() || text_[at_] != ']') return error("expected ']'");
      ++at_;
      const auto name = parse(quoted);
      if (!name || name->string() == nullptr) return error("bad escape between the quotes");
      return Token{Token::Kind::quoted, *name->string(), start};
    }
    const std::size_t inner = at_;
    while (at_ < text_.size() && text_[at_] != ']') {
      if (text_[at_] == '"') {
        DRIFTD_CHECK(quoted_text());
      } else {
        ++at_;
      }
    }
    if (at_ >= text_.size()) return error("expected ']'");
    const std::string text(text_.substr(inner, at_ - inner));
    ++at_;
    return classify(text, start);
  }

  Result<Token> classify(const std::string& text, std::size_t start) {
    const bool digits =
        !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits && text.size() <= 9 && (text == "0" || text.front() != '0'))
      return Token{Token::Kind::index, text, start};
    if (wild_ && text == "*") return Token{Token::Kind::bare, text, start};
    if (text.find('=') != std::string::npos && text.front() != '=') return Token{Token::Kind::selector, text, start};
    at_ = start;
    return error("expected an index, key=value or a quoted name between '[' and ']'");
  }

  /// Reads from the opening to the closing quote, including both.
  Result<std::string_view> quoted_text() {
    const std::size_t start = at_++;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      at_ = start;
      return error("a quote that is not closed");
    }
    ++at_;
    return text_.substr(start, at_ - start);
  }

  std::string_view text_;
  bool wild_;
  std::size_t at_ = 0;
};

/// Returns the text between the brackets of an index or a selector.
std::string bracket_text(const Path::Segment& segment) {
  if (const auto* index = std::get_if<Path::Index>(&segment)) return std::to_string(index->at);
  return std::get<Path::Selector>(segment).text;
}

}  // namespace

Result<Path> Path::parse(std::string_view text) {
  DRIFTD_TRY(auto tokens, Scanner(text, false).run());
  Path out;
  for (auto& token : tokens) {
    switch (token.kind) {
      case Token::Kind::index:
        out.segments_.emplace_back(Index{std::stoul(token.text)});
        break;
      case Token::Kind::selector:
        out.segments_.emplace_back(Selector{std::move(token.text)});
        break;
      default:
        out.segments_.emplace_back(std::move(token.text));
    }
  }
  return out;
}

Path Path::child(std::string_view member) const {
  Path out = *this;
  out.segments_.emplace_back(std::string(member));
  return out;
}

Path Path::child(std::size_t index) const {
  Path out = *this;
  out.segments_.emplace_back(Index{index});
  return out;
}

Path Path::selected(std::string_view key_equals_value) const {
  Path out = *this;
  out.segments_.emplace_back(Selector{std::string(key_equals_value)});
  return out;
}

Path Path::with(Segment segment) const {
  Path out = *this;
  out.segments_.push_back(std::move(segment));
  return out;
}

Path Path::parent() const {
  Path out = *this;
  if (!out.segments_.empty()) out.segments_.pop_back();
  return out;
}

std::string Path::render() const {
  std::string out;
  for (const auto& segment : segments_) {
    if (const auto* name = std::get_if<std::string>(&segment)) {
      if (is_plain(*name)) {
        if (!out.empty()) out += '.';
        out += *name;
      } else {
        out += '[' + core::render(Value(*name)) + ']';
      }
    } else {
      out += '[' + bracket_text(segment) + ']';
    }
  }
  return out;
}

Result<Glob> Glob::parse_path(std::string_view text) {
  if (text.size() > kMaxPatternBytes) {
    return fail(Code::invalid, "path pattern '" + cut(text) + "': it has " + std::to_string(text.size()) +
                                   " bytes, at most " + std::to_string(kMaxPatternBytes) + " are allowed");
  }
  DRIFTD_TRY(auto tokens, Scanner(text, true).run());
  Glob out;
  out.text_ = text;
  out.is_path_ = true;
  for (auto& token : tokens) {
    const bool doubled = token.text.find("**") != std::string::npos;
    if (doubled && token.kind == Token::Kind::bare && token.text != "**") {
      return fail(Code::invalid, "path pattern '" + cut(text) + "' at " + std::to_string(token.at + 1) +
                                     ": '**' stands alone between dots; inside a name write '*'");
    }
    if (doubled && token.kind == Token::Kind::quoted && token.text == "**") token.text = "*";
    out.segments_.push_back(std::move(token.text));
  }
  const auto double_stars = static_cast<std::size_t>(std::count(out.segments_.begin(), out.segments_.end(), "**"));
  if (double_stars > kMaxDoubleStars) {
    return fail(Code::invalid, "path pattern '" + cut(text) + "': '**' stands in it " + std::to_string(double_stars) +
                                   " times, at most " + std::to_string(kMaxDoubleStars) +
                                   " are allowed; name the members between them");
  }
  const auto plain = [](const std::string& segment) { return segment.find_first_of("*.") == std::string::npos; };
  out.plain_front_ = plain(out.segments_.front());
  out.plain_back_ = plain(out.segments_.back());
  return out;
}

Glob Glob::of_name(std::string_view text) {
  Glob out;
  out.text_ = text;
  return out;
}

/// Returns true if the first or last segments differ, which most pairs of a pattern and a path do. A name with dots may
/// match several segments of the pattern, so it does not count.
bool Glob::differs_at_sight(const Path& path) const {
  const auto differ = [](const std::string& pattern, const Path::Segment& segment) {
    const auto* name = std::get_if<std::string>(&segment);
    return name != nullptr && *name != pattern && name->find('.') == std::string::npos;
  };
  const auto& segments = path.segments();
  if (segments.empty()) return plain_front_;
  return (plain_front_ && differ(segments_.front(), segments.front())) ||
         (plain_back_ && differ(segments_.back(), segments.back()));
}

bool Glob::matches(const Path& path) const {
  if (!is_path_) return wild_match(text_, path.render());
  return !differs_at_sight(path) && SegmentMatch(segments_).run(path.segments());
}

Glob::Elements Glob::matches_elements(const Path& list) const {
  return is_path_ ? SegmentMatch(segments_).elements(list.segments()) : Elements::some;
}

bool Glob::lies_below(const Path& path) const {
  const std::size_t length = path.segments().size();
  if (!is_path_ || segments_.size() <= length) return false;
  const std::vector<std::string> front(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(length));
  if (std::find(front.begin(), front.end(), "**") != front.end()) return false;
  return SegmentMatch(front).run(path.segments());
}

bool Glob::matches(std::string_view name) const { return wild_match(text_, name); }

namespace {

bool may_be_same(const std::string& a, const std::string& b) {
  return a == b || a.find('*') != std::string::npos || b.find('*') != std::string::npos;
}

using Segments = std::vector<std::string>;
bool may_begin_with(const Segments& inner, std::size_t i, const Segments& outer, std::size_t o) {
  if (o == outer.size()) return i < inner.size();
  if (outer[o] == "**" && may_begin_with(inner, i, outer, o + 1)) return true;
  if (i == inner.size()) return false;
  if (outer[o] == "**") return may_begin_with(inner, i + 1, outer, o);
  if (inner[i] == "**") return may_begin_with(inner, i + 1, outer, o) || may_begin_with(inner, i, outer, o + 1);
  return may_be_same(inner[i], outer[o]) && may_begin_with(inner, i + 1, outer, o + 1);
}

}  // namespace

bool Glob::may_lie_below(const Glob& outer) const { return may_begin_with(segments_, 0, outer.segments_, 0); }

int Glob::specificity() const {
  if (!is_path_)
    return text_.find('*') == std::string::npos ? 1'000 : static_cast<int>(std::min<std::size_t>(text_.size(), 999));
  int score = 0;
  for (const auto& segment : segments_) {
    if (segment == "**") {
      score -= 1;
    } else if (segment == "*") {
      score += 10;
    } else {
      const bool literal = segment.find('*') == std::string::npos;
      score += literal ? 1'000 : 20 + static_cast<int>(std::min<std::size_t>(segment.size(), 900));
    }
  }
  return score;
}

}  // namespace driftd::core
