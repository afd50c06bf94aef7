// SPDX-License-Identifier: Apache-2.0
// When two texts of a setting mean the same to the server. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/rows.hpp"

namespace driftd::postgres {

/// How the server reads the texts of one GUC.
struct GucType {
  std::string vartype;             ///< bool, integer, real, enum or string
  std::string unit;                ///< base unit of bare numbers (`8kB`, `ms`); empty if there is none
  std::vector<std::string> words;  ///< of an enum
};

/// Returns what the text means to the server, in a form that equal meanings share. Empty if the server would not accept
/// the text, or if only the text itself is known (a string that is not a list). `name` is in lower case.
std::optional<std::string> meaning(std::string_view name, const GucType& type, std::string_view text);

/// Returns the number that the server reads, in the base unit of an integer or real GUC. Empty if it reads none.
std::optional<double> number_in_base_unit(const GucType& type, std::string_view text);
/// Returns the truth value of a bool GUC's text; empty if it is none.
std::optional<bool> truth_of(std::string_view text);
/// Size of a unit of memory in bytes, and of one of time in milliseconds; multiples such as `8kB` have one, too. Empty
/// if there is no such unit.
std::optional<double> memory_unit(std::string_view unit);
std::optional<double> time_unit(std::string_view unit);

/// The GUCs of one server, as pg_settings lists them. Their names are compared without case.
class GucTypes {
 public:
  GucTypes() = default;
  explicit GucTypes(const Rows& rows);  ///< of guc_types_query()
  /// Returns true if both texts mean the same to this GUC. Two different texts of an unknown GUC, or of one with a
  /// class (`my.setting`), never do.
  bool same(std::string_view name, std::string_view before, std::string_view after) const;

 private:
  std::map<std::string, GucType, std::less<>> types_;
};

/// Returns a query with one row for each GUC of the server: name, vartype, unit, words.
std::string guc_types_query();

/// Returns the name of the GUC whose text the attribute `path` of this resource is. Empty if it is none.
std::string guc_of_attribute(std::string_view kind, std::string_view id, std::string_view path);

}  // namespace driftd::postgres
