// SPDX-License-Identifier: Apache-2.0
// leaves.json: what one must know of an API type, beyond its OpenAPI document, to set each of its fields.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "openapi.hpp"

namespace driftd::test {

/// One kind of the provider and an object of it that the API server accepts.
struct LeafKind {
  std::string kind;
  std::string document;     ///< of its group and version: `apis/apps/v1`
  std::string type;         ///< the API type's name in that document
  std::string plural;       ///< `deployments`
  bool namespaced = true;   ///< false: of the whole cluster
  nlohmann::json base;      ///< an object without name and namespace
  bool recreated = false;   ///< true: the API server lets nobody change it, so changes are made by other objects
  std::size_t refused = 0;  ///< the greatest number of leaves that the API server may refuse
  bool custom = false;      ///< the API server has it only by a CustomResourceDefinition
  std::string front;        ///< what the id of a record has before namespace and name: `Thing.leaf.example/`

  /// The path at which its objects are created.
  std::string path(const std::string& space) const;
  /// What the ids of its records have before the name.
  std::string id_front(const std::string& space) const { return front + (namespaced ? space + "/" : ""); }
};

/// The tables of leaves.json. A key of a table is the name of an API type or a glob over `kind/path.of.the.leaf`; of
/// several that match, the longest counts.
class LeafTable {
 public:
  explicit LeafTable(const std::string& json_text);

  const std::vector<LeafKind>& kinds() const { return kinds_; }
  /// CustomResourceDefinitions of kinds that the API server does not have itself.
  const nlohmann::json& definitions() const { return data_.at("definitions"); }
  /// Values to try for a leaf, the likely ones first. Never empty.
  std::vector<nlohmann::json> values(const LeafKind& kind, const Leaf& leaf) const;
  /// Where a leaf is in an object, with keys of maps.
  nlohmann::json::json_pointer place(const LeafKind& kind, const Leaf& leaf) const;
  /// The base object with this value at the leaf, and with what the API server demands beside it.
  nlohmann::json build(const LeafKind& kind, const ApiTypes& types, const Leaf& leaf,
                       const nlohmann::json& value) const;
  /// The companions of a leaf: fields that must have a certain value beside it, or ("$") the same one.
  void add_companions(const LeafKind& kind, const Leaf& leaf, const nlohmann::json& value,
                      nlohmann::json& object) const;
  /// Why a leaf is not tried: it is the object's identity or written by the server. Empty if it is tried.
  std::string outside(const LeafKind& kind, const Leaf& leaf) const;
  /// Why a change of a leaf need not be seen: what the provider's own table says. Empty if it must be seen.
  static std::string excepted(const LeafKind& kind, const Leaf& leaf);
  /// Why an empty value of a place means the same as none, by this table. Empty if it does not.
  std::string hollow(const LeafKind& kind, const Leaf& leaf) const;
  /// The path of the provider's own table that says so. Empty if there is none.
  static std::string hollow_exception(const LeafKind& kind, const Leaf& leaf);
  /// All such paths of a kind.
  static std::set<std::string> hollow_exceptions(const LeafKind& kind);
  /// Whether the first value of a leaf is filled in silently, as that table says.
  static bool filled_in(const LeafKind& kind, const Leaf& leaf);
  /// The beginnings (`spec.template.spec.ephemeralContainers`) of which the server refuses every leaf for one reason.
  /// One leaf of each is tried, as the proof.
  std::string refused_whole(const LeafKind& kind, const Leaf& leaf) const;

 private:
  /// The best match in a table, or null.
  const nlohmann::json* match(const char* table, const LeafKind& kind, const Leaf& leaf) const;

  nlohmann::json data_;
  std::vector<LeafKind> kinds_;
};

}  // namespace driftd::test
