// SPDX-License-Identifier: Apache-2.0
// Attributes that are no members of their resource's representation, or that a PUT of it ignores without a word.
#include <algorithm>
#include <set>
#include <utility>

#include "http/http.hpp"
#include "keycloak/apply.hpp"
#include "keycloak/names.hpp"

namespace driftd::keycloak {
namespace {

using common::CannotSet;
using nlohmann::json;

std::set<std::string> texts_of(const json& list) {
  std::set<std::string> out;
  if (!list.is_array()) return out;
  for (const auto& each : list) {
    if (each.is_string()) out.insert(each.get<std::string>());
  }
  return out;
}

std::set<std::string> names_in(const json& object) {
  std::set<std::string> out;
  if (!object.is_object()) return out;
  for (const auto& [name, value] : object.items()) out.insert(name);
  return out;
}

std::vector<std::string> without(const std::set<std::string>& all, const std::set<std::string>& these) {
  std::vector<std::string> out;
  std::set_difference(all.begin(), all.end(), these.begin(), these.end(), std::back_inserter(out));
  return out;
}

/// The members of two objects that differ, with both values.
std::pair<json, json> difference(const json& now, const json& wanted) {
  json before = json::object(), after = json::object();
  for (const auto* side : {&now, &wanted}) {
    for (const auto& [name, value] : side->items()) {
      if (member_of(now, name) == member_of(wanted, name)) continue;
      before[name] = member_of(now, name);
      after[name] = member_of(wanted, name);
    }
  }
  return {before, after};
}

/// What identifies a role in a request.
json reference(const json& role) { return {{"id", role.at("id")}, {"name", role.at("name")}}; }

std::string element(const std::string& member, const std::string& name) { return Leaf{{member, name}, {}, {}}.text(); }

}  // namespace

void Applier::add_parts(const Target& target, const std::string& member, Steps& to) {
  const json now = member_of(target.now, member), wanted = member_of(target.wanted, member);
  const std::string path = path_by_uuid(std::string(target.rules.kind), target.uuid);
  if (member == "protocolMappers" || member == "mappers") return add_mappers(target, member, to);
  if (member == "executions") return add_executions(target, to);
  if (member == "composite") {  // it says whether there are composites, so it comes with them
    if (wanted == !texts_of(member_of(target.wanted, "composites")).empty()) return;
    throw CannotSet("composite follows from composites; those are what can be set");
  }
  if (member == "realmRoles" || member == "clientRoles") return add_group_roles(target, member, to);
  if (!wanted.is_array()) throw CannotSet(member + ": expected a list of names");
  if (member != "composites") return add_scopes(target, member, to);
  const auto here = texts_of(now), there = texts_of(wanted);
  add_roles(target, path + "/composites", {member, without(there, here), without(here, there)}, to);
}

void Applier::add_mappers(const Target& target, const std::string& member, Steps& to) {
  const json now = member_of(target.now, member), wanted = member_of(target.wanted, member);
  if (!now.is_object() || !wanted.is_object() || names_in(now) != names_in(wanted)) {
    throw CannotSet(member +
                    ": a mapper would have to be created or deleted, or is one of several with the same name; "
                    "driftd only changes those that are there");
  }
  std::string path = path_by_uuid(std::string(target.rules.kind), target.uuid);
  path += member == "mappers" ? "/mappers" : "/protocol-mappers/models";
  const Answer listed = reader_.need(std::string(target.rules.kind), target.realm, path);
  for (const auto& [name, before] : now.items()) {
    if (before == wanted[name]) continue;
    const auto mapper = std::find_if(listed.body.begin(), listed.body.end(),
                                     [&name = name](const json& each) { return text_of(each, "name") == name; });
    if (mapper == listed.body.end()) throw CannotSet(element(member, name) + " is gone; driftd never creates it");
    auto [old_members, new_members] = difference(before, wanted[name]);
    const std::string prefix = element(member, name);
    for (const auto& [part, value] : new_members.items()) {
      if (value.is_null()) throw CannotSet(prefix + ": a mapper without " + part + " is none; driftd never deletes it");
    }
    to.push_back(part_step(
        target,
        {path + "/" + http::escape(text_of(*mapper, "id")), prefix, std::move(old_members), std::move(new_members)},
        {prefix}));
  }
}

void Applier::add_executions(const Target& target, Steps& to) {
  const json now = member_of(target.now, "executions"), wanted = member_of(target.wanted, "executions");
  if (!wanted.is_array() || wanted.size() != now.size())
    throw CannotSet("executions: one would have to be created or deleted; driftd only changes those that are there");
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] != wanted[i]) add_execution(target, i, to);
  }
}

void Applier::add_execution(const Target& target, std::size_t index, Steps& to) {
  const json& now = target.now["executions"][index];
  const json& wanted = target.wanted["executions"][index];
  const std::string prefix = "executions[" + std::to_string(index) + "]";
  const auto [before, after] = difference(now, wanted);
  for (const auto& [name, value] : before.items()) {
    if (name != "requirement" && name != "config")
      throw CannotSet(prefix + "." + name + ": only the requirement and the configuration of an execution are set");
  }
  const std::string path = "/authentication/flows/" + http::escape(text_of(target.now, "alias")) + "/executions";
  const Answer listed = reader_.need("authentication_flow", target.realm, path);
  const json there = index < listed.body.size() ? listed.body[index] : json::object();
  if (text_of(there, "requirement") != text_of(now, "requirement") ||
      text_of(there, "providerId") != text_of(now, "providerId"))
    throw sdk::Failure(DRIFTD_CONFLICT, prefix + " changed while it was being put back");
  if (before.contains("requirement") && !after["requirement"].is_string())
    throw CannotSet(prefix + ": an execution without a requirement is none; driftd never deletes it");
  if (before.contains("requirement")) {
    const auto with = [&](const json& requirement) {
      json out = there;
      out["requirement"] = requirement;
      return Write{"PUT", path, out};
    };
    to.push_back(link_step(target, with(after["requirement"]), with(before["requirement"]), prefix + ".requirement"));
  }
  if (!before.contains("config")) return;
  const std::string config = text_of(there, "authenticationConfig");
  if (config.empty() || !after["config"].is_object())
    throw CannotSet(prefix + ".config: driftd neither creates nor deletes the configuration of an execution");
  to.push_back(part_step(target,
                         {"/authentication/config/" + http::escape(config),
                          prefix,
                          {{"config", before["config"]}},
                          {{"config", after["config"]}}},
                         {prefix + ".config"}));
}

void Applier::add_scopes(const Target& target, const std::string& member, Steps& to) {
  const auto now = texts_of(member_of(target.now, member)), wanted = texts_of(member_of(target.wanted, member));
  const bool realm = target.rules.kind == "realm";
  const bool optional = member == "optionalClientScopes" || member == "defaultOptionalClientScopes";
  const std::string path = path_by_uuid(std::string(target.rules.kind), target.uuid) +
                           (realm ? optional ? "/default-optional-client-scopes/" : "/default-default-client-scopes/"
                            : optional ? "/optional-client-scopes/"
                                       : "/default-client-scopes/");
  std::map<std::string, std::string> uuids;
  for (const auto& each : reader_.need("client_scope", target.realm, "/client-scopes").body)
    uuids[text_of(each, "name")] = text_of(each, "id");
  const auto link = [&](const std::string& scope, const char* method) {
    const auto uuid = uuids.find(scope);
    if (uuid == uuids.end())
      throw CannotSet(member + ": the client scope " + scope + " is gone; driftd never creates it");
    // A PUT has an empty body, because kcadm.sh asks for one.
    return Write{method, path + http::escape(uuid->second), std::string(method) == "PUT" ? json::object() : json()};
  };
  for (const auto& scope : without(now, wanted))
    to.push_back(link_step(target, link(scope, "DELETE"), link(scope, "PUT"), member));
  for (const auto& scope : without(wanted, now))
    to.push_back(link_step(target, link(scope, "PUT"), link(scope, "DELETE"), member));
}

json Applier::role_named(const Target& target, const std::string& name) {
  const auto parts = parts_of(name);
  std::optional<Answer> role;
  if (parts.size() == 1) role = reader_.find("role", target.realm, "/roles/" + http::escape(parts[0]));
  if (parts.size() == 2) {
    const auto client = reader_.client_named(target.realm, parts[0]);
    if (client)
      role = reader_.find("role", target.realm,
                          "/clients/" + http::escape(text_of(*client, "id")) + "/roles/" + http::escape(parts[1]));
  }
  if (!role) throw CannotSet("the role " + name + " is gone; driftd never creates it");
  return role->body;
}

void Applier::add_roles(const Target& target, const std::string& path, const Links& links, Steps& to) {
  const auto step = [&](const std::vector<std::string>& names, const char* make, const char* unmake) {
    if (names.empty()) return;
    json roles = json::array();
    for (const auto& name : names) roles.push_back(reference(role_named(target, name)));
    to.push_back(link_step(target, {make, path, roles}, {unmake, path, roles}, links.attribute));
  };
  step(links.remove, "DELETE", "POST");
  step(links.add, "POST", "DELETE");
}

void Applier::add_group_roles(const Target& target, const std::string& member, Steps& to) {
  const json now = member_of(target.now, member), wanted = member_of(target.wanted, member);
  const std::string path = path_by_uuid("group", target.uuid) + "/role-mappings/";
  if (member == "realmRoles") {
    const auto here = texts_of(now), there = texts_of(wanted);
    std::vector<std::string> add, remove;
    for (const auto& name : without(there, here)) add.push_back(id_of({name}));
    for (const auto& name : without(here, there)) remove.push_back(id_of({name}));
    return add_roles(target, path + "realm", {member, add, remove}, to);
  }
  std::set<std::string> clients = names_in(now);
  clients.merge(names_in(wanted));
  for (const auto& client : clients) {
    const auto here = texts_of(now.is_object() ? member_of(now, client) : json());
    const auto there = texts_of(wanted.is_object() ? member_of(wanted, client) : json());
    if (here == there) continue;
    const auto owner = reader_.client_named(target.realm, client);
    if (!owner) throw CannotSet(element(member, client) + ": the client is gone; driftd never creates it");
    Links links{element(member, client), {}, {}};
    for (const auto& name : without(there, here)) links.add.push_back(id_of({client, name}));
    for (const auto& name : without(here, there)) links.remove.push_back(id_of({client, name}));
    add_roles(target, path + "clients/" + http::escape(text_of(*owner, "id")), links, to);
  }
}

}  // namespace driftd::keycloak
