// SPDX-License-Identifier: Apache-2.0
#include "k8s/list_types.hpp"

#include <algorithm>
#include <map>

#include "driftd_k8s_list_types.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;

/// Returns the name of an element: its keys joined by `/`. Empty if it lacks one of them.
std::string name_of(const json& element, const json& keys) {
  std::string out;
  for (const auto& key : keys) {
    const auto found = element.is_object() ? element.find(key.get_ref<const std::string&>()) : element.end();
    if (!element.is_object() || found == element.end() || found->is_structured() || found->is_null()) return {};
    out += (out.empty() ? "" : "/") + (found->is_string() ? found->get<std::string>() : found->dump());
  }
  return out;
}

/// Returns the list as an object by the keys of its elements, or as it is if a key is missing or repeated.
json by_keys(json list, const json& keys) {
  std::map<std::string, std::size_t> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = name_of(list[i], keys);
    if (name.empty() || !names.emplace(name, i).second) return list;
  }
  json out = json::object();
  for (const auto& [name, i] : names) out[name] = std::move(list[i]);
  return out;
}

std::string text_of(const json& field, const char* member) {
  const auto found = field.find(member);
  return found == field.end() ? std::string() : found->get<std::string>();
}

}  // namespace

const ListTypes& ListTypes::shipped() {
  static const ListTypes kShipped(json::parse(driftd_k8s_list_types));
  return kShipped;
}

const json& ListTypes::field_of(const std::string& type, const std::string& member) const {
  static const json kNothing;
  const auto fields = table_.at("types").find(type);
  if (fields == table_.at("types").end()) return kNothing;
  auto field = fields->find(member);
  if (field == fields->end()) field = fields->find("*");
  return field == fields->end() ? kNothing : *field;
}

std::string ListTypes::type_of(const std::string& kind) const { return text_of(table_.at("kinds"), kind.c_str()); }

json ListTypes::shape(const json& value, const std::string& type) const {
  if (type.empty() || !value.is_object()) return value;
  json out = json::object();
  for (const auto& [name, member] : value.items()) out[name] = shape_field(member, field_of(type, name));
  return out;
}

json ListTypes::shape_field(const json& value, const json& field) const {
  if (!field.is_object()) return value;
  const std::string of = text_of(field, "of");
  if (!value.is_array()) return shape(value, of);
  json out = json::array();
  for (const auto& element : value) out.push_back(shape(element, of));
  if (field.contains("set")) std::sort(out.begin(), out.end());
  return field.contains("keys") ? by_keys(std::move(out), field.at("keys")) : out;
}

json ListTypes::shaped(const json& object, const std::string& kind) const { return shape(object, type_of(kind)); }

json ListTypes::shaped_at(const json& value, const std::string& kind, const std::vector<std::string>& path) const {
  json field = {{"of", type_of(kind)}};
  for (const auto& name : path) {
    const bool index = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    const std::string of = field.is_object() ? text_of(field, "of") : std::string();
    field = index ? json{{"of", of}} : field_of(of, name);
  }
  return shape_field(value, field);
}

}  // namespace driftd::k8s
