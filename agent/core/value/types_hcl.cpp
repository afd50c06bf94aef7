// SPDX-License-Identifier: Apache-2.0
// HCL texts as values, after the structural syntax of HCL 2 (and what HCL 1 allows beside it: quoted names, commas). No
// library reads HCL in C++. Expressions are not evaluated.
#include <algorithm>
#include <set>

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

// Names of members that are made here. Names of a text that look like them get a `$` more.
constexpr const char* kExpression = "$expression";  ///< {"$expression": text}
constexpr const char* kAttributes = "$attributes";  ///< names of the attributes of a body that look like blocks

std::string member_name(std::string name) {
  const auto own = name.find_first_not_of('$');
  const bool made = own != std::string::npos && own > 0 &&
                    (name.substr(own - 1) == kExpression || name.substr(own - 1) == kAttributes);
  return made ? "$" + std::move(name) : std::move(name);
}

Value to_value(std::string text) { return Value(std::move(text)); }

/// Returns true if a value has the form of blocks: lists of objects, by labels or without.
bool is_like_blocks(const Value& value) {
  if (const auto* array = value.array())
    return !array->empty() && std::all_of(array->begin(), array->end(), [](const Value& one) { return one.object(); });
  const auto* object = value.object();
  return object != nullptr && !object->empty() &&
         std::all_of(object->begin(), object->end(), [](const auto& member) { return is_like_blocks(member.second); });
}

/// Returns a JSON text as HCL reads it: all of its names are those of the text.
Value with_member_names(Value value) {
  if (auto* array = value.array()) {
    for (auto& one : *array) one = with_member_names(std::move(one));
  }
  auto* object = value.object();
  if (object == nullptr) return value;
  Value::Object out;
  for (auto& [name, one] : *object) out.emplace(member_name(name), with_member_names(std::move(one)));
  return Value(std::move(out));
}

class HclReader {
 public:
  explicit HclReader(std::string_view text) : text_(text) {}

  Result<Value> read() {
    auto out = body(0);
    if (out && at_ < text_.size()) out = wrong("an attribute or a block");
    if (out || out.error().code == Code::budget) return out;
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(wrong_at_), '\n');
    return fail(Code::invalid, out.error().message + " in line " + std::to_string(line));
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  /// The line is counted at the end: most errors only mean that an expression is no literal.
  tl::unexpected<Error> wrong(std::string_view expected) {
    wrong_at_ = at_;
    return fail(Code::invalid, "expected " + std::string(expected));
  }

  /// Skips white space and comments; line ends only if `lines`. A comment without an end is left, and nothing reads it.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      if (is_blank(here()) || (lines && here() == '\n')) {
        ++at_;
      } else if (here() == '#' || starts("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (starts("/*")) {
        const auto end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return;
        at_ = end + 2;
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
    std::set<std::string> attributes;
    while (true) {
      skip(true);
      if (here() == ',') {
        ++at_;
        continue;
      }
      if (at_ == text_.size() || here() == '}') break;
      DRIFTD_CHECK(member(out, attributes, depth));
    }
    Value::Array like_blocks;
    for (const auto& name : attributes) {
      if (is_like_blocks(out.at(name))) like_blocks.emplace_back(name);
    }
    if (!like_blocks.empty()) out.emplace(kAttributes, Value(std::move(like_blocks)));
    return Value(std::move(out));
  }

  Status member(Value::Object& out, std::set<std::string>& attributes, int depth) {
    DRIFTD_TRY(const std::string name, name_or_label("the name of an attribute or block"));
    skip(false);
    if ((here() == '=' && !starts("==")) || here() == ':') {
      ++at_;
      skip(false);
      DRIFTD_TRY(Value value, expression(depth + 1, false));
      attributes.insert(name);
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
    if (attributes.contains(name)) return wrong("either an attribute or blocks of this name");
    return add_block(out.try_emplace(name).first->second, labels, std::move(block));
  }

  /// `type "a" "b" {…}` is {"type": {"a": {"b": [{…}]}}}; several of them are one list.
  Status add_block(Value& slot, const std::vector<std::string>& labels, Value block) {
    Value* at = &slot;
    for (const auto& label : labels) {
      if (at->is_null()) *at = Value(Value::Object{});
      if (at->object() == nullptr) return wrong("blocks of one type with the same number of labels");
      at = &at->object()->try_emplace(label).first->second;
    }
    if (at->is_null()) *at = Value(Value::Array{});
    if (at->array() == nullptr) return wrong("blocks of one type with the same number of labels");
    at->array()->push_back(std::move(block));
    return {};
  }

  Result<std::string> name_or_label(std::string_view what) {
    if (here() == '"') return string().map(member_name);
    const auto begin = at_;
    while (at_ < text_.size() && is_hcl_word(here())) ++at_;
    if (begin == at_) return wrong(what);
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// Returns a text in quotes. Templates (`${…}`) in it stay as they are written, and what only looks like one is
  /// written
  /// `$${…}`, however its characters were.
  Result<std::string> string() {
    std::string out;
    ++at_;
    while (at_ < text_.size() && here() != '"' && here() != '\n') {
      if (starts("$${") || starts("%%{")) {
        out += text_.substr(at_, 3);
        at_ += 3;
      } else if (starts("${") || starts("%{")) {
        if (out.ends_with(here())) return wrong("no escape before a template");  // `\u0024${x}` is not `$${x}`
        const auto begin = at_;
        DRIFTD_CHECK(skip_template());
        out += text_.substr(begin, at_ - begin);
      } else if (here() == '\\') {
        ++at_;
        DRIFTD_CHECK(escaped(out));
        ++at_;
      } else {
        add(out, here());
        ++at_;
      }
    }
    if (here() != '"') return wrong("a closing quote");
    ++at_;
    return out;
  }

  /// Appends a character that begins no template.
  static void add(std::string& out, char c) {
    if (c == '{' && (out.ends_with('$') || out.ends_with('%'))) out += out.back();
    out += c;
  }

  /// Reads what follows a backslash, but for its last character.
  Status escaped(std::string& out) {
    const char c = here();
    if (c != 'u' && c != 'U') {
      add(out, c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
      return {};
    }
    const std::size_t digits = c == 'u' ? 4 : 8;
    const std::string hex(text_.substr(at_ + 1, digits));
    const auto read = parse("\"\\u" + hex.substr(hex.size() > 4 ? hex.size() - 4 : 0) + "\"");
    const bool small = digits == 4 || hex.starts_with("0000");
    if (hex.size() != digits || !small || !read) return wrong("four or eight hexadecimal digits");
    for (const char byte : *read->string()) add(out, byte);
    at_ += digits;
    return {};
  }

  /// Skips `${…}` with the braces and texts in it.
  Status skip_template() {
    int open = 0;
    while (at_ < text_.size()) {
      if (here() == '"') {
        if (++nested_ > kMaxHclDepth) return too_large("templates that nest too deep");
        const auto ignored = string();
        --nested_;
        if (!ignored) return tl::unexpected(ignored.error());
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
    if (!out && (out.error().code == Code::budget || text_.substr(begin).starts_with("<<"))) return out;
    if (out) {
      skip(in_brackets);
      if (at_ == text_.size() || std::string_view("\n,]}").find(here()) != std::string_view::npos) return out;
    }
    read_twice_ += at_ - begin;
    if (read_twice_ > kMaxTree) return too_large("expressions that nest too deep");
    at_ = begin;
    return written(in_brackets);
  }

  Result<Value> literal(int depth) {
    if (here() == '"') return string().map(to_value);
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
      if (starts("/*")) return wrong("the end of a comment");
      if (c == '"' || starts("<<")) {
        DRIFTD_TRY(const Value text, c == '"' ? string().map(to_value) : heredoc());
        out += render(text);
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
    return Value(Value::Object{{kExpression, Value(std::move(out))}});
  }

  std::string_view text_;
  std::size_t at_ = 0, nodes_ = 0;
  std::size_t wrong_at_ = 0;    ///< of the last error
  std::size_t read_twice_ = 0;  ///< bytes that looked like a literal and were none
  int nested_ = 0;              ///< texts inside of templates
};

}  // namespace

Result<Value> hcl(std::string_view text) {
  if (text.size() > kMaxJson) return too_large("more than 2 MiB");
  if (strip(text).starts_with('{'))
    return parse(std::string(text), ParseLimits{.bytes = kMaxJson, .nodes = kMaxNodes}).map(with_member_names);
  return HclReader(text).read();
}

}  // namespace driftd::core::types
