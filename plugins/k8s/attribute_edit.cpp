// SPDX-License-Identifier: Apache-2.0
#include "k8s/attribute_edit.hpp"

#include <algorithm>

#include "common/apply_steps.hpp"
#include "common/attribute_path.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

using common::AttributePath;
using common::CannotSet;
using common::PathStep;
using nlohmann::json;

/// Why no attribute of a kind, or none with this beginning, is ever put back; empty if it may be.
std::string never_set(const std::string& kind, const ObjectPath& path) {
  if (kind == kHelmRelease) return "a release changes by helm only (helm rollback)";
  if (kind == kRegistration) return "it is what other objects define; put those back";
  if (kind == kPrismBackend) return "the definition of a backend is its owner's; driftd reads backends from it";
  if (kind == "endpoint_slice") return "a controller of the cluster writes it";
  if (kind == kSecret && (path[0] == "data" || path[0] == "more" || path[0] == "stringData"))
    return "it is a credential, which is never put back";
  if (kind == "service" && (path[0] == "dns" || path[0] == "headless" || path[0] == "load_balancer"))
    return "it follows from the name, the cluster IP or the status of the Service";
  const bool address = path.size() > 1 && path[0] == "spec" &&
                       (path[1] == "clusterIP" || path[1] == "clusterIPs" || path[1] == "healthCheckNodePort");
  if (kind == "service" && address) return "the cluster assigns it, and it cannot be changed";
  if (path[0] == "replicas_owner") return "it is the field manager that set the number, not a setting";
  if (path[0] == "volume_claims") return "the templates of a StatefulSet's claims cannot be changed";
  return {};
}

/// Returns where an attribute of a type that the settings name is.
ObjectPath place_of_custom(const ObjectEdit& in, const ObjectPath& path) {
  ObjectPath out;
  const auto& fields = in.resource.custom->fields;
  if (fields.empty()) {
    const json spec = in.wanted.value("spec", json::object());
    const bool beside =
        in.wanted.contains(path[0]) && path[0] != "spec" && !(spec.is_object() && spec.contains(path[0]));
    if (!beside) out.push_back("spec");
    out.insert(out.end(), path.begin(), path.end());
    return out;
  }
  const auto field = fields.find(path[0]);
  if (field == fields.end() || field->second.find('[') != std::string::npos)
    throw CannotSet("settings.objects reads it from a place that has no name of its own");
  for (std::size_t from = 0; from <= field->second.size();) {
    const auto dot = std::min(field->second.find('.', from), field->second.size());
    out.push_back(field->second.substr(from, dot - from));
    from = dot + 1;
  }
  out.insert(out.end(), path.begin() + 1, path.end());
  return out;
}

bool is_of_metadata(const ObjectEdit& in, const ObjectPath& path) {
  if (path[0] != "labels" && path[0] != "annotations") return false;
  const json spec = in.wanted.value("spec", json::object());
  return in.resource.kind != kObject || !spec.is_object() || !spec.contains(path[0]);
}

void edit_attribute(ObjectEdit& to, const ObjectPath& path, const json& value) {
  const std::string& kind = to.resource.kind;
  static const std::vector<Rename> kConfigMap = {{{"binary_data"}, {"binaryData"}}};
  if (is_of_metadata(to, path)) {
    ObjectPath place = path;
    place.insert(place.begin(), "metadata");
    return to.set(place, value);
  }
  if (kind == kObject) return to.set(place_of_custom(to, path), value);
  const bool workload = kind == "deployment" || kind == "stateful_set" || kind == "daemon_set";
  const bool done = (workload && edit_workload(to, path, value)) ||
                    (kind == "ingress" && edit_ingress(to, path, value)) ||
                    (kind == "service" && edit_service(to, path, value)) ||
                    (kind == "config_map" && edit_renamed(to, kConfigMap, path, value));
  if (!done) to.set(path, value);
}

/// Returns true if the digest of a secret stands anywhere inside.
bool holds_digest(const json& value) {
  if (!value.is_structured()) return false;
  if (value.is_object() && value.contains("$hmac")) return true;
  return std::any_of(value.begin(), value.end(), [](const json& each) { return holds_digest(each); });
}

/// Returns true for an attribute that shows only a part of the object at its place, so that it is set member by member.
bool is_rest(const ObjectPath& names) {
  return names.size() == 1 && (names[0] == "spec" || names[0] == "pod" || names[0] == "pod_metadata");
}

void edit_rest(ObjectEdit& to, const ObjectPath& names, const json& old, const json& value) {
  const json nothing = json::object();
  for (const auto& [name, unused] : (old.is_object() ? old : nothing).items()) {
    if (!value.is_object() || !value.contains(name)) edit_attribute(to, {names[0], name}, nullptr);
  }
  for (const auto& [name, member] : (value.is_object() ? value : nothing).items())
    edit_attribute(to, {names[0], name}, member);
}

void edit_change(ObjectEdit& to, const AttributePath& path, const json& old, const json& value) {
  if (holds_digest(value)) throw CannotSet("of its value only the digest is known");
  ObjectPath names;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const PathStep& step = path[i];
    if (step.kind == PathStep::Kind::member) {
      names.push_back(step.name);
      continue;
    }
    const bool port = to.resource.kind == "service" && names == ObjectPath{"ports"} && i == 1 && path.size() <= 3 &&
                      step.keys.size() == 1 && step.keys[0].first == "name" &&
                      (path.size() == 2 || path[2].kind == PathStep::Kind::member);
    if (!port) throw CannotSet("it is a part of a list, which is only set as a whole");
    return edit_service_port(to, step.keys[0].second, path.size() == 3 ? path[2].name : "", value);
  }
  if (const std::string why = never_set(to.resource.kind, names); !why.empty()) throw CannotSet(why);
  if (is_rest(names)) return edit_rest(to, names, old, value);
  edit_attribute(to, names, value);
}

/// Returns the value without members that say nothing, which the way there and back need not keep.
json without_nothing(const json& value) {
  if (!value.is_object()) return value;
  json out = json::object();
  for (const auto& [name, member] : value.items()) {
    json rest = without_nothing(member);
    if (!rest.is_null() && !(rest.is_structured() && rest.empty())) out[name] = std::move(rest);
  }
  return out;
}

json body_of(const Resource& resource, const json& object, const Settings& settings) {
  return json::parse(map_object(resource, object, settings).body);
}

void check(const json& found, json expected, std::span<const sdk::Change> changes) {
  for (const auto& change : changes) {
    const auto path = common::parse_attribute_path(change.path);
    const json value = common::parse_change_value(change.new_value);
    const json* at = common::find_at(found, path);
    if (without_nothing(at == nullptr ? json() : *at) != without_nothing(value))
      throw CannotSet(change.path + " cannot be set: it is shown in a form that does not lead back to one value");
    common::assign_at(expected, path, value);
  }
  if (without_nothing(found) == without_nothing(expected)) return;
  throw CannotSet(changes.front().path + " cannot be set alone: other attributes would change with it");
}

}  // namespace

bool edit_renamed(ObjectEdit& to, std::span<const Rename> renames, const ObjectPath& path, const json& value) {
  for (const auto& rename : renames) {
    if (rename.from.size() > path.size()) continue;
    std::vector<std::string> names;  // that `*` stands for
    bool matches = true;
    for (std::size_t i = 0; i < rename.from.size() && matches; ++i) {
      if (rename.from[i] == "*")
        names.push_back(path[i]);
      else
        matches = rename.from[i] == path[i];
    }
    if (!matches) continue;
    ObjectPath place;
    std::size_t next = 0;
    for (const auto& step : rename.to) place.push_back(step == "*" ? names[next++] : step);
    place.insert(place.end(), path.begin() + static_cast<std::ptrdiff_t>(rename.from.size()), path.end());
    to.set(place, value);
    return true;
  }
  return false;
}

json wanted_object(const Resource& resource, const json& now, const Settings& settings,
                   std::span<const sdk::Change> changes) {
  ObjectEdit edit{now, resource, ListShape::of(resource)};
  for (const auto& change : changes) {
    try {
      edit_change(edit, common::parse_attribute_path(change.path), common::parse_change_value(change.old_value),
                  common::parse_change_value(change.new_value));
    } catch (const CannotSet& why) {
      throw CannotSet(change.path + " cannot be set: " + why.what());
    } catch (const json::exception&) {  // its text could quote a value
      throw CannotSet(change.path + " cannot be set: its value does not have the form of the attribute");
    }
  }
  check(body_of(resource, edit.wanted, settings), body_of(resource, now, settings), changes);
  return std::move(edit.wanted);
}

}  // namespace driftd::k8s
