// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "k8s/settings.hpp"

namespace driftd::k8s {

inline constexpr const char* kSecret = "secret";
inline constexpr const char* kHelmRelease = "helm_release";
inline constexpr const char* kPrismBackend = "prism_backend";
inline constexpr const char* kObject = "object";
inline constexpr const char* kRegistration = "registration";

/// One resource type of the API server and the kind that its objects become.
struct Resource {
  std::string kind;    ///< ours: `secret`
  std::string base;    ///< `/api/v1`, `/apis/apps/v1`
  std::string plural;  ///< `secrets`
  std::string object;  ///< the API's own: `Secret`
  bool namespaced = true;
  std::string field_selector, label_selector;
  const Custom* custom = nullptr;  ///< of the settings, for `object`
  std::string version;             ///< of a custom one

  /// `/apis/apps/v1/namespaces/prod/deployments[/name]`; `space` empty: in all.
  std::string path(const std::string& space, const std::string& name = {}) const;
  /// `list secrets in namespace prod`, `list deployments.apps in all namespaces`: the right as RBAC names it.
  std::string right(const std::string& verb, const std::string& space) const;
  /// Of this provider: `prod/db`, a cluster-wide one's name alone; of `object` with its type before it.
  std::string id(const std::string& space, const std::string& name) const;
};

/// What the provider knows of itself, without custom ones; in the order in which it lists them.
std::vector<Resource> known_resources(const Settings& settings);

/// Where an id points: namespace and name; both empty when it is none of `resource`.
struct Place {
  std::string space, name;
};
Place place_of(const Resource& resource, const std::string& id);

}  // namespace driftd::k8s
