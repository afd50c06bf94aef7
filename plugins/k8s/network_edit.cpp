// SPDX-License-Identifier: Apache-2.0
// The way back of network.cpp, for Services and Ingresses.
#include <map>

#include "common/apply_steps.hpp"
#include "k8s/attribute_edit.hpp"
#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

using common::CannotSet;

const std::map<std::string, const char*>& port_members() {
  static const std::map<std::string, const char*> kMembers = {
      {"name", "name"},         {"port", "port"},          {"target_port", "targetPort"},
      {"protocol", "protocol"}, {"node_port", "nodePort"}, {"app_protocol", "appProtocol"}};
  return kMembers;
}

void set_port_member(json& port, const std::string& name, const json& value) {
  const auto member = port_members().find(name);
  if (member == port_members().end()) throw CannotSet("a port of a Service has no '" + name + "'");
  if (value.is_null() || (name == "name" && value == json("")))
    port.erase(member->second);
  else
    port[member->second] = value;
}

json backend_object(const json& from) {
  json out = json::object();
  put(out, "resource", find(from, {"resource"}));
  if (!from.contains("service")) return out;
  const json& port = find(from, {"port"});
  json& service = out["service"] = {{"name", from.at("service")}};
  if (!port.is_null()) service["port"] = {{port.is_number() ? "number" : "name", port}};
  return out;
}

json rules_object(const json& rules) {
  json out = json::array();
  for (const auto& rule : rules) {
    json paths = json::array();
    for (const auto& path : list(rule, {"paths"})) {
      json one = {{"backend", backend_object(path)}};
      put(one, "path", find(path, {"path"}));
      put(one, "pathType", find(path, {"path_type"}));
      paths.push_back(std::move(one));
    }
    json one = json::object();
    if (!text(rule, {"host"}).empty()) one["host"] = text(rule, {"host"});
    if (!paths.empty()) one["http"] = {{"paths", std::move(paths)}};
    out.push_back(std::move(one));
  }
  return out;
}

json tls_object(const json& all) {
  json out = json::array();
  for (const auto& each : all) {
    json one = json::object();
    if (!text(each, {"secret"}).empty()) one["secretName"] = text(each, {"secret"});
    if (!list(each, {"hosts"}).empty()) one["hosts"] = list(each, {"hosts"});
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

bool edit_service(ObjectEdit& to, const ObjectPath& path, const json& value) {
  static const std::vector<Rename> kRenames = {{{"type"}, {"spec", "type"}},
                                               {{"selector"}, {"spec", "selector"}},
                                               {{"external_name"}, {"spec", "externalName"}},
                                               {{"external_ips"}, {"spec", "externalIPs"}},
                                               {{"session_affinity"}, {"spec", "sessionAffinity"}},
                                               {{"session_affinity_config"}, {"spec", "sessionAffinityConfig"}},
                                               {{"external_traffic_policy"}, {"spec", "externalTrafficPolicy"}},
                                               {{"internal_traffic_policy"}, {"spec", "internalTrafficPolicy"}},
                                               {{"load_balancer_source_ranges"}, {"spec", "loadBalancerSourceRanges"}}};
  if (path[0] == "ports") throw CannotSet("the ports of a Service are set one by one");
  return edit_renamed(to, kRenames, path, value);
}

void edit_service_port(ObjectEdit& to, const std::string& name, const std::string& member, const json& value) {
  json& ports = to.wanted["spec"]["ports"];
  if (!ports.is_array()) ports = json::array();
  std::size_t at = 0;
  while (at < ports.size() && text(ports[at], {"name"}) != name) ++at;
  if (member.empty() && value.is_null()) {
    if (at < ports.size()) ports.erase(at);
    return;
  }
  if (!member.empty()) {
    if (at == ports.size()) throw CannotSet("the Service has no port '" + name + "' any more");
    return set_port_member(ports[at], member, value);
  }
  json port = json::object();
  for (const auto& [key, each] : value.items()) set_port_member(port, key, each);
  if (at < ports.size())
    ports[at] = std::move(port);
  else
    ports.push_back(std::move(port));
}

bool edit_ingress(ObjectEdit& to, const ObjectPath& path, const json& value) {
  static const std::vector<Rename> kRenames = {
      {{"class_name"}, {"spec", "ingressClassName"}},
      {{"default_backend", "service"}, {"spec", "defaultBackend", "service", "name"}},
      {{"default_backend", "resource"}, {"spec", "defaultBackend", "resource"}}};
  const bool whole = path.size() == 1;
  if (path[0] == "load_balancer") throw CannotSet("the controller of the Ingress reports it");
  if (path[0] == "rules" && whole)
    return to.set({"spec", "rules"}, value.is_null() ? value : rules_object(value)), true;
  if (path[0] == "tls" && whole) return to.set({"spec", "tls"}, value.is_null() ? value : tls_object(value)), true;
  if (path[0] == "default_backend" && whole)
    return to.set({"spec", "defaultBackend"}, value.is_null() ? value : backend_object(value)), true;
  if (path == ObjectPath{"default_backend", "port"} && !value.is_null()) {
    to.set({"spec", "defaultBackend", "service", "port"}, {{value.is_number() ? "number" : "name", value}});
    return true;
  }
  return edit_renamed(to, kRenames, path, value);
}

}  // namespace driftd::k8s
