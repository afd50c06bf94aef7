// SPDX-License-Identifier: Apache-2.0
// Parts of KindSchema::parse(). No other room includes this.
#pragma once

#include <string>

#include "core/value/schema.hpp"

namespace driftd::core {

inline constexpr int kNewestDialect = 2;

// Each returns the value as what it must be, or `invalid` with `where`, what was expected and what was found.
Result<bool> flag_of(const Value& value, const std::string& where);
Result<std::string> text_of(const Value& value, const std::string& where);
Result<std::uint32_t> positive_of(const Value& value, const std::string& where);

/// Puts the value into `slot`, or returns the error.
template <class T>
Status store(T& slot, Result<T> result) {
  if (!result) return fail(result.error());
  slot = std::move(*result);
  return {};
}
Status store_class(ChangeClass& slot, const Value& value, const std::string& where);

/// Reads the members of one rule into `rule`, whose `path` and `dialect` are set. An unknown member, one of a later
/// dialect, or a value of the wrong type is `invalid`; `where` begins the error's text.
Status read_rule(AttributeRule& rule, const Value::Object& members, const std::string& where);

/// Refuses a default with members that would have to be rendered without an end, or too often.
Status check_default(const AttributeRule& rule, const std::string& where);

}  // namespace driftd::core
