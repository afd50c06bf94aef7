// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace driftd::kube {

/// One resource type of the API server, and what is listed and watched of it.
struct Resource {
  std::string kind;                            ///< what failures call it (sdk::Failure::kind): `secret`
  std::string base;                            ///< `/api/v1`, `/apis/apps/v1`
  std::string plural;                          ///< `secrets`
  std::string object;                          ///< kind in the API: `Secret`
  bool namespaced = true;                      ///< false: its objects belong to the cluster
  std::string field_selector, label_selector;  ///< what is listed and watched of it; empty: all

  /// Returns `/apis/apps/v1/namespaces/prod/deployments[/name]`; an empty `space` means all namespaces.
  std::string path(const std::string& space, const std::string& name = {}) const;
  /// Returns the right as RBAC names it: `list secrets in namespace prod`, `list deployments.apps in all namespaces`.
  std::string right(const std::string& verb, const std::string& space) const;
  /// Returns the apiVersion of its objects: `v1`, `apps/v1`.
  std::string api_version() const;
};

/// Namespace and name of an object.
struct Place {
  std::string space, name;  ///< space empty: an object of the cluster
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// Returns `?limit=500&labelSelector=…`: `first` and the selectors of the resource.
std::string query_of(const Resource& resource, const std::string& first);

/// Returns true if both resource versions are decimal numbers, as etcd's revisions are, and `version` is the larger
/// one.
bool is_later(const std::string& version, const std::string& than);

}  // namespace driftd::kube
