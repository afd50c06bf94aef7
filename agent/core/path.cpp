// SPDX-License-Identifier: Apache-2.0
#include "core/path.hpp"

#include <algorithm>

namespace driftd::core {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}
bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return is_plain(c); });
}

/// One segment as written: `name`, `[0]`, `[name=x]`, `["a.b"]`.
struct Token {
  enum class Kind { bare, quoted, index, selector } kind = Kind::bare;
  std::string text;
  std::size_t at = 0;  ///< offset in the path, for errors
};

/// Cuts a path or a path glob into its segments; `wild` admits `*` in bare segments.
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
    return fail(Code::invalid, "path '" + std::string(text_) + "' at " + std::to_string(at_ + 1) + ": " + std::string(what));
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
    const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits && text.size() <= 9 && (text == "0" || text.front() != '0')) return Token{Token::Kind::index, text, start};
    if (wild_ && text == "*") return Token{Token::Kind::bare, text, start};
    if (text.find('=') != std::string::npos && text.front() != '=') return Token{Token::Kind::selector, text, start};
    at_ = start;
    return error("expected an index, key=value or a quoted name between '[' and ']'");
  }

  /// From the opening quote to behind the closing one, quotes included.
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

/// `*` matches any run of characters.
bool wild_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// A segment as globs see it: indexes and selectors without their brackets.
std::string flat(const Path::Segment& segment) {
  if (const auto* name = std::get_if<std::string>(&segment)) return *name;
  if (const auto* index = std::get_if<Path::Index>(&segment)) return std::to_string(index->at);
  return std::get<Path::Selector>(segment).text;
}

/// Matches glob segments against path segments; `**` takes any number of segments. A path
/// segment with dots may stand for several glob segments: `config.retention.ms` is config["retention.ms"].
class PathMatcher {
 public:
  PathMatcher(const std::vector<std::string>& glob, const std::vector<std::string>& path) : glob_(glob), path_(path) {}
  bool run(std::size_t g = 0, std::size_t p = 0) const {
    if (g == glob_.size()) return p == path_.size();
    if (glob_[g] == "**") {
      for (std::size_t next = p; next <= path_.size(); ++next) {
        if (run(g + 1, next)) return true;
      }
      return false;
    }
    if (p == path_.size()) return false;
    if (wild_match(glob_[g], path_[p]) && run(g + 1, p + 1)) return true;
    return dotted(g, p);
  }

 private:
  bool dotted(std::size_t g, std::size_t p) const {
    auto dots = std::count(path_[p].begin(), path_[p].end(), '.');
    std::string joined = glob_[g];
    for (std::size_t next = g + 1; next < glob_.size() && dots > 0 && glob_[next] != "**"; ++next, --dots) {
      joined += '.' + glob_[next];
      if (wild_match(joined, path_[p]) && run(next + 1, p + 1)) return true;
    }
    return false;
  }
  const std::vector<std::string>& glob_;
  const std::vector<std::string>& path_;
};

}  // namespace

Result<Path> Path::parse(std::string_view text) {
  DRIFTD_TRY(auto tokens, Scanner(text, false).run());
  Path out;
  for (auto& token : tokens) {
    switch (token.kind) {
      case Token::Kind::index: out.segments_.emplace_back(Index{std::stoul(token.text)}); break;
      case Token::Kind::selector: out.segments_.emplace_back(Selector{std::move(token.text)}); break;
      default: out.segments_.emplace_back(std::move(token.text));
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
      out += '[' + flat(segment) + ']';
    }
  }
  return out;
}

Result<Glob> Glob::parse_path(std::string_view text) {
  DRIFTD_TRY(auto tokens, Scanner(text, true).run());
  Glob out;
  out.text_ = text;
  out.is_path_ = true;
  for (auto& token : tokens) {
    const bool doubled = token.text.find("**") != std::string::npos;
    if (doubled && token.kind == Token::Kind::bare && token.text != "**") {
      return fail(Code::invalid, "path pattern '" + out.text_ + "' at " + std::to_string(token.at + 1) +
                                     ": '**' stands alone between dots; inside a name write '*'");
    }
    if (doubled && token.kind == Token::Kind::quoted && token.text == "**") token.text = "*";
    out.segments_.push_back(std::move(token.text));
  }
  return out;
}

Glob Glob::of_name(std::string_view text) {
  Glob out;
  out.text_ = text;
  return out;
}

bool Glob::matches(const Path& path) const {
  if (!is_path_) return wild_match(text_, path.render());
  std::vector<std::string> flattened;
  for (const auto& segment : path.segments()) flattened.push_back(flat(segment));
  return PathMatcher(segments_, flattened).run();
}

bool Glob::matches(std::string_view name) const { return wild_match(text_, name); }

int Glob::specificity() const {
  if (!is_path_) return text_.find('*') == std::string::npos ? 1'000 : static_cast<int>(std::min<std::size_t>(text_.size(), 999));
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
