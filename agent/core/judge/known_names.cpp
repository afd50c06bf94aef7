// SPDX-License-Identifier: Apache-2.0
#include "core/judge/known_names.hpp"

#include <algorithm>

namespace driftd::core {
namespace {

const std::string* text_of(const Value& object, std::string_view name) {
  const Value* found = object.find(name);
  return found == nullptr ? nullptr : found->string();
}

}  // namespace

Status KnownNames::add(const Value& document) {
  if (const auto* groups = document.array()) {
    for (std::size_t i = 0; i < groups->size(); ++i) {
      const auto* names = (*groups)[i].array();
      std::vector<std::string> group;
      for (const auto& name : names == nullptr ? Value::Array{} : *names) {
        if (name.string() == nullptr) return fail(Code::invalid, "[" + std::to_string(i) + "]: a name must be a text");
        group.push_back(*name.string());
      }
      if (group.size() < 2)
        return fail(Code::invalid, "[" + std::to_string(i) + "]: expected a list of at least two names of one thing");
      add_group({}, group);
    }
    return {};
  }
  const Value* resources = document.find("resources");
  if (resources == nullptr || resources->array() == nullptr)
    return fail(Code::invalid, "expected a Terraform state or a list of lists of names, found neither");
  for (const auto& resource : *resources->array()) {
    const auto* type = text_of(resource, "type");
    const Value* instances = resource.find("instances");
    if (type == nullptr || instances == nullptr || instances->array() == nullptr)
      return fail(Code::invalid, "resources: expected type and instances, as in a Terraform state of version 4");
    for (const auto& instance : *instances->array()) add_instance(*type, instance);
  }
  return {};
}

void KnownNames::add_instance(const std::string& type, const Value& instance) {
  const Value* attributes = instance.find("attributes");
  if (attributes == nullptr) return;
  std::vector<std::string> names;
  for (const auto* member : {"id", "arn", "name", "self_link", "unique_id"}) {
    const auto* text = text_of(*attributes, member);
    if (text != nullptr && !text->empty()) names.push_back(*text);
  }
  if (names.size() > 1) add_group(type, names);
}

void KnownNames::add_group(std::string type, const std::vector<std::string>& names) {
  for (const auto& name : names) groups_[name].insert(types_.size());
  types_.push_back(std::move(type));
}

bool KnownNames::same(const std::vector<std::string>& types, std::string_view a, std::string_view b) const {
  const auto left = groups_.find(a), right = groups_.find(b);
  if (left == groups_.end() || right == groups_.end()) return false;
  return std::any_of(left->second.begin(), left->second.end(), [&](std::size_t group) {
    const std::string& type = types_[group];
    const bool of_type = types.empty() || type.empty() || std::find(types.begin(), types.end(), type) != types.end();
    return of_type && right->second.contains(group);
  });
}

}  // namespace driftd::core
