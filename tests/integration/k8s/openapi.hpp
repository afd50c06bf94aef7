// SPDX-License-Identifier: Apache-2.0
// The fields of an API type, from the OpenAPI v3 document that the API server itself publishes.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace driftd::test {

/// One field of a type that holds a value and no further fields.
struct Leaf {
  /// The names on the way to it. "0" is the element of a list, "@" a key of a map.
  std::vector<std::string> path;
  /// For each part of `path` the name of the API type that is there; empty if it is a list, a map or a plain value.
  std::vector<std::string> types;
  /// string, integer, number, boolean, quantity, int-or-string, date-time, byte, any, or the name of an API type that
  /// is a part of itself and was not entered a second time.
  std::string form;
  nlohmann::json words = nlohmann::json::array();  ///< the only values that the document allows; empty: any

  /// Whether it is a property of a JSON schema that is a value itself (of a CustomResourceDefinition).
  bool is_property() const;
  std::string text() const;  ///< the path with dots: `spec.ports.0.name`
};

/// The types of one group and version.
class ApiTypes {
 public:
  /// `document` is what the API server answers to /openapi/v3/<group and version>. An object that it describes in place
  /// has a type called after the place: `example.v1.Thing.spec.ports`.
  explicit ApiTypes(nlohmann::json document);

  /// The leaves of a type, without apiVersion, kind and status at its top. Types that are a part of themselves are
  /// entered once; a JSON schema is also entered as the property of one.
  std::vector<Leaf> leaves(const std::string& type) const;
  /// The objects ("object"), lists ("list") and maps ("map") on the way to its leaves, and the leaves: whatever may be
  /// empty.
  std::vector<Leaf> places(const std::string& type) const;
  /// The smallest value of a type: its required fields only. `given` has whole values for some types.
  nlohmann::json smallest(const std::string& type, const nlohmann::json& given) const;

 private:
  const nlohmann::json& schema(const std::string& type) const;
  nlohmann::json smallest_of(const nlohmann::json& schema, const nlohmann::json& given) const;
  void walk(const nlohmann::json& schema, Leaf at, std::vector<Leaf>& out) const;
  void enter(const std::string& type, const Leaf& at, std::vector<Leaf>& out) const;

  nlohmann::json document_;
};

}  // namespace driftd::test
