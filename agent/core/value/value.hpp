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
  Value(const Value&);  // out of line, because g++ 12 warns of uninitialised members if they are inlined
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

  /// Returns the member of an object, or nullptr (also if this is not an object).
  const Value* find(std::string_view key) const;

  /// Compares structure, and numbers by token. schema.hpp has typed equality.
  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, bool, Number, std::string, Array, Object> data_;
};

/// Parses one JSON document (RFC 8259, UTF-8, ≤ 64 MiB, nesting ≤ 256; a duplicate key is an error). Returns `corrupt`
/// with line and column if it is not valid. [any thread]
Result<Value> parse(std::string_view json);

/// Returns canonical JSON: keys sorted by bytes, no white space, shortest escapes, numbers by token. Equal values give
/// equal bytes.
std::string render(const Value& value);

}  // namespace driftd::core
