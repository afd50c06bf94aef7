// SPDX-License-Identifier: Apache-2.0
// Attributes that a reading calls unread are unknown (semantics 5), whether or not the baseline has them.
#include <set>

#include "core/judge/stages.hpp"

namespace driftd::core {

std::string without_double_star(const std::string& pattern) {
  const bool deep = pattern.size() > 3 && pattern.ends_with(".**");
  return deep ? pattern.substr(0, pattern.size() - 3) : pattern;
}

void add_unread(const JudgeContext& context, const ResourceId& id, const Observation& seen,
                std::vector<UnknownPath>& unknown) {
  std::set<std::string> named;
  for (const auto& each : unknown) named.insert(each.path);
  for (const auto& unread : seen.unread) {
    const bool not_offered = unread.code == Code::unsupported && unread.path != "**";
    const std::string plain = without_double_star(unread.path);
    if (not_offered || named.contains(unread.path) || named.contains(plain)) continue;
    const Path path = attribute_path(plain);
    if (context.schema->rule(path).is_volatile) continue;
    if (find_ignore(*context.rules, id, path, context.schema->cls(path)) != nullptr) continue;
    unknown.push_back({unread.path, unread.reason.empty() ? "unreadable" : unread.reason});
  }
}

}  // namespace driftd::core
