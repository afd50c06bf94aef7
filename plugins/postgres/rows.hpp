// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::postgres {

/// The answer of one query as text; a missing value is SQL's NULL.
struct Rows {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;
};

/// One row read by column name. Borrows the Rows.
class Fields {
 public:
  Fields(const Rows& from, std::size_t row) : from_(from), row_(from.rows.at(row)) {}
  /// NULL and a column that was not asked for are both empty.
  std::optional<std::string> find(std::string_view column) const {
    for (std::size_t i = 0; i < from_.columns.size(); ++i) {
      if (from_.columns[i] == column) return row_.at(i);
    }
    return std::nullopt;
  }
  std::string text(std::string_view column) const { return find(column).value_or(""); }
  bool flag(std::string_view column) const { return text(column) == "t"; }

 private:
  const Rows& from_;
  const std::vector<std::optional<std::string>>& row_;
};

}  // namespace driftd::postgres
