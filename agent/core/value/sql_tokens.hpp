// SPDX-License-Identifier: Apache-2.0
// Words of an SQL text, for types::sql(). No other room includes this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace driftd::core::types {

inline constexpr std::string_view kSqlOperators = "+-*/<>=~!@#%^&|?";

struct SqlToken {
  enum class Kind { word, quoted, text, number, symbol } kind = Kind::symbol;
  std::string text;  ///< words in lower case; texts without their quotes
};

/// Returns the words and symbols of a text, without white space and comments. `invalid` for texts with escapes (`E'…'`)
/// and dollar quotes, `budget` if there are too many.
Result<std::vector<SqlToken>> sql_tokens(std::string_view text);
std::string shown(const SqlToken& token);  ///< as it is written, a name without quotes that it does not need

}  // namespace driftd::core::types
