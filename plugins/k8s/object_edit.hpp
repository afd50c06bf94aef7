// SPDX-License-Identifier: Apache-2.0
// Sets and takes away values of an API object by paths as records have them: the elements of a list that is a map are
// named by their keys (list_types.hpp). Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8s/kinds.hpp"

namespace driftd::k8s {

/// Members of the API's names: `spec`, `template`, `spec`, `containers`, `app`, `image`.
using ObjectPath = std::vector<std::string>;

/// What the API says about the lists below one place of an object, as ListTypes has it.
class ListShape {
 public:
  /// The root of an object of this type.
  static ListShape of(const Resource& resource);
  ListShape member(const std::string& name) const;  ///< of an object at this place
  ListShape element() const;                        ///< of a list at this place
  /// Returns the members that name an element, in their order; empty if the place is no map.
  std::vector<std::string> keys() const;

 private:
  ListShape(const nlohmann::json* table, nlohmann::json field) : table_(table), field_(std::move(field)) {}

  const nlohmann::json* table_;  ///< of a ListTypes that outlives it
  nlohmann::json field_;
};

/// Returns a value in the form of the API: an object that stands for a map becomes the list again, in the order of
/// `like`, the list that was there.
nlohmann::json listed(const nlohmann::json& value, const ListShape& shape, const nlohmann::json& like);

/// Sets the value at `path`, or takes it away if it is null. Creates objects on the way and, for the last step, an
/// element. Throws CannotSet if an element on the way does not exist, or if the path enters a list that is no map.
void edit_at(nlohmann::json& object, const ListShape& shape, const ObjectPath& path, const nlohmann::json& value);

/// Returns the value at the path; null if there is none.
nlohmann::json value_at(const nlohmann::json& object, const ListShape& shape, const ObjectPath& path);

}  // namespace driftd::k8s
