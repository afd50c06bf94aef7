// SPDX-License-Identifier: Apache-2.0
// The way back of workload.cpp.
#include <algorithm>

#include "common/apply_steps.hpp"
#include "k8s/attribute_edit.hpp"
#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

using common::CannotSet;

ObjectPath below(ObjectPath path, std::initializer_list<std::string> steps) {
  path.insert(path.end(), steps);
  return path;
}

const ObjectPath& pod_path() {
  static const ObjectPath kPod = {"spec", "template", "spec"};
  return kPod;
}

/// Returns the source of a variable that workload.cpp calls `secret:name#key`, `field:metadata.name`.
json source_of(const json& from) {
  if (!from.is_string()) return from;
  const std::string whole = from.get<std::string>();
  const auto colon = whole.find(':');
  const std::string word = whole.substr(0, colon), rest = colon == whole.npos ? "" : whole.substr(colon + 1);
  if (word == "field") return {{"fieldRef", {{"fieldPath", rest}}}};
  if (word == "resource") return {{"resourceFieldRef", {{"resource", rest}}}};
  const auto hash = rest.rfind('#');
  const bool known = (word == "secret" || word == "config_map") && hash != rest.npos;
  if (!known) throw CannotSet("'" + whole + "' names no source of a variable");
  return {{word == "secret" ? "secretKeyRef" : "configMapKeyRef",
           {{"name", rest.substr(0, hash)}, {"key", rest.substr(hash + 1)}}}};
}

/// A variable has a value or a source: setting one takes the other away.
void edit_variable(ObjectEdit& to, const ObjectPath& place, const std::string& member, const json& value) {
  json element = to.get(place);
  if (value.is_null() && (member.empty() || element.is_null())) return to.set(place, nullptr);
  if (value.is_null()) {
    element.erase(member == "from" ? "valueFrom" : "value");
    return to.set(place, element);
  }
  element = {{"name", place.back()}};
  const json given = member.empty() ? value : json{{member, value}};
  if (given.contains("value")) element["value"] = given.at("value");
  if (given.contains("from")) element["valueFrom"] = source_of(given.at("from"));
  to.set(place, element);
}

/// `data ro`
void edit_mount(ObjectEdit& to, const ObjectPath& place, const json& value) {
  if (value.is_null()) return to.set(place, nullptr);
  std::string volume = value.get<std::string>();
  const bool read_only = volume.ends_with(" ro");
  if (read_only) volume.resize(volume.size() - 3);
  json element = to.get(place);
  if (element.is_null()) element = {{"mountPath", place.back()}};
  element["name"] = volume;
  element.erase("readOnly");
  if (read_only) element["readOnly"] = true;
  to.set(place, element);
}

/// Keeps the ports that are there, with what the attribute does not show of them.
void edit_ports(ObjectEdit& to, const ObjectPath& place, const json& value) {
  if (value.is_null()) return to.set(place, nullptr);
  json out = json::array();
  const json now = to.get(place);
  for (const auto& wanted : value) {
    json port = {{"containerPort", find(wanted, {"port"})}, {"protocol", find(wanted, {"protocol"})}};
    for (const auto& each : now.is_array() ? now : json::array()) {
      if (find(each, {"containerPort"}) == port["containerPort"] && find(each, {"protocol"}) == port["protocol"])
        port = each;
    }
    out.push_back(std::move(port));
  }
  to.set(place, out);
}

/// `secret:name as PREFIX_`
json env_source_of(const std::string& whole) {
  const auto colon = whole.find(':');
  const auto as = whole.find(" as ");
  const std::string word = whole.substr(0, colon);
  if (colon == whole.npos || (word != "secret" && word != "config_map"))
    throw CannotSet("'" + whole + "' names no source of variables");
  json out = {{word == "secret" ? "secretRef" : "configMapRef",
               {{"name", whole.substr(colon + 1, as == whole.npos ? as : as - colon - 1)}}}};
  if (as != whole.npos) out["prefix"] = whole.substr(as + 4);
  return out;
}

/// Keeps `optional` of the sources that stay.
void edit_env_from(ObjectEdit& to, const ObjectPath& place, const json& value) {
  if (value.is_null()) return to.set(place, nullptr);
  json out = json::array();
  const json now = to.get(place);
  for (const auto& wanted : value) {
    json source = env_source_of(wanted.get<std::string>());
    for (const auto& each : now.is_array() ? now : json::array()) {
      json plain = each;
      for (auto& member : plain) {
        if (member.is_object()) member.erase("optional");
      }
      if (plain == source) source = each;
    }
    out.push_back(std::move(source));
  }
  to.set(place, out);
}

void edit_container(ObjectEdit& to, const ObjectPath& place, const ObjectPath& path, const json& value);

/// Sets the members of an object one by one.
void edit_members(ObjectEdit& to, const ObjectPath& place, const ObjectPath& path, const json& value) {
  for (const auto& [name, member] : value.items()) edit_container(to, place, below(path, {name}), member);
}

/// `more` of a container has what is left of a field when its named parts are taken out: mostly `resources: {}`. Such
/// an empty object comes and goes with the field itself; wanted_object() finds out whether it did.
void edit_left(ObjectEdit& to, const ObjectPath& place, const json& value) {
  const json now = to.get(place);
  const bool is_empty = now.is_object() && now.empty();
  if (!value.is_null() && !(value.is_object() && value.empty()))
    throw CannotSet("it is shown in a form of driftd that has no way back");
  if (value.is_null() ? is_empty : now.is_null()) to.set(place, value);
}

/// `path` is below the container, `place` the container itself.
void edit_container(ObjectEdit& to, const ObjectPath& place, const ObjectPath& path, const json& value) {
  static const std::vector<Rename> kRenames = {
      {{"image_pull_policy"}, {"imagePullPolicy"}}, {{"security_context"}, {"securityContext"}},
      {{"liveness_probe"}, {"livenessProbe"}},      {{"readiness_probe"}, {"readinessProbe"}},
      {{"startup_probe"}, {"startupProbe"}},        {{"resource_claims"}, {"resources", "claims"}}};
  if (path.empty()) {
    if (value.is_null()) return to.set(place, nullptr);
    if (to.get(place).is_null()) to.set(place, {{"name", place.back()}});
    return edit_members(to, place, path, value);
  }
  const std::string& what = path[0];
  const bool by_name = what == "env" || what == "mounts";
  const char* list = what == "env" ? "env" : "volumeMounts";
  if (by_name && path.size() == 1) {
    if (value.is_null()) return to.set(below(place, {list}), nullptr);
    return edit_members(to, place, path, value);
  }
  if (what == "env" && path.size() <= 3)
    return edit_variable(to, below(place, {list, path[1]}), path.size() == 3 ? path[2] : "", value);
  if (what == "mounts" && path.size() == 2) return edit_mount(to, below(place, {list, path[1]}), value);
  if (what == "ports" && path.size() == 1) return edit_ports(to, below(place, {"ports"}), value);
  if (what == "env_from" && path.size() == 1) return edit_env_from(to, below(place, {"envFrom"}), value);
  if (what == "more" && path.size() == 2) return edit_left(to, below(place, {path[1]}), value);
  if (what == "more" && path.size() == 1) {
    if (!value.is_null()) edit_members(to, place, path, value);
    return;
  }
  const bool no_amounts = what == "resources" && path.size() == 1 && value.is_object() &&
                          std::all_of(value.begin(), value.end(), [](const json& each) { return each.empty(); });
  if (no_amounts && !value.empty()) return;  // `requests: {}` is how the attribute says that there are none
  if (by_name || what == "host_ports" || what == "mount_options" || what == "env_options" || what == "more")
    throw CannotSet("it is shown in a form of driftd that has no way back");
  ObjectPath rest = place;
  for (const auto& rename : kRenames) {
    if (rename.from[0] == what) rest.insert(rest.end(), rename.to.begin(), rename.to.end());
  }
  if (rest.size() == place.size()) rest.push_back(what);
  rest.insert(rest.end(), path.begin() + 1, path.end());
  to.set(rest, value);
}

void edit_volume(ObjectEdit& to, const ObjectPath& path, const json& value) {
  ObjectPath place = below(pod_path(), {"volumes"});
  place.insert(place.end(), path.begin() + 1, path.end());
  if (path.size() != 2 || value.is_null()) return to.set(place, value);
  json element = value;
  element["name"] = path[1];
  to.set(place, element);
}

/// Puts the init containers into this order.
void edit_order(ObjectEdit& to, const json& names) {
  const ObjectPath place = below(pod_path(), {"initContainers"});
  const json now = to.get(place);
  json out = json::array();
  for (const auto& name : names) {
    for (const auto& container : now) {
      if (find(container, {"name"}) == name) out.push_back(container);
    }
  }
  if (out.size() != now.size()) throw CannotSet("the init containers are not those of the order");
  to.set(place, out);
}

}  // namespace

bool edit_workload(ObjectEdit& to, const ObjectPath& path, const json& value) {
  static const std::vector<Rename> kRenames = {
      {{"replicas"}, {"spec", "replicas"}},
      {{"selector"}, {"spec", "selector"}},
      {{"pod_labels"}, {"spec", "template", "metadata", "labels"}},
      {{"pod_annotations"}, {"spec", "template", "metadata", "annotations"}},
      {{"pod_metadata"}, {"spec", "template", "metadata"}},
      {{"service_name"}, {"spec", "serviceName"}},
      {{"paused"}, {"spec", "paused"}},
      {{"service_account"}, {"spec", "template", "spec", "serviceAccountName"}},
      {{"node_selector"}, {"spec", "template", "spec", "nodeSelector"}},
      {{"tolerations"}, {"spec", "template", "spec", "tolerations"}},
      {{"affinity"}, {"spec", "template", "spec", "affinity"}},
      {{"host_network"}, {"spec", "template", "spec", "hostNetwork"}},
      {{"host_pid"}, {"spec", "template", "spec", "hostPID"}},
      {{"host_ipc"}, {"spec", "template", "spec", "hostIPC"}},
      {{"security_context"}, {"spec", "template", "spec", "securityContext"}},
      {{"priority_class"}, {"spec", "template", "spec", "priorityClassName"}},
      {{"pod"}, {"spec", "template", "spec"}}};
  static const std::vector<Rename> kStrategy = {{{"strategy"}, {"spec", "strategy"}}};
  static const std::vector<Rename> kUpdateStrategy = {{{"strategy"}, {"spec", "updateStrategy"}}};
  if (path[0] == "volumes" && path.size() > 1) return edit_volume(to, path, value), true;
  if (path[0] == "init_order") return edit_order(to, value), true;
  const bool first = path[0] == "init_containers";
  if ((first || path[0] == "containers") && path.size() > 1) {
    const ObjectPath place = below(pod_path(), {first ? "initContainers" : "containers", path[1]});
    return edit_container(to, place, ObjectPath(path.begin() + 2, path.end()), value), true;
  }
  if (first && value.is_null()) return to.set(below(pod_path(), {"initContainers"}), nullptr), true;
  if (first || path[0] == "containers" || path[0] == "volumes" || path[0] == "ephemeral_containers")
    throw CannotSet("it is only set element by element");
  return edit_renamed(to, to.resource.kind == "deployment" ? kStrategy : kUpdateStrategy, path, value) ||
         edit_renamed(to, kRenames, path, value);
}

}  // namespace driftd::k8s
