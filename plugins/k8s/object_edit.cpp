// SPDX-License-Identifier: Apache-2.0
#include "k8s/object_edit.hpp"

#include <algorithm>
#include <span>

#include "common/apply_steps.hpp"
#include "k8s/list_types.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using Steps = std::span<const std::string>;

/// Returns the name of an element by its keys: `80/TCP`. Empty if it lacks one of them.
std::string element_name(const json& element, const std::vector<std::string>& keys) {
  std::string out;
  for (const auto& key : keys) {
    const auto found = element.is_object() ? element.find(key) : element.end();
    if (!element.is_object() || found == element.end() || found->is_structured() || found->is_null()) return {};
    out += (out.empty() ? "" : "/") + (found->is_string() ? found->get<std::string>() : found->dump());
  }
  return out;
}

std::size_t index_of(const json& list, const std::vector<std::string>& keys, const std::string& name) {
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const json& one) { return element_name(one, keys) == name; });
  return static_cast<std::size_t>(at - list.begin());
}

[[noreturn]] void cannot_enter(const std::string& name) {
  throw common::CannotSet("'" + name + "' is below a list whose elements have no names");
}

void edit_list(json& list, const ListShape& shape, Steps path, const json& value);

void edit_object(json& object, const ListShape& shape, Steps path, const json& value) {
  const ListShape inner = shape.member(path[0]);
  if (path.size() == 1) {
    if (value.is_null())
      object.erase(path[0]);
    else
      object[path[0]] = listed(value, inner, object.value(path[0], json()));
    return;
  }
  if (!object.contains(path[0]) || object[path[0]].is_null()) {
    if (value.is_null()) return;  // what is not there has nothing to take away
    object[path[0]] = inner.keys().empty() ? json::object() : json::array();
  }
  json& next = object[path[0]];
  if (next.is_array()) return edit_list(next, inner, path.subspan(1), value);
  if (!next.is_object()) throw common::CannotSet("'" + path[0] + "' is not an object");
  edit_object(next, inner, path.subspan(1), value);
}

void edit_list(json& list, const ListShape& shape, Steps path, const json& value) {
  const auto keys = shape.keys();
  if (keys.empty()) cannot_enter(path[0]);
  const std::size_t at = index_of(list, keys, path[0]);
  if (path.size() > 1) {
    if (at == list.size()) throw common::CannotSet("there is no element '" + path[0] + "' any more");
    return edit_object(list[at], shape.element(), path.subspan(1), value);
  }
  if (value.is_null()) {
    if (at < list.size()) list.erase(at);
    return;
  }
  if (element_name(value, keys) != path[0]) throw common::CannotSet("an element lacks its key '" + path[0] + "'");
  json element = value;
  const json like = at < list.size() ? list[at] : json();
  const ListShape inner = shape.element();
  for (auto& [name, member] : element.items())
    member = listed(member, inner.member(name), like.is_object() ? like.value(name, json()) : json());
  if (at < list.size())
    list[at] = std::move(element);
  else
    list.push_back(std::move(element));
}

}  // namespace

ListShape ListShape::of(const Resource& resource) {
  const ListTypes& types = resource.lists ? *resource.lists : ListTypes::shipped();
  const std::string& kind = resource.lists ? resource.object : resource.kind;
  const json& table = types.table();
  const auto type = table.at("kinds").find(kind);
  return {&table, type == table.at("kinds").end() ? json() : json{{"of", *type}}};
}

ListShape ListShape::member(const std::string& name) const {
  const std::string type = field_.is_object() ? field_.value("of", "") : "";
  const auto fields = table_->at("types").find(type);
  if (fields == table_->at("types").end()) return {table_, json()};
  auto field = fields->find(name);
  if (field == fields->end()) field = fields->find("*");
  return {table_, field == fields->end() ? json() : *field};
}

ListShape ListShape::element() const {
  return {table_, field_.is_object() && field_.contains("of") ? json{{"of", field_["of"]}} : json()};
}

std::vector<std::string> ListShape::keys() const {
  if (!field_.is_object() || !field_.contains("keys")) return {};
  return field_["keys"].get<std::vector<std::string>>();
}

json listed(const json& value, const ListShape& shape, const json& like) {
  const auto keys = shape.keys();
  if (value.is_object() && keys.empty()) {
    json out = json::object();
    for (const auto& [name, member] : value.items())
      out[name] = listed(member, shape.member(name), like.is_object() ? like.value(name, json()) : json());
    return out;
  }
  if (!value.is_object()) return value;
  std::vector<std::string> order;  // as it was, then what is new
  for (const auto& element : like.is_array() ? like : json::array()) {
    const std::string name = element_name(element, keys);
    if (value.contains(name)) order.push_back(name);
  }
  for (const auto& [name, element] : value.items()) {
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  }
  json out = json::array();
  for (const auto& name : order) edit_list(out, shape, Steps(&name, 1), value.at(name));
  return out;
}

void edit_at(json& object, const ListShape& shape, const ObjectPath& path, const json& value) {
  edit_object(object, shape, path, value);
}

json value_at(const json& object, const ListShape& shape, const ObjectPath& path) {
  const json* at = &object;
  ListShape here = shape;
  for (const auto& name : path) {
    if (at->is_array()) {
      const std::size_t index = here.keys().empty() ? at->size() : index_of(*at, here.keys(), name);
      if (index == at->size()) return nullptr;
      at = &(*at)[index];
      here = here.element();
      continue;
    }
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
    here = here.member(name);
  }
  return *at;
}

}  // namespace driftd::k8s
