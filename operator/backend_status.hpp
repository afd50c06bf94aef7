// SPDX-License-Identifier: Apache-2.0
// What a PrismBackend says about itself: phase, message, endpoint and conditions. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "k8s/prism.hpp"
#include "operator/cluster_view.hpp"
#include "operator/registry.hpp"

namespace driftd::op {

enum class Truth { yes, no, unknown };

struct Condition {
  std::string type;  ///< Ready, ServiceFound, SecretFound or Synced
  Truth truth = Truth::unknown;
  std::string reason;   ///< one word in CamelCase
  std::string message;  ///< for people
};

/// Of a PrismBackend, as the operator finds it.
struct BackendState {
  std::string phase;     ///< Pending, Discovered or Error
  std::string message;   ///< of Error and Pending: why
  std::string endpoint;  ///< empty: none can be said
  std::vector<Condition> conditions;
  bool waits = false;  ///< for the agent: look again soon, whatever happens
};

/// What a PrismBackend defines.
struct Defined {
  std::optional<k8s::Definition> definition;  ///< nullopt: `fault` says what is wrong
  std::string fault;
  std::vector<k8s::Ref> references() const;  ///< Service, Secret and ConfigMap that it names
};

/// What the operator may look at.
struct Limits {
  std::vector<std::string> namespaces;           ///< empty: all
  std::string cluster_domain = "cluster.local";  ///< of the names of Services
  /// Namespaces into which credentials of backends elsewhere may be copied for PrismPatterns; `*` is all of them.
  std::vector<std::string> share_with{};
  bool shares_with(const std::string& space) const;
};

Defined read_definition(const nlohmann::json& object, const Limits& limits);

/// Looks at what the definition names. `agent`: what the registry of driftd's agent says of it.
BackendState examine(const nlohmann::json& object, const Defined& defined, const ClusterView& view,
                     const Limits& limits, const RegistryAnswer& agent);

/// Returns the members of the status that the operator writes; conditions that stay as they were keep their time.
/// `now`: RFC 3339.
nlohmann::json status_of(const BackendState& state, const nlohmann::json& object, const std::string& now);
/// The conditions as a status holds them; those that stay as they were in `object` keep their time.
nlohmann::json render_conditions(const std::vector<Condition>& conditions, const nlohmann::json& object,
                                 const std::string& now);
/// Returns true if the object shows these members already.
bool is_shown(const nlohmann::json& status, const nlohmann::json& object);

}  // namespace driftd::op
