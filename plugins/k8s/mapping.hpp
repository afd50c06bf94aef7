// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "driftd/sdk/types.hpp"
#include "k8s/kinds.hpp"
#include "k8s/settings.hpp"

namespace driftd::k8s {

/// An object of the API as the record of its kind; pure. Helm releases have their own way, see helm.hpp.
sdk::Record map_object(const Resource& resource, const nlohmann::json& object, const Settings& settings);

/// The record of an object that is there and of which nothing can be judged, for this reason.
sdk::Record unreadable(const Resource& resource, const nlohmann::json& object, const std::string& reason);
/// map_object(), or unreadable() of one that was `cut` (common::BoundedJson) or is not of the form of its type: an
/// object that somebody made so costs itself, not its kind.
sdk::Record map_or_unreadable(const Resource& resource, const nlohmann::json& object, const std::string& cut,
                              const Settings& settings);

/// The record that says that an object is gone.
sdk::Record tombstone(const Resource& resource, const nlohmann::json& object);

/// Who wrote the object last, leaving out what only touched its status: `manager`, `operation`, `time`.
struct Writer {
  std::string manager, operation, time;
};
Writer last_writer(const nlohmann::json& object);

/// The Secret's values as text, where they are UTF-8, else as {"base64": …}.
nlohmann::json decoded_data(const nlohmann::json& data);

// The bodies, one function for each family of kinds; `record` gets body, status, unread and sensitive paths.
void map_secret(const nlohmann::json& object, nlohmann::json& body);
void map_config_map(const nlohmann::json& object, nlohmann::json& body, sdk::Record& record);
void map_service(const nlohmann::json& object, const Settings& settings, nlohmann::json& body, nlohmann::json& status,
                 sdk::Record& record);
void map_endpoint_slice(const nlohmann::json& object, nlohmann::json& body, nlohmann::json& status);
void map_ingress(const nlohmann::json& object, nlohmann::json& body);
void map_workload(const nlohmann::json& object, const Settings& settings, nlohmann::json& body, nlohmann::json& status,
                  sdk::Record& record);
void map_custom(const nlohmann::json& object, const Custom* custom, nlohmann::json& body, nlohmann::json& status,
                sdk::Record& record);

/// `data["a.b"]`: a member of an attribute as a path.
std::string member_path(const std::string& attribute, const std::string& name);

/// The text is, or plainly holds, a credential: the name of a variable, or a value with a password in a URL or a key.
bool looks_secret(const std::string& name, const std::string& value);

/// Makes sensitive every text inside `value`, an attribute at `path` or (empty) the whole body, that holds a secret by
/// its form. For lists whose order matters: a digest is of its place.
void mark_secrets(const nlohmann::json& value, const std::string& path, sdk::Record& record);

}  // namespace driftd::k8s
