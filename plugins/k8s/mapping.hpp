// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/secret_text.hpp"
#include "driftd/sdk/types.hpp"
#include "k8s/kinds.hpp"
#include "k8s/settings.hpp"

namespace driftd::k8s {

/// Maps an object of the API to the record of its kind. Pure. Helm releases are mapped in helm.hpp.
sdk::Record map_object(const Resource& resource, const nlohmann::json& object, const Settings& settings);

/// Returns the record of an object that exists but cannot be judged, with the reason.
sdk::Record unreadable(const Resource& resource, const nlohmann::json& object, const std::string& reason);
/// Returns map_object(), or unreadable() if the object was `cut` (common::BoundedJson) or does not have the form of its
/// type. A malformed object costs only itself, not its kind.
sdk::Record map_or_unreadable(const Resource& resource, const nlohmann::json& object, const std::string& cut,
                              const Settings& settings);

/// Returns the record that says that an object is gone.
sdk::Record tombstone(const Resource& resource, const nlohmann::json& object);

/// Last field manager that wrote the object, ignoring writes that touched only its status.
struct Writer {
  std::string manager, operation, time;  ///< all empty: no manager is known
};
Writer last_writer(const nlohmann::json& object);

/// Decodes the values of a Secret: text if they are UTF-8, else {"base64": …}.
nlohmann::json decoded_data(const nlohmann::json& data);

/// What a mapping fills: body and status, and of the record its unread and sensitive paths.
struct Parts {
  nlohmann::json &body, &status;
  sdk::Record& record;
};

/// Returns the revision of the kind's schema, whose form its bodies have.
std::uint32_t revision_of(const std::string& kind);

// The named attributes of the bodies, one function for each family of kinds. What they do not cover is added by
// rest.hpp.
void map_secret(const nlohmann::json& object, nlohmann::json& body);
void map_config_map(const nlohmann::json& object, nlohmann::json& body, sdk::Record& record);
void map_service(const nlohmann::json& object, const Settings& settings, nlohmann::json& body, nlohmann::json& status);
void map_endpoint_slice(const nlohmann::json& object, nlohmann::json& body, nlohmann::json& status);
void map_ingress(const nlohmann::json& object, nlohmann::json& body);
void map_workload(const nlohmann::json& object, const Settings& settings, nlohmann::json& body, nlohmann::json& status,
                  sdk::Record& record);
/// Adds `init_order`, the names of a pod's init containers in the order in which they run, if there are several. The
/// API calls them a map by name.
void add_init_order(const nlohmann::json& pod, nlohmann::json& body);
/// Adds the names of such elements in their order, if there are several.
void add_order(const nlohmann::json& elements, const char* attribute, nlohmann::json& body);
/// A custom kind: the members of its `spec` and those beside it, or the fields that the settings name. `whole` is that
/// of whole_of().
void map_custom(const Resource& resource, const nlohmann::json& object, nlohmann::json whole, const Parts& to);

/// `data["a.b"]`: a member of an attribute as a path.
std::string member_path(const std::string& attribute, const std::string& name);

using common::looks_secret;

/// Marks every text inside `value` that has the form of a secret as sensitive. `path` is the path of the attribute;
/// empty: `value` is the whole body. Only where the schema compares lists in their order: a marked element is named by
/// its index.
void mark_secrets(const nlohmann::json& value, const std::string& path, sdk::Record& record);

}  // namespace driftd::k8s
