// SPDX-License-Identifier: Apache-2.0
// The types of the API server that the operator reads and writes.
#pragma once

#include "kube/resource.hpp"

namespace driftd::op {

inline const kube::Resource kPrismBackends{
    "prism_backend", "/apis/prism.io/v1alpha1", "prismbackends", "PrismBackend", false, {}, {}};
inline const kube::Resource kPrismPatterns{
    "prism_pattern", "/apis/prism.io/v1alpha1", "prismpatterns", "PrismPattern", true, {}, {}};
/// Those that the operator made.
inline const kube::Resource kDeployments{"deployment",
                                         "/apis/apps/v1",
                                         "deployments",
                                         "Deployment",
                                         true,
                                         {},
                                         "app.kubernetes.io/managed-by=driftd-operator"};
inline const kube::Resource kServices{"service", "/api/v1", "services", "Service", true, {}, {}};
/// Without the releases of Helm, which are large and have a stream of their own.
inline const kube::Resource kSecrets{"secret", "/api/v1", "secrets", "Secret", true, "type!=helm.sh/release.v1", {}};
/// The releases of Helm. `object` is our own word: it keeps them apart from other Secrets.
inline const kube::Resource kReleases{
    "helm_release", "/api/v1", "secrets", "HelmRelease", true, "type=helm.sh/release.v1", {}};
inline const kube::Resource kConfigMaps{"config_map", "/api/v1", "configmaps", "ConfigMap", true, {}, {}};
inline const kube::Resource kLeases{"lease", "/apis/coordination.k8s.io/v1", "leases", "Lease", true, {}, {}};
inline const kube::Resource kEvents{"event", "/apis/events.k8s.io/v1", "events", "Event", true, {}, {}};

/// The ConfigMap with an organisation's own chart patterns, in the operator's namespace.
inline const kube::Resource kPatterns{
    "helm_patterns", "/api/v1", "configmaps", "HelmPatterns", true, "metadata.name=prism-helm-patterns", {}};

/// Under this name the API server notes which fields the operator wrote.
inline constexpr const char* kFieldManager = "driftd-operator";

}  // namespace driftd::op
