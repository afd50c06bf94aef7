// SPDX-License-Identifier: Apache-2.0
#include "openapi.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace driftd::test {
namespace {

using nlohmann::json;

const std::string kTypes = "#/components/schemas/";

/// The name of the type that a schema refers to. Empty if it is written out in place.
std::string type_of(const json& schema) {
  const json* at = &schema;
  if (schema.contains("allOf")) at = &schema.at("allOf").at(0);
  if (!at->contains("$ref")) return {};
  return at->at("$ref").get<std::string>().substr(kTypes.size());
}

/// What kind of value a schema without fields describes.
std::string form_of(const std::string& type, const json& schema) {
  if (type.ends_with(".Quantity")) return "quantity";
  if (schema.value("x-kubernetes-int-or-string", false)) return "int-or-string";
  const std::string format = schema.value("format", "");
  if (format == "int-or-string" || format == "date-time" || format == "byte") return format;
  const std::string plain = schema.value("type", "any");
  return plain == "object" || plain == "array" ? "any" : plain;
}

/// Gives the object that `schema` describes in place, if it does, a type called `name` among `schemas`, and refers to
/// it instead. Documents of CustomResourceDefinitions describe all their objects in place.
void name_type(json& schemas, json& schema, const std::string& name) {
  if (schema.contains("items")) return name_type(schemas, schema.at("items"), name);
  if (schema.contains("additionalProperties") && schema.at("additionalProperties").is_object())
    return name_type(schemas, schema.at("additionalProperties"), name);
  if (!schema.contains("properties")) return;
  json type = std::exchange(schema, json{{"$ref", kTypes + name}});
  for (auto& [field, inner] : type.at("properties").items()) name_type(schemas, inner, name + "." + field);
  schemas[name] = std::move(type);
}

json with_named_types(json document) {
  json& schemas = document.at("components").at("schemas");
  json more = json::object();
  for (auto& [name, type] : schemas.items()) {
    if (!type.contains("properties")) continue;
    for (auto& [field, inner] : type.at("properties").items()) name_type(more, inner, name + "." + field);
  }
  schemas.update(more);
  return document;
}

}  // namespace

ApiTypes::ApiTypes(json document) : document_(with_named_types(std::move(document))) {}

std::string Leaf::text() const {
  std::string out;
  for (const auto& part : path) out += (out.empty() ? "" : ".") + part;
  return out;
}

bool Leaf::is_property() const {
  return path.size() > 1 && path.back() == "@" && path[path.size() - 2] == "properties";
}

const json& ApiTypes::schema(const std::string& type) const {
  const json& all = document_.at("components").at("schemas");
  if (!all.contains(type)) throw std::runtime_error("the API server's document has no type " + type);
  return all.at(type);
}

std::vector<Leaf> ApiTypes::leaves(const std::string& type) const {
  std::vector<Leaf> out;
  enter(type, {}, out);
  std::erase_if(out, [](const Leaf& leaf) {
    return leaf.path[0] == "apiVersion" || leaf.path[0] == "kind" || leaf.path[0] == "status";
  });
  return out;
}

std::vector<Leaf> ApiTypes::places(const std::string& type) const {
  std::vector<Leaf> out = leaves(type);
  std::set<std::string> known;
  for (std::size_t i = 0, count = out.size(); i < count; ++i) {
    for (std::size_t length = 1; length < out[i].path.size(); ++length) {
      const std::string& next = out[i].path[length];
      Leaf place;
      place.path.assign(out[i].path.begin(), out[i].path.begin() + static_cast<std::ptrdiff_t>(length));
      place.types.assign(out[i].types.begin(), out[i].types.begin() + static_cast<std::ptrdiff_t>(length));
      place.form = next == "0" ? "list" : next == "@" ? "map" : "object";
      if (known.insert(place.text()).second) out.push_back(std::move(place));
    }
  }
  return out;
}

void ApiTypes::enter(const std::string& type, const Leaf& at, std::vector<Leaf>& out) const {
  for (const auto& [name, field] : schema(type).at("properties").items()) {
    if (at.path.empty() && name == "status") continue;
    Leaf next = at;
    next.path.push_back(name);
    next.types.emplace_back();
    walk(field, std::move(next), out);
  }
}

void ApiTypes::walk(const json& field, Leaf at, std::vector<Leaf>& out) const {
  const std::string type = type_of(field);
  const json& meant = type.empty() ? field : schema(type);
  const auto below = [&](const char* part, const json& what) {
    at.path.emplace_back(part);
    at.types.emplace_back();
    walk(what, at, out);
  };
  if (meant.contains("properties")) {
    if (std::count(at.types.begin(), at.types.end(), type) > (at.is_property() ? 1 : 0)) {
      at.form = type;
      out.push_back(std::move(at));
      return;
    }
    at.types.back() = type;
    return enter(type, at, out);
  }
  if (meant.value("type", "") == "array") return below("0", meant.at("items"));
  if (meant.contains("additionalProperties") && meant.at("additionalProperties").is_object())
    return below("@", meant.at("additionalProperties"));
  at.form = form_of(type, meant);
  at.types.back() = type;
  at.words = field.value("enum", meant.value("enum", json::array()));
  out.push_back(std::move(at));
}

json ApiTypes::smallest(const std::string& type, const json& given) const {
  if (given.contains(type)) return given.at(type);
  json out = json::object();
  const json& all = schema(type);
  for (const auto& name : all.value("required", json::array())) {
    out[name.get<std::string>()] = smallest_of(all.at("properties").at(name.get<std::string>()), given);
  }
  return out;
}

json ApiTypes::smallest_of(const json& field, const json& given) const {
  const std::string type = type_of(field);
  if (given.contains(type)) return given.at(type);
  const json& meant = type.empty() ? field : schema(type);
  if (meant.contains("properties")) return smallest(type, given);
  const json words = field.value("enum", meant.value("enum", json::array()));
  if (!words.empty()) return words.at(0);
  const std::string plain = meant.value("type", "");
  if (plain == "array") return json::array({smallest_of(meant.at("items"), given)});
  const std::string form = form_of(type, meant);
  if (form == "integer" || form == "number" || form == "int-or-string") return 1;
  if (form == "boolean") return true;
  if (form == "quantity") return "1";
  return form == "any" ? json::object() : json("a");
}

}  // namespace driftd::test
