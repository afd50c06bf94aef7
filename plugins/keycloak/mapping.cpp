// SPDX-License-Identifier: Apache-2.0
#include "keycloak/mapping.hpp"

#include <algorithm>
#include <set>

#include "common/bounded_json.hpp"
#include "keycloak/names.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;

/// Removes members that say nothing of the configuration: identities (external_name has them) and the rights of who
/// asks.
void drop(json& from, std::initializer_list<const char*> names) {
  for (const char* name : names) from.erase(name);
}

/// The owner's mark; attributes are texts (clients, scopes) or lists of texts (roles, groups).
std::string owner_of(const Place& place, const json& body) {
  const auto attributes = body.find("attributes");
  if (attributes == body.end() || !attributes->is_object()) return {};
  const auto found = attributes->find(place.owner_attribute);
  if (found == attributes->end()) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->is_array() && !found->empty() && found->front().is_string() ? found->front().get<std::string>() : "";
}

bool flag(const json& from, const char* name) {
  const auto found = from.find(name);
  return found != from.end() && found->is_boolean() && found->get<bool>();
}

/// `admin`, or `app/admin` for the role of a client.
std::string role_name(const json& role, const ClientNames& names) {
  if (!flag(role, "clientRole")) return id_of({text_of(role, "name")});
  const auto client = names.find(text_of(role, "containerId"));
  return id_of({client == names.end() ? text_of(role, "containerId") : client->second, text_of(role, "name")});
}

void name_mappers(json& body) {
  if (body.contains("protocolMappers")) body["protocolMappers"] = detail::by_name(std::move(body["protocolMappers"]));
}

}  // namespace

std::string text_of(const json& from, const char* name) {
  if (!from.is_object()) return {};
  const auto found = from.find(name);
  return found != from.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string phase_of(bool events_seen) { return events_seen ? "Ready" : "Degraded"; }

json detail::by_name(json list) {
  if (!list.is_array()) return list;
  std::set<std::string> names;
  for (const auto& each : list) {
    const std::string name = text_of(each, "name");
    if (name.empty() || !names.insert(name).second) return list;
  }
  json out = json::object();
  for (auto& each : list) {
    const std::string name = text_of(each, "name");  // before the move, which an assignment evaluates first
    json& to = out[name] = std::move(each);
    drop(to, {"id", "name", "identityProviderAlias"});
  }
  return out;
}

sdk::Record detail::finish(const Place& place, const char* kind, const std::vector<std::string>& names, json body,
                           json status) {
  sdk::Record out;
  std::vector<std::string> parts{place.realm};
  parts.insert(parts.end(), names.begin(), names.end());
  out.kind = kind;
  out.id = id_of(parts);
  out.metadata["realm"] = place.realm;
  if (const std::string owner = owner_of(place, body); !owner.empty()) {
    out.metadata["driftd.io/owner"] = owner;  // the metadata key by which the agent knows a resource's owner
    status["owner"] = owner;
  }
  std::vector<std::string> left_out;
  out.body = common::fit_members(body, common::kMaxBody, left_out);
  for (const auto& name : left_out)
    out.unread.push_back({"[\"" + name + "\"]", DRIFTD_BUDGET, "the resource is larger than a record may be"});
  out.status = common::json_text(status);
  return out;
}

sdk::Record realm_record(const Place& place, json realm, const RealmState& state) {
  const std::string uuid = text_of(realm, "id");
  const std::string default_role = realm.contains("defaultRole") ? text_of(realm["defaultRole"], "name") : "";
  drop(realm, {"id", "defaultRole"});
  if (!default_role.empty()) realm["defaultRole"] = default_role;
  std::vector<sdk::Unread> unread;
  const auto add_scopes = [&](const char* name, const std::optional<std::vector<std::string>>& scopes) {
    if (scopes)
      realm[name] = *scopes;
    else
      unread.push_back({name, DRIFTD_DENIED, "the role view-clients is missing"});
  };
  add_scopes("defaultDefaultClientScopes", state.default_scopes);
  add_scopes("defaultOptionalClientScopes", state.optional_scopes);
  json status{{"events", state.events_seen ? "seen" : "blind"}, {"phase", phase_of(state.events_seen)}};
  if (state.last_reconcile_event_ms != 0) status["lastReconcileEventTime"] = state.last_reconcile_event_ms;
  sdk::Record out = detail::finish(place, "realm", {}, std::move(realm), std::move(status));
  out.external_name = uuid;
  out.unread.insert(out.unread.end(), unread.begin(), unread.end());
  return out;
}

sdk::Record client_record(const Place& place, json client) {
  const std::string uuid = text_of(client, "id"), name = text_of(client, "clientId");
  json status = json::object();
  if (client.contains("registeredNodes")) status["registeredNodes"] = client["registeredNodes"];  // nodes come and go
  drop(client, {"id", "access", "registeredNodes", "origin"});
  name_mappers(client);
  const std::string how = text_of(client, "clientAuthenticatorType");
  const bool has_secret = !flag(client, "publicClient") && !flag(client, "bearerOnly") &&
                          (how == "client-secret" || how == "client-secret-jwt");
  const bool shown = client.contains("secret");
  sdk::Record out = detail::finish(place, "client", {name}, std::move(client), std::move(status));
  out.external_name = uuid;
  if (has_secret && !shown) {
    out.unread.push_back(
        {"secret", DRIFTD_DENIED, "Keycloak does not show this client's secret to this account: view-clients"});
  }
  return out;
}

sdk::Record client_scope_record(const Place& place, json scope) {
  const std::string uuid = text_of(scope, "id"), name = text_of(scope, "name");
  drop(scope, {"id"});
  name_mappers(scope);
  sdk::Record out = detail::finish(place, "client_scope", {name}, std::move(scope), json::object());
  out.external_name = uuid;
  return out;
}

sdk::Record role_record(const Place& place, const std::string& client, json role, const json& composites,
                        const ClientNames& names) {
  const std::string uuid = text_of(role, "id"), name = text_of(role, "name");
  drop(role, {"id", "containerId"});
  std::vector<std::string> contained;
  for (const auto& each : composites) contained.push_back(role_name(each, names));
  std::sort(contained.begin(), contained.end());
  role["composites"] = contained;
  std::vector<std::string> parts;
  if (!client.empty()) parts.push_back(client);
  parts.push_back(name);
  sdk::Record out = detail::finish(place, "role", parts, std::move(role), json::object());
  out.external_name = uuid;
  return out;
}

sdk::Record group_record(const Place& place, const std::vector<std::string>& names, json group) {
  const std::string uuid = text_of(group, "id");
  drop(group, {"id", "parentId", "path", "access", "subGroups", "subGroupCount"});
  sdk::Record out = detail::finish(place, "group", names, std::move(group), json::object());
  out.external_name = uuid;
  return out;
}

sdk::Record identity_provider_record(const Place& place, json provider, const json& mappers) {
  const std::string uuid = text_of(provider, "internalId"), alias = text_of(provider, "alias");
  drop(provider, {"internalId"});
  provider["mappers"] = detail::by_name(mappers);
  sdk::Record out = detail::finish(place, "identity_provider", {alias}, std::move(provider), json::object());
  out.external_name = uuid;
  return out;
}

sdk::Record required_action_record(const Place& place, json action) {
  const std::string alias = text_of(action, "alias");
  return detail::finish(place, "required_action", {alias}, std::move(action), json::object());
}

sdk::Record component_record(const Place& place, json component) {
  const std::string uuid = text_of(component, "id"), provider = text_of(component, "providerId");
  drop(component, {"id"});
  // Names of components are not unique, so the UUID is the id; the provider before it can be matched by a glob.
  sdk::Record out = detail::finish(place, "component", {provider, uuid}, std::move(component), json::object());
  out.external_name = uuid;
  return out;
}

}  // namespace driftd::keycloak
