// SPDX-License-Identifier: Apache-2.0
#include "core/value/value.hpp"

#include <simdjson.h>
#include <algorithm>

#include "base/escape.hpp"
#include "core/value/parse_limits.hpp"

namespace driftd::core {
namespace {

namespace od = simdjson::ondemand;

constexpr int kMaxDepth = 256;
constexpr std::size_t kMeanDepth = 20;            ///< maximum average depth of a value: a walk builds the path of each
constexpr std::size_t kMaxShown = 128;            ///< bytes of a foreign name in an error
constexpr std::size_t kMaxKeptParser = 1u << 20;  ///< bytes; a thread does not keep a parser that read a larger
                                                  ///< document

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

/// Removes digits from the front. Returns false if there are none.
bool take_digits(std::string_view& rest) {
  const std::size_t before = rest.size();
  while (!rest.empty() && is_digit(rest.front())) rest.remove_prefix(1);
  return rest.size() < before;
}

/// RFC 8259 `number`.
bool is_number(std::string_view rest) {
  if (!rest.empty() && rest.front() == '-') rest.remove_prefix(1);
  if (rest.empty()) return false;
  if (rest.front() == '0') {
    rest.remove_prefix(1);
  } else if (!take_digits(rest)) {
    return false;
  }
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    if (!take_digits(rest)) return false;
  }
  if (!rest.empty() && (rest.front() == 'e' || rest.front() == 'E')) {
    rest.remove_prefix(1);
    if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) rest.remove_prefix(1);
    if (!take_digits(rest)) return false;
  }
  return rest.empty();
}

/// Returns the position of `at` in `text` as `2:17`; columns count bytes.
std::string position(std::string_view text, std::size_t at) {
  const auto before = text.substr(0, std::min(at, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = 1 + before.size() - (start == std::string_view::npos ? 0 : start + 1);
  return std::to_string(line) + ":" + std::to_string(column);
}

tl::unexpected<Error> corrupt(std::string_view text, std::size_t at, std::string_view what) {
  return fail(Code::corrupt, "JSON " + position(text, at) + ": " + std::string(what));
}

tl::unexpected<Error> beyond_limits(std::string_view text, std::size_t at, std::string_view what) {
  return fail(Code::budget, "JSON " + position(text, at) + ": " + std::string(what));
}

/// Returns the offset of the first byte that is not valid UTF-8 by bisection, cutting only between characters.
std::size_t first_bad_byte(std::string_view text) {
  std::size_t good = 0, bad = text.size();
  while (good < bad) {
    std::size_t middle = good + (bad - good + 1) / 2;
    while (middle > good && middle < text.size() && (text[middle] & 0xC0) == 0x80) --middle;
    if (middle == good) return good;
    if (simdjson::validate_utf8(text.data() + good, middle - good)) {
      good = middle;
    } else if (middle == bad) {
      return good;
    } else {
      bad = middle;
    }
  }
  return good;
}

std::string_view describe(simdjson::error_code code) {
  switch (code) {
    case simdjson::UTF8_ERROR:
      return "not UTF-8";
    case simdjson::EMPTY:
      return "expected a value, found nothing";
    case simdjson::UNCLOSED_STRING:
      return "a string without its closing quote";
    case simdjson::UNESCAPED_CHARS:
      return "a control character inside a string; write it escaped";
    case simdjson::STRING_ERROR:
      return "a bad escape inside a string";
    case simdjson::T_ATOM_ERROR:
      return "expected true";
    case simdjson::F_ATOM_ERROR:
      return "expected false";
    case simdjson::N_ATOM_ERROR:
      return "expected null";
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      return "the document ends inside an array or object";
    default:
      return "expected a value, ',' or a closing bracket";
  }
}

/// Walks one document into a Value. Lives on one stack frame; `json` outlives it.
class Walker {
 public:
  Walker(std::string_view json, const char* copy, const ParseLimits& limits)
      : json_(json),
        copy_(copy),
        limits_(limits) {}

  Result<Value> run(od::document& document) {
    DRIFTD_TRY(const od::json_type type, checked(document, document.type()));
    if (type == od::json_type::number) return whole_number();
    DRIFTD_TRY(Value value, read(document, document, type, 0));
    const char* rest = nullptr;
    if (!document.current_location().get(rest)) return fail_at(document, "text after the end of the document");
    return value;
  }

 private:
  template <class At>
  tl::unexpected<Error> fail_at(At& at, std::string_view what) const {
    return corrupt(json_, offset(at), what);
  }
  template <class At>
  std::size_t offset(At& at) const {
    const char* where = nullptr;
    return at.current_location().get(where) ? json_.size() : static_cast<std::size_t>(where - copy_);
  }
  /// Turns the library's result into ours, with the position in an error.
  template <class T>
  Result<T> checked(od::document& document, simdjson::simdjson_result<T> result) const {
    T out;
    if (const auto code = std::move(result).get(out)) return fail_at(document, describe(code));
    return out;
  }

  Result<Value> whole_number() const {
    const auto token = strip(json_);
    if (!is_number(token))
      return corrupt(json_, 0, "expected one number, found '" + std::string(front(token, 32)) + "'");
    return Value(Value::Number{std::string(token)});
  }

  template <class Json>
  Result<Value> read(od::document& document, Json& json, od::json_type type, int depth) {
    if (++nodes_ > limits_.nodes) {
      return beyond_limits(json_, offset(document),
                           "more than " + std::to_string(limits_.nodes) + " values in one document");
    }
    levels_ += static_cast<std::size_t>(depth);
    if (levels_ > limits_.nodes * kMeanDepth)
      return beyond_limits(json_, offset(document), "too many values nested too deep");
    switch (type) {
      case od::json_type::array:
        return read_array(document, json, depth + 1);
      case od::json_type::object:
        return read_object(document, json, depth + 1);
      case od::json_type::number:
        return read_number(document, json);
      case od::json_type::string: {
        DRIFTD_TRY(const std::string_view text, checked<std::string_view>(document, json.get_string()));
        return Value(std::string(text));
      }
      case od::json_type::boolean: {
        DRIFTD_TRY(const bool truth, checked<bool>(document, json.get_bool()));
        return Value(truth);
      }
      case od::json_type::null: {
        DRIFTD_TRY(const bool null, checked<bool>(document, json.is_null()));
        if (!null) return fail_at(document, describe(simdjson::N_ATOM_ERROR));
        return Value();
      }
    }
    return fail_at(document, describe(simdjson::TAPE_ERROR));
  }

  Result<Value> read_child(od::document& document, simdjson::simdjson_result<od::value> child, int depth) {
    DRIFTD_TRY(od::value value, checked(document, child));
    DRIFTD_TRY(const od::json_type type, checked(document, value.type()));
    return read(document, value, type, depth);
  }

  template <class Json>
  Result<Value> read_number(od::document& document, Json& json) {
    std::string_view token;
    if constexpr (std::is_same_v<Json, od::document>) {
      token = json_;
    } else {
      token = json.raw_json_token();
    }
    token = strip(token);
    if (!is_number(token)) return fail_at(document, "expected a number, found '" + std::string(front(token, 32)) + "'");
    return Value(Value::Number{std::string(token)});
  }

  template <class Json>
  Result<Value> read_array(od::document& document, Json& json, int depth) {
    if (depth > kMaxDepth)
      return beyond_limits(json_, offset(document), "nesting deeper than " + std::to_string(kMaxDepth));
    DRIFTD_TRY(od::array array, checked<od::array>(document, json.get_array()));
    Value::Array out;
    for (auto element : array) {
      DRIFTD_TRY(Value value, read_child(document, element, depth));
      out.push_back(std::move(value));
    }
    return Value(std::move(out));
  }

  template <class Json>
  Result<Value> read_object(od::document& document, Json& json, int depth) {
    if (depth > kMaxDepth)
      return beyond_limits(json_, offset(document), "nesting deeper than " + std::to_string(kMaxDepth));
    DRIFTD_TRY(od::object object, checked<od::object>(document, json.get_object()));
    Value::Object out;
    for (auto field : object) {
      DRIFTD_TRY(const std::string_view key, checked(document, field.unescaped_key()));
      std::string name(key);  // the parser's buffer is reused by the value
      DRIFTD_TRY(Value value, read_child(document, field.value(), depth));
      const auto [at, fresh] = out.try_emplace(std::move(name), std::move(value));
      if (!fresh)
        return fail_at(document,
                       "the key \"" + std::string(front(at->first, kMaxShown)) + "\" occurs twice in one object");
    }
    return Value(std::move(out));
  }

  std::string_view json_;
  const char* copy_;
  const ParseLimits& limits_;
  std::size_t nodes_ = 0;   ///< values so far
  std::size_t levels_ = 0;  ///< sum of their depths
};

Result<Value> parse_with(od::parser& parser, std::string_view json, const ParseLimits& limits) {
  const simdjson::padded_string copy(json);
  od::document document;
  if (const auto code = parser.iterate(copy).get(document)) {
    const std::size_t at = code == simdjson::UTF8_ERROR ? first_bad_byte(json) : json.size();
    return corrupt(json, code == simdjson::EMPTY ? 0 : at, describe(code));
  }
  return Walker(json, copy.data(), limits).run(document);
}

/// Appends one character that a JSON string cannot have as it is.
void append_escape(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr std::string_view kPlain = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  const auto at = kPlain.find(c);
  if (at != std::string_view::npos) {
    out += {'\\', kLetters[at]};
  } else {
    out += {'\\', 'u', '0', '0', kHex[c >> 4 & 15], kHex[c & 15]};
  }
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t from = 0;  // of what is copied as it is
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, from, at - from);
    append_escape(out, c);
    from = at + 1;
  }
  out.append(text, from);
  out += '"';
}

void append(std::string& out, const Value& value);

void append_array(std::string& out, const Value::Array& array) {
  out += '[';
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i > 0) out += ',';
    append(out, array[i]);
  }
  out += ']';
}

void append_object(std::string& out, const Value::Object& object) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : object) {
    if (!first) out += ',';
    first = false;
    append_string(out, key);
    out += ':';
    append(out, value);
  }
  out += '}';
}

void append(std::string& out, const Value& value) {
  if (const auto* b = value.boolean()) {
    out += *b ? "true" : "false";
  } else if (const auto* n = value.number()) {
    out += n->token;
  } else if (const auto* s = value.string()) {
    append_string(out, *s);
  } else if (const auto* a = value.array()) {
    append_array(out, *a);
  } else if (const auto* o = value.object()) {
    append_object(out, *o);
  } else {
    out += "null";
  }
}

}  // namespace

Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

const Value* Value::find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto it = members->find(key);
  return it == members->end() ? nullptr : &it->second;
}

Result<Value> parse(std::string_view json, const ParseLimits& limits) {
  if (json.size() > limits.bytes) {
    return fail(Code::budget, "JSON: a document of " + std::to_string(json.size()) + " bytes; at most " +
                                  std::to_string(limits.bytes) + " are read");
  }
  if (json.size() > kMaxKeptParser) {
    od::parser parser;
    return parse_with(parser, json, limits);
  }
  thread_local od::parser parser;
  return parse_with(parser, json, limits);
}

Result<Value> parse(std::string_view json) { return parse(json, ParseLimits{}); }

std::string render(const Value& value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace driftd::core
