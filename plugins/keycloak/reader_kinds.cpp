// SPDX-License-Identifier: Apache-2.0
// How each kind is listed, and how one resource of it is read.
#include <algorithm>
#include <utility>

#include "http/http.hpp"
#include "keycloak/names.hpp"
#include "keycloak/reader.hpp"
#include "keycloak/rights.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;

constexpr std::size_t kClientsAtOnce = 64;  // whose roles are asked for together
constexpr int kMaxGroupLevels = 64;

Found found(std::string uuid, sdk::Record record, std::int64_t sent_ns) {
  record.observed_ns = sent_ns;
  return {std::move(uuid), std::move(record)};
}

std::string key_of(const json& from, const char* member) { return text_of(from, member); }

}  // namespace

std::string path_by_uuid(const std::string& kind, const std::string& uuid) {
  const std::string id = http::escape(uuid);
  if (kind == "client") return "/clients/" + id;
  if (kind == "client_scope") return "/client-scopes/" + id;
  if (kind == "role") return "/roles-by-id/" + id;
  if (kind == "group") return "/groups/" + id;
  if (kind == "component") return "/components/" + id;
  if (kind == "identity_provider") return "/identity-provider/instances/" + id;
  if (kind == "authentication_flow") return "/authentication/flows/" + id;
  if (kind == "required_action") return "/authentication/required-actions/" + id;
  return {};
}

bool Reader::list(const std::string& kind, const std::string& realm, const Emit& emit) {
  Index::Ids ids;
  const Emit noting = [&](Found each) {
    ids[each.uuid] = each.record.id;
    return emit(std::move(each));
  };
  const Place in = place(realm);
  const auto list_of = [&](const char* path, const char* key, auto record, auto lister) {
    return (this->*lister)(
        kind, realm, path,
        [&](json each, std::int64_t sent) {
          std::string uuid = key_of(each, key);
          return found(std::move(uuid), record(in, std::move(each)), sent);
        },
        noting);
  };
  bool out = true;
  if (kind == "client") {
    out = list_of("/clients", "id", client_record, &Reader::list_pages);
    // Each realm has clients of its own. A list without any is what an account may see that has only query-clients.
    if (out && ids.empty()) refuse({403, {}, 0}, kind, realm, "/" + realm + "/clients");
    for (const auto& [uuid, id] : ids) client_names_[realm][uuid] = parts_of(id).back();
  } else if (kind == "client_scope") {
    out = list_of("/client-scopes", "id", client_scope_record, &Reader::list_at_once);
  } else if (kind == "component") {
    out = list_of("/components", "id", component_record, &Reader::list_at_once);
  } else if (kind == "required_action") {
    out = list_of("/authentication/required-actions", "alias", required_action_record, &Reader::list_at_once);
  } else if (kind == "role") {
    out = roles(realm, noting) && roles_of_clients(realm, noting);
  } else if (kind == "group") {
    out = groups(realm, noting);
  } else if (kind == "identity_provider") {
    out = list_at_once(
        kind, realm, "/identity-provider/instances",
        [&](json each, std::int64_t sent) { return provider_of(realm, std::move(each), sent); }, noting);
  } else if (kind == "authentication_flow") {
    out = list_at_once(
        kind, realm, "/authentication/flows",
        [&](json each, std::int64_t sent) { return flow_of(realm, std::move(each), sent); }, noting);
  }
  if (out) index_.replace(kind, realm, std::move(ids));
  return out;
}

Found Reader::role(const std::string& realm, const std::string& client, json role, std::int64_t sent_ns) {
  std::string uuid = text_of(role, "id");
  json composites = json::array();
  if (role.value("composite", json()) == true)
    composites = need("role", realm, "/roles-by-id/" + http::escape(uuid) + "/composites").body;
  const bool of_clients = std::any_of(composites.begin(), composites.end(),
                                      [](const json& each) { return each.value("clientRole", json()) == true; });
  const ClientNames names = of_clients ? client_names(realm, false) : ClientNames();
  return found(uuid, role_record(place(realm), client, std::move(role), composites, names), sent_ns);
}

bool Reader::roles(const std::string& realm, const Emit& emit) {
  client_names(realm, true);
  return list_pages(
      "role", realm, "/roles?briefRepresentation=false",
      [&](json each, std::int64_t sent) { return role(realm, {}, std::move(each), sent); }, emit);
}

bool Reader::client_roles(const std::string& realm, const std::string& uuid, const std::string& client,
                          const Emit& emit) {
  return list_pages(
      "role", realm, "/clients/" + http::escape(uuid) + "/roles?briefRepresentation=false",
      [&](json each, std::int64_t sent) { return role(realm, client, std::move(each), sent); }, emit);
}

bool Reader::roles_of_clients(const std::string& realm, const Emit& emit) {
  const sdk::Scope excluded{{}, settings_.scope.exclude};
  std::vector<std::pair<std::string, std::string>> clients;
  for (const auto& [uuid, client] : client_names(realm, true)) {
    if (excluded.wants("role", id_of({realm, client}) + "/*")) clients.emplace_back(uuid, client);
  }
  for (std::size_t begin = 0; begin < clients.size(); begin += kClientsAtOnce) {
    const std::size_t end = std::min(begin + kClientsAtOnce, clients.size());
    std::vector<std::string> paths;
    for (std::size_t i = begin; i < end; ++i) {
      paths.push_back("/" + http::escape(realm) + "/clients/" + http::escape(clients[i].first) +
                      "/roles?briefRepresentation=false&first=0&max=" + std::to_string(settings_.page));
    }
    auto answers = api_.get_all(call_, paths);
    for (std::size_t i = begin; i < end; ++i) {
      Answer& answer = answers[i - begin];
      const auto& [uuid, client] = clients[i];
      if (answer.status == 404) continue;  // the client was deleted meanwhile
      if (!answer.ok()) refuse(answer, "client", realm, paths[i - begin]);
      if (answer.body.size() >= settings_.page) {
        if (!client_roles(realm, uuid, client, emit)) return false;
        continue;
      }
      for (auto& each : answer.body) {
        if (!emit(role(realm, client, std::move(each), answer.sent_ns))) return false;
      }
    }
  }
  return true;
}

bool Reader::groups(const std::string& realm, const Emit& emit) {
  struct Parent {
    std::string uuid;
    std::vector<std::string> names;
  };
  std::vector<Parent> parents;
  const auto list_below = [&](const std::string& path, const std::vector<std::string>& above) {
    const Make make = [&](json each, std::int64_t sent) {
      std::string uuid = text_of(each, "id");
      auto names = above;
      names.push_back(text_of(each, "name"));
      if (each.value("subGroupCount", json(0)) != 0) parents.push_back({uuid, names});
      return found(uuid, group_record(place(realm), names, std::move(each)), sent);
    };
    return list_pages("group", realm, path + "?briefRepresentation=false", make, emit);
  };
  if (!list_below("/groups", {})) return false;
  while (!parents.empty()) {
    const Parent parent = std::move(parents.back());
    parents.pop_back();
    if (!list_below("/groups/" + http::escape(parent.uuid) + "/children", parent.names)) return false;
  }
  return true;
}

Found Reader::group_of(const std::string& realm, json group, std::int64_t sent_ns) {
  std::vector<std::string> names{text_of(group, "name")};
  std::string parent = text_of(group, "parentId");
  for (int level = 0; !parent.empty() && level < kMaxGroupLevels; ++level) {
    const Answer above = need("group", realm, "/groups/" + http::escape(parent));
    names.insert(names.begin(), text_of(above.body, "name"));
    parent = text_of(above.body, "parentId");
  }
  std::string uuid = text_of(group, "id");
  return found(std::move(uuid), group_record(place(realm), names, std::move(group)), sent_ns);
}

std::string Reader::group_uuid(const std::string& realm, const std::string& id) {
  auto known = group_uuids_.find(realm);
  if (known == group_uuids_.end()) {
    Index::Ids uuids;
    groups(realm, [&uuids](const Found& each) {
      uuids[each.record.id] = each.uuid;
      return true;
    });
    known = group_uuids_.emplace(realm, std::move(uuids)).first;
  }
  const auto uuid = known->second.find(id);
  return uuid == known->second.end() ? std::string() : uuid->second;
}

Found Reader::provider_of(const std::string& realm, json provider, std::int64_t sent_ns) {
  const std::string alias = text_of(provider, "alias");
  const Answer mappers =
      need("identity_provider", realm, "/identity-provider/instances/" + http::escape(alias) + "/mappers");
  return found(alias, identity_provider_record(place(realm), std::move(provider), mappers.body), sent_ns);
}

Found Reader::flow_of(const std::string& realm, json flow, std::int64_t sent_ns) {
  const std::string uuid = text_of(flow, "id");
  const std::string kind = "authentication_flow";
  const Answer executions =
      need(kind, realm, "/authentication/flows/" + http::escape(text_of(flow, "alias")) + "/executions");
  std::map<std::string, json> configs;
  for (const auto& each : executions.body) {
    const std::string config = text_of(each, "authenticationConfig");
    if (!config.empty()) configs[config] = need(kind, realm, "/authentication/config/" + http::escape(config)).body;
  }
  return found(uuid, flow_record(place(realm), std::move(flow), executions.body, configs), sent_ns);
}

std::optional<Found> Reader::by_uuid(const std::string& kind, const std::string& realm, const std::string& uuid) {
  auto answer = find(kind, realm, path_by_uuid(kind, uuid));
  if (!answer) return {};
  json& body = answer->body;
  const Place in = place(realm);
  const auto sent = answer->sent_ns;
  if (kind == "client") return found(uuid, client_record(in, std::move(body)), sent);
  if (kind == "client_scope") return found(uuid, client_scope_record(in, std::move(body)), sent);
  if (kind == "group") return group_of(realm, std::move(body), sent);
  if (kind == "component") return found(uuid, component_record(in, std::move(body)), sent);
  if (kind == "required_action") return found(uuid, required_action_record(in, std::move(body)), sent);
  if (body.value("clientRole", json()) != true) return role(realm, {}, std::move(body), sent);
  const std::string container = text_of(body, "containerId");
  const auto client = find("client", realm, "/clients/" + http::escape(container));
  if (!client) return {};  // its client is gone, and the role with it
  return role(realm, text_of(client->body, "clientId"), std::move(body), sent);
}

std::optional<json> Reader::client_named(const std::string& realm, const std::string& client) {
  auto answer = find("client", realm, "/clients?clientId=" + http::escape(client));
  if (!answer) return {};
  for (auto& each : answer->body) {
    if (text_of(each, "clientId") == client) return std::move(each);
  }
  return {};
}

std::optional<Found> Reader::role_by_name(const std::string& realm, const std::string& client_uuid,
                                          const std::string& client, const std::string& name) {
  const std::string parent = client_uuid.empty() ? std::string() : "/clients/" + http::escape(client_uuid);
  auto answer = find("role", realm, parent + "/roles/" + http::escape(name));
  if (!answer) return {};
  return role(realm, client, std::move(answer->body), answer->sent_ns);
}

std::optional<Found> Reader::identity_provider(const std::string& realm, const std::string& alias) {
  auto answer = find("identity_provider", realm, "/identity-provider/instances/" + http::escape(alias));
  if (!answer) return {};
  return provider_of(realm, std::move(answer->body), answer->sent_ns);
}

std::optional<Found> Reader::flow(const std::string& realm, const std::string& alias) {
  auto answer = find("authentication_flow", realm, "/authentication/flows");
  if (!answer) return {};
  for (auto& each : answer->body) {
    if (text_of(each, "alias") == alias) return flow_of(realm, std::move(each), answer->sent_ns);
  }
  return {};
}

std::optional<Found> Reader::by_id(const std::string& kind, const std::string& id) {
  const auto parts = parts_of(id);
  if (parts.size() < 2) return {};
  const std::string& realm = parts.front();
  const std::string& name = parts.back();
  if (kind == "group") {
    const std::string uuid = group_uuid(realm, id);
    return uuid.empty() ? std::nullopt : by_uuid(kind, realm, uuid);
  }
  if (kind == "component") return parts.size() == 3 ? by_uuid(kind, realm, name) : std::nullopt;
  if (kind == "role" && parts.size() == 3) {
    const auto client = client_named(realm, parts[1]);
    return client ? role_by_name(realm, text_of(*client, "id"), parts[1], name) : std::nullopt;
  }
  if (parts.size() != 2) return {};
  if (kind == "role") return role_by_name(realm, {}, {}, name);
  if (kind == "identity_provider") return identity_provider(realm, name);
  if (kind == "authentication_flow") return flow(realm, name);
  if (kind == "required_action") return by_uuid(kind, realm, name);
  if (kind == "client") {
    const auto client = client_named(realm, name);
    return client ? by_uuid(kind, realm, text_of(*client, "id")) : std::nullopt;
  }
  const auto scopes = find(kind, realm, "/client-scopes");
  if (!scopes) return {};
  for (const auto& each : scopes->body) {
    if (text_of(each, "name") == name) return by_uuid(kind, realm, text_of(each, "id"));
  }
  return {};
}

}  // namespace driftd::keycloak
