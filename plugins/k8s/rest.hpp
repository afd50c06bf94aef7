// SPDX-License-Identifier: Apache-2.0
// What of an object no named attribute covers: it is compared, too, under the API's own names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "driftd/sdk/types.hpp"
#include "k8s/kinds.hpp"

namespace driftd::k8s {

/// Returns the object without its exceptions (exceptions.hpp), with its lists in the form that they mean
/// (list_types.hpp). What a cut object lacks is missing here, too.
nlohmann::json whole_of(const Resource& resource, const nlohmann::json& object);

/// Adds to a body with named attributes what of `whole` they do not cover. Members of `whole` that are not covered keep
/// their names; one whose name is taken by a named attribute goes to the member `more`. Marks as sensitive what looks
/// like a secret.
void add_rest(const Resource& resource, nlohmann::json whole, nlohmann::json& body, sdk::Record& record);

/// The same for a workload: `containers.<name>`, `init_containers.<name>`, `pod`, `pod_annotations`, `pod_metadata`,
/// `volume_claims.<name>` and `spec`.
void add_workload_rest(nlohmann::json whole, nlohmann::json& body, sdk::Record& record);

/// Adds the members of `rest`, which is an object, to those of `to`. A name that is taken goes to its member `more`.
/// `path` is the path of `to`, empty for the body.
void add_members(nlohmann::json rest, nlohmann::json& to, const std::string& path, sdk::Record& record);

/// Marks as sensitive each text that has the form of a secret, the `value` of each object whose `name` is that of a
/// secret, and each command line with a secret in it. `path` is the path of `value`; empty: `value` is the body.
void mark_rest(const nlohmann::json& value, const std::string& path, sdk::Record& record);

}  // namespace driftd::k8s
