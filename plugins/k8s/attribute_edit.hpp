// SPDX-License-Identifier: Apache-2.0
// The way back from attributes to an API object. Pure.
//
// mapping.hpp and rest.hpp decide what a record shows; what is here only has to find the place again. wanted_object()
// maps the result once more and compares, so a place that was not found exactly is a refusal and never a wrong value.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "driftd/sdk/extensions.hpp"
#include "k8s/kinds.hpp"
#include "k8s/object_edit.hpp"

namespace driftd::k8s {

/// An object that is being edited: `wanted` with the meaning of its lists.
struct ObjectEdit {
  nlohmann::json wanted;
  const Resource& resource;
  ListShape shape;

  void set(const ObjectPath& path, const nlohmann::json& value) { edit_at(wanted, shape, path, value); }
  nlohmann::json get(const ObjectPath& path) const { return value_at(wanted, shape, path); }
};

/// Returns the object with all changes made. `now` is the object as the server sent it. Throws CannotSet, which names
/// the attribute: it is of another system (a cluster IP, a Secret's data), there is no way back to its place, or what
/// would be mapped from the result is not exactly what is wanted.
nlohmann::json wanted_object(const Resource& resource, const nlohmann::json& now, const Settings& settings,
                             std::span<const sdk::Change> changes);

// The named attributes of one family of kinds; `path` is that of the attribute, `value` null to take it away. They
// return false if the attribute has the API's own names.
bool edit_workload(ObjectEdit& to, const ObjectPath& path, const nlohmann::json& value);
bool edit_ingress(ObjectEdit& to, const ObjectPath& path, const nlohmann::json& value);
bool edit_service(ObjectEdit& to, const ObjectPath& path, const nlohmann::json& value);
/// Sets what `ports[name=http]` of a Service says, the whole port or one member of it.
void edit_service_port(ObjectEdit& to, const std::string& name, const std::string& member, const nlohmann::json& value);

/// A name of ours, with `*` for one step, and where it is in the object; what follows in the path follows there, too.
struct Rename {
  ObjectPath from, to;
};
/// Sets the value by the first of `renames` that begins the path. Returns false if none does.
bool edit_renamed(ObjectEdit& to, std::span<const Rename> renames, const ObjectPath& path, const nlohmann::json& value);

}  // namespace driftd::k8s
