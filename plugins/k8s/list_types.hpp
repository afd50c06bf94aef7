// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace driftd::k8s {

/// What the API says about the lists of its types: which of them are maps by the keys of their elements, and which are
/// sets (`x-kubernetes-list-type`). Read from a table:
///
///     {"kinds": {"deployment": "TYPE"},
///      "types": {"TYPE": {"FIELD": {"keys": ["name"], "of": "TYPE"}, "*": {"set": true}}}}
///
/// `of` is the type of the field's value, or of the elements of its list; the field `*` stands for any other member.
/// Types and fields without such a list below them are not in the table. Immutable; any thread.
class ListTypes {
 public:
  explicit ListTypes(nlohmann::json table) : table_(std::move(table)) {}

  /// The table of the kinds that are known when the plugin is built (list_types.json).
  static const ListTypes& shipped();

  /// Returns true if the table was made from a document that has this kind, even if none of its lists has a meaning.
  bool knows(const std::string& kind) const { return table_.at("kinds").contains(kind); }
  /// Returns the object with its lists in the form that they mean: a map is an object by the keys of its elements
  /// (`80/TCP` if there are several), a set is sorted, any other list stays as it is. So does a map with a missing or
  /// repeated key, for it cannot be read as one.
  nlohmann::json shaped(const nlohmann::json& object, const std::string& kind) const;
  /// Returns the value at `path` inside an object of that kind in the same way; `path` has the members and, for an
  /// element of a list, its index.
  nlohmann::json shaped_at(const nlohmann::json& value, const std::string& kind,
                           const std::vector<std::string>& path) const;
  /// The table itself.
  const nlohmann::json& table() const { return table_; }

 private:
  using json = nlohmann::json;
  json shape(const json& value, const std::string& type) const;
  json shape_field(const json& value, const json& field) const;
  /// Returns what the table says about a member of a type; null if nothing.
  const json& field_of(const std::string& type, const std::string& member) const;
  std::string type_of(const std::string& kind) const;  ///< empty if the table has no list of it

  json table_;
};

}  // namespace driftd::k8s
