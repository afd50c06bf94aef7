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

/// An object of the API by where it is; `type` is its kind there: Service, Secret, ConfigMap, PrismBackend.
struct Ref {
  std::string type, space, name;
  friend auto operator<=>(const Ref&, const Ref&) = default;
};
/// Objects as they are read, by where they are.
using Objects = std::map<Ref, nlohmann::json>;

/// What a cluster says of one backend: the objects that define it, and which of their keys hold what.
struct Definition {
  std::string name, type;
  std::string space;  ///< where it is defined: that of the PrismBackend, or of all its labelled objects
  std::optional<Ref> prism, service, secret, config_map;
  std::string username_key = "username", password_key = "password", config_key;
  std::optional<std::int64_t> port;  ///< of the settings of a PrismBackend; else the Service's
  nlohmann::json overrides = nlohmann::json::object(), capabilities = nlohmann::json::array(),
                 metadata = nlohmann::json::object();

  bool uses(const Ref& ref) const { return ref == prism || ref == service || ref == secret || ref == config_map; }
};

/// By name and namespace: who may write in one namespace defines nothing for another, and whom of several the agent
/// believes is its matter.
using Definitions = std::map<std::pair<std::string, std::string>, Definition>;

/// The definitions in these objects: each PrismBackend, and the labelled Services, Secrets and ConfigMaps that share a
/// name and a namespace. What is not enough for one gets a fault_of() it, and costs no other. Pure.
Definitions definitions(const Objects& objects, const Settings& settings, std::vector<sdk::Diagnostic>& diagnostics);

/// The object carries the labels that make it part of a backend.
bool is_labelled(const nlohmann::json& object, const Settings& settings);

/// A diagnostic that concerns this definition alone: `id` and `backend` are its name, `path` the namespace that it is
/// in.
sdk::Diagnostic fault_of(const Definition& definition, driftd_status code, const std::string& text,
                         const std::string& right = {});

/// What a definition points to and `objects` do not hold yet.
std::vector<Ref> missing(const Definition& definition, const Objects& objects);

/// The definition as what the agent discovers, and as the record of kind `registration` of that backend. Values of
/// Secrets are in the record's sensitive paths only. `cause`: what changed, if that is known.
sdk::Backend backend_of(const Definition& definition, const Objects& objects, const Settings& settings);
sdk::Record registration_of(const Definition& definition, const Objects& objects, const Settings& settings,
                            const std::optional<Ref>& cause);

/// The same, and where the objects are not of the form of their type a fault of this definition: a record with all of
/// it unread, no backend.
sdk::Record registration_or_unreadable(const Definition& definition, const Objects& objects, const Settings& settings,
                                       const std::optional<Ref>& cause, std::vector<sdk::Diagnostic>& diagnostics);
std::optional<sdk::Backend> backend_or_fault(const Definition& definition, const Objects& objects,
                                             const Settings& settings, std::vector<sdk::Diagnostic>& diagnostics);

}  // namespace driftd::k8s
