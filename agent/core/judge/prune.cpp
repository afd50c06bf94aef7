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

  void prune(Value& value, const Path& at) const {
    if (as_digest(value)) return;
    if (Value::Object* members = value.object()) {
      std::erase_if(*members, [&](const auto& member) { return unjudged(at.child(member.first)); });
      for (auto& [name, member] : *members) prune(member, at.child(name));
    } else if (Value::Array* elements = value.array()) {
      for (std::size_t i = 0; i < elements->size(); ++i) prune((*elements)[i], at.child(i));
    }
  }

 private:
  bool unjudged(const Path& path) const {
    const AttributeRule& rule = context_.schema->rule(path);
    return rule.is_volatile || rule.computed ||
           find_ignore(*context_.rules, id_, path, context_.schema->cls(path)) != nullptr;
  }

  const JudgeContext& context_;
  const ResourceId& id_;
};

void prune_text(const Pruner& pruner, const Path& path, std::optional<std::string>& json) {
  if (!json || json->empty() || (json->front() != '{' && json->front() != '[')) return;
  Result<Value> value = parse(*json);
  if (!value) return;
  pruner.prune(*value, path);
  json = render(*value);
}

}  // namespace

void prune_inside(const JudgeContext& context, const ResourceId& id, const Path& path, Value& value) {
  Pruner(context, id).prune(value, path);
}

bool prune(const JudgeContext& context, const ResourceId& id, Change& change) {
  const Pruner pruner(context, id);
  const Path path = attribute_path(change.path);
  prune_text(pruner, path, change.old_value);
  prune_text(pruner, path, change.new_value);
  return change.old_value != change.new_value;
}

}  // namespace driftd::core
