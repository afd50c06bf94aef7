// SPDX-License-Identifier: Apache-2.0
#include "keycloak/events.hpp"

#include <map>

#include "driftd/sdk/types.hpp"
#include "keycloak/mapping.hpp"
#include "keycloak/names.hpp"

namespace driftd::keycloak {
namespace {

using How = Touch::How;
using Path = std::vector<std::string>;

/// Resource types that are asked for, and the kind that is swept if a path of theirs is not known.
const std::map<std::string, std::string>& kinds_of_types() {
  static const std::map<std::string, std::string> kKinds{{"REALM", "realm"},
                                                         {"REALM_ROLE", "role"},
                                                         {"CLIENT_ROLE", "role"},
                                                         {"REALM_ROLE_MAPPING", "group"},
                                                         {"CLIENT_ROLE_MAPPING", "group"},
                                                         {"REALM_SCOPE_MAPPING", "client"},
                                                         {"CLIENT_SCOPE_MAPPING", "client"},
                                                         {"CLIENT", "client"},
                                                         {"CLIENT_SCOPE", "client_scope"},
                                                         {"CLIENT_SCOPE_CLIENT_MAPPING", "client"},
                                                         {"PROTOCOL_MAPPER", "client"},
                                                         {"GROUP", "group"},
                                                         {"IDENTITY_PROVIDER", "identity_provider"},
                                                         {"IDENTITY_PROVIDER_MAPPER", "identity_provider"},
                                                         {"AUTH_FLOW", "authentication_flow"},
                                                         {"AUTH_EXECUTION_FLOW", "authentication_flow"},
                                                         {"AUTH_EXECUTION", "authentication_flow"},
                                                         {"AUTHENTICATOR_CONFIG", "authentication_flow"},
                                                         {"REQUIRED_ACTION", "required_action"},
                                                         {"COMPONENT", "component"}};
  return kKinds;
}

Path split(const std::string& text) {
  Path out;
  std::string part;
  for (const char c : text + "/") {
    if (c != '/') {
      part += c;
    } else if (!part.empty()) {
      out.push_back(std::exchange(part, {}));
    }
  }
  return out;
}

/// `clients/UUID…`: the client itself, or one of its roles.
Touch client_touch(const Path& path) {
  if (path.size() >= 4 && path[2] == "roles") return {"role", How::name, id_of({path[1], path[3]})};
  return {"client", How::uuid, path[1]};
}

/// `authentication/…`. Executions and configurations do not say to which flow they belong.
Touch authentication_touch(const Path& path) {
  if (path[1] == "required-actions" || path[1].find("required-action") != std::string::npos)
    return {"required_action", How::sweep};
  const bool in_flow = path[1] == "flows" && path.size() >= 3;
  const bool copied = path.size() >= 4 && path[3] == "copy";
  if (!in_flow || copied) return {"authentication_flow", How::sweep};
  return {"authentication_flow", How::name, path[2]};
}

std::vector<Touch> touches_of_group(const AdminEvent& event, const Path& path) {
  // A child's UUID is not in the path of its creation, and a new name of a group is in the ids of those below it.
  if (path.size() >= 3 && path[2] == "children") return {{"group", How::sweep}};
  if (path.size() == 2 && event.operation != "CREATE") return {{"group", How::uuid, path[1]}, {"group", How::sweep}};
  return {{"group", How::uuid, path[1]}};
}

}  // namespace

std::string AdminEvent::key() const {
  return id.empty() ? std::to_string(time_ms) + " " + operation + " " + path + " " + user : id;
}

std::vector<AdminEvent> parse_events(const nlohmann::json& answer) {
  if (!answer.is_array()) throw sdk::Failure(DRIFTD_CORRUPT, "the answer of admin-events is not a list");
  std::vector<AdminEvent> out;
  for (const auto& each : answer) {
    if (!each.is_object() || !each.contains("time") || !each["time"].is_number_integer())
      throw sdk::Failure(DRIFTD_CORRUPT, "an admin event has no time");
    const auto who = each.value("authDetails", nlohmann::json::object());
    out.push_back({text_of(each, "id"), each["time"].get<std::int64_t>(), text_of(each, "operationType"),
                   text_of(each, "resourceType"), text_of(each, "resourcePath"), text_of(who, "userId"),
                   text_of(who, "clientId")});
  }
  return out;
}

const std::string& event_filter() {
  static const std::string kFilter = [] {
    std::string out;
    for (const auto& [type, kind] : kinds_of_types()) out += (out.empty() ? "" : "&") + ("resourceTypes=" + type);
    return out;
  }();
  return kFilter;
}

std::vector<Touch> touches_of(const AdminEvent& event) {
  const Path path = split(event.path);
  const bool of_users = !path.empty() && (path[0] == "users" || path[0] == "organizations");
  const auto kind = kinds_of_types().find(event.resource_type);
  if (of_users || kind == kinds_of_types().end()) return {};
  if (kind->second == "realm") return {{"realm", How::sweep}};
  if (path.size() >= 2) {
    if (path[0] == "clients") return {client_touch(path)};
    if (path[0] == "client-scopes") return {{"client_scope", How::uuid, path[1]}};
    if (path[0] == "roles-by-id") return {{"role", How::uuid, path[1]}};
    if (path[0] == "roles") return {{"role", How::name, id_of({path[1]})}};
    if (path[0] == "groups") return touches_of_group(event, path);
    if (path[0] == "default-groups") return {{"realm", How::sweep}};
    if (path[0] == "authentication") return {authentication_touch(path)};
    if (path[0] == "identity-provider" && path.size() >= 3) return {{"identity_provider", How::name, path[2]}};
  }
  return {{kind->second, How::sweep}};
}

std::set<Touch> touches_of(const std::vector<AdminEvent>& events) {
  std::set<Touch> out;
  for (const auto& event : events) {
    for (auto& touch : touches_of(event)) out.insert(std::move(touch));
  }
  std::erase_if(out, [&out](const Touch& touch) {
    return touch.how != How::sweep && out.contains(Touch{touch.kind, How::sweep});
  });
  return out;
}

}  // namespace driftd::keycloak
