// SPDX-License-Identifier: Apache-2.0
// Removes members that are not judged (ignored, volatile, computed) from the change of a whole subtree or list.
// Otherwise an open drift would change with every timestamp deep inside it.
#include <algorithm>

#include "core/judge/stages.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

class Pruner {
 public:
  Pruner(const JudgeContext& context, const ResourceId& id) : context_(context), id_(id) {}

  /// `other`: the value of the other side at the same place; nullptr if it has none.
  void prune(Value& value, const Value* other, const Path& at) const {
    if (as_digest(value)) return;
    if (Value::Object* members = value.object()) {
      std::erase_if(*members, [&](const auto& member) {
        const bool both = other != nullptr && other->find(member.first) != nullptr;
        return unjudged(at.child(member.first), both);
      });
      for (auto& [name, member] : *members)
        prune(member, other == nullptr ? nullptr : other->find(name), at.child(name));
    } else if (Value::Array* elements = value.array()) {
      const auto* others = other == nullptr ? nullptr : other->array();
      for (std::size_t i = 0; i < elements->size(); ++i)
        prune((*elements)[i], others != nullptr && i < others->size() ? &(*others)[i] : nullptr, at.child(i));
    }
  }

 private:
  /// `both`: both sides have the member. Of a computed one, only the first value is not judged.
  bool unjudged(const Path& path, bool both) const {
    const AttributeRule& rule = context_.schema->rule(path);
    return rule.is_volatile || (rule.computed && !both) ||
           find_ignore(*context_.rules, id_, path, context_.schema->cls(path)) != nullptr;
  }

  const JudgeContext& context_;
  const ResourceId& id_;
};

std::optional<Value> structure_in(const std::optional<std::string>& json) {
  if (!json || json->empty() || (json->front() != '{' && json->front() != '[')) return std::nullopt;
  auto value = parse(*json);
  return value ? std::optional(*std::move(value)) : std::nullopt;
}

}  // namespace

void prune_inside(const JudgeContext& context, const ResourceId& id, const Path& path, Value& value) {
  Pruner(context, id).prune(value, nullptr, path);
}

bool prune(const JudgeContext& context, const ResourceId& id, Change& change) {
  const Pruner pruner(context, id);
  const Path path = attribute_path(change.path);
  const auto before = structure_in(change.old_value), after = structure_in(change.new_value);
  const auto pruned = [&](std::optional<Value> value, const std::optional<Value>& other) {
    pruner.prune(*value, other ? &*other : nullptr, path);
    return render(*value);
  };
  if (before) change.old_value = pruned(before, after);
  if (after) change.new_value = pruned(after, before);
  return change.old_value != change.new_value;
}

}  // namespace driftd::core
