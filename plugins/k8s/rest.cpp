// SPDX-License-Identifier: Apache-2.0
#include "k8s/rest.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "k8s/exceptions.hpp"
#include "k8s/json_access.hpp"
#include "k8s/list_types.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

using Paths = std::vector<std::vector<std::string>>;

Paths paths(std::initializer_list<const char*> all) {
  Paths out;
  for (const char* each : all) out.push_back(path_segments(each));
  return out;
}

/// What the named attributes of a container say completely. A list with a repeated key stays a list, which `*` does not
/// enter: the attributes may show only one of two such elements.
const Paths& taken_of_container() {
  static const Paths kTaken = paths({"name",
                                     "image",
                                     "imagePullPolicy",
                                     "command",
                                     "args",
                                     "ports.*.containerPort",
                                     "ports.*.protocol",
                                     "ports.*.hostPort",
                                     "ports.*.hostIP",
                                     "env.*.name",
                                     "env.*.value",
                                     "env.*.valueFrom.secretKeyRef.name",
                                     "env.*.valueFrom.secretKeyRef.key",
                                     "env.*.valueFrom.secretKeyRef.optional",
                                     "env.*.valueFrom.configMapKeyRef.name",
                                     "env.*.valueFrom.configMapKeyRef.key",
                                     "env.*.valueFrom.configMapKeyRef.optional",
                                     "env.*.valueFrom.fieldRef.fieldPath",
                                     "env.*.valueFrom.resourceFieldRef.resource",
                                     "env.*.valueFrom.resourceFieldRef.containerName",
                                     "env.*.valueFrom.resourceFieldRef.divisor",
                                     "resources.requests",
                                     "resources.limits",
                                     "resources.claims",
                                     "securityContext",
                                     "livenessProbe",
                                     "readinessProbe",
                                     "startupProbe",
                                     "volumeMounts.*.name",
                                     "volumeMounts.*.mountPath",
                                     "volumeMounts.*.readOnly",
                                     "volumeMounts.*.subPath",
                                     "volumeMounts.*.subPathExpr",
                                     "volumeMounts.*.mountPropagation",
                                     "volumeMounts.*.recursiveReadOnly"});
  return kTaken;
}

const Paths& taken_of_env_from() {
  static const Paths kTaken = paths({"envFrom.[].prefix", "envFrom.[].secretRef.name", "envFrom.[].secretRef.optional",
                                     "envFrom.[].configMapRef.name", "envFrom.[].configMapRef.optional"});
  return kTaken;
}

const Paths& taken_of_pod() {
  static const Paths kTaken = paths({"volumes.*", "serviceAccountName", "nodeSelector", "tolerations", "affinity",
                                     "hostNetwork", "hostPID", "hostIPC", "securityContext", "priorityClassName"});
  return kTaken;
}

const Paths& taken_of_workload() {
  static const Paths kTaken = paths(
      {"spec.replicas", "spec.selector", "spec.strategy", "spec.updateStrategy", "spec.serviceName", "spec.paused"});
  return kTaken;
}

const Paths& taken_of_claim() {
  static const Paths kTaken =
      paths({"metadata.name", "spec.resources.requests.storage", "spec.storageClassName", "spec.accessModes"});
  return kTaken;
}

/// What the named attributes of a kind say completely, in the API's names.
const Paths& taken_of(const std::string& kind) {
  static const std::map<std::string, Paths> kTaken = {
      {"secret", paths({"type", "immutable", "data"})},
      {"config_map", paths({"immutable", "data", "binaryData"})},
      {"endpoint_slice",
       paths({"addressType", "ports.[].name", "ports.[].port", "ports.[].protocol", "ports.[].appProtocol"})},
      {"service",
       paths({"spec.type", "spec.selector", "spec.externalName", "spec.externalIPs", "spec.sessionAffinity",
              "spec.sessionAffinityConfig", "spec.externalTrafficPolicy", "spec.internalTrafficPolicy",
              "spec.loadBalancerSourceRanges", "spec.ports.*.name", "spec.ports.*.port", "spec.ports.*.targetPort",
              "spec.ports.*.protocol", "spec.ports.*.nodePort", "spec.ports.*.appProtocol"})},
      {"ingress", paths({"spec.ingressClassName", "spec.rules.[].host", "spec.rules.[].http.paths.[].path",
                         "spec.rules.[].http.paths.[].pathType", "spec.rules.[].http.paths.[].backend.resource",
                         "spec.rules.[].http.paths.[].backend.service.name",
                         "spec.rules.[].http.paths.[].backend.service.port.number",
                         "spec.rules.[].http.paths.[].backend.service.port.name", "spec.defaultBackend.resource",
                         "spec.defaultBackend.service.name", "spec.defaultBackend.service.port.number",
                         "spec.defaultBackend.service.port.name", "spec.tls.[].hosts", "spec.tls.[].secretName"})}};
  static const Paths kNothing;
  const auto found = kTaken.find(kind);
  return found == kTaken.end() ? kNothing : found->second;
}

void erase_all(const Paths& taken, json& from) {
  for (const auto& path : taken) erase_at(from, path);
}

/// Takes a member out of an object; null if it has none of that name.
json take(json& from, const char* name) {
  if (!from.is_object() || !from.contains(name)) return nullptr;
  json out = std::move(from[name]);
  from.erase(name);
  return out;
}

/// Returns true if two sources of `envFrom` have the same name: `env_options` then shows only one of them.
bool has_twin_sources(const json& container) {
  std::set<std::string> names;
  for (const auto& source : list(container, {"envFrom"})) {
    for (const char* type : {"secretRef", "configMapRef"}) {
      const std::string name = text(source, {type, "name"});
      if (!name.empty() && !names.insert(type + ("/" + name)).second) return true;
    }
  }
  return false;
}

/// Makes a list of environment variables, of which two have one name, an object: `A`, `A#2`. In a list the agent would
/// judge by the name `env`, not by that of the variable, whether a value may be shown.
void name_variables(json& env) {
  json out = json::object();
  for (const auto& variable : env) {
    const std::string name = text(variable, {"name"});
    std::string shown = name;
    for (int time = 2; out.contains(shown); ++time) shown = name + "#" + std::to_string(time);
    out[shown] = variable;
  }
  env = std::move(out);
}

/// Does that with each list of variables inside the value.
void name_all_variables(json& value) {
  if (!value.is_structured()) return;
  if (value.is_object() && value.contains("env") && value["env"].is_array()) name_variables(value["env"]);
  for (auto& member : value) name_all_variables(member);
}

void add_containers(json containers, const char* attribute, json& body, sdk::Record& record) {
  for (auto& [name, container] : containers.items()) {
    const bool twins = has_twin_sources(container);
    erase_all(taken_of_container(), container);
    if (!twins) erase_all(taken_of_env_from(), container);
    name_all_variables(container);
    if (!container.empty())
      add_members(std::move(container), body[attribute][name], member_path(attribute, name), record);
  }
}

/// Adds to `volume_claims` what it does not have of the templates. Templates that share a name stay where they are.
void add_claims(json& spec, json& body, sdk::Record& record) {
  const json& templates = list(spec, {"volumeClaimTemplates"});
  if (templates.empty()) return;
  json by_name = json::object();
  for (const auto& each : templates) by_name[text(each, {"metadata", "name"})] = each;
  if (by_name.size() != templates.size()) return;
  spec.erase("volumeClaimTemplates");
  for (auto& [name, claim] : by_name.items()) {
    erase_all(taken_of_claim(), claim);
    if (!claim.empty())
      add_members(std::move(claim), body["volume_claims"][name], member_path("volume_claims", name), record);
  }
}

void add_part(json part, const char* attribute, json& body, sdk::Record& record) {
  if (part.is_null() || (part.is_structured() && part.empty())) return;
  mark_rest(part, attribute, record);
  body[attribute] = std::move(part);
}

}  // namespace

json whole_of(const Resource& resource, const json& object) {
  json out = json::object();
  for (const auto& [name, member] : object.items()) {
    if (name == "status") continue;
    if (name != "metadata" || !member.is_object()) {
      out[name] = member;
      continue;
    }
    json& metadata = out[name] = json::object();
    for (const auto& [key, value] : member.items()) {
      if (key != "managedFields") metadata[key] = value;
    }
  }
  remove_exceptions(resource.kind, out);
  if (resource.lists) return resource.lists->shaped(out, resource.object);
  return ListTypes::shipped().shaped(out, resource.kind);
}

void mark_rest(const json& value, const std::string& path, sdk::Record& record) {
  if (value.is_string() && looks_secret({}, value.get_ref<const std::string&>())) record.sensitive.push_back(path);
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) mark_rest(value[i], path + "[" + std::to_string(i) + "]", record);
  }
  if (!value.is_object()) return;
  const bool named = !text(value, {"value"}).empty() && looks_secret(text(value, {"name"}), text(value, {"value"}));
  for (const auto& [name, member] : value.items()) {
    const bool words = member.is_array() && (name == "args" || name == "command");
    const bool secret_words =
        words && std::any_of(member.begin(), member.end(), [](const json& word) {
          return word.is_string() && word.get_ref<const std::string&>().starts_with("-") && looks_secret(word, {});
        });
    if (secret_words || (named && name == "value"))
      record.sensitive.push_back(member_path(path, name));
    else
      mark_rest(member, member_path(path, name), record);
  }
}

void add_members(json rest, json& to, const std::string& path, sdk::Record& record) {
  for (auto& [name, member] : rest.items()) {
    const bool taken = to.contains(name);
    mark_rest(member, member_path(taken ? (path.empty() ? "more" : path + ".more") : path, name), record);
    (taken ? to["more"][name] : to[name]) = std::move(member);
  }
}

void add_rest(const Resource& resource, json whole, json& body, sdk::Record& record) {
  whole.erase("metadata");
  erase_all(taken_of(resource.kind), whole);
  if (resource.kind == kJob || resource.kind == kCronJob) name_all_variables(whole);
  add_members(std::move(whole), body, {}, record);
}

void add_workload_rest(json whole, json& body, sdk::Record& record) {
  whole.erase("metadata");
  json& spec = whole["spec"];
  json pattern = take(spec, "template"), pod = take(pattern, "spec"), metadata = take(pattern, "metadata");
  for (const auto& [from, attribute] : {std::pair{"containers", "containers"},
                                        {"initContainers", "init_containers"},
                                        {"ephemeralContainers", "ephemeral_containers"}}) {
    if (find(pod, {from}).is_object()) add_containers(take(pod, from), attribute, body, record);
  }
  erase_all(taken_of_pod(), pod);
  add_part(std::move(pod), "pod", body, record);
  if (metadata.is_object()) metadata.erase("labels");
  add_part(take(metadata, "annotations"), "pod_annotations", body, record);
  add_part(std::move(metadata), "pod_metadata", body, record);
  if (!pattern.is_null() && !pattern.empty()) spec["template"] = std::move(pattern);
  add_claims(spec, body, record);
  erase_all(taken_of_workload(), whole);
  if (whole.contains("spec") && whole["spec"].empty()) whole.erase("spec");
  add_members(std::move(whole), body, {}, record);
}

}  // namespace driftd::k8s
