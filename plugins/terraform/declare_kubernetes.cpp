// SPDX-License-Identifier: Apache-2.0
// Services and workloads of hashicorp/kubernetes, in the words of our provider.
#include <algorithm>

#include "terraform/declare_custom.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

bool says_something(const json& value) {
  return !value.is_null() && value != "" && !(value.is_structured() && value.empty());
}

void put(json& to, const char* name, const json& value) {
  if (says_something(value)) to[name] = value;
}

/// `"8080"` is a number to the API, `"http"` a name.
json number_or_name(const json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const bool number = !text.empty() && text.size() <= 9 &&
                      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? json(std::stoll(text)) : value;
}

json service_ports(const json& spec) {
  json out = json::array();
  const json& ports = member(spec, "port");
  for (const auto& port : ports.is_array() ? ports : json::array()) {
    json one = {{"name", text_of(port, "name")}};
    put(one, "port", member(port, "port"));
    put(one, "target_port", number_or_name(member(port, "target_port")));
    put(one, "protocol", member(port, "protocol"));
    put(one, "app_protocol", member(port, "app_protocol"));
    if (const json& node = member(port, "node_port"); node.is_number_integer() && node != 0) one["node_port"] = node;
    out.push_back(std::move(one));
  }
  return out;
}

json containers_of(const json& list) {
  json out = json::object();
  for (const auto& container : list.is_array() ? list : json::array()) {
    json one = json::object();
    put(one, "image", member(container, "image"));
    put(one, "image_pull_policy", member(container, "image_pull_policy"));
    const json& resources = block(container, "resources");
    for (const char* each : {"requests", "limits"}) {
      if (const json& amounts = member(resources, each); amounts.is_object() && !amounts.empty())
        one["resources"][each] = amounts;
    }
    const std::string name = text_of(container, "name");
    if (!name.empty() && !one.empty()) out[name] = std::move(one);
  }
  return out;
}

}  // namespace

bool kubernetes_service(const CustomMapping& of) {
  const json& spec = block(of.attributes, "spec");
  json& body = of.out.body;
  for (const char* same : {"type", "selector", "external_name", "external_ips", "session_affinity",
                           "external_traffic_policy", "internal_traffic_policy"}) {
    put(body, same, member(spec, same));
  }
  if (const std::string address = text_of(spec.is_object() ? spec : json::object(), "cluster_ip"); !address.empty())
    body["headless"] = address == "None";
  put(body, "ports", service_ports(spec));
  return kubernetes_id(of);
}

bool kubernetes_workload(const CustomMapping& of) {
  const json& spec = block(of.attributes, "spec");
  const json& pod = block(block(spec, "template"), "spec");
  json& body = of.out.body;
  put(body, "replicas", number_or_name(member(spec, "replicas")));
  put(body, "containers", containers_of(member(pod, "container")));
  put(body, "init_containers", containers_of(member(pod, "init_container")));
  put(body, "service_account", member(pod, "service_account_name"));
  if (const json& paused = member(spec, "paused"); paused.is_boolean()) body["paused"] = paused;
  return kubernetes_id(of);
}

}  // namespace driftd::terraform
