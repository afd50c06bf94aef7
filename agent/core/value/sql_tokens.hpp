// SPDX-License-Identifier: Apache-2.0
// Words of an SQL text, for types::sql(). No other room includes this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace driftd::core::types {

inline constexpr std::string_view kSqlOperators = "+-*/<>=~!@#%^&|`?";

struct SqlToken {
  enum class Kind { word, quoted, text, number, symbol } kind = Kind::symbol;
  std::string text;  ///< words in lower case; texts without their quotes
};

/// Returns the words and symbols of a text, without white space and comments. `invalid` for texts with escapes
/// (`E'…'`), dollar quotes, and quotes and comments without an end; `budget` if there are too many.
Result<std::vector<SqlToken>> sql_tokens(std::string_view text);
std::string shown(const SqlToken& token);  ///< as it is written, a name without quotes that it does not need
std::string in_quotes(char quote, std::string_view text);  ///< a quote inside is doubled
/// Returns true if a name means the same with and without quotes: `a_1`. Reserved words are not looked at.
bool is_plain_name(std::string_view name);
/// Returns a number in one form. A whole number of type numeric (`2.0`, `2e0`) keeps a fraction, because it divides
/// otherwise than `2`. A text that is no decimal number stays as it is.
std::string sql_number(std::string_view text);

}  // namespace driftd::core::types
