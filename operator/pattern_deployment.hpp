// SPDX-License-Identifier: Apache-2.0
// The Deployment that a PrismPattern asks for. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/pattern_bindings.hpp"

namespace driftd::op {

/// Returns the Deployment, with the fields that the operator sets and no others. Credentials are in it only as
/// references to Secrets.
nlohmann::json deployment_of(const nlohmann::json& pattern, const Bindings& bindings);

/// With autoscaling the replicas of the PrismPattern count only at first: what runs now (`current`, null if nothing
/// does) stays.
void keep_scale(nlohmann::json& wanted, const nlohmann::json& pattern, const nlohmann::json& current);

/// What the operator makes for a PrismPattern goes with it.
nlohmann::json owner_reference(const nlohmann::json& pattern);

/// Returns true if the stored Deployment has everything that `wanted` says.
bool is_deployed(const nlohmann::json& stored, const nlohmann::json& wanted);

/// Returns true if the Deployment belongs to this PrismPattern.
bool is_owned(const nlohmann::json& deployment, const nlohmann::json& pattern);

/// Annotation of the Pods: the backend of each slot, as the resolver of the discovery RFC reads it.
inline constexpr const char* kBackendBindings = "prism.io/backend-bindings";
/// Annotation of the Pods: versions of the Secrets. If it changes, the Pods are replaced.
inline constexpr const char* kCredentials = "prism.io/credentials";
/// Annotation of the Deployment: digest of what was applied last.
inline constexpr const char* kApplied = "prism.io/applied";

}  // namespace driftd::op
