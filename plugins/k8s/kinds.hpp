// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "k8s/settings.hpp"

namespace driftd::k8s {

inline constexpr const char* kSecret = "secret";
inline constexpr const char* kHelmRelease = "helm_release";
inline constexpr const char* kPrismBackend = "prism_backend";
inline constexpr const char* kObject = "object";
inline constexpr const char* kRegistration = "registration";
inline constexpr const char* kGateway = "gateway";
inline constexpr const char* kHttpRoute = "http_route";
inline constexpr const char* kJob = "job";
inline constexpr const char* kCronJob = "cron_job";

class ListTypes;

/// Kinds whose types the server need not serve.
inline constexpr std::array kOptionalKinds = {kPrismBackend, kGateway, kHttpRoute};
bool is_optional_kind(const std::string& kind);

/// One resource type of the API server and the kind that its objects become.
struct Resource {
  std::string kind;                            ///< kind of our records: `secret`
  std::string base;                            ///< `/api/v1`, `/apis/apps/v1`
  std::string plural;                          ///< `secrets`
  std::string object;                          ///< kind in the API: `Secret`
  bool namespaced = true;                      ///< false: its objects belong to the cluster
  std::string field_selector, label_selector;  ///< what is listed and watched of it; empty: all
  const Custom* custom = nullptr;              ///< entry of the settings; only for `object`
  std::string version;                         ///< API version of a custom type
  /// What its lists mean; null for the kinds of ListTypes::shipped().
  std::shared_ptr<const ListTypes> lists = nullptr;
  std::string no_lists{};  ///< why that is not known, so that its objects are unread; empty: it is known

  /// Returns `/apis/apps/v1/namespaces/prod/deployments[/name]`; an empty `space` means all namespaces.
  std::string path(const std::string& space, const std::string& name = {}) const;
  /// Returns the right as RBAC names it: `list secrets in namespace prod`, `list deployments.apps in all namespaces`.
  std::string right(const std::string& verb, const std::string& space) const;
  /// Returns the record id: `prod/db`, for a cluster-wide object its name alone, for `object` with the type in front.
  std::string id(const std::string& space, const std::string& name) const;
};

/// The types of the kinds of the cluster, not of a namespace: they are read if all namespaces are, or if `include`
/// names them.
const std::vector<Resource>& cluster_resources();
/// Returns the type of a kind of the cluster, whether or not it is listed; null for any other kind.
const Resource* cluster_resource(const std::string& kind);

/// The type of CronJobs, without a selector.
const Resource& cron_job_resource();

/// Returns the built-in types that the settings want, without custom ones, in the order in which they are listed.
std::vector<Resource> known_resources(const Settings& settings);

/// Namespace and name of an id; both empty if the id is not one of `resource`.
struct Place {
  std::string space, name;  ///< space empty: a cluster-wide object
};
Place place_of(const Resource& resource, const std::string& id);

}  // namespace driftd::k8s
