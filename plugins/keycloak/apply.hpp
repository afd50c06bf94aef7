// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/apply_steps.hpp"
#include "keycloak/apply_rules.hpp"
#include "keycloak/reader.hpp"

namespace driftd::keycloak {

/// Puts attributes of one resource back. Keycloak knows no condition for a write, so each one reads the representation
/// right before, compares what it is about to change, and then sends as little as the kind allows. Lives for one call.
class Applier {
 public:
  /// All must outlive it. `keys` are of the instance.
  Applier(sdk::Call& call, AdminApi& api, const Settings& settings, Index& index, const AttributeRules& attributes,
          common::AppliedRequests& keys)
      : call_(call),
        api_(api),
        settings_(settings),
        attributes_(attributes),
        keys_(keys),
        reader_(call, api, settings, index) {}
  /// Throws NOT_FOUND, CONFLICT, INVALID for a request that no resource can have, or what AdminApi throws.
  sdk::Applied apply(const sdk::Apply& request);

 private:
  using Steps = std::vector<common::Step>;
  /// What is put back, and how it is written.
  struct Target {
    const KindRules& rules;
    std::string realm, uuid;
    nlohmann::json now, wanted;  ///< bodies of the record
  };
  /// One request that changes something.
  struct Write {
    std::string method, path;  ///< below the realm
    nlohmann::json body;       ///< null: none
  };
  /// A part of a representation that a PUT changes: `now` are the members as they must still be.
  struct Part {
    std::string path, prefix;  ///< below the realm; of the attribute paths, such as `protocolMappers`
    nlohmann::json now, wanted;
    const KindRules* rules = nullptr;  ///< null: the PUT takes the whole representation
    bool back = false;                 ///< it takes a PUT back, of which Keycloak may have ignored some values
  };
  /// A set of names of which each is added and removed by a request of its own.
  struct Links {
    std::string attribute;  ///< path of it
    std::vector<std::string> add, remove;
  };

  Found read(const sdk::Identity& id);
  /// Returns the requests to send. Throws CannotSet if one of the values cannot be put back.
  Steps plan(const Target& target);
  /// The members that are in the kind's own representation.
  void add_members(const Target& target, const std::vector<Leaf>& leaves, Steps& to);
  /// What has requests of its own: mappers, executions, contained roles, client scopes.
  void add_parts(const Target& target, const std::string& member, Steps& to);
  void add_mappers(const Target& target, const std::string& member, Steps& to);
  void add_executions(const Target& target, Steps& to);
  void add_execution(const Target& target, std::size_t at, Steps& to);
  void add_scopes(const Target& target, const std::string& member, Steps& to);
  void add_roles(const Target& target, const std::string& path, const Links& links, Steps& to);
  void add_group_roles(const Target& target, const std::string& member, Steps& to);

  common::Step part_step(const Target& target, const Part& part, std::vector<std::string> paths);
  common::Step link_step(const Target& target, const Write& make, const Write& unmake, const std::string& attribute);
  /// Reads the representation, compares, and sends it with the members of `part.wanted`.
  void put(const Target& target, const Part& part);
  void send(const Target& target, const Write& write);
  /// Returns the representation of the role with this name, as `composites` has it. Throws CannotSet if it is gone.
  nlohmann::json role_named(const Target& target, const std::string& name);
  /// Returns the paths of the request that do not have the new value. Throws what reading throws.
  std::vector<std::string> unlike(const sdk::Apply& request);
  sdk::Applied undo_all(const Steps& steps, const sdk::Apply& request, const std::vector<std::string>& unlike);

  sdk::Call& call_;
  AdminApi& api_;
  const Settings& settings_;
  const AttributeRules& attributes_;
  common::AppliedRequests& keys_;
  Reader reader_;
  std::string conflict_;  ///< what moved between the comparison and a write; empty: nothing did
};

}  // namespace driftd::keycloak
