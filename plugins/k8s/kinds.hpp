// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "k8s/settings.hpp"
#include "kube/resource.hpp"

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
struct Resource : kube::Resource {
  const Custom* custom = nullptr;  ///< entry of the settings; only for `object`
  std::string version{};           ///< API version of a custom type
  /// What its lists mean; null for the kinds of ListTypes::shipped().
  std::shared_ptr<const ListTypes> lists = nullptr;
  std::string no_lists{};  ///< why that is not known, so that its objects are unread; empty: it is known

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

using kube::Place;

/// Returns namespace and name of an id; both are empty if the id is not one of `resource`.
Place place_of(const Resource& resource, const std::string& id);

}  // namespace driftd::k8s
