// SPDX-License-Identifier: Apache-2.0
// Services, EndpointSlices and Ingresses: where something is reached.
#include <algorithm>

#include "k8s/json_access.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

json service_ports(const json& object) {
  json out = json::array();
  for (const auto& port : list(object, {"spec", "ports"})) {
    json one = {{"name", text(port, {"name"})}};  // a single port may have none
    put(one, "port", find(port, {"port"}));
    put(one, "target_port", find(port, {"targetPort"}));
    put(one, "protocol", find(port, {"protocol"}));
    put(one, "node_port", find(port, {"nodePort"}));
    put(one, "app_protocol", find(port, {"appProtocol"}));
    out.push_back(std::move(one));
  }
  return out;
}

/// Returns the names of the load balancer if it has any, else its addresses, which are then what its users know.
json balancers(const json& object) {
  json out = json::array();
  for (const auto& each : list(object, {"status", "loadBalancer", "ingress"})) {
    const std::string name = text(each, {"hostname"});
    out.push_back(name.empty() ? text(each, {"ip"}) : name);
  }
  return out;
}

json backend_of(const json& backend) {
  json out = json::object();
  put(out, "service", find(backend, {"service", "name"}));
  const json& number = find(backend, {"service", "port", "number"});
  put(out, "port", number.is_null() ? find(backend, {"service", "port", "name"}) : number);
  put(out, "resource", find(backend, {"resource"}));
  return out;
}

json ingress_rule(const json& rule) {
  json paths = json::array();
  for (const auto& path : list(rule, {"http", "paths"})) {
    json one = backend_of(find(path, {"backend"}));
    put(one, "path", find(path, {"path"}));
    put(one, "path_type", find(path, {"pathType"}));
    paths.push_back(std::move(one));
  }
  return {{"host", text(rule, {"host"})}, {"paths", std::move(paths)}};
}

}  // namespace

void map_service(const json& object, const Settings& settings, json& body, json& status) {
  const json& spec = find(object, {"spec"});
  const bool headless = text(spec, {"clusterIP"}) == "None";
  body["dns"] = text(object, {"metadata", "name"}) + "." + text(object, {"metadata", "namespace"}) + ".svc." +
                settings.cluster_domain;
  put(body, "type", find(spec, {"type"}));
  body["headless"] = headless;
  body["ports"] = service_ports(object);
  put(body, "selector", find(spec, {"selector"}));
  put(body, "external_name", find(spec, {"externalName"}));
  put(body, "external_ips", find(spec, {"externalIPs"}));
  put(body, "session_affinity", find(spec, {"sessionAffinity"}));
  put(body, "external_traffic_policy", find(spec, {"externalTrafficPolicy"}));
  put(body, "internal_traffic_policy", find(spec, {"internalTrafficPolicy"}));
  put(body, "load_balancer_source_ranges", find(spec, {"loadBalancerSourceRanges"}));
  put(body, "session_affinity_config", find(spec, {"sessionAffinityConfig"}));
  const json names = balancers(object);
  if (!names.empty()) body["load_balancer"] = names;
  put(status, "cluster_ips", find(spec, {"clusterIPs"}));
}

void map_endpoint_slice(const json& object, json& body, json& status) {
  put(body, "service", find(object, {"metadata", "labels", "kubernetes.io/service-name"}));
  put(body, "address_type", find(object, {"addressType"}));
  body["ports"] = json::array();
  for (const auto& port : list(object, {"ports"})) {
    json one = {{"name", text(port, {"name"})}};
    put(one, "port", find(port, {"port"}));
    put(one, "protocol", find(port, {"protocol"}));
    put(one, "app_protocol", find(port, {"appProtocol"}));
    body["ports"].push_back(std::move(one));
  }
  std::uint64_t ready = 0;
  json names = json::array();
  for (const auto& endpoint : list(object, {"endpoints"})) {
    if (find(endpoint, {"conditions", "ready"}) != json(false)) ++ready;
    for (const auto& address : list(endpoint, {"addresses"})) names.push_back(address);
  }
  status["ready"] = ready;
  status["endpoints"] = list(object, {"endpoints"}).size();
  // Names stay; addresses of pods come and go.
  (text(object, {"addressType"}) == "FQDN" ? body : status)["addresses"] = std::move(names);
}

void map_ingress(const json& object, json& body) {
  const json& spec = find(object, {"spec"});
  put(body, "class_name", find(spec, {"ingressClassName"}));
  body["rules"] = json::array();
  for (const auto& rule : list(spec, {"rules"})) body["rules"].push_back(ingress_rule(rule));
  if (!find(spec, {"defaultBackend"}).is_null()) body["default_backend"] = backend_of(find(spec, {"defaultBackend"}));
  json tls = json::array();
  for (const auto& each : list(spec, {"tls"})) {
    tls.push_back({{"secret", text(each, {"secretName"})}, {"hosts", list(each, {"hosts"})}});
  }
  if (!tls.empty()) body["tls"] = std::move(tls);
  const json names = balancers(object);
  if (!names.empty()) body["load_balancer"] = names;
}

}  // namespace driftd::k8s
