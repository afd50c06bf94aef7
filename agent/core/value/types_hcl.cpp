// SPDX-License-Identifier: Apache-2.0
// HCL texts as values, after the structural syntax of HCL 2 (and what HCL 1 allows beside it: quoted names, commas). No
// library reads HCL in C++. Expressions are not evaluated.
#include <optional>

#include "core/value/parse_limits.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr int kMaxHclDepth = 64;

bool is_hcl_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class HclReader {
 public:
  explicit HclReader(std::string_view text) : text_(text) {}

  Result<Value> read() {
    auto out = body(0);
    if (out && at_ < text_.size()) return wrong("an attribute or a block");
    return out;
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  tl::unexpected<Error> wrong(std::string_view expected) const {
    std::size_t line = 1;
    for (const char c : text_.substr(0, at_)) line += c == '\n' ? 1 : 0;
    return fail(Code::invalid, "expected " + std::string(expected) + " in line " + std::to_string(line));
  }

  /// Skips white space and comments; line ends only if `lines`.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      if (is_blank(here()) || (lines && here() == '\n')) {
        ++at_;
      } else if (here() == '#' || starts("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (starts("/*")) {
        const auto end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  Status enter(int depth) {
    if (depth > kMaxHclDepth) return too_large("nesting deeper than " + std::to_string(kMaxHclDepth));
    return ++nodes_ > kMaxNodes ? Status(too_large("more than " + std::to_string(kMaxNodes) + " values")) : Status();
  }

  Result<Value> body(int depth) {
    DRIFTD_CHECK(enter(depth));
    Value::Object out;
    while (true) {
      skip(true);
      if (here() == ',') {
        ++at_;
        continue;
      }
      if (at_ == text_.size() || here() == '}') return Value(std::move(out));
      DRIFTD_CHECK(member(out, depth));
    }
  }

  Status member(Value::Object& out, int depth) {
    DRIFTD_TRY(const std::string name, name_or_label("the name of an attribute or block"));
    skip(false);
    if ((here() == '=' && !starts("==")) || here() == ':') {
      ++at_;
      skip(false);
      DRIFTD_TRY(Value value, expression(depth + 1, false));
      return out.emplace(name, std::move(value)).second ? Status()
                                                        : Status(wrong("each name once, not " + name + " twice"));
    }
    std::vector<std::string> labels;
    while (here() != '{') {
      if (here() == '\n' || at_ == text_.size()) return wrong("= or {");
      DRIFTD_TRY(std::string label, name_or_label("= or {"));
      labels.push_back(std::move(label));
      skip(false);
    }
    ++at_;
    DRIFTD_TRY(Value block, body(depth + 1 + static_cast<int>(labels.size())));
    if (here() != '}') return wrong("}");
    ++at_;
    return add_block(out.try_emplace(name).first->second, labels, std::move(block));
  }

  /// `type "a" "b" {…}` is {"type": {"a": {"b": [{…}]}}}; several of them are one list.
  Status add_block(Value& slot, const std::vector<std::string>& labels, Value block) const {
    Value* at = &slot;
    for (const auto& label : labels) {
      if (at->is_null()) *at = Value(Value::Object{});
      if (at->object() == nullptr) return wrong("blocks of one type with the same number of labels");
      at = &at->object()->try_emplace(label).first->second;
    }
    if (at->is_null()) *at = Value(Value::Array{});
    if (at->array() == nullptr) return wrong("either an attribute or blocks of this name");
    at->array()->push_back(std::move(block));
    return {};
  }

  Result<std::string> name_or_label(std::string_view what) {
    if (here() == '"') return string();
    const auto begin = at_;
    while (at_ < text_.size() && is_hcl_word(here())) ++at_;
    if (begin == at_) return wrong(what);
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// Returns a text in quotes. Templates (`${…}`) in it stay as they are written.
  Result<std::string> string() {
    std::string out;
    for (++at_; at_ < text_.size() && here() != '"'; ++at_) {
      if (here() == '\n') break;
      if (starts("$${") || starts("%%{")) {
        out += here();
        ++at_;
      } else if (starts("${") || starts("%{")) {
        const auto begin = at_;
        DRIFTD_CHECK(skip_template());
        out += text_.substr(begin, at_ - begin);
        --at_;
        continue;
      }
      if (here() != '\\') {
        out += here();
        continue;
      }
      ++at_;
      DRIFTD_CHECK(escaped(out));
    }
    if (here() != '"') return wrong("a closing quote");
    ++at_;
    return out;
  }

  Status escaped(std::string& out) {
    const char c = here();
    if (c != 'u' && c != 'U') {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      return {};
    }
    const std::size_t digits = c == 'u' ? 4 : 8;
    const std::string hex(text_.substr(at_ + 1, digits));
    const auto read = parse("\"\\u" + hex.substr(hex.size() > 4 ? hex.size() - 4 : 0) + "\"");
    const bool small = digits == 4 || hex.starts_with("0000");
    if (hex.size() != digits || !small || !read) return wrong("four or eight hexadecimal digits");
    out += *read->string();
    at_ += digits;
    return {};
  }

  /// Skips `${…}` with the braces and texts in it.
  Status skip_template() {
    int open = 0;
    while (at_ < text_.size()) {
      if (here() == '"') {
        if (++nested_ > kMaxHclDepth) return too_large("templates that nest too deep");
        DRIFTD_TRY(const std::string ignored, string());
        --nested_;
        continue;
      }
      open += here() == '{' ? 1 : here() == '}' ? -1 : 0;
      const bool last = here() == '}' && open == 0;
      ++at_;
      if (last) return {};
    }
    return wrong("}");
  }

  /// Reads a literal, or what is up to the end of the line (in a list or object: of the element) as an expression.
  Result<Value> expression(int depth, bool in_brackets) {
    DRIFTD_CHECK(enter(depth));
    const auto begin = at_;
    auto out = literal(depth);
    if (!out && out.error().code == Code::budget) return out;
    if (out) {
      skip(in_brackets);
      if (at_ == text_.size() || std::string_view("\n,]}").find(here()) != std::string_view::npos) return out;
    }
    at_ = begin;
    return written(in_brackets);
  }

  Result<Value> literal(int depth) {
    if (here() == '"') return string().map([](std::string text) { return Value(std::move(text)); });
    if (here() == '[') return list(depth);
    if (here() == '{') return object(depth);
    if (starts("<<")) return heredoc();
    const auto begin = at_;
    if (here() == '-') ++at_;
    while (at_ < text_.size() && (is_hcl_word(here()) || here() == '.')) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "true" || word == "false") return Value(word == "true");
    if (word == "null") return Value();
    auto number = parse(std::string(word));
    if (number && number->number() != nullptr) return number;
    return wrong("a literal");
  }

  Result<Value> list(int depth) {
    Value::Array out;
    for (++at_;;) {
      skip(true);
      if (here() == ']') {
        ++at_;
        return Value(std::move(out));
      }
      DRIFTD_TRY(Value element, expression(depth + 1, true));
      out.push_back(std::move(element));
      skip(true);
      if (here() != ',' && here() != ']') return wrong(", or ]");
      if (here() == ',') ++at_;
    }
  }

  Result<Value> object(int depth) {
    Value::Object out;
    for (++at_;;) {
      skip(true);
      if (here() == ',') {
        ++at_;
        continue;
      }
      if (here() == '}') {
        ++at_;
        return Value(std::move(out));
      }
      DRIFTD_TRY(std::string name, name_or_label("the name of a member"));
      skip(false);
      if (here() != '=' && here() != ':') return wrong("= or :");
      ++at_;
      skip(false);
      DRIFTD_TRY(Value value, expression(depth + 1, false));
      if (!out.emplace(std::move(name), std::move(value)).second) return wrong("each name once");
    }
  }

  Result<Value> heredoc() {
    at_ += 2;
    const bool indented = here() == '-';
    if (indented) ++at_;
    DRIFTD_TRY(const std::string end, name_or_label("the name of a heredoc"));
    if (here() == '\r') ++at_;
    if (here() != '\n') return wrong("a line end");
    ++at_;
    std::vector<std::string_view> lines;
    while (at_ < text_.size()) {
      const auto stop = std::min(text_.find('\n', at_), text_.size());
      const auto line = text_.substr(at_, stop - at_);
      at_ = stop;
      if (strip(line) == end) return Value(joined(lines, indented));
      at_ = std::min(stop + 1, text_.size());
      lines.push_back(line);
    }
    return wrong("the end of a heredoc, " + end);
  }

  static std::string joined(const std::vector<std::string_view>& lines, bool indented) {
    std::size_t margin = indented ? std::string_view::npos : 0;
    for (const auto line : lines) {
      if (!strip(line).empty()) margin = std::min(margin, line.find_first_not_of(" \t"));
    }
    std::string out;
    for (auto line : lines) {
      line.remove_prefix(std::min(margin, line.size()));
      out += std::string(line) + "\n";
    }
    return out;
  }

  /// Returns an expression as it is written, without white space and comments that mean nothing.
  Result<Value> written(bool in_brackets) {
    std::string out, brackets;
    while (at_ < text_.size()) {
      const auto before = at_;
      skip(in_brackets || !brackets.empty());
      const char c = here();
      const bool apart = at_ != before && !out.empty() && is_hcl_word(out.back()) && is_hcl_word(c);
      const bool ends = at_ == text_.size() || c == '\n' || c == ',' || c == ']' || c == '}';
      if (brackets.empty() && ends) break;
      if (apart) out += ' ';
      if (c == '"') {
        DRIFTD_TRY(const std::string text, string());
        out += render(Value(text));
        continue;
      }
      if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (!brackets.empty() && c == brackets.back()) brackets.pop_back();
      if (brackets.size() > static_cast<std::size_t>(kMaxHclDepth))
        return too_large("an expression that nests too deep");
      if (at_ < text_.size()) out += c;
      ++at_;
    }
    at_ = std::min(at_, text_.size());
    if (out.empty() || !brackets.empty()) return wrong("an expression");
    return Value(Value::Object{{"$expression", Value(std::move(out))}});
  }

  std::string_view text_;
  std::size_t at_ = 0, nodes_ = 0;
  int nested_ = 0;  ///< texts inside of templates
};

}  // namespace

Result<Value> hcl(std::string_view text) {
  if (text.size() > kMaxJson) return too_large("more than 2 MiB");
  if (strip(text).starts_with('{')) return parse(std::string(text), ParseLimits{.bytes = kMaxJson, .nodes = kMaxNodes});
  return HclReader(text).read();
}

}  // namespace driftd::core::types
