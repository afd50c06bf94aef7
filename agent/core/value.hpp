// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace driftd::core {

/// A JSON value that loses nothing: a number is its raw token, an object is sorted by key.
class Value {
 public:
  struct Number {
    std::string token;  ///< as in the text, `1e3`, `9223372036854775808`
    friend bool operator==(const Number&, const Number&) = default;
  };
  using Array = std::vector<Value>;
  using Object = std::map<std::string, Value, std::less<>>;

  Value() = default;  ///< null
  Value(std::nullptr_t) {}
  explicit Value(bool b) : data_(b) {}
  Value(Number n) : data_(std::move(n)) {}
  Value(std::string s) : data_(std::move(s)) {}
  Value(const char* s) : data_(std::string(s)) {}
  Value(Array a) : data_(std::move(a)) {}
  Value(Object o) : data_(std::move(o)) {}
  Value(const Value&);  // out of line: inlined, g++ 12 warns of members that it believes to be unset
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const Number* number() const { return std::get_if<Number>(&data_); }
  const std::string* string() const { return std::get_if<std::string>(&data_); }
  const Array* array() const { return std::get_if<Array>(&data_); }
  const Object* object() const { return std::get_if<Object>(&data_); }
  Array* array() { return std::get_if<Array>(&data_); }
  Object* object() { return std::get_if<Object>(&data_); }

  /// Member of an object, or nullptr (also when this is no object).
  const Value* find(std::string_view key) const;

  /// Same kind and same parts; numbers by token. Typed equality is schema.hpp's.
  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, bool, Number, std::string, Array, Object> data_;
};

/// What a document may be before it is refused. A node costs 56 to 200 bytes of memory, however few of text.
struct ParseLimits {
  std::size_t bytes = 64u << 20;
  std::size_t nodes = 4'000'000;
};
/// Of a record's body: what a stranger may make one resource cost the agent.
inline constexpr ParseLimits kBodyLimits{.bytes = 8u << 20, .nodes = 100'000};

/// Parses one JSON document (RFC 8259, UTF-8, nesting ≤ 256; a duplicate key is an error). `corrupt` with line and
/// column otherwise; `budget` where it is beyond the limits or nested deeper. [any thread]
Result<Value> parse(std::string_view json, const ParseLimits& limits = {});

/// Canonical text: keys sorted by bytes, no white space, shortest escapes, numbers by token. Equal values give equal
/// bytes.
std::string render(const Value& value);

}  // namespace driftd::core
