// SPDX-License-Identifier: Apache-2.0
#include "leaf_table.hpp"

#include <fnmatch.h>
#include <algorithm>
#include <sstream>

#include "k8s/exceptions.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

std::vector<json> usual_values(const std::string& form) {
  if (form == "boolean") return {true, false};
  if (form == "integer" || form == "number") return {1, 2, 3, 10, 20, 100, 200, 0, 60000, 60001};
  if (form == "quantity") return {"1", "2", "100Mi", "200Mi"};
  if (form == "int-or-string") return {1, 2, "a-1", "b-2", "50%", "60%"};
  if (form == "date-time") return {"2031-01-01T00:00:00Z", "2032-01-01T00:00:00Z"};
  if (form == "byte") return {"YQ==", "Yg=="};
  if (form == "string") {
    return {"a-1",       "b-2",       "/a/b", "/c/d", "10.0.0.1", "10.0.0.2", "example.org/a", "example.org/b",
            "a.example", "b.example", "1",    "2",    "1s",       "2s",       "10.1.0.0/16",   "10.2.0.0/16"};
  }
  return {json{{"a", "1"}}, json{{"a", "2"}}, "a", "b"};
}

/// Resolves the path of a companion: absolute, relative to the leaf (`../name`), or to the spec of the pod whose
/// container has the leaf (`pod/volumes`).
json::json_pointer from(json::json_pointer leaf, const std::string& path) {
  if (path.starts_with("/")) return json::json_pointer(path);
  if (path.starts_with("pod/")) {
    while (leaf.back() != "containers" && leaf.back() != "initContainers") leaf.pop_back();
    leaf.pop_back();
    return leaf / json::json_pointer(path.substr(3));
  }
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) {
    if (part == "..")
      leaf.pop_back();
    else
      leaf /= part;
  }
  return leaf;
}

/// The entry of the provider's table that covers the whole leaf in this way. Null if there is none.
const k8s::Exception* exception_of(const LeafKind& kind, const Leaf& leaf, k8s::Handling handling) {
  const std::string text = leaf.text() + ".";
  for (const auto& each : k8s::exceptions()) {
    const std::string kinds = " " + std::string(each.kinds) + " ";
    if (each.kinds != "*" && kinds.find(" " + kind.kind + " ") == std::string::npos) continue;
    if (each.handling != handling || !each.member.empty()) continue;
    std::string path(each.path);
    for (auto at = path.find("[]"); at != std::string::npos; at = path.find("[]")) path.replace(at, 2, "0");
    if (text.starts_with(path + ".")) return &each;
  }
  return nullptr;
}

}  // namespace

std::string LeafKind::path(const std::string& space) const {
  return "/" + document + (namespaced ? "/namespaces/" + space : "") + "/" + plural;
}

LeafTable::LeafTable(const std::string& json_text) : data_(json::parse(json_text, nullptr, true, true)) {
  for (const auto& each : data_.at("kinds")) {
    json base = each.at("base");
    if (base.is_string()) base = data_.at("bases").at(base.get<std::string>());
    if (each.contains("more")) base.merge_patch(each.at("more"));
    const bool custom = base.contains("apiVersion");  // which the API server knows of its own kinds
    kinds_.push_back({each.at("kind"), each.at("document"), each.at("type"), each.at("plural"),
                      each.value("namespaced", true), std::move(base), each.value("recreated", false),
                      each.at("refused"), custom, each.value("front", "")});
  }
}

const json* LeafTable::match(const char* table, const LeafKind& kind, const Leaf& leaf) const {
  const std::string text = kind.kind + "/" + leaf.text();
  const json* best = nullptr;
  std::size_t length = 0;
  for (const auto& [pattern, value] : data_.at(table).items()) {
    const bool type = pattern == leaf.types.back() || pattern == leaf.form;
    const std::size_t weight = type ? 1 : pattern.size();
    if (weight < length || (!type && ::fnmatch(pattern.c_str(), text.c_str(), 0) != 0)) continue;
    best = &value;
    length = weight;
  }
  return best;
}

std::vector<json> LeafTable::values(const LeafKind& kind, const Leaf& leaf) const {
  if (const json* own = match("values", kind, leaf)) return *own;
  if (!leaf.words.empty()) return leaf.words;
  return usual_values(leaf.form);
}

json::json_pointer LeafTable::place(const LeafKind& kind, const Leaf& leaf) const {
  json::json_pointer out;
  for (std::size_t i = 0; i < leaf.path.size(); ++i) {
    if (leaf.path[i] != "@") {
      out /= leaf.path[i];
      continue;
    }
    Leaf map;
    map.path.assign(leaf.path.begin(), leaf.path.begin() + static_cast<std::ptrdiff_t>(i));
    map.types.assign(leaf.types.begin(), leaf.types.begin() + static_cast<std::ptrdiff_t>(i));
    const json* key = match("keys", kind, map);
    out /= key == nullptr ? "key" : key->get<std::string>();
  }
  return out;
}

json LeafTable::build(const LeafKind& kind, const ApiTypes& types, const Leaf& leaf, const json& value) const {
  json out = kind.base;
  const json &shapes = data_.at("shapes"), &choices = data_.at("one_of");
  json::json_pointer whole = place(kind, leaf);
  std::vector<std::string> parts;
  for (; !whole.empty(); whole.pop_back()) parts.insert(parts.begin(), whole.back());
  json* node = &out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& type = i == 0 ? kind.type : leaf.types[i - 1];
    if (choices.contains(type)) {
      const json& group = choices.at(type);
      if (std::find(group.begin(), group.end(), parts[i]) != group.end())
        for (const auto& other : group)
          if (other != parts[i]) node->erase(other.get<std::string>());
    }
    if (leaf.path[i] == "0") {
      if (node->is_null()) *node = json::array();
      if (node->empty()) node->push_back(nullptr);
      node = &node->at(0);
    } else {
      node = &(*node)[parts[i]];
    }
    if (node->is_null() && i + 1 < parts.size() && !leaf.types[i].empty())
      *node = types.smallest(leaf.types[i], shapes);
  }
  *node = value;
  add_companions(kind, leaf, value, out);
  return out;
}

void LeafTable::add_companions(const LeafKind& kind, const Leaf& leaf, const json& value, json& object) const {
  const std::string text = kind.kind + "/" + leaf.text();
  for (const auto& [pattern, companions] : data_.at("companions").items()) {
    if (::fnmatch(pattern.c_str(), text.c_str(), 0) != 0) continue;
    for (const auto& [path, other] : companions.items()) {
      const json::json_pointer where = from(place(kind, leaf), path);
      if (!other.is_null())
        object[where] = other == "$" ? value : other;
      else if (object.contains(where))
        object.at(where.parent_pointer()).erase(where.back());
    }
  }
}

std::string LeafTable::outside(const LeafKind& kind, const Leaf& leaf) const {
  const json* why = match("outside", kind, leaf);
  return why == nullptr ? "" : why->get<std::string>();
}

std::string LeafTable::excepted(const LeafKind& kind, const Leaf& leaf) {
  const k8s::Exception* found = exception_of(kind, leaf, k8s::Handling::dropped);
  return found == nullptr ? std::string() : std::string(found->reason);
}

std::string LeafTable::hollow(const LeafKind& kind, const Leaf& leaf) const {
  const json* why = match("hollow", kind, leaf);
  return why == nullptr ? "" : why->get<std::string>();
}

std::set<std::string> LeafTable::hollow_exceptions(const LeafKind& kind) {
  std::set<std::string> out;
  for (const auto& each : k8s::exceptions()) {
    const std::string kinds = " " + std::string(each.kinds) + " ";
    if (each.handling == k8s::Handling::hollow && kinds.find(" " + kind.kind + " ") != std::string::npos)
      out.emplace(each.path);
  }
  return out;
}

std::string LeafTable::hollow_exception(const LeafKind& kind, const Leaf& leaf) {
  const auto slashed = [](std::string path) {  // so that a `*` stands for one part of the path
    for (auto at = path.find("[]"); at != std::string::npos; at = path.find("[]")) path.replace(at, 2, "0");
    std::replace(path.begin(), path.end(), '.', '/');
    return path;
  };
  for (const auto& path : hollow_exceptions(kind)) {
    if (::fnmatch(slashed(path).c_str(), slashed(leaf.text()).c_str(), FNM_PATHNAME) == 0) return path;
  }
  return {};
}

bool LeafTable::filled_in(const LeafKind& kind, const Leaf& leaf) {
  return exception_of(kind, leaf, k8s::Handling::filled_in) != nullptr;
}

std::string LeafTable::refused_whole(const LeafKind& kind, const Leaf& leaf) const {
  const std::string text = kind.kind + "/" + leaf.text();
  for (const auto& pattern : data_.at("refused_whole")) {
    if (::fnmatch((pattern.get<std::string>() + ".*").c_str(), text.c_str(), 0) == 0) return pattern;
  }
  return {};
}

}  // namespace driftd::test
