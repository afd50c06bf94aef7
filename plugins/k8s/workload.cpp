// SPDX-License-Identifier: Apache-2.0
// Deployments, StatefulSets and DaemonSets: what runs.
#include <algorithm>

#include "driftd/sdk/scope.hpp"
#include "k8s/json_access.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

/// `secret:name#key`, `config_map:name#key`, `field:metadata.name`, `resource:limits.cpu`.
json env_source(const json& source) {
  for (const auto& [member, word] : {std::pair{"secretKeyRef", "secret:"}, {"configMapKeyRef", "config_map:"}}) {
    const json& ref = find(source, {member});
    if (ref.is_object()) return word + text(ref, {"name"}) + "#" + text(ref, {"key"});
  }
  if (source.contains("fieldRef")) return "field:" + text(source, {"fieldRef", "fieldPath"});
  return source.contains("resourceFieldRef") ? json("resource:" + text(source, {"resourceFieldRef", "resource"}))
                                             : source;
}

json env_of(const json& container, const std::string& at, sdk::Record& record) {
  json out = json::object();
  for (const auto& variable : list(container, {"env"})) {
    const std::string name = text(variable, {"name"});
    const json& source = find(variable, {"valueFrom"});
    if (source.is_object()) {
      out[name] = {{"from", env_source(source)}};
      continue;
    }
    const std::string value = text(variable, {"value"});
    out[name] = {{"value", value}};
    if (looks_secret(name, value)) record.sensitive.push_back(member_path(at + ".env", name) + ".value");
  }
  return out;
}

json env_from(const json& container) {
  json out = json::array();
  for (const auto& each : list(container, {"envFrom"})) {
    const std::string prefix = text(each, {"prefix"});
    const std::string secret = text(each, {"secretRef", "name"});
    out.push_back((secret.empty() ? "config_map:" + text(each, {"configMapRef", "name"}) : "secret:" + secret) +
                  (prefix.empty() ? "" : " as " + prefix));
  }
  return out;
}

void add_words(const json& container, const char* from, const std::string& at, json& to, sdk::Record& record) {
  const json& words = list(container, {from});
  if (words.empty()) return;
  to[from] = words;
  const bool secret = std::any_of(words.begin(), words.end(), [](const json& word) {
    return word.is_string() &&
           looks_secret(word.get<std::string>().starts_with("-") ? word.get<std::string>() : "", word);
  });
  if (secret) record.sensitive.push_back(at + "." + from);
}

/// Returns what the node opens for the ports of a container: hostPort and hostIP, by port and protocol. It is a
/// separate attribute so that older baselines of `ports` stay valid.
json host_ports_of(const json& container) {
  json out = json::object();
  for (const auto& port : list(container, {"ports"})) {
    json one = json::object();
    put(one, "host_port", find(port, {"hostPort"}));
    put(one, "host_ip", find(port, {"hostIP"}));
    const json& number = find(port, {"containerPort"});
    const std::string protocol = text(port, {"protocol"});
    if (!one.empty())
      out[(number.is_number_integer() ? number.dump() : "") + "/" + (protocol.empty() ? "TCP" : protocol)].push_back(
          std::move(one));
  }
  return out;
}

/// Returns by path what a mount has beside its volume: which part of the volume, and what it shares with the node.
json mount_options_of(const json& container) {
  json out = json::object();
  for (const auto& mount : list(container, {"volumeMounts"})) {
    json one = json::object();
    put(one, "sub_path", find(mount, {"subPath"}));
    put(one, "sub_path_expr", find(mount, {"subPathExpr"}));
    put(one, "propagation", find(mount, {"mountPropagation"}));
    put(one, "recursive_read_only", find(mount, {"recursiveReadOnly"}));
    if (!one.empty()) out[text(mount, {"mountPath"})] = std::move(one);
  }
  return out;
}

/// Of the sources of `env` and `env_from` what their names do not say: by variable, and by the source as it is named
/// there.
json env_options_of(const json& container) {
  json out = json::object();
  for (const auto& variable : list(container, {"env"})) {
    json one = json::object();
    for (const char* member : {"secretKeyRef", "configMapKeyRef"})
      put(one, "optional", find(variable, {"valueFrom", member, "optional"}));
    put(one, "container", find(variable, {"valueFrom", "resourceFieldRef", "containerName"}));
    put(one, "divisor", find(variable, {"valueFrom", "resourceFieldRef", "divisor"}));
    if (!one.empty()) out[text(variable, {"name"})] = std::move(one);
  }
  for (const auto& each : list(container, {"envFrom"})) {
    for (const auto& [member, word] : {std::pair{"secretRef", "secret:"}, {"configMapRef", "config_map:"}}) {
      const json& optional = find(each, {member, "optional"});
      if (!optional.is_null()) out[word + text(each, {member, "name"})] = {{"optional", optional}};
    }
  }
  return out;
}

json containers_of(const json& pod, const char* from, const std::string& attribute, sdk::Record& record) {
  json out = json::object();
  for (const auto& container : list(pod, {from})) {
    const std::string name = text(container, {"name"}), at = member_path(attribute, name);
    json one = json::object();
    put(one, "image", find(container, {"image"}));
    put(one, "image_pull_policy", find(container, {"imagePullPolicy"}));
    add_words(container, "command", at, one, record);
    add_words(container, "args", at, one, record);
    json ports = json::array();
    for (const auto& port : list(container, {"ports"})) {
      ports.push_back({{"port", find(port, {"containerPort"})}, {"protocol", text(port, {"protocol"})}});
    }
    if (!ports.empty()) one["ports"] = std::move(ports);
    one["env"] = env_of(container, at, record);
    if (const json sources = env_from(container); !sources.empty()) one["env_from"] = sources;
    one["resources"] = {{"requests", json::object()}, {"limits", json::object()}};
    for (const char* each : {"requests", "limits"}) {
      const json& amounts = find(container, {"resources", each});
      if (amounts.is_object()) one["resources"][each] = amounts;
    }
    put(one, "security_context", find(container, {"securityContext"}));
    for (const auto& [theirs, ours] : {std::pair{"livenessProbe", "liveness_probe"},
                                       {"readinessProbe", "readiness_probe"},
                                       {"startupProbe", "startup_probe"}}) {
      put(one, ours, find(container, {theirs}));
    }
    json mounts = json::object();
    for (const auto& mount : list(container, {"volumeMounts"})) {
      mounts[text(mount, {"mountPath"})] =
          text(mount, {"name"}) + (find(mount, {"readOnly"}) == json(true) ? " ro" : "");
    }
    if (!mounts.empty()) one["mounts"] = std::move(mounts);
    if (json options = mount_options_of(container); !options.empty()) one["mount_options"] = std::move(options);
    if (json opened = host_ports_of(container); !opened.empty()) one["host_ports"] = std::move(opened);
    if (json options = env_options_of(container); !options.empty()) one["env_options"] = std::move(options);
    put(one, "resource_claims", find(container, {"resources", "claims"}));
    out[name] = std::move(one);
  }
  return out;
}

json volumes_of(const json& pod) {
  json out = json::object();
  for (const auto& volume : list(pod, {"volumes"})) {
    json source = volume;
    source.erase("name");
    out[text(volume, {"name"})] = std::move(source);
  }
  return out;
}

/// Returns the field manager (an autoscaler) that decides on `replicas` instead of a person or a deployment tool; empty
/// if there is none.
std::string replica_owner(const json& object, const std::vector<std::string>& owners) {
  for (const auto& field : list(object, {"metadata", "managedFields"})) {
    if (!find(field, {"fieldsV1", "f:spec"}).contains("f:replicas")) continue;
    std::string manager = text(field, {"manager"});
    const auto matches = [&](const std::string& glob) { return sdk::glob_match(glob, manager); };
    if (std::any_of(owners.begin(), owners.end(), matches)) return manager;
  }
  return {};
}

/// Anybody may use the name of an autoscaler and thereby hide the number, so the owner of `replicas` is itself judged.
void add_replicas(const json& object, const Settings& settings, json& body, json& status, sdk::Record& record) {
  const json& replicas = find(object, {"spec", "replicas"});
  if (replicas.is_null()) return;
  const std::string owner = replica_owner(object, settings.replica_owners);
  if (owner.empty()) {
    body["replicas"] = replicas;
    return;
  }
  body["replicas_owner"] = owner;
  status["replicas_wanted"] = replicas;
  record.unread.push_back({"replicas", DRIFTD_UNSUPPORTED,
                           "the number belongs to the field manager " + owner +
                               " (an autoscaler): not judged; see settings.replica_owners"});
}

}  // namespace

void add_order(const json& elements, const char* attribute, json& body) {
  json order = json::array();
  for (const auto& element : elements) order.push_back(text(element, {"name"}));
  if (order.size() > 1) body[attribute] = std::move(order);
}

void add_init_order(const json& pod, json& body) { add_order(list(pod, {"initContainers"}), "init_order", body); }

void map_workload(const json& object, const Settings& settings, json& body, json& status, sdk::Record& record) {
  const json& spec = find(object, {"spec"});
  const json& pod = find(spec, {"template", "spec"});
  add_replicas(object, settings, body, status, record);
  body["containers"] = containers_of(pod, "containers", "containers", record);
  const json first = containers_of(pod, "initContainers", "init_containers", record);
  if (!first.empty()) body["init_containers"] = first;
  add_init_order(pod, body);
  put(body, "selector", find(spec, {"selector"}));
  put(body, "pod_labels", find(spec, {"template", "metadata", "labels"}));
  put(body, "strategy", find(spec, {spec.contains("strategy") ? "strategy" : "updateStrategy"}));
  put(body, "service_name", find(spec, {"serviceName"}));
  put(body, "paused", find(spec, {"paused"}));
  put(body, "service_account", find(pod, {"serviceAccountName"}));
  put(body, "node_selector", find(pod, {"nodeSelector"}));
  put(body, "tolerations", find(pod, {"tolerations"}));
  put(body, "affinity", find(pod, {"affinity"}));
  put(body, "host_network", find(pod, {"hostNetwork"}));
  put(body, "host_pid", find(pod, {"hostPID"}));
  put(body, "host_ipc", find(pod, {"hostIPC"}));
  put(body, "security_context", find(pod, {"securityContext"}));
  put(body, "priority_class", find(pod, {"priorityClassName"}));
  if (const json volumes = volumes_of(pod); !volumes.empty()) body["volumes"] = volumes;
  json claims = json::object();
  for (const auto& claim : list(spec, {"volumeClaimTemplates"})) {
    claims[text(claim, {"metadata", "name"})] = {{"storage", find(claim, {"spec", "resources", "requests", "storage"})},
                                                 {"class", find(claim, {"spec", "storageClassName"})},
                                                 {"access_modes", find(claim, {"spec", "accessModes"})}};
  }
  if (!claims.empty()) body["volume_claims"] = std::move(claims);
  for (const char* each : {"replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
                           "desiredNumberScheduled", "numberReady"}) {
    put(status, each, find(object, {"status", each}));
  }
}

}  // namespace driftd::k8s
