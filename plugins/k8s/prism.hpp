// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driftd/sdk/extensions.hpp"
#include "k8s/settings.hpp"

namespace driftd::k8s {

/// Identifies an object of the API; `type` is its API kind: Service, Secret, ConfigMap, PrismBackend.
struct Ref {
  std::string type, space, name;
  friend auto operator<=>(const Ref&, const Ref&) = default;
};
using Objects = std::map<Ref, nlohmann::json>;  ///< as the server gave them

/// An address outside of the cluster, as a PrismBackend names it.
struct Endpoint {
  std::string host;                  ///< of IPv6 with its brackets
  std::optional<std::int64_t> port;  ///< empty: the usual one of the type
};
/// Parses `host`, `host:port`, `[v6]` or `[v6]:port`. Pure.
std::optional<Endpoint> parse_endpoint(const std::string& text);

/// Definition of one backend: the objects that define it, and which of their keys hold what.
struct Definition {
  std::string name, type;  ///< of the backend
  /// Its namespace: that of the PrismBackend or of all its labelled objects. Empty: a PrismBackend of the cluster.
  std::string space;
  std::optional<Ref> prism, service, secret, config_map;
  /// These are keys of the Secret and of the ConfigMap.
  std::string username_key = "username", password_key = "password", config_key;
  std::optional<std::int64_t> port;  ///< from the PrismBackend; else that of the Service
  std::vector<Endpoint> external;    ///< instead of a Service
  /// The list of ConfigMaps was denied, so whether one belongs to it is not known. Only for labelled objects.
  bool config_map_unknown = false;
  nlohmann::json overrides = nlohmann::json::object(), capabilities = nlohmann::json::array(),
                 metadata = nlohmann::json::object();

  /// Returns `backend q in namespace n`, `backend q of the cluster`.
  std::string title() const {
    return "backend " + name + (space.empty() ? " of the cluster" : " in namespace " + space);
  }
  bool uses(const Ref& ref) const { return ref == prism || ref == service || ref == secret || ref == config_map; }
};

/// Definitions by name and namespace: write access in one namespace must not define anything for another. If several
/// namespaces define one name, the agent decides which one counts.
using Definitions = std::map<std::pair<std::string, std::string>, Definition>;

/// Returns the object; JSON null if it is not in `objects` or `ref` is empty. It lives as long as `objects`.
const nlohmann::json& find_object(const Objects& objects, const std::optional<Ref>& ref);

/// Returns the definitions in these objects: each PrismBackend, and the labelled Services, Secrets and ConfigMaps that
/// share a name and a namespace. An incomplete or faulty one gets a diagnostic of fault_of() and affects no other. A
/// PrismBackend of the cluster counts if what it names is in a namespace of the settings, or is outside of the cluster.
/// Pure.
Definitions definitions(const Objects& objects, const Settings& settings, std::vector<sdk::Diagnostic>& diagnostics);

/// Returns true if the object carries the labels that make it part of a backend.
bool is_labelled(const nlohmann::json& object, const Settings& settings);

/// Returns a diagnostic that concerns this definition alone: `id` and `backend` are its name, `path` its namespace.
sdk::Diagnostic fault_of(const Definition& definition, driftd_status code, const std::string& text,
                         const std::string& right = {});

/// Returns what a definition refers to and `objects` does not hold yet.
std::vector<Ref> missing(const Definition& definition, const Objects& objects);

}  // namespace driftd::k8s
