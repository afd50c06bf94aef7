// SPDX-License-Identifier: Apache-2.0
// What Keycloak's representations look like as records. Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driftd/sdk/types.hpp"

namespace driftd::keycloak {

/// Where a resource lives and how its owner is marked.
struct Place {
  std::string realm;            ///< name of the realm
  std::string owner_attribute;  ///< attribute that names the owner
};

/// What is known of a realm besides its representation.
struct RealmState {
  bool events_seen = false;                  ///< its admin events are read
  std::int64_t last_reconcile_event_ms = 0;  ///< time of the last event that was acted on, by the server; 0: none
  /// Names of the client scopes that a new client gets; empty if they may not be read.
  std::optional<std::vector<std::string>> default_scopes{}, optional_scopes{};
};

/// Names of client ids by UUID, for roles of clients.
using ClientNames = std::map<std::string, std::string>;

sdk::Record realm_record(const Place& place, nlohmann::json realm, const RealmState& state);
sdk::Record client_record(const Place& place, nlohmann::json client);
sdk::Record client_scope_record(const Place& place, nlohmann::json scope);
/// `client` is the clientId of a client's role, empty for a role of the realm. `composites` are the representations of
/// the roles that it contains.
sdk::Record role_record(const Place& place, const std::string& client, nlohmann::json role,
                        const nlohmann::json& composites, const ClientNames& names);
/// `names` are those of the groups above it, and its own. Its path does not tell them apart: a name may hold a slash.
sdk::Record group_record(const Place& place, const std::vector<std::string>& names, nlohmann::json group);
sdk::Record identity_provider_record(const Place& place, nlohmann::json provider, const nlohmann::json& mappers);
/// `executions` as `/authentication/flows/ALIAS/executions` lists them; `configs` by the id of the configuration.
sdk::Record flow_record(const Place& place, nlohmann::json flow, const nlohmann::json& executions,
                        const std::map<std::string, nlohmann::json>& configs);
sdk::Record required_action_record(const Place& place, nlohmann::json action);
sdk::Record component_record(const Place& place, nlohmann::json component);

/// Returns the phase that the operator's ADR would show: `Ready`, or `Degraded` where changes are not noticed at once.
std::string phase_of(bool events_seen);
/// Returns the text member `name`; empty if there is none.
std::string text_of(const nlohmann::json& from, const char* name);

namespace detail {
/// Turns a list of objects into an object by their `name`, without their ids. Returns the list as it is if a name is
/// missing or there twice.
nlohmann::json by_name(nlohmann::json list);
/// Fills body, kind, id and the rest that all records have. Members that do not fit become unread.
sdk::Record finish(const Place& place, const char* kind, const std::vector<std::string>& names, nlohmann::json body,
                   nlohmann::json status);
}  // namespace detail

}  // namespace driftd::keycloak
