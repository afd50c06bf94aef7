// SPDX-License-Identifier: Apache-2.0
// For each leaf of a kind an object on a real API server, in which then only that leaf is changed.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leaf_table.hpp"
#include "support/kube.hpp"

namespace driftd::test {

/// What becomes of one leaf.
struct Trial {
  Leaf leaf;
  std::vector<nlohmann::json> values;  ///< to try
  std::string before, after;  ///< names of the object before and after the change; they differ if the leaf makes them
  nlohmann::json stored_before, stored_after;  ///< as the API server returned them
  bool reset = false;                          ///< then the object became the base object again, which is not the same
  std::string refusal;                         ///< why the leaf could not be set or changed; empty if it was
  bool proof = false;  ///< it stands for all leaves that the server is said to refuse as a whole
  bool alone = true;   ///< nothing but the leaf differs
};

/// The leaves of one kind. Objects are in one namespace that has nothing else (or of the cluster).
class LeafTrials {
 public:
  enum class What {
    changes,  ///< each leaf gets one value and then another
    empties,  ///< each leaf, object, list and map is empty (0, false) and then not there
  };
  LeafTrials(const KubeServer& kube, const LeafTable& table, const LeafKind& kind, std::string space, What what);

  /// Creates an object for each leaf, with the leaf set. Leaves that are outside are left out; among the empties also
  /// those that the provider's table names.
  void create();
  /// Changes that leaf of each object: by an update, or if the server refuses that, by another object in its place.
  void change();
  /// Makes each changed object the base object again, so that its leaf is gone.
  void reset();

  std::vector<Trial>& trials() { return trials_; }
  /// The name of one more object, which change() writes as it is: nothing of it may be seen.
  const std::string& control() const { return control_; }
  std::size_t outside() const { return outside_; }

 private:
  struct Stored {
    bool done = false;
    nlohmann::json object;
    std::string reason;
  };
  /// Creates an object. If one of its name exists, deletes that first.
  Stored post(const std::string& name, nlohmann::json object) const;
  Stored put(const nlohmann::json& object) const;
  /// The API server demands that a CustomResourceDefinition is called after its group: so each leaf has a group.
  void own_group(const Trial& trial, std::size_t index, nlohmann::json& object) const;
  void create_one(std::size_t index);
  void change_one(std::size_t index);
  void reset_one(std::size_t index);
  bool update(Trial& trial, const nlohmann::json& value);
  bool replace(Trial& trial, std::size_t index, const nlohmann::json& value);
  bool accept(Trial& trial, const std::string& name, const nlohmann::json& stored);
  void take_away(const Trial& trial, nlohmann::json& object) const;
  nlohmann::json at(const Leaf& leaf, const nlohmann::json& object) const;

  const KubeServer& kube_;
  const LeafTable& table_;
  const LeafKind& kind_;
  const What what_;
  std::string space_, path_, control_;
  ApiTypes types_;
  std::size_t outside_ = 0;
  std::vector<Trial> trials_;
};

/// Runs work(0) … work(count - 1) on a few threads.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work);
/// An object without what the API server writes into each: versions, times, uid, managed fields, status.
nlohmann::json without_server_fields(nlohmann::json object);

}  // namespace driftd::test
